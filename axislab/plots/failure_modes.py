"""plot_failure_modes: how runs ended, and of those that went wrong, why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from axislab.errors import DataError, did_you_mean
from axislab.frames.runs import runs_df
from axislab.frames.source import RunsLike, runs_of
from axislab.plots.bars import Part, stack_bars
from axislab.plots.data import is_frame, need_columns
from axislab.plots.style import (
    INK,
    ReasonStyle,
    name_rows,
    new_axes,
    put_legend,
    reason_styles,
    say_nothing_to_draw,
    simulated_footer,
)
from axislab.plots.text import label

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

By = Literal["arm", "model", "profile", "recipe", "kind"]
Per = Literal["share", "total"]

MODES: Final[Mapping[str, ReasonStyle]] = {
    "right": ReasonStyle("#4d9a6a", "", "o"),
    "answered, not judged": ReasonStyle("#c9d6cc", "", "o"),
    "wrong answer": ReasonStyle("#d55e00", "///", "X"),
    "not in the form asked for": ReasonStyle("#e69f00", "...", "s"),
    "no answer": ReasonStyle("#999999", "+++", "d"),
    "tools called at the end": ReasonStyle("#cc79a7", "\\\\\\", "^"),
    "out of tokens": ReasonStyle("#56b4e9", "---", "P"),
}
"""How a run ends by itself, and how that is drawn. Beside these there are "error: " and its kind,
and the status of a run that did not come to its end."""
_BAD_ENDS: Final = {
    "terminated_token_exceed": "out of tokens",
    "assistant_tool_calls_rejected_due_to_force_finalization": "tools called at the end",
}
_COLUMNS: Final = (
    "run_id", "simulated", "status", "correct", "answer_status", "done_reason", "error_kind",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ends:
    """Runs that share a bar: never simulated and real ones together."""

    name: str
    simulated: bool
    mixed: bool
    """There are both simulated and real groups, so that each has to say which it is."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Runs by mode, in the order of `MODES`."""

    @property
    def runs(self) -> int:
        """How many there are."""
        return sum(self.counts.values())

    @property
    def about(self) -> str:
        """How many runs of which sort."""
        sort = (", simulated" if self.simulated else ", real") if self.mixed else ""
        return f"{self.runs:,} run{'' if self.runs == 1 else 's'}{sort}"

    def height(self, mode: str, per: Per) -> float:
        """The length of one part of its bar."""
        count = self.counts.get(mode, 0)
        return count / self.runs if per == "share" and self.runs else float(count)


def failure_mode(row: Mapping[Hashable, Any]) -> str:
    """How one run ended, in a few words.

    Args:
        row: A row of `runs_df`, as a mapping.

    Examples:
        >>> failure_mode({"status": "COMPLETED", "answer_status": "ok", "correct": False})
        'wrong answer'
        >>> failure_mode({"status": "FAILED", "error_kind": "timeout"})
        'error: timeout'
    """
    status, answer = _told(row, "status"), _told(row, "answer_status")
    correct, kind = _told(row, "correct"), _told(row, "error_kind")
    if status not in ("COMPLETED", "FAILED"):
        return str(status or "unknown").lower().replace("_", " ")
    if correct is not None and bool(correct):
        return "right"
    if kind is not None:
        return f"error: {kind}"
    if bad := _BAD_ENDS.get(str(_told(row, "done_reason"))):
        return bad
    if answer == "ok":
        return "answered, not judged" if correct is None else "wrong answer"
    return "not in the form asked for" if answer == "format_error" else "no answer"


def _told(row: Mapping[Hashable, Any], name: str) -> Any:
    """A cell, None if it is NA."""
    value = row.get(name)
    return None if value is None or value != value or type(value).__name__ == "NAType" else value


def failure_groups(data: RunsLike | pd.DataFrame, *, by: By | None = "arm") -> list[Ends]:
    """The counts behind `plot_failure_modes`.

    Args:
        data: Runs, a study, a path, or what `runs_df` gave.
        by: What makes a group: the arm, the model, the failure profile, the recipe, the kind of
            the task; None for one group.

    Raises:
        DataError: An unknown `by`, or a frame without the columns of `runs_df`.
    """
    if by is not None and by not in get_args(By):
        raise DataError(f"by={by!r}: {did_you_mean(str(by), get_args(By))}")
    if is_frame(data):
        frame = data
        need_columns(frame, [*_COLUMNS, *([by] if by else [])], of="runs_df")
    else:
        frame = runs_df(runs_of(data))
    counts: dict[tuple[str, bool], Counter[str]] = {}
    for row in frame.to_dict("records"):
        name = "all runs" if by is None else str(_told(row, by) or f"no {by}")
        key = (name, bool(_told(row, "simulated")))
        counts.setdefault(key, Counter())[failure_mode(row)] += 1
    mixed = len({simulated for _, simulated in counts}) > 1
    return [
        Ends(name, simulated, mixed, {mode: found[mode] for mode in mode_styles(found)})
        for (name, simulated), found in counts.items()
    ]


def mode_styles(modes: Mapping[str, object] | Sequence[str]) -> dict[str, ReasonStyle]:
    """A style for each mode: those we know always look the same and come first."""
    known = {mode: style for mode, style in MODES.items() if mode in modes}
    return known | reason_styles(mode for mode in modes if mode not in MODES)


def plot_failure_modes(
    data: RunsLike | pd.DataFrame,
    *,
    ax: Axes | None = None,
    by: By | None = "arm",
    per: Per = "share",
) -> Axes:
    """Draw how the runs of each group ended: right, or in which way wrong.

    Every run is in exactly one part of a bar. Simulated and real runs get bars of their own.

    Args:
        data: Runs, a study, a path, or what `runs_df` gave.
        ax: Where to draw; a new figure if None.
        by: What makes a group: the arm, the model, the failure profile, the recipe, the kind of
            the task; None for one group.
        per: "share" of the runs of a group, or their "total" number.

    Raises:
        DataError: An unknown `by` or `per`, or a frame that `runs_df` did not give.

    Examples:
        >>> from matplotlib.figure import Figure
        >>> plot_failure_modes([], ax=Figure().subplots()).texts[0].get_text()
        'no runs'
    """
    if per not in get_args(Per):
        raise DataError(f"per={per!r}: {did_you_mean(str(per), get_args(Per))}")
    groups = failure_groups(data, by=by)
    if not groups:
        return say_nothing_to_draw(new_axes(ax, size=(5, 2)))
    ax = new_axes(ax, size=(9.0, 1.3 + 0.55 * len(groups)))
    _draw(ax, groups, per)
    simulated_footer(ax, groups, apart=True)
    return ax


def _draw(ax: Axes, groups: Sequence[Ends], per: Per) -> None:
    sums = sum((Counter(group.counts) for group in groups), Counter[str]())
    mixed = any(group.mixed for group in groups)  # then nothing may be summed over all of them
    longest = max(1.0 if per == "share" else float(group.runs) for group in groups)
    parts = [
        Part(
            style,
            [group.height(mode, per) for group in groups],
            [f"{group.counts.get(mode, 0):,}" for group in groups],
            mode if mixed else f"{mode} ({sums[mode]:,})",
        )
        for mode, style in mode_styles(sums).items()
    ]
    entries = stack_bars(ax, parts, least=0.045 * longest)
    _axes(ax, groups, per, longest)
    put_legend(ax, entries, title="end" if mixed else "end (runs in all)")


def _axes(ax: Axes, groups: Sequence[Ends], per: Per, longest: float) -> None:
    name_rows(ax, [f"{label(g.name, most=40).text}\n{g.about}" for g in groups])
    ax.set_ylim(len(groups) - 0.5, -0.5)
    ax.set_xlim(0, 1.02 * longest)
    ax.set_xlabel("share of the runs; numbers are runs" if per == "share" else "runs", fontsize=9)
    ax.tick_params(axis="x", labelsize=8)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.set_title("how runs ended", loc="left", fontsize=10, color=INK)
