"""Tables of transition rules, checked when they are built."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from inspect import iscoroutinefunction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast

from axislab.errors import MachineError
from axislab.fsm.nesting import child_problems, child_reports, graph_of, node_name

if TYPE_CHECKING:
    import networkx as nx

S = TypeVar("S", bound=Enum)
"""The states: members of one Enum."""
C = TypeVar("C")
"""The context that guards and actions see; None for a machine without one."""
T = TypeVar("T", bound=Enum)

Payload: TypeAlias = Mapping[str, Any]
"""The keywords an event was fired with; read-only."""
Guard: TypeAlias = Callable[[C, Payload], bool]
"""Says whether a rule holds; what it changes in the context is thrown away."""
Action: TypeAlias = Callable[[C, Payload], None]
"""Changes the working copy of the context in place; what it returns is ignored."""


@dataclass(frozen=True, slots=True)
class TransitionRule(Generic[S, C]):
    """One arrow: in `source`, on `event`, if `guard` holds, do `action` and go to `target`."""

    source: S
    event: str
    target: S
    guard: Guard[C] | None = None
    action: Action[C] | None = None
    description: str = ""

    @property
    def guard_name(self) -> str:
        """What to call the guard; empty without one."""
        return _name_of(self.guard, "guard")

    @property
    def action_name(self) -> str:
        """What to call the action; empty without one."""
        return _name_of(self.action, "action")

    def __str__(self) -> str:
        condition = f" [{self.guard_name}]" if self.guard else ""
        return f"{self.source.name} --{self.event}{condition}--> {self.target.name}"


def _name_of(function: Callable[..., object] | None, fallback: str) -> str:
    if function is None:
        return ""
    name = getattr(getattr(function, "func", function), "__name__", fallback)
    return fallback if name == "<lambda>" else str(name)


@dataclass(frozen=True, slots=True)
class RuleRow:
    """A rule as plain texts, for a frame or a printed table."""

    source: str
    event: str
    guard: str
    target: str
    action: str
    description: str
    within: str = ""
    """The state that holds the machine of this rule, with those around it; empty outside."""


class TransitionTable(Generic[S, C]):
    """An ordered table of rules over all members of one Enum; immutable and shareable.

    Args:
        rules: In order: the first rule whose guard holds wins.
        initial: Where a new machine starts.
        final: States that nothing leaves.
        children: Tables inside states. Entering such a state starts its table anew, leaving it
            forgets where that was; an event goes to the innermost table first. All share one
            context.

    Raises:
        MachineError: A state cannot be reached, cannot be left or cannot end; a rule leaves a
            final state or can never win; states of two enums; an asynchronous guard or action;
            a child in a final state, or that is no table.
    """

    __slots__ = (
        "_by_key",
        "_by_source",
        "children",
        "events",
        "final",
        "initial",
        "report",
        "rules",
        "states",
    )

    def __init__(
        self,
        rules: Iterable[TransitionRule[S, C]],
        initial: S,
        *,
        final: Iterable[S] = (),
        children: Mapping[S, TransitionTable[Any, C]] | None = None,
    ) -> None:
        self.rules = tuple(rules)
        self.initial = initial
        self.final = frozenset(final)
        _check_types(self.rules, initial, self.final)
        self.states: tuple[S, ...] = tuple(type(initial))
        self.children: Mapping[S, TransitionTable[Any, C]] = MappingProxyType(dict(children or {}))
        self.events = tuple(dict.fromkeys(rule.event for rule in self.rules))
        self._by_key = _grouped(self.rules, lambda rule: (rule.source, rule.event))
        self._by_source = _grouped(self.rules, lambda rule: rule.source)
        problems = [*self._graph_problems(), *self._shadowed(), *child_problems(self)]
        if problems:
            raise MachineError("no state machine: " + "; ".join(problems))
        self.report: tuple[str, ...] = (
            *self._overlaps(),
            *self._guarded_exits(),
            *child_reports(self),
        )
        """Things that are legal and worth knowing: overlaps, states left only through guards."""

    def rules_for(self, state: S, event: str) -> tuple[TransitionRule[S, C], ...]:
        """The rules that one event has in one state, in order."""
        return self._by_key.get((state, event), ()) if isinstance(event, str) else ()

    def leaving(self, state: S) -> tuple[TransitionRule[S, C], ...]:
        """All rules out of one state, in order."""
        return self._by_source.get(state, ())

    def check_state(self, state: S) -> S:
        """The state itself.

        Raises:
            MachineError: It is none of the table's.
        """
        if type(state) is not type(self.initial):
            known = ", ".join(s.name for s in self.states)
            raise MachineError(f"state={state!r} is none of the table's states: {known}")
        return state

    def entered(self, state: S) -> tuple[Enum, ...]:
        """Where a machine is that has just entered a state: it, and the children's first ones."""
        child = self.children.get(state)
        return (state,) if child is None else (state, *child.entered(child.initial))

    def along(self, path: Sequence[Enum]) -> list[TransitionTable[Any, C]]:
        """The tables that hold the states of a path, outermost first.

        Raises:
            MachineError: It is no path of this table.
        """
        self.check_state(cast(S, path[0]))
        child = self.children.get(cast(S, path[0]))
        if child is None:
            if len(path) > 1:
                raise MachineError(f"{path[0]!r} has no child machine to be in {path[1]!r}")
            return [self]
        if len(path) == 1:
            raise MachineError(f"{path[0]!r} has a child machine: name a state of it, too")
        return [self, *child.along(path[1:])]

    def kind(self, state: S) -> str:
        """The part a state plays: initial, final or normal."""
        if state in self.final:
            return "final"
        return "initial" if state is self.initial else "normal"

    def rows(self, *, within: str = "") -> list[RuleRow]:
        """The rules as data; `pandas.DataFrame(table.rows())` is a frame of them.

        Args:
            within: The state that holds this table, for a child.
        """
        own = [
            RuleRow(
                source=rule.source.name,
                event=rule.event,
                guard=rule.guard_name,
                target=rule.target.name,
                action=rule.action_name,
                description=rule.description,
                within=within,
            )
            for rule in self.rules
        ]
        inner = [
            row
            for state, child in self.children.items()
            for row in child.rows(within=node_name(within, state))
        ]
        return own + inner

    def to_networkx(self) -> nx.MultiDiGraph[str]:
        """The states by name and an edge for every rule.

        Nodes carry `kind`, `value` and `parent` ("" outside); a state of a child is named
        "OUTER/INNER". Edges carry `event`, `guard`, `action`, `description`, `order`, `label`.
        """
        return graph_of(self)

    def _graph_problems(self) -> list[str]:
        onward = {s: {r.target for r in self.leaving(s)} for s in self.states}
        backward: dict[S, set[S]] = {s: set() for s in self.states}
        for source, targets in onward.items():
            for target in targets:
                backward[target].add(source)
        reached = _closure({self.initial}, onward)
        ending = _closure(set(self.final), backward) if self.final else set(self.states)
        problems = [
            f"nothing may leave the final state: {r}" for r in self.rules if r.source in self.final
        ]
        for state in self.states:
            if state not in reached:
                problems.append(f"{state.name} cannot be reached from {self.initial.name}")
            if state not in self.final and not onward[state] - {state}:
                problems.append(f"{state.name} is a trap: not final, and no rule leads out of it")
            elif state not in ending:
                problems.append(f"{state.name} is a trap: no way from it to a final state")
        return problems

    def _shadowed(self) -> list[str]:
        problems = []
        for rules in self._by_key.values():
            for place, rule in enumerate(rules):
                above = next((r for r in rules[:place] if r.guard in (None, rule.guard)), None)
                if above is not None:
                    problems.append(f"{rule} can never win: {above} stands above it")
        return problems

    def _overlaps(self) -> list[str]:
        return [
            f"{rules[0].event!r} in {rules[0].source.name} has {len(rules)} rules, "
            f"the first that holds wins: {', '.join(map(str, rules))}"
            for rules in self._by_key.values()
            if len(rules) > 1
        ]

    def _guarded_exits(self) -> list[str]:
        return [
            f"{state.name} is left only through guards: if none holds, it is stuck"
            for state in self.states
            if state not in self.final
            and all(r.guard for r in self.leaving(state) if r.target is not state)
        ]


def _check_types(rules: tuple[TransitionRule[T, C], ...], initial: T, final: frozenset[T]) -> None:
    if not isinstance(initial, Enum):
        raise MachineError(f"initial={initial!r} must be a member of an Enum")
    used = [initial, *final, *(s for rule in rules for s in (rule.source, rule.target))]
    if strangers := [repr(s) for s in used if type(s) is not type(initial)]:
        raise MachineError(
            f"all states must be members of {type(initial).__name__}, got {', '.join(strangers)}"
        )
    for rule in rules:
        if iscoroutinefunction(rule.guard) or iscoroutinefunction(rule.action):
            raise MachineError(f"{rule}: guard and action must be plain functions, not async ones")


def _grouped(
    rules: tuple[TransitionRule[S, C], ...], key: Callable[[TransitionRule[S, C]], Any]
) -> dict[Any, tuple[TransitionRule[S, C], ...]]:
    groups: dict[Any, list[TransitionRule[S, C]]] = {}
    for rule in rules:
        groups.setdefault(key(rule), []).append(rule)
    return {k: tuple(group) for k, group in groups.items()}


def _closure(seeds: set[T], steps: Mapping[T, set[T]]) -> set[T]:
    seen, todo = set(seeds), list(seeds)
    while todo:
        new = steps[todo.pop()] - seen
        seen |= new
        todo.extend(new)
    return seen
