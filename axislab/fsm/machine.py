"""The one engine under every state machine here: a checked table, a state, a context and a log."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Generic, NoReturn, cast

from axislab.errors import MachineError, TransitionNotAllowed, did_you_mean
from axislab.fsm.choice import Explanation, RuleVerdict, choose, copied, verdicts_on
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


_NO_CONTEXT = cast(Any, None)


class StateMachine(Generic[S, C]):
    """A state that only its table can change.

    An event is all or nothing: state, context and log entry are swapped in by one assignment, so
    that neither an error nor a keyboard interrupt leaves half of it behind.

    Args:
        rules: In order: the first rule whose guard holds wins; or a table checked before.
        initial: The state to start in; with a table its own unless another is given.
        final: States that nothing leaves; not with a table.
        inside: Where to start in the machines that states hold, outermost first; by default in
            their initial states.
        context: Any value `copy.deepcopy` can copy; the machine keeps a copy of its own. Guards
            and actions get copies of it and, where there is a context, of the payload too, so
            that nothing is shared with the caller. None costs no copies.
        log: Entries of an earlier life, to go on from.
        journal: Hears of every entry, and of the context it leaves, before anything changes here;
            if it raises, nothing does.

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

    __slots__ = ("_busy", "_entries", "_journal", "_now", "_table")

    def __init__(
        self,
        rules: Iterable[TransitionRule[S, C]] | TransitionTable[S, C],
        initial: S | None = None,
        *,
        final: Iterable[S] = (),
        inside: Iterable[Enum] = (),
        context: C = _NO_CONTEXT,
        log: Iterable[LogEntry[S]] = (),
        journal: Callable[[LogEntry[S], C], None] | None = None,
    ) -> None:
        if not isinstance(rules, TransitionTable):
            if initial is None:
                raise MachineError("a list of rules needs an initial state, got initial=None")
            rules = TransitionTable(rules, initial, final=final)
        elif final:
            raise MachineError(f"final={final!r}: a table already knows its final states")
        self._table = rules
        self._entries = list(log)
        self._journal = journal
        state = rules.check_state(rules.initial if initial is None else initial)
        path: tuple[Enum, ...] = (state, *inside)
        if len(path) == 1:
            path = rules.entered(state)
        rules.along(path)  # raises where it is no path
        self._now = _Now(path, deepcopy(context), len(self._entries))
        self._busy = False

    @property
    def state(self) -> S:
        """Where the machine is; with nesting the outermost state."""
        return cast(S, self._now.path[0])

    @property
    def path(self) -> tuple[Enum, ...]:
        """Where it is in all machines, outermost state first."""
        return self._now.path

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
        return self.state in self._table.final

    @property
    def possible(self) -> tuple[str, ...]:
        """Events that have a rule here, innermost machine first; guards may still refuse them."""
        tables = self._table.along(self.path)
        rules = [
            rule
            for table, state in zip(reversed(tables), reversed(self.path), strict=True)
            for rule in table.leaving(state)
        ]
        return tuple(dict.fromkeys(rule.event for rule in rules))

    def __repr__(self) -> str:
        name = type(self.state).__name__
        place = ".".join([name, "/".join(state.name for state in self.path)])
        return f"<StateMachine {place}, {self._now.logged} events>"

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
        return choose(self._table, now.path, event, now.context, payload).rule is not None

    def explain(self, event: str, /, **payload: Any) -> Explanation[S, C]:
        """What `fire` would do, rule by rule; writes nothing."""
        now = self._now
        verdicts = verdicts_on(self._table, now.path, event, copied(now.context, payload))
        return Explanation(self.state, event, verdicts, self._alternatives(event))

    def table(self) -> list[RuleRow]:
        """The rules as data, a row each."""
        return self._table.rows()

    def to_networkx(self) -> nx.MultiDiGraph[str]:
        """The table's graph; nodes of the present state, and of those inside, are `current`."""
        graph = self._table.to_networkx()
        places = accumulate((state.name for state in self.path), "{}/{}".format)
        current = set(places)
        for name, data in graph.nodes(data=True):
            data["current"] = name in current
        return graph

    def _fire(self, event: str, payload: dict[str, Any]) -> S:
        now = self._now
        choice = choose(self._table, now.path, event, now.context, payload)
        rule = choice.rule
        if rule is None:
            self._refuse(event, payload, choice.objections)
        context = now.context
        if rule.action is not None:
            try:
                seen = copied(context, payload)
                context = seen.context
                rule.action(context, seen.payload)
            except BaseException as problem:
                note = f"{rule.action_name} raised {short_error(problem)}"
                self._commit(now, event, choice.path, Outcome.FAILED, payload, note)
                raise
        after = _Now(choice.path, context, now.logged)
        self._commit(after, event, choice.path, Outcome.FIRED, payload, rule.description)
        return self.state

    def _commit(
        self,
        after: _Now[C],
        event: str,
        target: tuple[Enum, ...],
        outcome: Outcome,
        payload: dict[str, Any],
        note: str,
    ) -> None:
        seq = after.logged
        # An interrupt may have left an entry here that was never counted.
        del self._entries[seq:]
        entry = LogEntry(
            seq,
            event,
            self.state,
            None if outcome is Outcome.REFUSED else cast(S, target[0]),
            outcome,
            payload_summary(payload),
            note,
            before=self.path,
            after=after.path,
        )
        if self._journal is not None:
            self._journal(entry, after.context)
        self._entries.append(entry)
        self._now = _Now(after.path, after.context, seq + 1)

    def _refuse(self, event: str, payload: dict[str, Any], objections: list[str]) -> NoReturn:
        now = self._now
        why = "; ".join(objections)
        if not why:
            why = "it has no rule there"
            if event not in self._known():
                why = f"no rule knows it, {did_you_mean(event, self._known())}"
        self._commit(now, event, now.path, Outcome.REFUSED, payload, why)
        place = "/".join(state.name for state in now.path)
        raise TransitionNotAllowed(
            f"{event!r} is not possible in {place}: {why}. {self._would_do(event)}"
        )

    def _known(self) -> list[str]:
        """Every event of every table."""
        return list(dict.fromkeys(row.event for row in self._table.rows()))

    def _would_do(self, event: str) -> str:
        state = self.state
        if state in self._table.final:
            return f"{state.name} is final: no event leads out of it."
        others = self._alternatives(event)
        if not others:
            return f"No other event leads out of {state.name}."
        return "Events that would do: " + ", ".join(map(self._with_condition, others)) + "."

    def _alternatives(self, event: str) -> tuple[str, ...]:
        return tuple(other for other in self.possible if other != event)

    def _with_condition(self, event: str) -> str:
        tables = self._table.along(self.path)
        rules = [
            rule
            for table, state in zip(reversed(tables), reversed(self.path), strict=True)
            for rule in table.rules_for(state, event)
        ]
        if any(rule.guard is None for rule in rules):
            return repr(event)
        return f"{event!r} (if {' or '.join(rule.guard_name for rule in rules)} holds)"


@dataclass(frozen=True, slots=True)
class _Now(Generic[C]):
    """All that an event changes, so that one assignment commits it."""

    path: tuple[Enum, ...]
    context: C
    logged: int
    """Entries of the log that count."""
