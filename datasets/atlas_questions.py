"""Questions about the atlas: chains, comparisons and differences, in clusters that share facts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from atlas_names import words
from atlas_text import Library
from atlas_world import UNITS

CLUSTERS = 40
BRIDGES = {2: 40, 3: 30, 4: 20, 5: 12, 6: 6}
"""How many chain questions there are of each number of hops."""
PAIRS = {
    ("comparison", 2): 6,
    ("comparison", 4): 12,
    ("comparison", 5): 5,
    ("comparison", 6): 5,
    ("difference", 2): 8,
    ("difference", 3): 4,
    ("difference", 4): 8,
    ("difference", 6): 4,
}
"""How many questions about two things there are, by kind and hops."""
NUMBERS = frozenset(words("population tonnage circulation workforce")) | set(UNITS)
YEARS = frozenset(f"{what} year" for what in words("founding birth opening launch signing"))
PLACES = {"headquarters", "venue"}
"""Relations one may ask for with "In which town"."""


@dataclass(frozen=True)
class Fact:
    """One relation of one entity."""

    entity: str
    relation: str
    value: str


@dataclass(frozen=True)
class Question:
    """A question, its answers and the facts that lead there."""

    prompt: str
    kind: str
    expected: str | list[str]
    facts: tuple[Fact, ...]


class NoQuestion(Exception):
    """This draw led nowhere; draw again."""


class Asker:
    """Draws the questions; a fact is asked for in one cluster only."""

    def __init__(self, library: Library, seed: int) -> None:
        self.library = library
        self.rng = random.Random(seed)
        self.entities = library.world.by_name
        self.facts = [
            Fact(entity.name, relation, str(value))
            for entity in self.entities.values()
            for relation, value in entity.facts.items()
        ]
        self.leading_to: dict[str, list[Fact]] = {}
        for fact in self.facts:
            self.leading_to.setdefault(fact.value, []).append(fact)
        self.owner: dict[Fact, int] = {}
        self.used: Counter[str] = Counter()
        self.prompts: set[str] = set()

    def clusters(self) -> list[list[Question]]:
        """All questions, cluster by cluster."""
        return [self._cluster(n, plan) for n, plan in enumerate(self._plans())]

    def _plans(self) -> list[list[tuple[str, int]]]:
        """For each cluster, kind and hops of its five questions; the longest chain first."""
        bridges = [("bridge", hops) for hops, count in BRIDGES.items() for _ in range(count)]
        pairs = [key for key, count in PAIRS.items() for _ in range(count)]
        self.rng.shuffle(bridges)
        self.rng.shuffle(pairs)
        plans = []
        for n in range(CLUSTERS):
            chains = sorted((bridges.pop() for _ in range(2)), key=lambda plan: -plan[1])
            third = [pairs.pop()] if n < len(PAIRS) + 4 else [bridges.pop()]
            plans.append([*chains, *third, pairs.pop(), ("single", 1)])
        assert not bridges
        assert not pairs
        return plans

    def _cluster(self, number: int, plan: Iterable[tuple[str, int]]) -> list[Question]:
        made: list[Question] = []
        for kind, hops in plan:
            for _ in range(20_000):
                try:
                    question = self._draw(number, kind, hops, made)
                except NoQuestion:
                    continue
                break
            else:
                raise RuntimeError(f"no {kind} question with {hops} hops in cluster {number}")
            made.append(question)
            self.prompts.add(question.prompt)
            for fact in question.facts:
                self.owner[fact] = number
                self.used[fact.relation] += 1
        return made

    def _draw(self, number: int, kind: str, hops: int, made: list[Question]) -> Question:
        seen = list(dict.fromkeys(fact for question in made for fact in question.facts))
        if kind in ("single", "bridge"):
            question = self._chain(kind, hops, seen)
        else:
            question = self._pair(kind, hops, seen)
        taken = any(self.owner.get(fact, number) != number for fact in question.facts)
        if taken or question.prompt in self.prompts:
            raise NoQuestion
        return question

    def _chain(self, kind: str, hops: int, seen: list[Fact]) -> Question:
        start = self.rng.choice(seen) if seen else self._pick(self.facts)
        chain = [start]
        while len(chain) < hops:
            ahead = chain[-1].value in self.entities
            if ahead and self.rng.random() < 0.6:
                onward = [Fact(chain[-1].value, r, str(v)) for r, v in self._of(chain[-1].value)]
                chain.append(self._pick(onward))
            else:
                chain.insert(0, self._pick(self.leading_to.get(chain[0].entity, [])))
        self._check_distinct(chain)
        last = chain[-1]
        return Question(self._ask(chain), kind, _answers(last.value, last.relation), tuple(chain))

    def _pair(self, kind: str, hops: int, seen: list[Fact]) -> Question:
        near = [name for fact in seen for name in (fact.entity, fact.value)]
        first = self.rng.choice([name for name in near if name in self.entities])
        relation = self._measure(first)
        wanted = self.entities[first].kind
        second = self.rng.choice(
            [e.name for e in self.entities.values() if e.kind == wanted and relation in e.facts]
        )
        steps = hops - 2
        left = self._back(first, self.rng.choice([steps // 2, steps - steps // 2]), prefer=seen)
        right = self._back(second, steps - len(left), prefer=[])
        ends = [Fact(n, relation, str(self.entities[n].facts[relation])) for n in (first, second)]
        one, two = int(ends[0].value), int(ends[1].value)
        chains = [*left, ends[0]], [*right, ends[1]]
        self._check_distinct(*chains)
        if abs(one - two) < 2:
            raise NoQuestion
        sides = [_phrase(left, first), _phrase(right, second)]
        facts = tuple(chains[0] + chains[1])
        if kind == "difference":
            prompt = "By how much do the {r} of {0} and the {r} of {1} differ?"
            text = prompt.format(*sides, r=relation)
            return Question(text, kind, _answers(str(abs(one - two)), relation, gap=True), facts)
        high = self.rng.random() < 0.5
        word = ("later" if high else "earlier") if relation in YEARS else ""
        word = word or ("larger" if high else "smaller")
        text = f"Which has the {word} {relation}: {sides[0]} or {sides[1]}?"
        return Question(text, kind, first if (one > two) == high else second, facts)

    def _measure(self, name: str) -> str:
        options = [r for r, _ in self._of(name) if r in NUMBERS | YEARS]
        if not options:
            raise NoQuestion
        return self.rng.choice(options)

    def _back(self, name: str, steps: int, *, prefer: list[Fact]) -> list[Fact]:
        """A chain of that many facts that leads to the entity."""
        chain: list[Fact] = []
        for _ in range(steps):
            options = self.leading_to.get(chain[0].entity if chain else name, [])
            known = [fact for fact in options if fact in prefer]
            chain.insert(0, self._pick(known or options))
        return chain

    def _of(self, name: str) -> Iterable[tuple[str, str | int]]:
        return self.entities[name].facts.items()

    def _pick(self, facts: list[Fact]) -> Fact:
        """One of the facts, those with relations that were rarely asked for first."""
        if not facts:
            raise NoQuestion
        weights = [1 / (1 + self.used[fact.relation]) for fact in facts]
        return self.rng.choices(facts, weights=weights)[0]

    def _check_distinct(self, *chains: list[Fact]) -> None:
        """No thing is met twice: a chain that comes back has a shorter way."""
        met = [chain[0].entity for chain in chains]
        met += [f.value for chain in chains for f in chain if f.value in self.entities]
        if len(met) != len(set(met)):
            raise NoQuestion

    def _ask(self, chain: list[Fact]) -> str:
        last = chain[-1]
        phrase = _phrase(chain, last.value)
        kind = self.entities[last.value].kind if last.value in self.entities else "number"
        if kind == "person":
            return f"Who is {phrase}?"
        if last.relation in PLACES and self.rng.random() < 0.5:
            return f"In which town is {phrase}?"
        if kind != "number" and self.rng.random() < 0.2:
            return f"Which {'town' if kind == 'city' else kind} is {phrase}?"
        return f"What is {phrase}?"


def _phrase(chain: list[Fact], name: str) -> str:
    """The chain as a noun phrase, innermost thing last; a name if the chain is empty."""
    if not chain:
        return name
    relations = " of ".join(f"the {fact.relation}" for fact in reversed(chain))
    return f"{relations} of {chain[0].entity}"


def _answers(value: str, relation: str, *, gap: bool = False) -> str | list[str]:
    unit = UNITS.get(relation) or ("years" if gap and relation in YEARS else None)
    return [value, f"{value} {unit}"] if unit else value


def task_rows(library: Library, seed: int) -> list[dict[str, Any]]:
    """The questions as they are written to the file; the first is a two-hop chain."""
    rng = random.Random(seed)
    asker = Asker(library, seed)
    number = {row["title"]: row["id"] for row in library.rows()}
    counts: Counter[str] = Counter()
    rows = []
    for questions in asker.clusters():
        country = asker.entities[questions[0].facts[0].entity].country
        counts[country] += 1
        cluster = f"{country.lower()}-{counts[country]}"
        rows += [_row(question, cluster, library, number) for question in questions]
    _mix(rows, rng)
    return [{"id": f"atlas-{n:03d}", **row} for n, row in enumerate(rows, 1)]


def _mix(rows: list[dict[str, Any]], rng: random.Random) -> None:
    """Shuffle: an easy two-hop chain about a person first, all kinds among the first twenty."""
    kinds = {row["metadata"]["kind"] for row in rows}
    while True:
        rng.shuffle(rows)
        first = next(row for row in rows if _is_opener(row))
        rows.sort(key=lambda row: row is not first)
        if {row["metadata"]["kind"] for row in rows[:20]} == kinds:
            return


def _is_opener(row: dict[str, Any]) -> bool:
    meta = row["metadata"]
    easy = (meta["hops"], meta["difficulty"]) == (2, "easy")
    return easy and row["prompt"].startswith("Who")


def _row(
    question: Question, cluster: str, library: Library, number: dict[str, str]
) -> dict[str, Any]:
    facts = question.facts
    told = [library.told[fact.entity, fact.relation] for fact in facts]
    hidden = sum(fact.entity not in titles for fact, titles in zip(facts, told, strict=True))
    return {
        "prompt": question.prompt,
        "expected": question.expected,
        "metadata": {
            "kind": question.kind,
            "hops": len(facts),
            "cluster": cluster,
            "difficulty": difficulty(len(facts), hidden),
            "evidence": [number[titles[0]] for titles in told],
        },
    }


def difficulty(hops: int, hidden: int) -> str:
    """How hard a question is, from its hops and the facts that only other documents state."""
    if hops <= 2 and not hidden:
        return "easy"
    return "hard" if hops >= 5 or (hidden and hops >= 3) else "medium"
