"""What a layout is given, and what it gives: boxes, lines and labels, measured in inches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias


class Point(NamedTuple):
    """A place on the paper; y points up."""

    x: float
    y: float


class Size(NamedTuple):
    """Width and height."""

    width: float
    height: float


Pair: TypeAlias = tuple[str, str]
"""Source and target."""


@dataclass(frozen=True, slots=True)
class Node:
    """A box to be placed."""

    name: str
    size: Size
    end: bool = False
    """Belongs on the last row."""
    loop: Size | None = None
    """Label of its self loop, which is drawn on its right side; None without a loop."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line to be placed, with the label that stands on it."""

    source: str
    target: str
    label: Size
    weight: float = 1.0
    """From 0 to 1: heavy lines are kept straight and short."""
    votes: float = 1.0
    """How clearly it leads forward (above 0) or back (below 0)."""


@dataclass(frozen=True, slots=True)
class Rect:
    """A rectangle by its middle."""

    center: Point
    size: Size

    @property
    def left(self) -> float:
        """Smallest x."""
        return self.center.x - self.size.width / 2

    @property
    def right(self) -> float:
        """Largest x."""
        return self.center.x + self.size.width / 2

    @property
    def bottom(self) -> float:
        """Smallest y."""
        return self.center.y - self.size.height / 2

    @property
    def top(self) -> float:
        """Largest y."""
        return self.center.y + self.size.height / 2

    def overlap(self, other: Rect) -> float:
        """The area both cover."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.top, other.top) - max(self.bottom, other.bottom)
        return max(width, 0.0) * max(height, 0.0)


@dataclass(frozen=True, slots=True)
class Route:
    """How a line runs."""

    curve: tuple[Point, ...]
    """A cubic Bézier path from source to target: 1 + 3 k points."""
    label: Rect
    back: bool = False
    """It leads back to where most runs have been before."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A placed graph."""

    boxes: Mapping[str, Rect] = field(default_factory=dict)
    routes: Mapping[Pair, Route] = field(default_factory=dict)

    @property
    def bounds(self) -> Rect:
        """What everything fits into; an empty rectangle for an empty graph."""
        rects = [*self.boxes.values(), *(route.label for route in self.routes.values())]
        points = [p for route in self.routes.values() for p in route.curve]
        xs = [p.x for p in points] + [x for r in rects for x in (r.left, r.right)]
        ys = [p.y for p in points] + [y for r in rects for y in (r.bottom, r.top)]
        if not xs:
            return Rect(Point(0.0, 0.0), Size(0.0, 0.0))
        middle = Point((min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2)
        return Rect(middle, Size(max(xs) - min(xs), max(ys) - min(ys)))
