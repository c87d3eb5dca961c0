"""Where things stand from left to right: straight lines, nothing over anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple


class Room(NamedTuple):
    """Inches a thing needs on each side of its middle."""

    left: float
    right: float


@dataclass(frozen=True, slots=True)
class Link:
    """Two things that should stand over each other, each by a point off its middle."""

    upper: int
    lower: int
    upper_offset: float = 0.0
    lower_offset: float = 0.0
    weight: float = 1.0


def assign_x(
    rows: Sequence[Sequence[int]], room: Mapping[int, Room], links: Sequence[Link]
) -> dict[int, float]:
    """The middle of each thing: the least sum of weighted sideways moves, a linear program.

    Args:
        rows: Things from left to right; this order is kept.
        room: What each needs.
        links: What is to be kept straight.
    """
    import numpy as np
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    place = {v: i for i, v in enumerate(v for row in rows for v in row)}
    n = len(place)
    system = _System([], [])
    for row in rows:
        for a, b in pairwise(row):
            system.add(((place[a], 1.0), (place[b], -1.0)), -(room[a].right + room[b].left))
    cost = np.zeros(n + len(links))
    for i, link in enumerate(links):
        # Slightly unequal weights leave one best answer, so that it does not depend on luck.
        cost[n + i] = link.weight * (1 + 1e-3 * (i % 97) / 97)
        a, b = place[link.upper], place[link.lower]
        off = link.lower_offset - link.upper_offset
        system.add(((a, 1.0), (b, -1.0), (n + i, -1.0)), off)
        system.add(((a, -1.0), (b, 1.0), (n + i, -1.0)), -off)
    if not system.bounds:
        return dict.fromkeys(place, 0.0)
    rows_, columns, factors = (list(part) for part in zip(*system.entries, strict=True))
    shape = (len(system.bounds), n + len(links))
    matrix = coo_array((factors, (rows_, columns)), shape=shape).tocsr()
    solved = linprog(cost, A_ub=matrix, b_ub=system.bounds, bounds=(0, None))
    return {v: float(solved.x[i]) for v, i in place.items()}


@dataclass(frozen=True, slots=True)
class _System:
    """Inequalities: the sum of some columns times their factors is at most a bound."""

    entries: list[tuple[int, int, float]]
    bounds: list[float]

    def add(self, terms: Sequence[tuple[int, float]], at_most: float) -> None:
        self.entries.extend((len(self.bounds), column, factor) for column, factor in terms)
        self.bounds.append(at_most)
