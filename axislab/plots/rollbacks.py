"""plot_rollback_reasons: how often messages were hidden, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from axislab.errors import DataError, did_you_mean
from axislab.frames.rollbacks import rollbacks_df
from axislab.frames.runs import runs_df
from axislab.frames.source import RunsLike, runs_of
from axislab.plots.bars import Part, stack_bars
from axislab.plots.data import is_frame, need_columns
from axislab.plots.style import (
    INK,
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

By = Literal["arm", "profile", "model"]
Per = Literal["run", "total"]


@dataclass(frozen=True, slots=True)
class Group:
    """Runs that share a bar: never simulated and real ones together."""

    name: str
    simulated: bool
    mixed: bool
    """There are both simulated and real groups, so that each has to say which it is."""
    runs: int | None
    """None where only a frame of rollbacks is known, which lacks the runs without any."""
    counts: dict[str, int] = field(default_factory=dict)
    """Rollbacks by reason."""

    @property
    def about(self) -> str:
        """How many runs of which sort; empty if that is not known and need not be said."""
        parts = [] if self.runs is None else [f"{self.runs:,} run{'' if self.runs == 1 else 's'}"]
        if self.mixed:
            parts.append("simulated" if self.simulated else "real")
        return ", ".join(parts)

    def height(self, reason: str, per: Per) -> float:
        """The length of one part of its bar."""
        count = self.counts.get(reason, 0)
        return count / self.runs if per == "run" and self.runs else float(count)


def rollback_groups(data: RunsLike | pd.DataFrame, *, by: By | None = "arm") -> list[Group]:
    """The counts behind `plot_rollback_reasons`.

    Args:
        data: Runs, a study, a path, or what `rollbacks_df` gave.
        by: What makes a group: the arm, the failure profile, the model; None for one group.

    Raises:
        DataError: An unknown `by`, or a frame without the columns of `rollbacks_df`.
    """
    if by not in ("arm", "profile", "model", None):
        raise DataError(f"by={by!r}: {did_you_mean(str(by), ('arm', 'profile', 'model'))}")
    if is_frame(data):
        rows, runs = data, None
        need = ["run_id", "simulated", "kind", "reason", *([by] if by else [])]
        need_columns(rows, need, of="rollbacks_df")
        keys = dict.fromkeys(_keys(rows, by))
    else:
        found = runs_of(data)
        rows, about = rollbacks_df(found), runs_df(found)
        runs = Counter(_keys(about, by))
        keys = dict.fromkeys(runs)
        if by == "profile":
            rows = rows.merge(
                about[["run_id", "profile"]].drop_duplicates("run_id"), on="run_id", how="left"
            )
    return _count(rows, by, list(keys), runs)


def _keys(frame: pd.DataFrame, by: By | None) -> list[tuple[str, bool]]:
    """The group of each row: a name, and whether it is simulated."""
    simulated = frame["simulated"].fillna(False).astype(bool)
    if by is None:
        return [("all runs", s) for s in simulated]
    names = frame[by].astype("string").fillna(f"no {by}")
    return list(zip(names, simulated, strict=True))


def _count(
    rows: pd.DataFrame,
    by: By | None,
    keys: Sequence[tuple[str, bool]],
    runs: Counter[tuple[str, bool]] | None,
) -> list[Group]:
    rows = rows[rows["kind"] == "rollback"]
    reasons = rows["reason"].astype("string").fillna("no reason")
    counts = Counter(zip(_keys(rows, by), reasons, strict=True))
    mixed = len({simulated for _, simulated in keys}) > 1
    groups = []
    for key in keys:
        name, simulated = key
        mine = {reason: n for (k, reason), n in counts.items() if k == key}
        groups.append(Group(name, simulated, mixed, None if runs is None else runs[key], mine))
    return groups


def plot_rollback_reasons(
    data: RunsLike | pd.DataFrame,
    *,
    ax: Axes | None = None,
    by: By | None = "arm",
    per: Per = "run",
) -> Axes:
    """Draw how often replies were hidden in each group of runs, and why.

    Simulated and real runs get bars of their own.

    Args:
        data: Runs, a study, a path, or (with per="total") what `rollbacks_df` gave.
        ax: Where to draw; a new figure if None.
        by: What makes a group: the arm, the failure profile, the model; None for one group.
        per: "run" for the mean number in a run, "total" for the sum.

    Raises:
        DataError: An unknown `by` or `per`; or a frame of rollbacks with per="run", since it does
            not hold the runs without any.

    Examples:
        >>> from matplotlib.figure import Figure
        >>> plot_rollback_reasons([], ax=Figure().subplots()).texts[0].get_text()
        'no runs'
    """
    _check_per(per, framed=is_frame(data))
    groups = rollback_groups(data, by=by)
    if any(sum(group.counts.values()) for group in groups):
        ax = new_axes(ax, size=(9.0, 1.3 + 0.55 * len(groups)))
        _draw(ax, groups, per)
    else:
        n = sum(group.runs or 0 for group in groups)
        none = "no rollbacks" if is_frame(data) else "no runs"
        why = f"no rollbacks in {n:,} run{'' if n == 1 else 's'}" if n else none
        ax = say_nothing_to_draw(new_axes(ax, size=(5, 2)), why)
    simulated_footer(ax, groups, apart=True)
    return ax


def _check_per(per: str, *, framed: bool) -> None:
    if per not in ("run", "total"):
        raise DataError(f"per={per!r}: {did_you_mean(str(per), ('run', 'total'))}")
    if per == "run" and framed:
        raise DataError(
            "a frame of rollbacks does not hold the runs without any, so there is no mean per "
            "run: give the runs, or per='total'"
        )


def _draw(ax: Axes, groups: Sequence[Group], per: Per) -> None:
    styles = reason_styles(reason for group in groups for reason in group.counts)
    sums = {r: sum(group.counts.get(r, 0) for group in groups) for r in styles}
    mixed = any(group.mixed for group in groups)  # then nothing may be summed over all of them
    longest = max(sum(g.height(r, per) for r in styles) for g in groups)
    heights = {r: [group.height(r, per) for group in groups] for r in styles}
    parts = [
        Part(
            style,
            heights[reason],
            [_amount(value, per) for value in heights[reason]],
            reason if mixed else f"{reason} ({sums[reason]:,})",
        )
        for reason, style in styles.items()
    ]
    entries = stack_bars(ax, parts, least=0.055 * longest)
    ends = [sum(values[i] for values in heights.values()) for i in range(len(groups))]
    for i, end in enumerate(ends):
        ax.text(end + 0.012 * longest, i, _amount(end, per), va="center", fontsize=8, color=INK)
    _axes(ax, groups, per, longest)
    put_legend(ax, entries, title="reason" if mixed else "reason (rollbacks in all)")


def _amount(value: float, per: Per) -> str:
    return f"{value:.2f}" if per == "run" else f"{value:,.0f}"


def _axes(ax: Axes, groups: Sequence[Group], per: Per, longest: float) -> None:
    names = [f"{label(group.name, most=40).text}\n{group.about}".strip() for group in groups]
    name_rows(ax, names)
    ax.set_ylim(len(groups) - 0.5, -0.5)
    ax.set_xlim(0, 1.1 * longest)
    ax.set_xlabel("rollbacks per run" if per == "run" else "rollbacks", fontsize=9)
    ax.tick_params(axis="x", labelsize=8)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.set_title("why replies were hidden", loc="left", fontsize=10, color=INK)
