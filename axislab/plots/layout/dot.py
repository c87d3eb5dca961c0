"""Graphviz's dot as a layout, for those who have pygraphviz; the drawing stays ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from axislab.errors import ConfigError
from axislab.plots.layout.shapes import Layout, Line, Node, Point, Rect, Route

_POINTS = 72.0


def dot(nodes: Sequence[Node], lines: Sequence[Line]) -> Layout:
    """Place a graph as dot does.

    Args:
        nodes: In the order in which runs reach them.
        lines: At most one from each source to each target.

    Raises:
        ConfigError: pygraphviz is not installed.
    """
    graph = _agraph(nodes, lines)
    graph.layout("dot")
    boxes = {n.name: Rect(_point(graph.get_node(n.name).attr["pos"]), n.size) for n in nodes}
    routes = {}
    for line in lines:
        edge = graph.get_edge(line.source, line.target)
        curve = _curve(edge.attr["pos"])
        back = line.source == line.target or curve[-1].y > curve[0].y
        label = Rect(_point(edge.attr["lp"]), line.label)
        routes[line.source, line.target] = Route(curve, label, back)
    return Layout(boxes, routes)


def _agraph(nodes: Sequence[Node], lines: Sequence[Line]) -> Any:
    try:
        import pygraphviz  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise ConfigError(
            "layout='dot' needs pygraphviz, which is not installed: pip install pygraphviz, "
            "or use layout='layered'"
        ) from None
    graph = pygraphviz.AGraph(directed=True, strict=True, rankdir="TB", nodesep="0.3")
    for node in nodes:
        width, height = (str(round(x, 3)) for x in node.size)
        graph.add_node(
            node.name, label="", shape="box", width=width, height=height, fixedsize="true"
        )
    for line in lines:
        weight = str(1 + round(4 * line.weight))
        # The label is ours; dot only keeps its place free.
        wide, high = (round(_POINTS * x) + 8 for x in line.label)
        hole = (
            f'<<table border="0" fixedsize="true" width="{wide}" height="{high}">'
            "<tr><td></td></tr></table>>"
        )
        graph.add_edge(line.source, line.target, weight=weight, label=hole)
    return graph


def _point(text: str) -> Point:
    x, y = text.split(",")[-2:]
    return Point(float(x) / _POINTS, float(y) / _POINTS)


def _curve(text: str) -> tuple[Point, ...]:
    """A spline of dot: an optional end point `e,x,y`, then 1 + 3 k points."""
    end = [_point(part) for part in text.split() if part.startswith("e,")]
    points = [_point(part) for part in text.split() if not part.startswith(("e,", "s,"))]
    if not end:
        return tuple(points)
    last = points[-1]
    third = Point((end[0].x - last.x) / 3, (end[0].y - last.y) / 3)
    more = (Point(last.x + i * third.x, last.y + i * third.y) for i in (1, 2))
    return (*points, *more, end[0])
