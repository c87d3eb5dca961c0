"""Colours, dashes and hatches for kinds of stages and reasons; nothing is told by colour alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from axislab.errors import DataError
from axislab.plots.text import label
from axislab.runtime.stages import STAGE_KIND, ConversationStage, RollbackReason

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, FAINT, PAPER = "#2b2b2b", "#6b6b6b", "#ffffff"
FORWARD, ROUND, BACK = "#46637f", "#66798c", "#b8500f"
"""Lines that lead on, that go round in the usual loop, and that lead back out of a recovery."""
"""Lines that lead on, and lines that lead back; the latter are dashed as well."""
BACK_DASHES = (0, (4.5, 2.0))


@dataclass(frozen=True, slots=True)
class KindStyle:
    """How a stage of one kind is drawn."""

    name: str
    fill: str
    edge: str
    dashes: Any = "-"
    width: float = 1.0
    marker: str = "o"


KINDS: dict[str, KindStyle] = {
    "setup": KindStyle("setup", "#ececec", "#7a7a7a", "-", 0.8, "s"),
    "normal": KindStyle("normal", "#d7e8f7", "#2f6690", "-", 1.2, "o"),
    "recovery": KindStyle("recovery", "#fde3bd", "#a85d00", (0, (4, 1.5)), 1.4, "D"),
    "finalization": KindStyle(
        "finalization", "#e8dcf3", "#66489a", (0, (5, 1.5, 1, 1.5)), 1.4, "^"
    ),
    "terminal": KindStyle("end", "#d3ebd8", "#237546", "-", 2.2, "P"),
    "failed": KindStyle("end without an answer", "#f7d3ce", "#9c2f24", (0, (1.2, 1.2)), 2.2, "X"),
    "unknown": KindStyle("other", "#ffffff", "#444444", "-", 0.8, "o"),
}
"""Kind of a stage to its style; `failed` is a terminal stage that ends without an answer."""

WITHOUT_ANSWER = frozenset({ConversationStage.CALLS_REJECTED, ConversationStage.TOKEN_EXCEEDED})


def stage_kind(stage: str) -> str:
    """Kind of a stage: setup, normal, recovery, finalization, terminal; unknown if none of ours."""
    return _KIND_OF.get(stage, "unknown")


_KIND_OF: dict[str, str] = {str(stage): kind for stage, kind in STAGE_KIND.items()}


def stage_style(stage: str) -> KindStyle:
    """How a stage is drawn."""
    return KINDS["failed" if stage in WITHOUT_ANSWER else stage_kind(stage)]


@dataclass(frozen=True, slots=True)
class ReasonStyle:
    """How a reason is drawn: never told by colour alone."""

    color: str
    hatch: str
    marker: str


REASONS: dict[str, ReasonStyle] = {
    RollbackReason.ASSISTANT_REFUSAL: ReasonStyle("#d55e00", "", "X"),
    RollbackReason.FORMAT_ERROR: ReasonStyle("#e69f00", "///", "s"),
    RollbackReason.DUPLICATE_QUERY: ReasonStyle("#009e73", "...", "o"),
    RollbackReason.TOOL_ERROR: ReasonStyle("#cc79a7", "\\\\\\", "^"),
    RollbackReason.CONTEXT_LIMIT: ReasonStyle("#0072b2", "xxx", "v"),
    RollbackReason.TOKEN_EXHAUSTION: ReasonStyle("#56b4e9", "---", "P"),
    RollbackReason.EMPTY_REPLY: ReasonStyle("#999999", "+++", "d"),
}
_OTHERS = (
    ReasonStyle("#f0e442", "ooo", "*"),
    ReasonStyle("#6a4c93", "|||", "<"),
    ReasonStyle("#7f5539", "**", ">"),
    ReasonStyle("#444444", "//", "h"),
)


def reason_styles(reasons: Iterable[str]) -> dict[str, ReasonStyle]:
    """A style for each reason: those we know always look the same, others take turns by name."""
    given = set(reasons)
    styles = {str(r): style for r, style in REASONS.items() if r in given}
    others = sorted(given - styles.keys())
    return styles | {r: _OTHERS[i % len(_OTHERS)] for i, r in enumerate(others)}


class HasSimulated(Protocol):
    """A run, or what stands for one."""

    @property
    def simulated(self) -> bool:
        """No real language model answered."""


def simulated_footer(ax: Axes, runs: Sequence[HasSimulated], *, apart: bool = False) -> None:
    """Write "simulated" under a plot that shows simulated runs.

    Args:
        ax: The plot.
        runs: What it shows.
        apart: Simulated and real runs are told apart in the plot itself.

    Raises:
        DataError: Both are shown, and not apart.

    Examples:
        >>> from matplotlib.figure import Figure
        >>> simulated_footer(Figure().subplots(), [])
    """
    n = sum(bool(run.simulated) for run in runs)
    if n and n < len(runs) and not apart:
        refuse_mixture(n, len(runs) - n)
    if n:
        footer(ax, "simulated" if n == len(runs) else "in part simulated, as labelled")


def refuse_mixture(simulated: int, real: int) -> None:
    """Say that simulated and real runs are never pooled.

    Raises:
        DataError: Always.
    """
    raise DataError(
        f"{simulated} simulated and {real} real runs in one picture; draw them apart, "
        "e.g. [r for r in runs if r.simulated] and [r for r in runs if not r.simulated]"
    )


def footer(ax: Axes, text: str, *, size: float = 7.5) -> None:
    """Small print at the lower right, below the axis and its label."""
    shown = label(text)
    if ax.axison:
        where: Any = ("axes fraction", ax.xaxis.label)
        offset, top = (0, -3), "top"
    else:
        where, offset, top = "axes fraction", (-2, 2), "bottom"
    ax.annotate(
        shown.text,
        xy=(1.0, 0.0),
        xycoords=where,
        xytext=offset,
        textcoords="offset points",
        ha="right",
        va=top,
        fontsize=size,
        color=FAINT,
        style="italic",
        annotation_clip=False,
        **shown.style,
    )


def new_axes(ax: Axes | None, *, size: tuple[float, float]) -> Axes:
    """The axes to draw on: the caller's, or those of a new figure of this size in inches."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def say_nothing_to_draw(ax: Axes, why: str = "no runs") -> Axes:
    """An empty plot that says so."""
    ax.set_axis_off()
    shown = label(why)
    ax.text(
        0.5,
        0.5,
        shown.text,
        ha="center",
        va="center",
        transform=ax.transAxes,
        color=FAINT,
        **shown.style,
    )
    return ax


def put_legend(ax: Axes, entries: Sequence[tuple[Any, str]], *, title: str | None = None) -> None:
    """A legend to the right of a plot.

    Args:
        ax: The plot.
        entries: Artists and what they mean.
        title: What the entries are.
    """
    shown = [label(text, most=90) for _, text in entries]
    legend = ax.legend(
        [artist for artist, _ in entries],
        [text.text.lstrip("_") or " " for text in shown],
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        fontsize=8,
        title=title,
        title_fontsize=8,
        frameon=False,
        borderaxespad=0.0,
        alignment="left",
    )
    for text, meant in zip(legend.get_texts(), shown, strict=True):
        text.set(text=meant.text, **meant.style)


def name_rows(ax: Axes, names: Sequence[str]) -> None:
    """Name the rows of a plot, which stand at 0, 1, 2, … of its y axis."""
    shown = [label(name, most=90) for name in names]
    ax.set_yticks(range(len(names)), labels=[text.text for text in shown], fontsize=8)
    for tick, text in zip(ax.get_yticklabels(), shown, strict=True):
        tick.set(**text.style)
    ax.tick_params(axis="y", length=0)
