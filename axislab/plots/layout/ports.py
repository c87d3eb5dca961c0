"""Where lines meet their boxes, and how wide boxes must be for that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from axislab.plots.layout.lanes import Lanes
from axislab.plots.layout.order import Order
from axislab.plots.layout.shapes import Node

CLOSE, WIDE = 0.19, 0.34
"""Inches between two lines on one side of a box: at least, and at most."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Inches right of the middle of the box; 0 at a bend."""

    widths: Mapping[int, float]
    """Of each box."""
    upper: Mapping[tuple[int, int], float]
    """By chain and part: where a line leaves the thing above a gap."""
    lower: Mapping[tuple[int, int], float]
    """Where it enters the thing below."""


def assign_ports(order: Order, lanes: Lanes, nodes: Mapping[str, Node]) -> Ports:
    """Spread the lines along the sides of the boxes, in the order in which they come."""
    above: dict[int, list[tuple[int, int]]] = {}
    below: dict[int, list[tuple[int, int]]] = {}
    for gap in lanes.gaps:
        for p in gap:
            below.setdefault(p.upper, []).append((p.chain, p.part))
            above.setdefault(p.lower, []).append((p.chain, p.part))
    widths: dict[int, float] = {}
    upper: dict[tuple[int, int], float] = {}
    lower: dict[tuple[int, int], float] = {}
    for vertex, name in order.boxes.items():
        sides = (above.get(vertex, []), below.get(vertex, []))
        width = max(nodes[name].size.width, CLOSE * max(map(len, sides)))
        widths[vertex] = width
        for side, found in zip(sides, (lower, upper), strict=True):
            step = min(WIDE, width * 0.94 / max(len(side), 1))
            for i, key in enumerate(side):
                found[key] = (i - (len(side) - 1) / 2) * step
    return Ports(widths, upper, lower)
