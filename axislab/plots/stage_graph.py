"""plot_stage_graph: the stages runs went through, drawn so that every line can be followed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Literal

import networkx as nx
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Patch, PathPatch, Polygon
from matplotlib.path import Path
from matplotlib.patheffects import Normal, Stroke

from axislab.errors import ConfigError
from axislab.frames.source import RunsLike
from axislab.plots.graph import Graph, stage_graph
from axislab.plots.layout.dot import dot
from axislab.plots.layout.layered import layered
from axislab.plots.layout.shapes import Layout, Line, Node, Point, Rect, Route, Size
from axislab.plots.sheet import COUNT_SIZE, EDGE_SIZE, NAME_SIZE, BoxText, LineText, Sheet, sheet_of
from axislab.plots.style import (
    BACK,
    BACK_DASHES,
    FAINT,
    FORWARD,
    INK,
    KINDS,
    PAPER,
    ROUND,
    KindStyle,
    footer,
    new_axes,
    say_nothing_to_draw,
    stage_style,
)
from axislab.plots.text import label, text_size

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

WIDEST = 11.0
"""Inches of a new figure: what a notebook shows without shrinking it."""
MARGIN = 0.12
LEGEND_SIZE, SMALL_SIZE, TITLE_SIZE = 7.5, 7.5, 10.0
"""Points, before scaling; the title is not scaled."""

LAYOUTS: dict[str, Callable[[Sequence[Node], Sequence[Line]], Layout]] = {
    "layered": layered,
    "dot": dot,
}


def plot_stage_graph(
    data: RunsLike | pd.DataFrame | Graph,
    *,
    ax: Axes | None = None,
    min_count: int = 1,
    layout: Literal["layered", "dot"] = "layered",
    relative: bool = False,
) -> Axes:
    """Draw the stages runs went through.

    Time runs down; lines that lead back are dashed. Lines are as wide as they are frequent and
    say how often each was taken, and why. Without `ax` the figure is as large as it has to be;
    into a smaller one everything is scaled.

    Args:
        data: Runs, a study, a path, what `transitions_df` gave, or a graph by `stage_graph`.
        ax: Where to draw; a new figure if None.
        min_count: Leave out lines taken less often.
        layout: Our own, or that of Graphviz's dot, which needs pygraphviz.
        relative: Shares of the visits to a stage instead of counts.

    Raises:
        DataError: Simulated and real runs together.
        ConfigError: An unknown layout, or one that is not installed.

    Examples:
        >>> from matplotlib.figure import Figure
        >>> plot_stage_graph([], ax=Figure().subplots()).texts[0].get_text()
        'no runs'
    """
    if layout not in LAYOUTS:
        raise ConfigError(f"layout={layout!r}; allowed: {', '.join(LAYOUTS)}")
    graph: Graph = data if isinstance(data, nx.DiGraph) else stage_graph(data)
    sheet = sheet_of(graph, min_count=min_count, relative=relative)
    if not sheet.boxes:
        why = f"no line was taken {min_count} times" if graph.number_of_nodes() else "no runs"
        return say_nothing_to_draw(new_axes(ax, size=(5, 2)), why)
    placed = LAYOUTS[layout](sheet.nodes(), sheet.edges())
    return Drawing(sheet, placed).on(ax)


class Drawing:
    """A placed sheet on its way to the paper, in inches of the layout."""

    def __init__(self, sheet: Sheet, placed: Layout) -> None:
        self.sheet, self.placed = sheet, placed
        self.handles = self.legend_handles()
        bounds = placed.bounds
        entries = [text_size(h.get_label(), LEGEND_SIZE).width + 0.58 for h in self.handles]
        width = max(bounds.size.width + 2 * MARGIN, *entries, 3.2)
        self.columns = _columns(entries, width)
        legend = 0.20 * -(-len(self.handles) // self.columns) + 0.12
        note = 0.18 if sheet.note or sheet.simulated else 0.0
        height = bounds.size.height + 2 * MARGIN + legend + note
        self.legend_base = note
        self.paper = Rect(
            Point(bounds.center.x, bounds.top + MARGIN - height / 2), Size(width, height)
        )

    def on(self, ax: Axes | None) -> Axes:
        """Draw; on a new figure of the right size if there are no axes yet."""
        size = self.paper.size
        fit = min(1.0, WIDEST / size.width)
        ax = new_axes(ax, size=(size.width * fit + 0.1, size.height * fit + 0.35))
        ax.set_xlim(self.paper.left, self.paper.right)
        ax.set_ylim(self.paper.bottom, self.paper.top)
        ax.set_aspect("equal")
        ax.set_axis_off()
        title = label(self.sheet.title)
        ax.set_title(title.text, fontsize=TITLE_SIZE, color=INK, loc="left", **title.style)
        self.scale = self.inches_wide(ax) / size.width
        for line in sorted(
            self.sheet.lines, key=lambda line: (line.count, line.source, line.target)
        ):
            self.draw_line(ax, line)
        for box in self.sheet.boxes:
            self.draw_box(ax, box)
        self.finish(ax)
        return ax

    def inches_wide(self, ax: Axes) -> float:
        """Width of the axes as they will be drawn."""
        figure: Any = ax.figure.canvas.figure  # not the subfigure, if it is one
        if figure.get_layout_engine() is not None:
            figure.draw_without_rendering()
        else:
            ax.apply_aspect()
        return float(ax.get_window_extent().width) / float(figure.dpi)

    def style_of(self, stage: str) -> KindStyle:
        """How a box is drawn."""
        return stage_style(stage)

    def color_of(self, line: LineText, route: Route) -> str:
        """How a line is drawn."""
        return _color(line, route)

    def legend_handles(self) -> list[Any]:
        """What the legend explains."""
        return _legend_handles(self.sheet, self.placed)

    def draw_box(self, ax: Axes, box: BoxText) -> None:
        """A box with its name and how often it was visited."""
        rect, style = self.placed.boxes[box.stage], self.style_of(box.stage)
        patch = FancyBboxPatch(
            (rect.left, rect.bottom),
            rect.size.width,
            rect.size.height,
            boxstyle="round,pad=0,rounding_size=0.07",
            facecolor=style.fill,
            edgecolor=style.edge,
            linestyle=style.dashes,
            linewidth=style.width * self.scale,
            zorder=4,
            gid=f"box {box.stage}",
        )
        ax.add_patch(patch)
        down = box.count_size.height / 2
        up = text_size(box.name, NAME_SIZE, box.family).height / 2
        for text, y, size, color in (
            (box.name, rect.center.y + down, NAME_SIZE, INK),
            (box.count, rect.center.y - up, COUNT_SIZE, "#555555"),
        ):
            self.write(ax, text, Point(rect.center.x, y), size, color, box.family, zorder=5)

    def draw_line(self, ax: Axes, line: LineText) -> None:
        """A line, its head, and its label."""
        route = self.placed.routes[line.source, line.target]
        most = max(1, *(other.count for other in self.sheet.lines))
        width = 0.8 + 3.8 * (line.count / most) ** 0.5
        color = self.color_of(line, route)
        head = Size(0.05 + 1.1 * width / 72, 0.085 + 1.0 * width / 72)
        shaft, tip = _arrow(route, head)
        halo = Stroke(linewidth=(width + 1.8) * self.scale, foreground=PAPER, capstyle="butt")
        ax.add_patch(
            PathPatch(
                shaft,
                facecolor="none",
                edgecolor=color,
                linewidth=width * self.scale,
                linestyle=BACK_DASHES if route.back else "-",
                capstyle="butt",
                zorder=2,
                path_effects=[halo, Normal()],
                gid=f"line {line.source} {line.target}",
            )
        )
        ax.add_patch(Polygon(tip, closed=True, facecolor=color, edgecolor="none", zorder=2.5))
        gid = f"label {line.source} {line.target}"
        at = route.label.center
        self.write(ax, line.text, at, EDGE_SIZE, color, line.family, zorder=3, gid=gid, ground=True)

    def write(
        self,
        ax: Axes,
        text: str,
        at: Point,
        size: float,
        color: str,
        family: tuple[str, ...],
        *,
        zorder: float,
        gid: str | None = None,
        ground: bool = False,
    ) -> None:
        """Text in the middle of a place."""
        box = {"facecolor": PAPER, "edgecolor": "none", "pad": 0.8 * self.scale} if ground else None
        ax.text(
            at.x,
            at.y,
            text,
            fontsize=size * self.scale,
            color=color,
            ha="center",
            va="center",
            linespacing=1.0,
            bbox=box,
            zorder=zorder,
            gid=gid,
            family=list(family),
            parse_math=False,
        )

    def finish(self, ax: Axes) -> None:
        """The legend, and the small print."""
        ax.legend(
            handles=self.handles,
            loc="lower center",
            bbox_to_anchor=(0.5, self.legend_base / self.paper.size.height),
            ncols=self.columns,
            fontsize=LEGEND_SIZE * self.scale,
            frameon=False,
            borderaxespad=0.0,
            borderpad=0.2,
            handlelength=2.2,
            columnspacing=1.4,
            labelcolor=INK,
        )
        if self.sheet.simulated:
            footer(ax, "simulated", size=SMALL_SIZE * self.scale)
        if self.sheet.note:
            note = label(self.sheet.note)
            at = (self.paper.left + 0.03, self.paper.bottom + 0.03)
            small = SMALL_SIZE * self.scale
            ax.text(*at, note.text, fontsize=small, color=FAINT, va="bottom", **note.style)


def _color(line: LineText, route: Route) -> str:
    """The usual loop stays quiet; what leads back from or to a recovery stands out."""
    if not route.back:
        return FORWARD
    kinds = {stage_style(line.source).name, stage_style(line.target).name}
    return BACK if "recovery" in kinds else ROUND


def _legend_handles(sheet: Sheet, placed: Layout) -> list[Any]:
    used = {stage_style(box.stage).name: stage_style(box.stage) for box in sheet.boxes}
    handles: list[Any] = [
        Patch(facecolor=s.fill, edgecolor=s.edge, linestyle=s.dashes, lw=s.width, label=s.name)
        for s in KINDS.values()
        if s.name in used
    ]
    colors = {_color(line, placed.routes[line.source, line.target]) for line in sheet.lines}
    for color, name in ((FORWARD, "leads on"), (ROUND, "goes round"), (BACK, "leads back")):
        if color in colors:
            dashes = "-" if color == FORWARD else BACK_DASHES
            handles.append(Line2D([], [], color=color, lw=1.6, ls=dashes, label=name))
    return handles


def _columns(entries: Sequence[float], width: float) -> int:
    """How many columns a legend may have; it is filled column by column."""
    for rows in range(1, len(entries)):
        columns = -(-len(entries) // rows)
        least, longer = divmod(len(entries), columns)
        ends = accumulate(least + (i < longer) for i in range(columns))
        parts = [entries[a:b] for a, b in pairwise([0, *ends])]
        if sum(map(max, parts)) <= width:
            return columns
    return 1


def _arrow(route: Route, head: Size) -> tuple[Path, list[Point]]:
    """The shaft of an arrow, and the three corners of its head."""
    *points, control, end = route.curve
    dx, dy = end.x - control.x, end.y - control.y
    length = (dx**2 + dy**2) ** 0.5 or 1.0
    ux, uy = dx / length, dy / length
    base = Point(end.x - ux * head.height, end.y - uy * head.height)
    reach = max(length - head.height, 0.02)
    shaft = [*points, Point(base.x - ux * reach, base.y - uy * reach), base]
    side = head.width / 2
    corners = [
        end,
        Point(base.x - uy * side, base.y + ux * side),
        Point(base.x + uy * side, base.y - ux * side),
    ]
    return Path(shaft, [Path.MOVETO] + [Path.CURVE4] * (len(shaft) - 1)), corners
