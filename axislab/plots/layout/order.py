"""The order of things within each row, so that few lines cross."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from axislab.plots.layout.rows import Rows
from axislab.plots.layout.shapes import Line, Node, Pair

_STARTS = 10
_SWEEPS = 14


@dataclass(frozen=True, slots=True)
class Chain:
    """A line from its upper box to its lower one: a vertex on every row, boxes included."""

    pair: Pair
    vertices: tuple[int, ...]
    back: bool


@dataclass(frozen=True, slots=True)
class Order:
    """Vertices (boxes, and bends where a line passes a row), row by row from left to right."""

    rows: tuple[tuple[int, ...], ...]
    boxes: Mapping[int, str]
    """Which vertices are boxes; the others are bends."""
    chains: tuple[Chain, ...]
    crossings: int


def order_rows(nodes: Sequence[Node], lines: Sequence[Line], rows: Rows) -> Order:
    """Try several starts, sweep each up and down, keep the one with the fewest crossings."""
    names = [node.name for node in nodes]
    boxes = dict(enumerate(names))
    vertex_of = {name: v for v, name in boxes.items()}
    depth = max(rows.of.values(), default=-1) + 1
    on_row: list[list[int]] = [[] for _ in range(depth)]
    for name in names:
        on_row[rows.of[name]].append(vertex_of[name])
    chains: list[Chain] = []
    fresh = len(names)
    for line in lines:
        a, b = line.source, line.target
        if a == b:
            continue
        up, low = (a, b) if rows.of[a] < rows.of[b] else (b, a)
        bends = range(fresh, fresh + rows.of[low] - rows.of[up] - 1)
        for row, bend in enumerate(bends, rows.of[up] + 1):
            on_row[row].append(bend)
        fresh += len(bends)
        vertices = (vertex_of[up], *bends, vertex_of[low])
        chains.append(Chain((a, b), vertices, back=(a, b) in rows.back))
    best = _Sorter(on_row, chains).best()
    return Order(tuple(map(tuple, best)), boxes, tuple(chains), _Sorter(best, chains).crossings())


class _Sorter:
    """Rows being sorted."""

    def __init__(self, rows: Sequence[Sequence[int]], chains: Sequence[Chain]) -> None:
        self.rows = [list(row) for row in rows]
        self.up: dict[int, list[int]] = {v: [] for row in rows for v in row}
        self.down: dict[int, list[int]] = {v: [] for row in rows for v in row}
        for chain in chains:
            for a, b in pairwise(chain.vertices):
                self.down[a].append(b)
                self.up[b].append(a)
        self.at: dict[int, int] = {}
        self.index()

    def index(self) -> None:
        self.at = {v: i for row in self.rows for i, v in enumerate(row)}

    def best(self) -> list[list[int]]:
        """The best rows found; the same for the same input."""
        fewest = self.crossings()
        best = [list(row) for row in self.rows]
        for start in range(_STARTS):
            self.start(Random(start) if start else None)
            for sweep in range(_SWEEPS):
                self.sweep(downwards=sweep % 2 == 0)
                self.swap()
                if (count := self.crossings()) < fewest:
                    fewest, best = count, [list(row) for row in self.rows]
                if fewest == 0:
                    return best
        return best

    def start(self, random: Random | None) -> None:
        """Order everything as a walk from the top first meets it."""
        seen: dict[int, None] = {}

        def visit(v: int) -> None:
            if v in seen:
                return
            seen[v] = None
            targets = [*self.down[v]]
            if random is not None:
                random.shuffle(targets)
            for target in targets:
                visit(target)

        for row in self.rows:
            for v in sorted(row):
                visit(v)
        met = {v: i for i, v in enumerate(seen)}
        for row in self.rows:
            row.sort(key=met.__getitem__)
        self.index()

    def sweep(self, *, downwards: bool) -> None:
        """Put each vertex at the middle of its neighbours on the row before."""
        near = self.up if downwards else self.down
        for row in self.rows if downwards else reversed(self.rows):
            middle = {v: self.middle(near[v], self.at[v]) for v in row}
            row.sort(key=middle.__getitem__)
            for i, v in enumerate(row):
                self.at[v] = i

    def middle(self, near: Sequence[int], default: int) -> float:
        """The mean place of some vertices."""
        return sum(self.at[n] for n in near) / len(near) if near else float(default)

    def swap(self) -> None:
        """Exchange neighbours as long as that helps."""
        for _ in range(4):
            better = False
            for row in self.rows:
                for i in range(len(row) - 1):
                    a, b = row[i], row[i + 1]
                    if self.cost(b, a) < self.cost(a, b):
                        row[i], row[i + 1] = b, a
                        self.at[a], self.at[b] = i + 1, i
                        better = True
            if not better:
                return

    def cost(self, left: int, right: int) -> int:
        """Crossings between the lines of two neighbours in this order."""
        total = 0
        for near in (self.up, self.down):
            places = sorted(self.at[n] for n in near[right])
            total += sum(bisect_left(places, self.at[n]) for n in near[left])
        return total

    def crossings(self) -> int:
        """Crossings of all lines."""
        total = 0
        for row in self.rows:
            placed: list[int] = []
            for v in row:
                lower = [self.at[n] for n in self.down[v]]
                total += sum(len(placed) - _not_above(placed, place) for place in lower)
                for place in lower:
                    insort(placed, place)
        return total


def _not_above(places: Sequence[int], place: int) -> int:
    """How many of the sorted places are at most this one."""
    return bisect_left(places, place + 1)
