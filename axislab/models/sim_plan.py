"""What the simulated agent does next: look something up, calculate, or answer.

The plan is made anew from what is visible, so whatever was hidden is looked up again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from axislab.messages import Json
from axislab.models.sim_draws import Draws
from axislab.models.sim_knowledge import Knowledge, Need, Resolved, queries, wanted
from axislab.models.sim_language import Question, QuestionKind, plain
from axislab.models.sim_reading import Hit, number_in, read_text
from axislab.models.sim_tools import Handle
from axislab.models.sim_view import Exchange, Outcome, View

PATIENCE = 3
"""The same call is made at most so often, however it ends."""
READS = 5
"""So many documents are read for a fact that no snippet states."""
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:\s*/\s*\d+)?(?:e[+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A tool call to be made."""

    tool: str
    slot: str
    arguments: Mapping[str, Json]
    purpose: str
    """What it is for, in a few words."""


@dataclass(frozen=True, slots=True)
class Move:
    """The next step: calls, or an answer."""

    calls: tuple[PlannedCall, ...] = ()
    answer: str | None = None
    """None where the visible evidence does not settle it."""
    candidates: tuple[str, ...] = field(default=())
    """What a guess could be, where there is no answer."""


class Planner:
    """Plans one reply.

    Args:
        view: What is visible.
        knowledge: The same, as facts.
        draws: Draws of this request, for the choice of words.
        steady: Draws of the attempt, for how numbers of the task are copied.
        slip: Chance that a number of the task is copied wrongly.
    """

    def __init__(
        self, view: View, knowledge: Knowledge, *, draws: Draws, steady: Draws, slip: float
    ) -> None:
        self._view = view
        self._knowledge = knowledge
        self._draws = draws
        self._steady = steady
        self._slip = slip

    def next(self, question: Question, *, may_call: bool, parallel: bool) -> Move:
        """The next step on a question."""
        if question.kind is QuestionKind.CALCULATION:
            expression = self._copied(question.expression)
            return self._calculate(expression, may_call=may_call)
        parts = [self._knowledge.resolve(phrase) for phrase in wanted(question)]
        needs = list(dict.fromkeys(part.need for part in parts if part.need))
        if may_call and needs:
            calls = [call for need in needs if (call := self._look_up(need))]
            if calls:
                calls = list({str(call.arguments): call for call in calls}.values())
                return Move(calls=tuple(calls if parallel else calls[:1]))
        if needs:
            return self._open(question, parts)
        return self._conclude(question, parts, may_call=may_call)

    def _open(self, question: Question, parts: Sequence[Resolved]) -> Move:
        """No answer; a guess is possible where something was found at all."""
        if question.kind is QuestionKind.COMPARISON:
            if all(part.need for part in parts):
                return Move()
            names = [self._knowledge.resolve(p).value for p in question.phrases]
            return Move(candidates=tuple(name for name in names if name))
        last = question.phrases[0].relations[-1]
        return Move(candidates=tuple(self._knowledge.guesses(question, last)))

    def _conclude(self, question: Question, parts: Sequence[Resolved], *, may_call: bool) -> Move:
        values = [part.value or "" for part in parts]
        if question.kind is QuestionKind.CHAIN:
            return Move(answer=values[0])
        numbers = [number_in(value) for value in values]
        if numbers[0] is None or numbers[1] is None:
            return Move()
        if question.kind is QuestionKind.COMPARISON:
            first = (numbers[0] >= numbers[1]) == question.larger
            return Move(answer=self._knowledge.resolve(question.phrases[0 if first else 1]).value)
        low, high = sorted((numbers[0], numbers[1]))
        move = self._calculate(f"{_spell(high)} - {_spell(low)}", may_call=may_call)
        # Two visible numbers can be subtracted without a tool; a whole expression cannot.
        return move if move.calls or move.answer else Move(answer=_spell(high - low))

    def _calculate(self, expression: str, *, may_call: bool) -> Move:
        for exchange in reversed(self._view.exchanges):
            if exchange.outcome is Outcome.GOOD and _same_sum(exchange.asked, expression):
                found = _NUMBER.findall((exchange.result or "").replace(",", ""))
                if found:
                    return Move(answer=_tidy(found[-1]))
        for handle in self._view.kit.counters if may_call else ():
            if not self._tried(handle, expression):
                return Move(calls=(self._call(handle, expression, "work out the sum"),))
        return Move()

    def _copied(self, expression: str) -> str:
        """The expression as the agent copies it: a slip turns two digits round."""
        spots = [m.start() for m in re.finditer(r"(\d)(?!\1)(?=[1-9])", expression)]
        if not spots or self._steady.uniform("slip", expression) >= self._slip:
            return expression
        at = self._steady.pick(spots, "copy", expression)
        return expression[:at] + expression[at + 1] + expression[at] + expression[at + 2 :]

    # -- looking things up -------------------------------------------------------------------------

    def _look_up(self, need: Need) -> PlannedCall | None:
        kit = self._view.kit
        purpose = f"look up the {need.relation} of {need.entity}"
        special = [h for h in kit.lookups if h.knows(need.relation) or h.relation_slot]
        for handle in special:
            if not self._tried(handle, need.entity, need.relation):
                return self._call(handle, need.entity, purpose, need.relation)
        if call := self._read(need, purpose, self._named(need.entity)):
            return call
        for handle in kit.lookups:
            if handle not in special and not self._tried(handle, need.entity):
                return self._call(handle, need.entity, purpose)
        for handle in kit.finders:
            if query := self._query(handle, need):
                return self._call(handle, query, purpose)
        return self._read(need, purpose, self._promising(need))

    def _named(self, entity: str) -> list[Hit]:
        return [hit for hit in self._view.hits if plain(hit.title) == plain(entity)]

    def _promising(self, need: Need) -> list[Hit]:
        """Documents that may state the fact outside their snippet, the likeliest first.

        A snippet that speaks of the relation or the entity is a sign, and so is a place near the
        top where a search asked for this very fact.
        """
        places = self._places(need)
        best: dict[str, tuple[float, Hit]] = {}
        for hit in self._view.hits:
            said = plain(hit.snippet)
            score = 2.0 * (need.relation in said) + (plain(need.entity) in said)
            if hit.id in places:
                score += 2.0 - 0.2 * places[hit.id]
            if score > best.get(hit.id, (0.0, hit))[0]:
                best[hit.id] = (score, hit)
        ranked = sorted(best.values(), key=lambda entry: -entry[0])
        return [hit for _, hit in ranked[:READS]]

    def _places(self, need: Need) -> dict[str, int]:
        """Where searches for the fact listed each document, 0 being the top."""
        ways = set(map(plain, queries(need)[:-1]))
        places: dict[str, int] = {}
        for exchange in self._view.exchanges:
            if exchange.outcome is Outcome.GOOD and plain(exchange.asked) in ways:
                hits = read_text(exchange.result or "", exchange.topic).hits
                for place, hit in enumerate(hits):
                    places[hit.id] = min(place, places.get(hit.id, place))
        return places

    def _read(self, need: Need, purpose: str, hits: Sequence[Hit]) -> PlannedCall | None:
        for handle in self._view.kit.readers:
            for hit in hits:
                if not self._tried(handle, hit.id):
                    return self._call(handle, hit.id, purpose)
        return None

    def _query(self, handle: Handle, need: Need) -> str | None:
        """The next wording: one of the full ones, then the bare entity, then no more."""
        ways = queries(need)
        asked = [
            e
            for e in self._view.exchanges
            if e.call.name == handle.name and plain(e.asked) in map(plain, ways)
        ]
        settled = {plain(e.asked) for e in asked if e.outcome in (Outcome.GOOD, Outcome.FAILED)}
        if len(asked) >= 2 * PATIENCE or len(settled) >= 2:
            return None
        roll = self._draws.uniform("wording", need.entity, need.relation)
        first = ways[0 if roll < 0.7 else 1 if roll < 0.85 else 2]
        order = (ways[3], first) if settled else (first, ways[3])
        return next((q for q in order if not self._tried(handle, q)), None)

    def _tried(self, handle: Handle, value: str, relation: str = "") -> bool:
        """Whether the call was made and its result settles that making it again is no use."""
        same = [
            e
            for e in self._view.exchanges
            if e.call.name == handle.name
            and plain(e.asked) == plain(value)
            and (not handle.relation_slot or _relation(e, handle) == relation)
        ]
        settled = any(e.outcome in (Outcome.GOOD, Outcome.FAILED) for e in same)
        return settled or len(same) >= PATIENCE

    def _call(self, handle: Handle, value: str, purpose: str, relation: str = "") -> PlannedCall:
        return PlannedCall(handle.name, handle.slot, handle.arguments(value, relation), purpose)


def _relation(exchange: Exchange, handle: Handle) -> str:
    return plain(str((exchange.values or {}).get(handle.relation_slot or "", "")))


def _same_sum(a: str, b: str) -> bool:
    return a.replace(" ", "") == b.replace(" ", "")


def _spell(number: float) -> str:
    return str(int(number)) if number.is_integer() else f"{number:.10g}"


def _tidy(number: str) -> str:
    number = number.replace(" ", "")
    return number.rstrip("0").rstrip(".") if "." in number and "e" not in number else number
