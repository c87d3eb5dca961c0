"""plot_token_budget: how full the context was at each model call, expected and counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from axislab.frames.budgets import Limits, budgets_df
from axislab.frames.rollbacks import rollbacks_df
from axislab.frames.source import RunsLike
from axislab.plots.data import is_frame, one_run, one_run_frame
from axislab.plots.style import (
    INK,
    footer,
    new_axes,
    put_legend,
    reason_styles,
    say_nothing_to_draw,
)
from axislab.plots.text import label

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

NEEDED = (
    "call",
    "step",
    "outcome",
    "estimated_prompt_tokens",
    "input_tokens",
    "usage_estimated",
    "window",
    "safety_margin",
    "warning_threshold",
    "min_tokens_for_generation",
)
OFF_SCALE = 3.0
"""A window this many times larger than any prompt is named, not drawn."""


@dataclass(frozen=True, slots=True)
class Point:
    """Prompt tokens of one model call."""

    call: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Hidden:
    """Messages hidden between two calls."""

    after: float
    """Half-way between the calls before and after."""
    reason: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Curve:
    """How full the context of one run was."""

    task_id: str
    simulated: bool
    estimated: tuple[Point, ...]
    observed: tuple[Point, ...]
    failed: tuple[Point, ...]
    """Requests without a reply, at their estimate (0 where there is none)."""
    counted_by_us: bool
    """The observed tokens were counted by us, not reported."""
    hidden: tuple[Hidden, ...]
    limits: Limits
    estimator: str | None = None
    """How the estimates were counted."""

    @property
    def highest(self) -> int:
        """The largest prompt."""
        points = (*self.estimated, *self.observed, *self.failed)
        return max((point.tokens for point in points), default=0)


def token_curve(data: RunsLike | pd.DataFrame) -> Curve | None:
    """What `plot_token_budget` draws, computed; None if there is no run.

    Args:
        data: A run, the path of a trace, or what `budgets_df` gave for one run.

    Raises:
        DataError: Several runs, or a frame without the columns of `budgets_df`.
    """
    if is_frame(data):
        frame = one_run_frame(data, NEEDED, of="budgets_df")
        return _curve(frame, ()) if len(frame) else None
    run = one_run(data)
    if run is None:
        return None
    frame = budgets_df(run)
    if frame.empty:
        return Curve(run.id, run.simulated, (), (), (), False, (), Limits())
    return _curve(frame, _hidden(frame, rollbacks_df(run)))


def _curve(frame: pd.DataFrame, hidden: Iterable[Hidden]) -> Curve:
    ok = frame["outcome"].eq("ok").fillna(False)
    last, failed = frame.drop_duplicates("call", keep="last"), frame[~ok]
    first = frame.iloc[0]
    return Curve(
        task_id=str(first["task_id"]),
        simulated=bool(frame["simulated"].fillna(False).any()),
        estimated=_points(last, "estimated_prompt_tokens"),
        observed=_points(frame[ok], "input_tokens"),
        failed=_points(failed.fillna({"estimated_prompt_tokens": 0}), "estimated_prompt_tokens"),
        counted_by_us=bool(frame["usage_estimated"].fillna(False).any()),
        hidden=tuple(hidden),
        limits=Limits(
            window=_whole(first["window"]),
            safety_margin=_whole(first["safety_margin"]),
            min_tokens=_whole(first["min_tokens_for_generation"]),
            warning_threshold=_whole(first["warning_threshold"]),
        ),
        estimator=_estimator(frame),
    )


def _estimator(frame: pd.DataFrame) -> str | None:
    """What counted; frames saved by earlier versions do not say."""
    if "estimator" not in frame:
        return None
    return ", ".join(map(str, frame["estimator"].dropna().unique())) or None


def _points(frame: pd.DataFrame, column: str) -> tuple[Point, ...]:
    known = frame[frame[column].notna() & frame["call"].notna()]
    pairs = zip(known["call"], known[column], strict=True)
    return tuple(Point(int(call), int(tokens)) for call, tokens in pairs)


def _whole(value: Any) -> int | None:
    import pandas as pd

    return None if pd.isna(value) else int(value)


def _hidden(calls: pd.DataFrame, rollbacks: pd.DataFrame) -> list[Hidden]:
    """Each time messages were hidden, placed after the last call made before."""
    known = calls[calls["step"].notna() & calls["call"].notna()]
    after = rollbacks[rollbacks["hidden_messages"].gt(0) & rollbacks["step"].notna()]
    reasons = after["reason"].fillna(after["kind"])
    found = []
    for step, reason, tokens in zip(after["step"], reasons, after["hidden_tokens"], strict=True):
        before = known.loc[known["step"] <= step, "call"]
        last = -1 if before.empty else int(before.max())
        found.append(Hidden(last + 0.5, str(reason), int(tokens)))
    return found


def plot_token_budget(data: RunsLike | pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the prompt tokens of each model call of a run against its limits.

    Shows what the estimate expected, what was counted, where messages were hidden and why, the
    window, and the lines above which the final answer is forced or the conversation ends. A
    window far above all prompts is named instead of drawn.

    Args:
        data: A run, the path of a trace, or what `budgets_df` gave for one run.
        ax: Where to draw; a new figure if None.

    Raises:
        DataError: Several runs, or a frame without the columns of `budgets_df`.

    Examples:
        >>> from matplotlib.figure import Figure
        >>> plot_token_budget([], ax=Figure().subplots()).texts[0].get_text()
        'no runs'
    """
    curve = token_curve(data)
    if curve is None or not curve.highest:
        why = "no runs" if curve is None else "no model call with known tokens"
        ax = say_nothing_to_draw(new_axes(ax, size=(5, 2)), why)
    else:
        ax = new_axes(ax, size=(9.5, 3.8))
        _draw(ax, curve)
    if curve is not None and curve.simulated:
        footer(ax, "simulated")
    return ax


def _draw(ax: Axes, curve: Curve) -> None:
    entries = [*_series(ax, curve), *_limits(ax, curve), *_marks(ax, curve)]
    calls = [point.call for point in (*curve.estimated, *curve.observed, *curve.failed)]
    ax.set_xlim(min(calls) - 0.7, max(calls) + 0.7)
    ax.set_ylim(0, _top(curve))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}"))
    ax.tick_params(labelsize=8)
    ax.set_xlabel("model call", fontsize=9)
    ax.set_ylabel("prompt tokens", fontsize=9)
    ax.spines[["top", "right"]].set_visible(False)
    title = label(f"context of a run on {curve.task_id}", most=80)
    ax.set_title(title.text, loc="left", fontsize=10, color=INK, **title.style)
    put_legend(ax, entries)


def _top(curve: Curve) -> float:
    window = curve.limits.window
    if window is not None and window <= OFF_SCALE * curve.highest:
        return 1.08 * max(window, curve.highest)
    return 1.2 * curve.highest


def _series(ax: Axes, curve: Curve) -> list[tuple[Any, str]]:
    counted = "counted by us" if curve.counted_by_us else "reported"
    expected = f"estimated\nby {curve.estimator}" if curve.estimator else "estimated"
    looks: tuple[tuple[tuple[Point, ...], str, dict[str, Any]], ...] = (
        (curve.estimated, expected, {"color": "#e69f00", "marker": "o", "mfc": "w", "ls": "--"}),
        (curve.observed, counted, {"color": "#0072b2", "marker": "o"}),
        (curve.failed, "failed request", {"color": "#b2182b", "marker": "x", "ls": ""}),
    )
    entries: list[tuple[Any, str]] = []
    for points, name, look in looks:
        if points:
            xs, ys = [p.call for p in points], [p.tokens for p in points]
            (line,) = ax.plot(xs, ys, ms=5, lw=1.4, mew=1.4, zorder=3, **look)
            entries.append((line, name))
    return entries


def _limits(ax: Axes, curve: Curve) -> list[tuple[Any, str]]:
    limits, top = curve.limits, _top(curve)
    lines = (
        (limits.window, "window:", INK, "-"),
        (limits.stop_at, "conversation ends above", "#9c2f24", (0, (1, 1.2))),
        (limits.warning_at, "answer forced above", "#66489a", (0, (6, 2))),
    )
    entries: list[tuple[Any, str]] = []
    for value, name, color, dashes in lines:
        if value is None:
            continue
        line, text = Line2D([], [], color=color, ls=dashes, lw=1.3), f"{name} {value:,}"
        if value <= top:
            ax.axhline(value, color=color, ls=dashes, lw=1.3, zorder=1)
        elif value == limits.window:
            text += f" (off scale)\nlargest prompt: {100 * curve.highest / value:.0f} % of it"
        else:
            text += " (off scale)"
        entries.append((line, text))
    return entries


def _marks(ax: Axes, curve: Curve) -> list[tuple[Any, str]]:
    entries: list[tuple[Any, str]] = []
    for reason, style in reason_styles(mark.reason for mark in curve.hidden).items():
        here = [mark for mark in curve.hidden if mark.reason == reason]
        for mark in here:
            ax.axvline(mark.after, color=style.color, lw=1.0, ls=(0, (2, 2)), zorder=0.5)
        (line,) = ax.plot(
            [mark.after for mark in here],
            [0.96] * len(here),
            ls="",
            marker=style.marker,
            ms=7,
            mfc=style.color,
            mec=INK,
            mew=0.6,
            transform=ax.get_xaxis_transform(),
            zorder=4,
        )
        tokens = sum(mark.tokens for mark in here)
        entries.append((line, f"hidden: {reason} ({len(here)})\nabout {tokens:,} tokens"))
    return entries
