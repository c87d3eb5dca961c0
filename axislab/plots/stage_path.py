"""plot_stage_path: the way of one run through the stages, step by step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from matplotlib.collections import LineCollection
from matplotlib.ticker import MaxNLocator

from axislab.frames.source import RunsLike
from axislab.frames.steps import ARROW, steps_df
from axislab.plots.data import is_frame, one_run, one_run_frame
from axislab.plots.style import (
    BACK,
    BACK_DASHES,
    INK,
    footer,
    name_rows,
    new_axes,
    put_legend,
    reason_styles,
    say_nothing_to_draw,
    stage_style,
)
from axislab.plots.text import label
from axislab.runtime.stages import ConversationStage as S

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

NEEDED = ("step", "stage_path", "rollback_reason", "finalization_trigger")
HIDING = (str(S.ROLLBACK), str(S.CONTEXT_ROLLBACK))
_LOOP = (S.RECEIVED, S.TOOL_CALLS, S.TOOL_MESSAGES, S.ROLLBACK, S.REPROMPT, S.FINAL_PROMPT)
_HEAD = (S.NOT_INITIALIZED, S.SYSTEM_MESSAGE_SET, S.INITIAL_USER)
ORDER = {str(stage): i for i, stage in enumerate(dict.fromkeys((*_HEAD, *_LOOP, *S)))}
"""Stages from top to bottom: the main loop is a staircase, and rollbacks are short ways."""
FIRST_STEP = 0.4
"""Distance of the stages of the first step, which has no step before it."""


@dataclass(frozen=True, slots=True)
class Spot:
    """One stage at one moment; the result of step n stands at n, what led to it before."""

    x: float
    stage: str
    back: bool = False
    """The way to here leads back: it comes from a rollback."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened on the way."""

    x: float
    stage: str
    reason: str


@dataclass(frozen=True, slots=True)
class Trail:
    """The way of one run."""

    task_id: str
    simulated: bool
    spots: tuple[Spot, ...]
    hidden: tuple[Mark, ...]
    """Where messages were hidden, and why."""
    forced: tuple[Mark, ...]
    """Where the final answer was forced, and why."""

    @property
    def stages(self) -> list[str]:
        """The stages on it, from top to bottom; others than ours last."""
        seen = dict.fromkeys(spot.stage for spot in self.spots)
        return sorted(seen, key=lambda s: ORDER.get(s, len(ORDER)))


def stage_trail(data: RunsLike | pd.DataFrame) -> Trail | None:
    """The way of one run, computed; None if there is no run.

    Args:
        data: A run, the path of a trace, or what `steps_df` gave for one run.

    Raises:
        DataError: Several runs, or a frame without the columns of `steps_df`.
    """
    if is_frame(data):
        frame = one_run_frame(data, NEEDED, of="steps_df")
    else:
        run = one_run(data)
        if run is None:
            return None
        frame = steps_df(run)
        if frame.empty:
            return Trail(run.id, run.simulated, (), (), ())
    return _trail(frame) if frame["step"].notna().any() else None


def _trail(frame: pd.DataFrame) -> Trail:
    spots: list[Spot] = []
    hidden: list[Mark] = []
    forced: list[Mark] = []
    frame = frame[frame["step"].notna()]
    columns = [frame[name].astype(object).where(frame[name].notna(), None) for name in NEEDED]
    for step, path, reason, trigger in zip(*columns, strict=True):
        stages = path.split(ARROW) if path else []
        last = len(stages) - 1
        start = 1 if spots and stages[:1] == [spots[-1].stage] else 0
        for i, stage in list(enumerate(stages))[start:]:
            back = i > 0 and stages[i - 1] == S.ROLLBACK
            x = _place(int(step), i, last)
            spots.append(Spot(x, stage, back))
            if stage in HIDING:
                hidden.append(Mark(x, stage, reason or trigger or "no reason"))
            if stage == S.FORCE_FINAL and i:
                forced.append(Mark(x, stage, trigger or "no reason"))
    task_id, simulated = str(frame["task_id"].iloc[0]), frame["simulated"].fillna(False).any()
    return Trail(task_id, bool(simulated), tuple(spots), tuple(hidden), tuple(forced))


def _place(step: int, i: int, last: int) -> float:
    """Where the i-th stage of a step stands; the last one stands at the step itself."""
    if last == 0:
        return float(step)
    return step - (last - i) * FIRST_STEP if step == 0 else step - 1 + i / last


def plot_stage_path(data: RunsLike | pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the way of one run: stages downwards, steps to the right.

    Where messages were hidden a mark says why, and a dashed line leads back; a line across shows
    where the final answer was forced.

    Args:
        data: A run, the path of a trace, or what `steps_df` gave for one run.
        ax: Where to draw; a new figure if None.

    Raises:
        DataError: Several runs, or a frame without the columns of `steps_df`.

    Examples:
        >>> from matplotlib.figure import Figure
        >>> plot_stage_path([], ax=Figure().subplots()).texts[0].get_text()
        'no runs'
    """
    trail = stage_trail(data)
    if trail is None or not trail.spots:
        why = "no runs" if trail is None else "no steps"
        return say_nothing_to_draw(new_axes(ax, size=(5, 2)), why)
    steps = trail.spots[-1].x + 2
    width = min(max(6.0 + 0.16 * steps, 7.5), 11.0)
    ax = new_axes(ax, size=(width, 1.3 + 0.27 * len(trail.stages)))
    _draw(ax, trail)
    if trail.simulated:
        footer(ax, "simulated")
    return ax


def _draw(ax: Axes, trail: Trail) -> None:
    row = {stage: i for i, stage in enumerate(trail.stages)}
    for i in row.values():
        ax.axhline(i, color="#e4e4e4", lw=0.8, zorder=0)
    _ways(ax, trail, row)
    size = 7.0 if len(trail.spots) < 120 else 3.5
    _spots(ax, trail, row, size)
    handles = [*_marks(ax, trail.hidden, row, size), *_forced(ax, trail.forced)]
    ax.set_ylim(len(row) - 0.4, -0.6)
    name_rows(ax, [stage.replace("_", " ") for stage in row])
    for tick, stage in zip(ax.get_yticklabels(), row, strict=True):
        tick.set_color(stage_style(stage).edge)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.tick_params(axis="x", labelsize=8)
    last = trail.spots[-1].x
    ax.set_xlim(max(trail.spots[0].x - 0.03 * last - 0.05, -0.98), last + 0.04 * last + 0.3)
    ax.set_xlabel("step", fontsize=9)
    ax.spines[["top", "right", "left"]].set_visible(False)
    title = label(f"stages of a run on {trail.task_id}", most=80)
    ax.set_title(title.text, loc="left", fontsize=10, color=INK, **title.style)
    if handles:
        put_legend(ax, handles)


def _ways(ax: Axes, trail: Trail, row: dict[str, int]) -> None:
    """The lines from stage to stage; all of a kind are one thing to draw, however many."""
    pairs = list(zip(trail.spots, trail.spots[1:], strict=False))
    for back in (False, True):
        lines = [
            [(before.x, row[before.stage]), (spot.x, row[spot.stage])]
            for before, spot in pairs
            if spot.back is back
        ]
        drawn = LineCollection(
            lines,
            colors=BACK if back else "#8a97a5",
            linestyles=[BACK_DASHES if back else "-"],
            linewidths=1.5 if back else 1.1,
            capstyle="butt" if back else "projecting",
            zorder=1,
        )
        ax.add_collection(drawn, autolim=False)


def _spots(ax: Axes, trail: Trail, row: dict[str, int], size: float) -> None:
    for stage, y in row.items():
        if stage in HIDING:
            continue
        style = stage_style(stage)
        xs = [spot.x for spot in trail.spots if spot.stage == stage]
        ax.plot(
            xs,
            [y] * len(xs),
            ls="",
            marker=style.marker,
            ms=size,
            mfc=style.fill,
            mec=style.edge,
            mew=1.0,
            zorder=3,
            clip_on=False,
        )


def _marks(
    ax: Axes, marks: Sequence[Mark], row: dict[str, int], size: float
) -> list[tuple[Any, str]]:
    """Marks where messages were hidden, one entry of the legend for each reason."""
    counts = Counter(mark.reason for mark in marks)
    entries: list[tuple[Any, str]] = []
    for reason, style in reason_styles(counts).items():
        here = [mark for mark in marks if mark.reason == reason]
        (line,) = ax.plot(
            [mark.x for mark in here],
            [row[mark.stage] for mark in here],
            ls="",
            marker=style.marker,
            ms=size + 1.5,
            mfc=style.color,
            mec=INK,
            mew=0.6,
            zorder=4,
        )
        entries.append((line, f"hidden: {reason} ({counts[reason]})"))
    return entries


def _forced(ax: Axes, marks: Sequence[Mark]) -> list[tuple[Any, str]]:
    """A line across the plot at each forced final answer."""
    entries: dict[str, tuple[Any, str]] = {}
    for mark in marks:
        line = ax.axvline(mark.x, color="#66489a", lw=1.2, ls=(0, (1, 1.5)), zorder=0.5)
        entries.setdefault(mark.reason, (line, f"answer forced: {mark.reason}"))
    return list(entries.values())
