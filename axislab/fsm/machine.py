"""The one engine under every state machine here: a checked table, a state, a context and a log."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, cast

from axislab.errors import MachineError, TransitionNotAllowed, did_you_mean
from axislab.fsm.log import LogEntry, Outcome, payload_summary, short_error
from axislab.fsm.table import (
    Action,
    C,
    Guard,
    Payload,
    RuleRow,
    S,
    TransitionRule,
    TransitionTable,
)

if TYPE_CHECKING:
    import networkx as nx

__all__ = [
    "Action",
    "Explanation",
    "Guard",
    "LogEntry",
    "Outcome",
    "Payload",
    "RuleRow",
    "RuleVerdict",
    "StateMachine",
    "TransitionRule",
    "TransitionTable",
]


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
    """One for every rule of the event, those of other states included."""
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


_NO_CONTEXT = cast(Any, None)


class StateMachine(Generic[S, C]):
    """A state that only its table can change.

    An event is all or nothing: state, context and log entry are swapped in by one assignment, so
    that neither an error nor a keyboard interrupt leaves half of it behind.

    Args:
        rules: In order: the first rule whose guard holds wins; or a table checked before.
        initial: The state to start in; with a table its own unless another is given.
        final: States that nothing leaves; not with a table.
        context: Any value `copy.deepcopy` can copy; the machine keeps a copy of its own. Guards
            and actions get copies of it and, where there is a context, of the payload too, so
            that nothing is shared with the caller. None costs no copies.
        log: Entries of an earlier life, to go on from.

    Raises:
        MachineError: The rules are no state machine (see `TransitionTable`), or have no such state.

    Examples:
        >>> from enum import Enum
        >>> Door = Enum("Door", "OPEN SHUT")
        >>> door = StateMachine(
        ...     [
        ...         TransitionRule(Door.OPEN, "shut", Door.SHUT),
        ...         TransitionRule(Door.SHUT, "open", Door.OPEN),
        ...     ],
        ...     Door.SHUT,
        ... )
        >>> door.fire("open").name
        'OPEN'
        >>> door.can_fire("open")
        False
    """

    __slots__ = ("_busy", "_entries", "_now", "_table")

    def __init__(
        self,
        rules: Iterable[TransitionRule[S, C]] | TransitionTable[S, C],
        initial: S | None = None,
        *,
        final: Iterable[S] = (),
        context: C = _NO_CONTEXT,
        log: Iterable[LogEntry[S]] = (),
    ) -> None:
        if not isinstance(rules, TransitionTable):
            if initial is None:
                raise MachineError("a list of rules needs an initial state, got initial=None")
            rules = TransitionTable(rules, initial, final=final)
        elif final:
            raise MachineError(f"final={final!r}: a table already knows its final states")
        self._table = rules
        self._entries = list(log)
        state = rules.check_state(rules.initial if initial is None else initial)
        self._now = _Now(state, deepcopy(context), len(self._entries))
        self._busy = False

    @property
    def state(self) -> S:
        """Where the machine is."""
        return self._now.state

    @property
    def context(self) -> C:
        """A copy of the context: changing it changes nothing here."""
        return deepcopy(self._now.context)

    @property
    def log(self) -> tuple[LogEntry[S], ...]:
        """Every event so far, refused and failed ones included."""
        return tuple(self._entries[: self._now.logged])

    @property
    def transitions(self) -> TransitionTable[S, C]:
        """The rules, as they were checked."""
        return self._table

    @property
    def report(self) -> tuple[str, ...]:
        """What the check of the table found legal and worth knowing."""
        return self._table.report

    @property
    def finished(self) -> bool:
        """Whether the state is final."""
        return self._now.state in self._table.final

    def __repr__(self) -> str:
        name = type(self._now.state).__name__
        return f"<StateMachine {name}.{self._now.state.name}, {self._now.logged} events>"

    def fire(self, event: str, /, **payload: Any) -> S:
        """Take the first rule of the event that holds, and return the new state.

        Raises:
            TransitionNotAllowed: No rule holds; neither state nor context changed, the log says so.
            MachineError: A guard or an action fired an event of the machine it belongs to, or two
                threads fire at once.
        """
        if self._busy:
            raise MachineError(
                f"{event!r} fired by a guard or action of this very machine, or while a second "
                "thread fires one: let one event end before the next"
            )
        self._busy = True
        try:
            return self._fire(event, payload)
        finally:
            self._busy = False

    def can_fire(self, event: str, /, **payload: Any) -> bool:
        """Whether `fire` would find a rule; writes nothing."""
        now = self._now
        rules = self._table.rules_for(now.state, event)
        return _choose(rules, now.context, payload).rule is not None

    def explain(self, event: str, /, **payload: Any) -> Explanation[S, C]:
        """What `fire` would do, rule by rule; writes nothing."""
        now = self._now
        seen = _copied(now.context, payload)
        verdicts: list[RuleVerdict[S, C]] = []
        winner: TransitionRule[S, C] | None = None
        for rule in self._table.rules:
            if rule.event != event:
                continue
            why = f"holds in {rule.source.name} only"
            matches = False
            if rule.source is now.state:
                why = _objection(rule, seen)
                matches = not why
            if matches and winner is not None:
                why = f"matches, but comes after {winner}"
            wins = matches and winner is None
            winner = rule if wins else winner
            verdicts.append(RuleVerdict(rule, matches, wins, why))
        return Explanation(now.state, event, tuple(verdicts), self._alternatives(event))

    def table(self) -> list[RuleRow]:
        """The rules as data, a row each."""
        return self._table.rows()

    def to_networkx(self) -> nx.MultiDiGraph[str]:
        """The table's graph; the node of the present state has `current` true."""
        graph = self._table.to_networkx()
        for name, data in graph.nodes(data=True):
            data["current"] = name == self._now.state.name
        return graph

    def _fire(self, event: str, payload: dict[str, Any]) -> S:
        now = self._now
        choice = _choose(self._table.rules_for(now.state, event), now.context, payload)
        rule = choice.rule
        if rule is None:
            self._refuse(event, payload, choice.objections)
        context = now.context
        if rule.action is not None:
            try:
                copied = _copied(context, payload)
                context = copied.context
                rule.action(context, copied.payload)
            except BaseException as problem:
                note = f"{rule.action_name} raised {short_error(problem)}"
                self._commit(now, event, rule.target, Outcome.FAILED, payload, note)
                raise
        after = _Now(rule.target, context, now.logged)
        self._commit(after, event, rule.target, Outcome.FIRED, payload, rule.description)
        return rule.target

    def _commit(
        self,
        after: _Now[S, C],
        event: str,
        target: S | None,
        outcome: Outcome,
        payload: dict[str, Any],
        note: str,
    ) -> None:
        seq = after.logged
        source = self._now.state
        # An interrupt may have left an entry here that was never counted.
        del self._entries[seq:]
        self._entries.append(
            LogEntry(seq, event, source, target, outcome, payload_summary(payload), note)
        )
        self._now = _Now(after.state, after.context, seq + 1)

    def _refuse(self, event: str, payload: dict[str, Any], objections: list[str]) -> NoReturn:
        now = self._now
        why = "; ".join(objections)
        if not why:
            why = "it has no rule there"
            if event not in self._table.events:
                why = f"no rule knows it, {did_you_mean(event, self._table.events)}"
        self._commit(now, event, None, Outcome.REFUSED, payload, why)
        raise TransitionNotAllowed(
            f"{event!r} is not possible in {now.state.name}: {why}. {self._would_do(event)}"
        )

    def _would_do(self, event: str) -> str:
        state = self._now.state
        if state in self._table.final:
            return f"{state.name} is final: no event leads out of it."
        others = self._alternatives(event)
        if not others:
            return f"No other event leads out of {state.name}."
        return "Events that would do: " + ", ".join(map(self._with_condition, others)) + "."

    def _alternatives(self, event: str) -> tuple[str, ...]:
        events = dict.fromkeys(rule.event for rule in self._table.leaving(self._now.state))
        return tuple(other for other in events if other != event)

    def _with_condition(self, event: str) -> str:
        rules = self._table.rules_for(self._now.state, event)
        if any(rule.guard is None for rule in rules):
            return repr(event)
        return f"{event!r} (if {' or '.join(rule.guard_name for rule in rules)} holds)"


@dataclass(frozen=True, slots=True)
class _Now(Generic[S, C]):
    """All that an event changes, so that one assignment commits it."""

    state: S
    context: C
    logged: int
    """Entries of the log that count."""


@dataclass(frozen=True, slots=True)
class _Copied(Generic[C]):
    """What guards and actions are shown."""

    context: C
    payload: Payload


@dataclass(frozen=True, slots=True)
class _Choice(Generic[S, C]):
    """The first rule that holds, and what the guards before it objected."""

    rule: TransitionRule[S, C] | None
    objections: list[str]


def _copied(context: C, payload: dict[str, Any]) -> _Copied[C]:
    if context is not None:
        context, payload = deepcopy((context, payload))
    return _Copied(context, MappingProxyType(payload))


def _choose(
    rules: tuple[TransitionRule[S, C], ...], context: C, payload: dict[str, Any]
) -> _Choice[S, C]:
    objections: list[str] = []
    seen: _Copied[C] | None = None
    for rule in rules:
        if rule.guard is None:
            return _Choice(rule, objections)
        seen = seen or _copied(context, payload)
        why = _objection(rule, seen)
        if not why:
            return _Choice(rule, objections)
        objections.append(why)
    return _Choice(None, objections)


def _objection(rule: TransitionRule[S, C], seen: _Copied[C]) -> str:
    """Why the guard does not hold; empty if it does, or there is none."""
    if rule.guard is None:
        return ""
    try:
        holds = bool(rule.guard(seen.context, seen.payload))
    except Exception as problem:
        # A guard is the user's function: whatever it raises, its rule does not hold.
        return f"{rule.guard_name} raised {short_error(problem)}"
    return "" if holds else f"{rule.guard_name} does not hold"
