"""The layered layout: boxes in rows, lines between them, labels on the lines, nothing overlapping.

Every line gets a free lane through each row it passes, and its label a place of its own between
two rows, so no line runs behind a box or a foreign label. The result depends on nothing but the
input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from axislab.plots.layout.columns import Link, Room, assign_x
from axislab.plots.layout.lanes import LABEL_PAD, LANE, assign_lanes
from axislab.plots.layout.order import order_rows
from axislab.plots.layout.ports import assign_ports
from axislab.plots.layout.rows import assign_rows
from axislab.plots.layout.shapes import Layout, Line, Node, Pair, Point, Rect, Route, Size

GAP = 0.14
"""Inches on each side of a box."""
LOOP = 0.36
"""Inches a self loop stands out."""
BEND_LEAST, BEND_MOST = 0.15, 0.33
"""Inches in which a line may swing to another place."""


def layered(nodes: Sequence[Node], lines: Sequence[Line]) -> Layout:
    """Place a graph.

    Args:
        nodes: In the order in which runs reach them.
        lines: At most one from each source to each target.
    """
    if not nodes:
        return Layout()
    return _Placing(nodes, lines).layout()


class _Placing:
    """A layout being made. Things are the vertices of the order, and each line in each gap."""

    def __init__(self, nodes: Sequence[Node], lines: Sequence[Line]) -> None:
        self.nodes = {node.name: node for node in nodes}
        by_pair: dict[Pair, Line] = {(line.source, line.target): line for line in lines}
        self.order = order_rows(nodes, lines, assign_rows(nodes, lines))
        self.lanes = assign_lanes(self.order, by_pair)
        self.ports = assign_ports(self.order, self.lanes, self.nodes)
        self.lines = [by_pair[chain.pair] for chain in self.order.chains]
        first = 1 + max(v for row in self.order.rows for v in row)
        keys = ((p.chain, p.part) for gap in self.lanes.gaps for p in gap)
        self.thing = {key: first + i for i, key in enumerate(keys)}
        self.row_of = {v: r for r, row in enumerate(self.order.rows) for v in row}
        self.x = assign_x(self.rows_of_things(), self.room(), self.links())
        self.bands = self.stack()

    def labelled(self, chain: int, part: int) -> bool:
        """The label of this line stands in this gap."""
        return self.lanes.label_part[chain] == part

    def rows_of_things(self) -> list[list[int]]:
        """Vertices, lines in the gap, vertices, and so on downwards."""
        rows = [list(self.order.rows[0])]
        for gap, below in zip(self.lanes.gaps, self.order.rows[1:], strict=True):
            rows += [[self.thing[p.chain, p.part] for p in gap], list(below)]
        return rows

    def room(self) -> dict[int, Room]:
        """What each thing needs to its left and right."""
        room = {v: Room(LANE, LANE) for row in self.order.rows for v in row}
        for vertex, name in self.order.boxes.items():
            half = self.ports.widths[vertex] / 2 + GAP
            loop = self.nodes[name].loop
            more = 0.0 if loop is None else LOOP + loop.width
            room[vertex] = Room(half, half + more)
        for (chain, part), thing in self.thing.items():
            half = LANE * 0.8
            if self.labelled(chain, part):
                half = self.lines[chain].label.width / 2 + LABEL_PAD
            room[thing] = Room(half, half)
        return room

    def links(self) -> list[Link]:
        """What should stand over what."""
        links = []
        for (chain, part), thing in self.thing.items():
            vertices = self.order.chains[chain].vertices
            upper, lower = vertices[part], vertices[part + 1]
            leaves, enters = (
                self.ports.upper.get((chain, part), 0.0),
                self.ports.lower.get((chain, part), 0.0),
            )
            links.append(Link(upper, thing, leaves, 0.0, self.pull(chain, upper)))
            links.append(Link(thing, lower, 0.0, enters, self.pull(chain, lower)))
        return links

    def pull(self, chain: int, vertex: int) -> float:
        """How straight a line is kept at a vertex: long stretches first, then heavy lines."""
        return (0.4 + self.lines[chain].weight) * (1.0 if vertex in self.order.boxes else 5.0)

    def stack(self) -> list[Band]:
        """The height of each row of things, from the top down."""
        swing = self.swings()
        bands, y = [], 0.0
        for i, things in enumerate(self.rows_of_things()):
            height = self.row_height(things) if i % 2 == 0 else self.gap_height(i // 2)
            bands.append(Band(y, y - height))
            y -= height + (swing[i] if i < len(swing) else 0.0)
        return bands

    def row_height(self, vertices: Sequence[int]) -> float:
        """The tallest box of a row."""
        names = (self.order.boxes[v] for v in vertices if v in self.order.boxes)
        return max((self.nodes[name].size.height for name in names), default=0.0)

    def gap_height(self, gap: int) -> float:
        """The tallest label of a gap."""
        here = [p for p in self.lanes.gaps[gap] if self.labelled(p.chain, p.part)]
        return max((self.lines[p.chain].label.height for p in here), default=0.0)

    def swings(self) -> list[float]:
        """Inches under each row of things for lines to go to another place."""
        most = [BEND_LEAST] * (2 * len(self.lanes.gaps))
        for (chain, part), thing in self.thing.items():
            vertices = self.order.chains[chain].vertices
            row = 2 * self.row_of[vertices[part]]
            leaves = self.x[vertices[part]] + self.ports.upper.get((chain, part), 0.0)
            enters = self.x[vertices[part + 1]] + self.ports.lower.get((chain, part), 0.0)
            for i, move in ((row, self.x[thing] - leaves), (row + 1, enters - self.x[thing])):
                most[i] = max(most[i], min(BEND_LEAST + 0.06 * abs(move), BEND_MOST))
        return most

    def layout(self) -> Layout:
        """Everything in its place."""
        boxes = {
            name: Rect(
                Point(self.x[v], self.bands[2 * self.row_of[v]].middle),
                Size(self.ports.widths[v], self.nodes[name].size.height),
            )
            for v, name in self.order.boxes.items()
        }
        routes = {chain.pair: self.route(c, boxes) for c, chain in enumerate(self.order.chains)}
        for name, node in self.nodes.items():
            if node.loop is not None:
                routes[name, name] = _loop(boxes[name], node.loop)
        return Layout(boxes, routes)

    def route(self, c: int, boxes: Mapping[str, Rect]) -> Route:
        """The way of one line, downwards row by row; turned round at the end if it runs up."""
        chain = self.order.chains[c]
        vertices = chain.vertices
        upper, lower = boxes[self.order.boxes[vertices[0]]], boxes[self.order.boxes[vertices[-1]]]
        points = [Point(upper.center.x + self.ports.upper[c, 0], upper.bottom)]
        label = Rect(upper.center, self.lines[c].label)
        for part, vertex in enumerate(vertices[1:]):
            row = 2 * self.row_of[vertex]
            x, gap = self.x[self.thing[c, part]], self.bands[row - 1]
            points += [Point(x, gap.top), Point(x, gap.bottom)]
            if self.labelled(c, part):
                label = Rect(Point(x, gap.middle), self.lines[c].label)
            if vertex in self.order.boxes:
                break
            points += [
                Point(self.x[vertex], y) for y in (self.bands[row].top, self.bands[row].bottom)
            ]
        last = len(vertices) - 2
        points.append(Point(lower.center.x + self.ports.lower[c, last], lower.top))
        curve = _smooth(points)
        against = chain.pair[0] != self.order.boxes[vertices[0]]
        return Route(tuple(reversed(curve)) if against else curve, label, chain.back)


class Band(NamedTuple):
    """A strip of the paper."""

    top: float
    bottom: float

    @property
    def middle(self) -> float:
        """Its middle height."""
        return (self.top + self.bottom) / 2


def _smooth(points: Sequence[Point]) -> tuple[Point, ...]:
    """A cubic Bézier path through points, upright at each of them."""
    curve = [points[0]]
    for p, q in pairwise(points):
        half = (p.y - q.y) / 2
        curve += [Point(p.x, p.y - half), Point(q.x, q.y + half), q]
    return tuple(curve)


def _loop(box: Rect, label: Size) -> Route:
    """A self loop, always on the right, with its label right of it."""
    x, y, spread = box.right, box.center.y, min(0.13, box.size.height / 4)
    curve = (
        Point(x, y + spread),
        Point(x + LOOP, y + 2.6 * spread),
        Point(x + LOOP, y - 2.6 * spread),
        Point(x, y - spread),
    )
    return Route(curve, Rect(Point(x + 0.82 * LOOP + label.width / 2, y), label), back=True)
