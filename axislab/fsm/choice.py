"""Which rule an event finds: the innermost machine is asked first, its rules in their order."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, Generic

from axislab.fsm.log import short_error
from axislab.fsm.table import C, Payload, S, TransitionRule, TransitionTable


@dataclass(frozen=True, slots=True)
class RuleVerdict(Generic[S, C]):
    """What one rule says to an event."""

    rule: TransitionRule[S, C]
    matches: bool
    wins: bool
    why: str
    """Why it does not match, or comes too late; empty for the winner."""


@dataclass(frozen=True, slots=True)
class Explanation(Generic[S, C]):
    """What an event would do now, and why."""

    state: S
    event: str
    verdicts: tuple[RuleVerdict[S, C], ...]
    """One for every rule of the event, the innermost machine's first, other states' included."""
    alternatives: tuple[str, ...]
    """Other events that have a rule in this state."""

    @property
    def winner(self) -> TransitionRule[S, C] | None:
        """The rule that would be taken; None if the event would be refused."""
        return next((v.rule for v in self.verdicts if v.wins), None)

    def __bool__(self) -> bool:
        return self.winner is not None

    def __str__(self) -> str:
        head = f"{self.event!r} in {self.state.name}: "
        head += f"goes to {self.winner.target.name}" if self.winner else "refused"
        lines = [
            f"  {'+' if v.wins else '-'} {v.rule}{': ' + v.why if v.why else ''}"
            for v in self.verdicts
        ]
        return "\n".join([head, *lines])


@dataclass(frozen=True, slots=True)
class Copied(Generic[C]):
    """What guards and actions are shown."""

    context: C
    payload: Payload


@dataclass(frozen=True, slots=True)
class Choice(Generic[C]):
    """The first rule that holds, and what the guards before it objected."""

    rule: TransitionRule[Any, C] | None
    path: tuple[Enum, ...]
    """Where it leads; where the machine is, without a rule."""
    objections: list[str]


def copied(context: C, payload: dict[str, Any]) -> Copied[C]:
    """Copies that guards and actions may do anything to; only the payload's names without one."""
    if context is not None:
        context, payload = deepcopy((context, payload))
    return Copied(context, MappingProxyType(payload))


def choose(
    table: TransitionTable[Any, C],
    path: tuple[Enum, ...],
    event: str,
    context: C,
    payload: dict[str, Any],
) -> Choice[C]:
    """The rule an event finds on a path, from the innermost state outwards."""
    objections: list[str] = []
    seen: Copied[C] | None = None
    tables = table.along(path)
    for level in range(len(path) - 1, -1, -1):
        for rule in tables[level].rules_for(path[level], event):
            why = ""
            if rule.guard is not None:
                seen = seen or copied(context, payload)
                why = objection(rule, seen)
            if not why:
                after = (*path[:level], *tables[level].entered(rule.target))
                return Choice(rule, after, objections)
            objections.append(why)
    return Choice(None, path, objections)


def objection(rule: TransitionRule[Any, C], seen: Copied[C]) -> str:
    """Why the guard does not hold; empty if it does, or there is none."""
    if rule.guard is None:
        return ""
    try:
        holds = bool(rule.guard(seen.context, seen.payload))
    except Exception as problem:
        # A guard is the user's function: whatever it raises, its rule does not hold.
        return f"{rule.guard_name} raised {short_error(problem)}"
    return "" if holds else f"{rule.guard_name} does not hold"


def verdicts_on(
    table: TransitionTable[Any, C], path: tuple[Enum, ...], event: str, seen: Copied[C]
) -> tuple[RuleVerdict[Any, C], ...]:
    """What every rule of an event says, wherever it stands."""
    verdicts: list[RuleVerdict[Any, C]] = []
    winner: TransitionRule[Any, C] | None = None
    for placed in _rules_of(table, path, event):
        rule, why, matches = placed.rule, placed.elsewhere, False
        if not why:
            why = objection(rule, seen)
            matches = not why
        if matches and winner is not None:
            why = f"matches, but comes after {winner}"
        wins = matches and winner is None
        winner = rule if wins else winner
        verdicts.append(RuleVerdict(rule, matches, wins, why))
    return tuple(verdicts)


@dataclass(frozen=True, slots=True)
class _Placed(Generic[C]):
    rule: TransitionRule[Any, C]
    elsewhere: str
    """Where alone it holds; empty if the machine is there."""


def _rules_of(
    table: TransitionTable[Any, C], path: tuple[Enum, ...], event: str, around: str = ""
) -> Iterator[_Placed[C]]:
    """Every rule of an event: children before their parents, the path's own children first."""
    children = sorted(table.children.items(), key=lambda item: not path or item[0] is not path[0])
    for state, child in children:
        inner = path[1:] if path and state is path[0] else ()
        yield from _rules_of(child, inner, event, f" inside {state.name}{around}")
    for rule in table.rules:
        if rule.event == event:
            here = bool(path) and rule.source is path[0]
            place = "" if here else f"holds in {rule.source.name}{around} only"
            yield _Placed(rule, place)
