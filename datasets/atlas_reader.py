"""Reads the atlas as a stranger would: facts and answers from the sentences of the corpus alone.

It knows the four forms of a fact and the forms of a question, and shares nothing with the
scripts that wrote them, so that it can check what they wrote.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NAME = r"[A-Z][A-Za-z ]*"
RELATION = r"[a-z]+(?: [a-z]+)*?"
VALUE = rf"{NAME}|\d+(?: [a-z]+)?"
FORMS = tuple(
    re.compile(form)
    for form in (
        rf"The (?P<r>{RELATION}) of (?P<e>{NAME}) is (?P<v>{VALUE})\.",
        rf"(?P<e>{NAME})'s (?P<r>{RELATION}) is (?P<v>{VALUE})\.",
        rf"(?P<v>{VALUE}) is the (?P<r>{RELATION}) of (?P<e>{NAME})\.",
        rf"Its (?P<r>{RELATION}) is (?P<v>{VALUE})\.",
        rf"The (?P<r>former {RELATION}) of (?P<e>{NAME}) was (?P<v>{VALUE})\.",
    )
)
SUSPECT = re.compile(r" is the |'s [a-z ]+ (is|was) |^The .* of .* (is|was) |^Its .* (is|was) ")
"""A sentence that reads like a fact; all such sentences must have one of the forms."""

CHAIN = re.compile(r"(?:What|Who|Which [a-z]+|In which [a-z]+) is (?P<np>.+)\?")
COMPARISON = re.compile(
    r"Which has the (?P<word>larger|smaller|earlier|later) (?P<r>[a-z ]+): (?P<a>.+) or (?P<b>.+)\?"
)
DIFFERENCE = re.compile(
    r"By how much do the (?P<r>[a-z ]+?) of (?P<a>.+) and the (?P=r) of (?P<b>.+) differ\?"
)
BOTH_WAYS = ("spouse", "twin city", "sister ship")
ORDER = (
    ("founder", "birth year", "founding year"),
    ("architect", "birth year", "opening year"),
    ("builder", "founding year", "opening year"),
    ("mediator", "birth year", "signing year"),
    ("drafter", "birth year", "signing year"),
    ("mentor", "birth year", "birth year"),
    ("parent company", "founding year", "founding year"),
    ("capital", "population", "population"),
)
"""Relation, a number of its value, and a larger number of the entity itself."""


@dataclass(frozen=True)
class Fact:
    """One relation of one entity, as a sentence states it."""

    entity: str
    relation: str
    value: str


@dataclass(frozen=True)
class Solution:
    """An answer and the facts it needs, in order."""

    answer: str
    facts: tuple[Fact, ...]


class Unreadable(Exception):
    """A text that does not have the form it should."""


class Atlas:
    """The facts of a corpus, each with the documents that state it."""

    def __init__(self, rows: Iterable[dict[str, str]]) -> None:
        self.rows = list(rows)
        self.page = {row["title"]: row["id"] for row in self.rows}
        self.titles = set(self.page)
        self.stated: dict[Fact, list[str]] = {}
        self.suspects: list[str] = []
        for row in self.rows:
            for sentence in re.split(r"(?<=\.) ", row["text"]):
                self._read(sentence, row)
        self.values: dict[tuple[str, str], list[str]] = {}
        for fact in self.stated:
            self.values.setdefault((fact.entity, fact.relation), []).append(fact.value)

    def _read(self, sentence: str, row: dict[str, str]) -> None:
        for form in FORMS:
            if found := form.fullmatch(sentence):
                parts = found.groupdict()
                fact = Fact(parts.get("e", row["title"]), parts["r"], parts["v"])
                self.stated.setdefault(fact, []).append(row["id"])
                return
        if SUSPECT.search(sentence):
            self.suspects.append(f"{row['id']}: {sentence}")

    def solve(self, prompt: str) -> list[Solution]:
        """Every answer the corpus gives to a question."""
        if found := COMPARISON.fullmatch(prompt):
            return list(self._compare(**found.groupdict()))
        if found := DIFFERENCE.fullmatch(prompt):
            return list(self._differ(**found.groupdict()))
        if found := CHAIN.fullmatch(prompt):
            return list(self._follow(found["np"]))
        raise Unreadable(prompt)

    def _follow(self, phrase: str) -> Iterator[Solution]:
        """What a noun phrase stands for."""
        if phrase in self.titles:
            yield Solution(phrase, ())
            return
        found = re.fullmatch(r"the ([a-z ]+?) of (.+)", phrase)
        if not found:
            raise Unreadable(phrase)
        for inner in self._follow(found[2]):
            for value in self.values.get((inner.answer, found[1]), []):
                fact = Fact(inner.answer, found[1], value)
                yield Solution(value, (*inner.facts, fact))

    def _numbers(self, relation: str, a: str, b: str) -> Iterator[tuple[Solution, Solution]]:
        for one in self._follow(f"the {relation} of {a}"):
            for two in self._follow(f"the {relation} of {b}"):
                yield one, two

    def _compare(self, word: str, r: str, a: str, b: str) -> Iterator[Solution]:
        for one, two in self._numbers(r, a, b):
            first, second = number(one.answer), number(two.answer)
            if first != second:
                high = word in ("larger", "later")
                best = one if (first > second) == high else two
                yield Solution(best.facts[-1].entity, one.facts + two.facts)

    def _differ(self, r: str, a: str, b: str) -> Iterator[Solution]:
        for one, two in self._numbers(r, a, b):
            gap = str(abs(number(one.answer) - number(two.answer)))
            unit = one.answer.partition(" ")[2] or ("years" if r.endswith(" year") else "")
            yield Solution(f"{gap} {unit}".strip(), one.facts + two.facts)


def number(value: str) -> int:
    """The number a value begins with."""
    return int(value.partition(" ")[0])


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The objects of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def corpus_problems(atlas: Atlas) -> list[str]:
    """What is wrong with the documents."""
    problems = [f"reads like a fact, but is none: {text}" for text in atlas.suspects]
    for what in ("id", "title"):
        counts = Counter(row[what] for row in atlas.rows)
        problems += [f"{what} {key!r} occurs {n} times" for key, n in counts.items() if n > 1]
    for row in atlas.rows:
        words = len(row["text"].split())
        if not 40 <= words <= 120:
            problems.append(f"{row['id']} has {words} words")
    for title in sorted(atlas.titles):
        if not re.fullmatch(r"[A-Z][a-z]+( [A-Z][a-z]+){0,2}", title):
            problems.append(f"title {title!r} is not plain")
        problems += [f"{title!r} is a part of {o!r}" for o in atlas.titles - {title} if title in o]
    return problems + list(_fact_problems(atlas)) + list(_order_problems(atlas))


def _fact_problems(atlas: Atlas) -> Iterator[str]:
    sorts: dict[str, set[str]] = {}
    for (entity, relation), values in atlas.values.items():
        if entity not in atlas.titles:
            yield f"no document is about {entity!r}"
        if len(values) > 1:
            yield f"the {relation} of {entity} has the values {values}"
        for value in values:
            digits = value[0].isdigit()
            sorts.setdefault(relation, set()).add(
                f"number {value.partition(' ')[2]}" if digits else "name"
            )
            if not digits and value not in atlas.titles:
                yield f"the {relation} of {entity} is {value!r}, which has no document"
            if value in atlas.values.get((entity, f"former {relation}"), []):
                yield f"the {relation} of {entity} is also its former {relation}"
            if relation in BOTH_WAYS and atlas.values.get((value, relation)) != [entity]:
                yield f"{entity} has {relation} {value}, but not the reverse"
    yield from (
        f"{relation} has values of the sorts {s}" for relation, s in sorts.items() if len(s) > 1
    )


def _order_problems(atlas: Atlas) -> Iterator[str]:
    """Numbers that do not fit together: children older than their teachers, and the like."""
    for relation, of_value, of_entity in ORDER:
        for (entity, name), values in atlas.values.items():
            if name != relation:
                continue
            small = atlas.values.get((values[0], of_value))
            large = atlas.values.get((entity, of_entity))
            if small and large and number(small[0]) >= number(large[0]):
                yield f"{entity}: {of_entity} {large[0]}, but its {relation} has {small[0]}"


def task_problems(atlas: Atlas, tasks: Iterable[dict[str, Any]]) -> list[str]:
    """What is wrong with the questions."""
    problems = []
    cluster_of: dict[Fact, str] = {}
    prompts: set[str] = set()
    for task in tasks:
        prompt, meta = str(task["prompt"]), task["metadata"]
        found = atlas.solve(prompt)
        wrong = _one_task(atlas, task, meta, found)
        if prompt in prompts:
            wrong.append("asked twice")
        prompts.add(prompt)
        for fact in found[0].facts if found else ():
            if cluster_of.setdefault(fact, meta["cluster"]) != meta["cluster"]:
                wrong.append(f"shares {fact} with cluster {cluster_of[fact]}")
        problems += [f"{task['id']} ({prompt}): {what}" for what in wrong]
    return problems


def _one_task(
    atlas: Atlas, task: dict[str, Any], meta: dict[str, Any], found: list[Solution]
) -> list[str]:
    if len(found) != 1:
        return [f"{len(found)} answers"]
    answer, facts = found[0].answer, found[0].facts
    amount = answer.partition(" ")[0] if answer[0].isdigit() else answer
    accepted = [amount, answer] if amount != answer else answer
    told = [atlas.stated[fact] for fact in facts]
    hardness = _difficulty(len(facts), sum(_hidden(atlas, fact) for fact in facts))
    evidence = meta["evidence"]
    checks = {
        f"the text says {accepted!r}, expected is {task['expected']!r}": accepted
        == task["expected"],
        f"it takes {len(facts)} hops, not {meta['hops']}": len(facts) == meta["hops"] <= 6,
        f"kind {meta['kind']!r} does not fit": _kind(str(task["prompt"]), facts) == meta["kind"],
        f"it is {hardness}": hardness == meta["difficulty"],
        f"evidence {evidence}, but facts are in {told}": isinstance(evidence, list)
        and len(evidence) == len(told)
        and all(doc in docs for doc, docs in zip(evidence, told, strict=True)),
        "a relation of the past is asked for": not any(
            f.relation.startswith("former") for f in facts
        ),
        "the question contains its answer": answer not in str(task["prompt"])
        or (meta["kind"] == "comparison" and meta["hops"] == 2),
        "the way comes back to where it was": not _comes_back(facts, atlas.titles),
    }
    return [what for what, good in checks.items() if not good]


def _comes_back(facts: tuple[Fact, ...], titles: set[str]) -> bool:
    """Whether the same thing is met twice on the way."""
    met: list[str] = []
    for before, fact in zip((None, *facts), facts, strict=False):
        if before is None or before.value != fact.entity:
            met.append(fact.entity)
        if fact.value in titles:
            met.append(fact.value)
    return len(met) != len(set(met))


def _hidden(atlas: Atlas, fact: Fact) -> bool:
    """Whether only documents about other things state the fact."""
    return atlas.page[fact.entity] not in atlas.stated[fact]


def _kind(prompt: str, facts: tuple[Fact, ...]) -> str:
    if COMPARISON.fullmatch(prompt):
        return "comparison"
    if DIFFERENCE.fullmatch(prompt):
        return "difference"
    return "single" if len(facts) == 1 else "bridge"


def _difficulty(hops: int, hidden: int) -> str:
    if hops >= 5 or (hops >= 3 and hidden):
        return "hard"
    return "medium" if hops >= 3 or hidden else "easy"
