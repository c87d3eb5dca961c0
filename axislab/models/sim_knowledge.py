"""What the visible text tells the simulated agent, misreadings included."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from axislab.models.sim_draws import Draws
from axislab.models.sim_language import NounPhrase, Question, plain
from axislab.models.sim_reading import Fact, number_in
from axislab.models.sim_view import Sighting, View

_COUNTED = re.compile(
    r"\b(?:year|number|count|population|length|depth|height|width|size|area|age|weight|distance|"
    r"elevation|capacity|tonnage|speed|price|score)\b"
)
"""Relations whose values are numbers, as their words say."""
_NOTHING = re.compile(r"^(?:none|null|unknown|nothing|n/?a|no\b.*|not found.*|\?+|\.+)$", re.I)


@dataclass(frozen=True, slots=True)
class Need:
    """A fact that is wanted and not visible."""

    entity: str
    relation: str


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a noun phrase stands for: a value, or the first fact on the way that is missing."""

    value: str | None = None
    need: Need | None = None


class Knowledge:
    """The facts of one view; a fact is read the same way throughout an attempt.

    Args:
        view: What is visible.
        draws: Draws that stay the same while the attempt lasts.
        slip: Chance that a fact from a tool is misread.
    """

    def __init__(self, view: View, draws: Draws, *, slip: float) -> None:
        self._view = view
        self._draws = draws
        self._slip = slip
        self._facts: dict[tuple[str, str], Sighting] = {}
        for seen in view.sightings:
            key = (plain(seen.fact.entity), seen.fact.relation)
            self._facts.setdefault(key, seen)

    def value(self, entity: str, relation: str) -> str | None:
        """What the relation of the entity is, going by what is visible."""
        seen = self._find(entity, relation)
        if seen is None:
            return self._bare(entity, relation) or self._mistaken(entity, relation)
        if not seen.told and self._draws.uniform("slip", plain(entity), relation) < self._slip:
            return self._misread(seen) or seen.fact.value
        return seen.fact.value

    def _find(self, entity: str, relation: str) -> Sighting | None:
        name = plain(entity)
        subjects = (name, *(plain(q) for q in queries(Need(entity, relation))))
        return next((f for s in subjects if (f := self._facts.get((s, relation)))), None)

    def _mistaken(self, entity: str, relation: str) -> str | None:
        """A slip before the fact is in sight: "the former owner" is taken for the owner."""
        if self._draws.uniform("mistaken", plain(entity), relation) >= self._slip:
            return None
        near = self._near(plain(entity), relation)
        return near[0] if near else None

    def _near(self, entity: str, relation: str, until: int | None = None) -> list[str]:
        """Values of relations that only sound like this one."""
        return [
            s.fact.value
            for s in self._view.sightings
            if s.fact.relation.endswith(f" {relation}")
            and plain(s.fact.entity) == entity
            and (until is None or s.index <= until)
        ]

    def _bare(self, entity: str, relation: str) -> str | None:
        """The value where a tool answered with nothing but the value."""
        names = {plain(query) for query in queries(Need(entity, relation))[:-1]}
        for exchange, value in self._view.bare:
            if _NOTHING.match(value):
                continue
            given = [plain(str(v)) for v in (exchange.values or {}).values()]
            named = re.search(rf"\b{re.escape(relation)}\b", exchange.about)
            if plain(exchange.asked) == plain(entity) and (named or relation in given):
                return value
            if plain(exchange.asked) in names:
                return value
        return None

    def resolve(self, phrase: NounPhrase) -> Resolved:
        """Follow the relations of a phrase as far as the visible facts go."""
        value = phrase.entity
        for relation in phrase.relations:
            found = self.value(value, relation)
            if found is None:
                return Resolved(need=Need(value, relation))
            value = found
        return Resolved(value=value)

    def path(self, question: Question) -> Iterator[Fact]:
        """The facts the question led to so far, as they were read."""
        for phrase in wanted(question):
            value = phrase.entity
            for relation in phrase.relations:
                found = self.value(value, relation)
                if found is None:
                    break
                yield Fact(value, relation, found)
                value = found

    def _misread(self, seen: Sighting) -> str | None:
        """Another value of the right kind, from the same text if there is one."""
        truth, entity = seen.fact.value, plain(seen.fact.entity)
        near = self._near(entity, seen.fact.relation, seen.index)
        here = [s for s in self._view.sightings if s.index == seen.index and not s.told]
        before = [s for s in self._view.sightings if s.index < seen.index and not s.told]
        for group in (here, before):
            same = [s.fact.value for s in group if s.fact.relation == seen.fact.relation]
            other = [name for s in group for name in (s.fact.value, s.fact.entity)]
            for names in (near, same, other):
                alike = [n for n in names if _kind(n) == _kind(truth)]
                wrong = [n for n in alike if plain(n) not in (plain(truth), entity)]
                if wrong:
                    return min(wrong, key=lambda n: self._draws.uniform("misread", truth, n))
        return None

    def guesses(self, question: Question, relation: str | None) -> list[str]:
        """Names of the context that could pass for an answer; none the question itself gives."""
        given = {plain(phrase.entity) for phrase in question.phrases}
        same = {s.fact.value for s in self._view.sightings if s.fact.relation == relation}
        every = {hit.title for hit in self._view.hits}
        for seen in self._view.sightings:
            every.update((seen.fact.entity, seen.fact.value))
        kind = "number" if relation and _COUNTED.search(relation) else "name"
        alike = {name for name in every if _kind(name) == kind}
        for names in (same, alike):
            if left := sorted(name for name in names if plain(name) not in given):
                return left
        return []


def _kind(name: str) -> str:
    if number_in(name[:1]) is not None:
        return "number"
    return "name" if name[:1].isupper() else "word"


def queries(need: Need) -> tuple[str, ...]:
    """Ways to ask for a fact; the last one is the bare entity."""
    e, r = need.entity, need.relation
    return (f"{r} {e}", f"{r} of {e}", f"{e} {r}", e)


def wanted(question: Question) -> tuple[NounPhrase, ...]:
    """The phrases whose values the question needs."""
    if not question.relation:
        return question.phrases
    return tuple(NounPhrase(p.entity, (*p.relations, question.relation)) for p in question.phrases)
