"""What a drawing of a stage graph says: the texts of its boxes and lines, before any place."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from axislab.plots.graph import Graph
from axislab.plots.layout.shapes import Line, Node, Pair, Size
from axislab.plots.style import stage_kind
from axislab.plots.text import label, text_size

NAME_SIZE, COUNT_SIZE, EDGE_SIZE = 8.0, 7.0, 7.2
"""Points."""
WRAP = 22
"""Characters of a line of a stage's name."""
MOST_REASONS = 5
"""Lines of a label."""
BOX_PAD = Size(0.18, 0.08)
"""Inches around the text of a box."""


@dataclass(frozen=True, slots=True)
class BoxText:
    """What a box says."""

    stage: str
    name: str
    count: str
    family: tuple[str, ...]

    @property
    def size(self) -> Size:
        """What the box needs."""
        name = text_size(self.name, NAME_SIZE, self.family)
        count = self.count_size
        width = max(name.width, count.width) + BOX_PAD.width
        return Size(width, name.height + count.height + BOX_PAD.height)

    @property
    def count_size(self) -> Size:
        """What the last line of the box needs."""
        return text_size(self.count, COUNT_SIZE, self.family) if self.count else Size(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class LineText:
    """What a line says."""

    source: str
    target: str
    text: str
    family: tuple[str, ...]
    count: int
    votes: float

    @property
    def size(self) -> Size:
        """What the label needs."""
        return text_size(self.text, EDGE_SIZE, self.family)


@dataclass(frozen=True, slots=True)
class Sheet:
    """All texts of a drawing."""

    boxes: tuple[BoxText, ...]
    lines: tuple[LineText, ...]
    title: str
    note: str
    """What was left out; empty if nothing was."""
    simulated: bool

    def nodes(self) -> list[Node]:
        """The boxes to be placed, all of one size."""
        if not self.boxes:
            return []
        sizes = [box.size for box in self.boxes]
        size = Size(max(s.width for s in sizes), max(s.height for s in sizes))
        loops = {line.source: line.size for line in self.lines if line.source == line.target}
        leaving = {line.source for line in self.lines}
        return [
            Node(
                box.stage,
                size,
                end=stage_kind(box.stage) == "terminal" and box.stage not in leaving,
                loop=loops.get(box.stage),
            )
            for box in self.boxes
        ]

    def edges(self) -> list[Line]:
        """The lines to be placed."""
        most = max((line.count for line in self.lines), default=0) or 1
        return [
            Line(line.source, line.target, line.size, (line.count / most) ** 0.5, line.votes)
            for line in self.lines
        ]


def sheet_of(graph: Graph, *, min_count: int = 1, relative: bool = False) -> Sheet:
    """The texts of a drawing of a graph.

    Args:
        graph: What `stage_graph` gave, whole or in part.
        min_count: Lines taken less often are left out, and boxes that then stand alone.
        relative: Say which share of the visits to a stage went on along each line.
    """
    groups = _grouped(graph)
    kept = {pair: data for pair, data in groups.items() if _total(data) >= min_count}
    out: dict[str, int] = {}
    for (source, _), edges in groups.items():
        out[source] = out.get(source, 0) + _total(edges)
    touched = {stage for pair in kept for stage in pair}
    joined = {stage for pair in groups for stage in pair}
    stages = [s for s in _in_order(graph) if s in touched or s not in joined]
    lines = tuple(
        _line(pair, edges, of=out[pair[0]] if relative else None) for pair, edges in kept.items()
    )
    dropped = len(groups) - len(kept)
    note = f"not drawn: {dropped} lines taken fewer than {min_count} times" if dropped else ""
    return Sheet(
        boxes=tuple(_box(stage, graph.nodes[stage]) for stage in stages),
        lines=lines,
        title=_title(graph),
        note=note,
        simulated=bool(graph.graph.get("simulated")),
    )


def _in_order(graph: Graph) -> list[str]:
    places = {stage: i for i, stage in enumerate(graph)}
    return sorted(graph, key=lambda s: (graph.nodes[s].get("first", places[s]), places[s]))


def _grouped(graph: Graph) -> dict[Pair, list[Mapping[str, Any]]]:
    """Parallel edges together, in the order of their ends."""
    place = {stage: i for i, stage in enumerate(_in_order(graph))}
    groups: dict[Pair, list[Mapping[str, Any]]] = {}
    for a, b, data in sorted(graph.edges(data=True), key=lambda e: (place[e[0]], place[e[1]])):
        groups.setdefault((a, b), []).append(data)
    return groups


def _total(edges: Sequence[Mapping[str, Any]]) -> int:
    return sum(int(edge.get("count", 1)) for edge in edges)


def _box(stage: str, data: Mapping[str, Any]) -> BoxText:
    name = label(stage.replace("_", " "), most=60)
    wrapped = "\n".join(textwrap.wrap(name.text, WRAP)) or "(no name)"
    visits = data.get("visits")
    count = "" if visits is None else f"{visits:,}×"
    return BoxText(stage, wrapped, count, name.family)


def _line(pair: Pair, edges: Sequence[Mapping[str, Any]], *, of: int | None) -> LineText:
    total = _total(edges)
    ranked = sorted(edges, key=lambda e: (-int(e.get("count", 1)), str(e.get("reason", ""))))
    parts = [(_reason(edge, alone=len(edges) == 1), int(edge.get("count", 1))) for edge in ranked]
    if len(parts) > MOST_REASONS:
        rest = parts[MOST_REASONS - 1 :]
        parts = [*parts[: MOST_REASONS - 1], (f"{len(rest)} others", sum(n for _, n in rest))]
    shown = label("\n".join(f"{reason} {_amount(n, of)}".strip() for reason, n in parts))
    votes = float(edges[0].get("votes", 0))
    return LineText(*pair, shown.text, shown.family, total, votes)


def _reason(edge: Mapping[str, Any], *, alone: bool) -> str:
    """A rule is only named where several rules lead along the same line."""
    reason = " ".join(str(edge.get("reason", "") or "").split())
    if alone and edge.get("reason_kind") == "rule":
        return ""
    return reason if len(reason) <= 28 else f"{reason[:27]}…"


def _amount(count: int, of: int | None) -> str:
    if of is None:
        return f"{count:,}"
    share = 100 * count / of
    return "<1 %" if share < 0.5 else f"{share:.0f} %"


def _title(graph: Graph) -> str:
    runs = graph.graph.get("runs")
    if runs is None:
        return "stages"
    return f"stages of {runs:,} run{'' if runs == 1 else 's'}"
