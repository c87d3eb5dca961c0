"""The gaps between rows: in which order lines pass them, and which of them holds a line's label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from axislab.plots.layout.order import Order
from axislab.plots.layout.shapes import Line

LANE = 0.09
"""Inches on each side of a passing line."""
LABEL_PAD = 0.05
"""Inches on each side of a label."""


@dataclass(frozen=True, slots=True)
class Pass:
    """One line in one gap."""

    chain: int
    """Which chain of the order."""
    part: int
    """Which gap of that chain, from its upper end."""
    upper: int
    lower: int


@dataclass(frozen=True, slots=True)
class Lanes:
    """All gaps, from the first to the last row."""

    gaps: tuple[tuple[Pass, ...], ...]
    """In each gap, the lines from left to right."""
    label_part: tuple[int, ...]
    """For each chain, the gap of it that holds the label."""


def assign_lanes(order: Order, lines: Mapping[tuple[str, str], Line]) -> Lanes:
    """Order the lines in each gap as their ends are, and spread the labels over the gaps."""
    row_of = {v: r for r, row in enumerate(order.rows) for v in row}
    at = {v: i for row in order.rows for i, v in enumerate(row)}
    gaps: list[list[Pass]] = [[] for _ in order.rows[1:]]
    for c, chain in enumerate(order.chains):
        for part, (a, b) in enumerate(pairwise(chain.vertices)):
            gaps[row_of[a]].append(Pass(c, part, a, b))
    for gap in gaps:
        gap.sort(key=lambda p: (at[p.upper] + at[p.lower], at[p.upper], order.chains[p.chain].back))
    first = [row_of[chain.vertices[0]] for chain in order.chains]
    widths = [lines[chain.pair].label.width for chain in order.chains]
    parts = _spread(order, first, widths, [2 * LANE * len(gap) for gap in gaps])
    return Lanes(tuple(map(tuple, gaps)), parts)


def _spread(
    order: Order, first: Sequence[int], widths: Sequence[float], load: list[float]
) -> tuple[int, ...]:
    """Labels with the least choice first, the wide ones before the narrow ones."""
    spans = [len(chain.vertices) - 1 for chain in order.chains]
    part = [0] * len(spans)
    for c in sorted(range(len(spans)), key=lambda c: (spans[c], -widths[c], c)):
        near = reversed(range(spans[c])) if order.chains[c].back else range(spans[c])
        part[c] = min(near, key=lambda p: load[first[c] + p])
        load[first[c] + part[c]] += widths[c]
    return tuple(part)
