"""Horizontal bars made of parts: how the plots of counts by kind are drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from axislab.plots.style import INK, PAPER, ReasonStyle

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class Part:
    """One kind's part of every bar, none of which need have it."""

    style: ReasonStyle
    lengths: Sequence[float]
    numbers: Sequence[str]
    """What is written into each, where there is room."""
    legend: str


def stack_bars(ax: Axes, parts: Iterable[Part], *, least: float) -> list[tuple[Any, str]]:
    """Draw bars, row by row, their parts side by side in the order given.

    Args:
        ax: Where to draw.
        parts: Each with a length for every bar.
        least: Length of a part that has room for its number.

    Returns:
        The entries of the legend.
    """
    ends: list[float] = []
    entries: list[tuple[Any, str]] = []
    for part in parts:
        ends = ends or [0.0] * len(part.lengths)
        drawn = ax.barh(
            range(len(ends)),
            part.lengths,
            left=ends,
            height=0.62,
            color=part.style.color,
            hatch=part.style.hatch,
            edgecolor=PAPER,
            linewidth=0.8,
        )
        entries.append((drawn, part.legend))
        for i, length in enumerate(part.lengths):
            if length >= least:
                _number(ax, ends[i] + length / 2, i, part.numbers[i])
            ends[i] += length
    return entries


def _number(ax: Axes, x: float, y: float, text: str) -> None:
    ground = {"facecolor": PAPER, "edgecolor": "none", "pad": 1.0, "alpha": 0.9}
    ax.text(x, y, text, ha="center", va="center", fontsize=7.5, color=INK, bbox=ground)
