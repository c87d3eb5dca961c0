"""plot_attempts: what each further attempt at the answer bought."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from axislab.answers.scorers import Scorer, score
from axislab.errors import DataError, did_you_mean
from axislab.frames.answers import answer_rows
from axislab.frames.attempts import attempt_rows
from axislab.frames.source import RunsLike, runs_of
from axislab.plots.bars import Part, stack_bars
from axislab.plots.style import (
    INK,
    ReasonStyle,
    name_rows,
    new_axes,
    put_legend,
    say_nothing_to_draw,
    simulated_footer,
)
from axislab.plots.text import label
from axislab.trace.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Of = Literal["calls", "tries"]

BOUGHT: Final[Mapping[str, ReasonStyle]] = {
    "recovered": ReasonStyle("#4d9a6a", "", "o"),
    "unchanged, right": ReasonStyle("#c9d6cc", "", "o"),
    "unchanged, not right": ReasonStyle("#d9d9d9", "...", "s"),
    "spoiled": ReasonStyle("#d55e00", "///", "X"),
}
"""What became of the answer, and how that is drawn."""


@dataclass(frozen=True, slots=True)
class Bought:
    """What the further attempts of one number came to, in one arm."""

    arm: str
    attempt: int
    """From 2: the first has nothing before it."""
    simulated: bool
    mixed: bool
    """There are both simulated and real runs, so that each bar has to say which it is."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Attempts by what they came to, in the order of `BOUGHT`."""

    @property
    def attempts(self) -> int:
        """How many there were."""
        return sum(self.counts.values())


def attempts_bought(
    data: RunsLike, *, of: Of = "calls", scorer: str | Scorer = "normalized"
) -> list[Bought]:
    """The counts behind `plot_attempts`.

    Args:
        data: Runs, a study, or a path; runs of tasks without an expected answer are left out.
        of: "calls" for an answer, of all tries of a run in order, or whole "tries".
        scorer: Judges the answers on the way; a trace only judges the last.

    Raises:
        DataError: An unknown `of`.
    """
    if of not in get_args(Of):
        raise DataError(f"of={of!r}: {did_you_mean(str(of), get_args(Of))}")
    counts: dict[tuple[str, bool, int], Counter[str]] = {}
    for run in runs_of(data):
        if run.expected is None:
            continue
        for attempt, came in _steps(run, of, scorer):
            key = (run.arm or "no arm", run.simulated, attempt)
            counts.setdefault(key, Counter())[came] += 1
    mixed = len({simulated for _, simulated, _ in counts}) > 1
    arms = list(dict.fromkeys((arm, simulated) for arm, simulated, _ in counts))
    order = sorted(counts, key=lambda key: (arms.index(key[:2]), key[2]))
    return [
        Bought(arm, attempt, simulated, mixed, _in_order(counts[arm, simulated, attempt]))
        for arm, simulated, attempt in order
    ]


def _in_order(found: Counter[str]) -> dict[str, int]:
    return {name: found[name] for name in BOUGHT if found[name]}


def _steps(run: Run, of: Of, scorer: str | Scorer) -> Iterator[tuple[int, str]]:
    """Number and outcome of each attempt after the first."""
    right = [_is_right(answer, run, scorer) for answer in _answers(run, of)]
    for attempt, (before, after) in enumerate(pairwise(right), start=2):
        if before == after:
            yield attempt, "unchanged, right" if after else "unchanged, not right"
        else:
            yield attempt, "recovered" if after else "spoiled"


def _answers(run: Run, of: Of) -> Sequence[str | None]:
    if of == "tries":
        return [_text(row.data) for row in attempt_rows(run)]
    return [
        _text(row.data)
        for row in answer_rows(run)
        if str(row.data.get("purpose")).startswith(("main_loop", "final_answer"))
    ]


def _text(data: Mapping[str, Any]) -> str | None:
    answer = data.get("answer")
    return None if answer is None else str(answer)


def _is_right(answer: str | None, run: Run, scorer: str | Scorer) -> bool:
    return answer is not None and score(answer, run.expected or "", scorer).correct


def plot_attempts(
    data: RunsLike,
    *,
    ax: Axes | None = None,
    of: Of = "calls",
    scorer: str | Scorer = "normalized",
) -> Axes:
    """Draw what each further attempt bought: an answer recovered, unchanged, or spoiled.

    A bar is one arm's attempts of one number; each is held against the attempt before it in the
    same run. "Recovered" was not right before (wrong, or no answer) and is right now.

    Args:
        data: Runs, a study, or a path; runs of tasks without an expected answer are left out.
        ax: Where to draw; a new figure if None.
        of: "calls" for an answer, of all tries of a run in order, or whole "tries".
        scorer: Judges the answers on the way: "exact", "normalized" or a function.

    Raises:
        DataError: An unknown `of`.

    Examples:
        >>> from matplotlib.figure import Figure
        >>> plot_attempts([], ax=Figure().subplots()).texts[0].get_text()
        'no further attempts'
    """
    bars = attempts_bought(data, of=of, scorer=scorer)
    if not bars:
        return say_nothing_to_draw(new_axes(ax, size=(5, 2)), "no further attempts")
    ax = new_axes(ax, size=(9.0, 1.3 + 0.5 * len(bars)))
    _draw(ax, bars)
    ax.set_title(
        f"what further {'calls for an answer' if of == 'calls' else 'tries'} bought",
        loc="left",
        fontsize=10,
        color=INK,
    )
    simulated_footer(ax, bars, apart=True)
    return ax


def _draw(ax: Axes, bars: Sequence[Bought]) -> None:
    from matplotlib.ticker import MaxNLocator

    longest = max(bar.attempts for bar in bars)
    mixed = any(bar.mixed for bar in bars)
    lengths = {name: [bar.counts.get(name, 0) for bar in bars] for name in BOUGHT}
    parts = [
        Part(
            style,
            lengths[name],
            [f"{length:,}" for length in lengths[name]],
            name if mixed else f"{name} ({sum(lengths[name]):,})",
        )
        for name, style in BOUGHT.items()
        if any(lengths[name])
    ]
    entries = stack_bars(ax, parts, least=0.045 * longest)
    sort = {True: ", simulated", False: ", real"}
    name_rows(
        ax,
        [
            f"{label(bar.arm, most=40).text}\nattempt {bar.attempt}"
            + (sort[bar.simulated] if mixed else "")
            for bar in bars
        ],
    )
    ax.set_ylim(len(bars) - 0.5, -0.5)
    ax.set_xlim(0, 1.02 * longest)
    ax.set_xlabel("attempts", fontsize=9)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.tick_params(axis="x", labelsize=8)
    ax.spines[["top", "right", "left"]].set_visible(False)
    put_legend(ax, entries, title="answer")
