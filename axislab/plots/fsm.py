"""plot_fsm: a state machine as it was declared, and how often each of its arrows was taken."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from axislab.errors import ConfigError, did_you_mean
from axislab.fsm.log import LogEntry, Outcome
from axislab.fsm.machine import StateMachine
from axislab.fsm.snapshots import Transition
from axislab.fsm.table import TransitionRule, TransitionTable
from axislab.plots.layout.layered import layered
from axislab.plots.layout.shapes import Pair, Route
from axislab.plots.sheet import WRAP, BoxText, LineText, Sheet
from axislab.plots.stage_graph import Drawing
from axislab.plots.style import BACK_DASHES, FORWARD, ROUND, KindStyle
from axislab.plots.text import label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Machine: TypeAlias = "StateMachine[Any, Any] | TransitionTable[Any, Any]"
Taken: TypeAlias = "Iterable[LogEntry[Any] | Transition] | Mapping[tuple[str, str, str], int]"

NEVER = "#9a9a9a"
"""Lines that were never taken, where there are counts."""
STYLES: dict[str, KindStyle] = {
    "initial": KindStyle("initial", "#ececec", "#7a7a7a", "-", 1.0),
    "normal": KindStyle("state", "#d7e8f7", "#2f6690", "-", 1.2),
    "holder": KindStyle("holds a machine", "#e8dcf3", "#66489a", (0, (5, 1.5, 1, 1.5)), 1.6),
    "final": KindStyle("final", "#d3ebd8", "#237546", "-", 2.2),
    "current": KindStyle("where it is", "#fff3c4", "#a85d00", "-", 2.6),
}


def plot_fsm(
    machine: Machine,
    *,
    counts: Taken | None = None,
    within: str = "",
    leave_out: Iterable[str] = (),
    guards: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw the states of a machine and the arrows between them.

    Args:
        machine: A machine, whose present state is marked, or a table.
        counts: What was taken: a machine's `log`, a history's `transitions`, or a mapping of
            (source, event, target) to a number. Arrows are then as wide as they are frequent.
        within: Draw the machine inside this state, named as in `to_networkx`: "EXECUTING".
        leave_out: Events whose arrows are not drawn, such as "cancel"; it says so.
        guards: Write the guard beside the event.
        ax: Where to draw; a new figure if None.

    Raises:
        ConfigError: No machine inside that state, or an event to leave out that it has not.

    Examples:
        >>> from axislab.fsm.dialog import dialog_machine
        >>> ax = plot_fsm(dialog_machine(), leave_out=["cancel", "fail"])
        >>> ax.get_title(loc="left")
        'DialogState: 7 of 9 states, 21 of 33 arrows'
    """
    table = machine.transitions if isinstance(machine, StateMachine) else machine
    places = tuple(part for part in within.split("/") if part)
    level = _level(table, places)
    current = ""
    if isinstance(machine, StateMachine):
        names = tuple(state.name for state in machine.path)
        current = names[len(places)] if names[: len(places)] == places < names else ""
    taken = None if counts is None else _taken(counts, places)
    hidden = tuple(dict.fromkeys(leave_out))
    if strange := [event for event in hidden if event not in level.events]:
        raise ConfigError(f"leave_out={strange}: {did_you_mean(strange[0], level.events)}")
    sheet = _Sheets(level, taken, hidden=hidden, guards=guards).sheet()
    drawing = _FsmDrawing(sheet, level, current, counted=taken is not None)
    return drawing.on(ax)


def _level(table: TransitionTable[Any, Any], places: tuple[str, ...]) -> TransitionTable[Any, Any]:
    for place in places:
        inside = {state.name: child for state, child in table.children.items()}
        if place not in inside:
            raise ConfigError(f"within={place!r} holds no machine: {did_you_mean(place, inside)}")
        table = inside[place]
    return table


def _taken(counts: Taken, places: tuple[str, ...]) -> Counter[tuple[str, ...]]:
    """How often each (source, event, target) of one level was taken."""
    if isinstance(counts, Mapping):
        return Counter({tuple(key): int(number) for key, number in counts.items()})
    found: Counter[tuple[str, ...]] = Counter()
    depth = len(places)
    for entry in counts:
        if entry.outcome != Outcome.FIRED or not entry.event:
            continue
        before, after = _ends(entry)
        if before[:depth] == after[:depth] == places and min(len(before), len(after)) > depth:
            found[before[depth], entry.event, after[depth]] += 1
    return found


def _ends(entry: LogEntry[Any] | Transition) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if isinstance(entry, Transition):
        return tuple(entry.source.split("/")), tuple(entry.target.split("/"))
    return tuple(s.name for s in entry.before), tuple(s.name for s in entry.after)


@dataclass(frozen=True, slots=True)
class _Sheets:
    """The texts of a drawing, being made."""

    table: TransitionTable[Any, Any]
    taken: Counter[tuple[str, ...]] | None
    hidden: tuple[str, ...]
    guards: bool

    def sheet(self) -> Sheet:
        rules = [rule for rule in self.table.rules if rule.event not in self.hidden]
        order = self._order(rules)
        places = {state: i for i, state in enumerate(order)}
        groups: dict[Pair, list[TransitionRule[Any, Any]]] = {}
        for rule in rules:
            groups.setdefault((rule.source.name, rule.target.name), []).append(rule)
        lines = tuple(
            self._line(pair, group, votes=places[group[0].target] - places[group[0].source])
            for pair, group in groups.items()
        )
        left = f"not drawn: {', '.join(self.hidden)}" if self.hidden else ""
        note = label(left, most=90).text
        boxes = tuple(self._box(state) for state in order)
        return Sheet(boxes, lines, self._title(len(order), len(rules)), note, simulated=False)

    def _title(self, states: int, rules: int) -> str:
        name = type(self.table.initial).__name__
        all_states, all_rules = len(self.table.states), len(self.table.rules)
        if (states, rules) == (all_states, all_rules):
            return f"{name}: {states} states, {rules} arrows"
        return f"{name}: {states} of {all_states} states, {rules} of {all_rules} arrows"

    def _order(self, rules: list[TransitionRule[Any, Any]]) -> list[Enum]:
        """States by their distance from the first, ends last; what nothing leads to is left out."""
        order: list[Enum] = [self.table.initial]
        for state in order:
            targets = (rule.target for rule in rules if rule.source is state)
            order += [t for t in dict.fromkeys(targets) if t not in order]
        return sorted(order, key=lambda state: state in self.table.final)

    def _box(self, state: Enum) -> BoxText:
        name = label(state.name.replace("_", " "), most=60)
        wrapped = "\n".join(textwrap.wrap(name.text, WRAP)) or "(no name)"
        child = self.table.children.get(state)
        inside = "" if child is None else f"{len(child.states)} states inside"
        return BoxText(state.name, wrapped, inside, name.family)

    def _line(self, pair: Pair, rules: list[TransitionRule[Any, Any]], *, votes: float) -> LineText:
        texts: dict[str, int] = {}
        for event in dict.fromkeys(rule.event for rule in rules):
            guards = [rule.guard_name for rule in rules if rule.event == event and rule.guard]
            text = f"{event}\n[{' or '.join(guards)}]" if self.guards and guards else event
            number = 0 if self.taken is None else self.taken[pair[0], event, pair[1]]
            texts[text] = number
        rows = [f"{t} {n:,}×" if self.taken is not None and n else t for t, n in texts.items()]
        shown = label("\n".join(rows))
        return LineText(*pair, shown.text, shown.family, sum(texts.values()), votes)


class _FsmDrawing(Drawing):
    """A placed machine on its way to the paper."""

    def __init__(
        self, sheet: Sheet, table: TransitionTable[Any, Any], current: str, *, counted: bool
    ) -> None:
        self.table, self.current, self.counted = table, current, counted
        self.states = {state.name: state for state in table.states}
        super().__init__(sheet, layered(sheet.nodes(), sheet.edges()))

    def style_of(self, stage: str) -> KindStyle:
        """How a state is drawn."""
        if stage == self.current:
            return STYLES["current"]
        state = self.states[stage]
        return STYLES["holder" if state in self.table.children else self.table.kind(state)]

    def color_of(self, line: LineText, route: Route) -> str:
        """What was never taken is pale."""
        if self.counted and not line.count:
            return NEVER
        return ROUND if route.back else FORWARD

    def legend_handles(self) -> list[Any]:
        """The kinds of states and lines there are."""
        used = {self.style_of(box.stage).name for box in self.sheet.boxes}
        handles: list[Any] = [
            Patch(facecolor=s.fill, edgecolor=s.edge, linestyle=s.dashes, lw=s.width, label=s.name)
            for s in STYLES.values()
            if s.name in used
        ]
        routes = [self.placed.routes[line.source, line.target] for line in self.sheet.lines]
        if any(route.back for route in routes):
            back = Line2D([], [], color=ROUND, lw=1.6, ls=BACK_DASHES, label="leads back")
            handles.append(back)
        if self.counted and not all(line.count for line in self.sheet.lines):
            handles.append(Line2D([], [], color=NEVER, lw=1.0, label="never taken"))
        return handles
