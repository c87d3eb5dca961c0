"""Looking at a study while it runs, as notebooks do: intervals that hold at every look."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from axislab.errors import DataError
from axislab.stats.sequential import ConfidenceSequence, confidence_sequence, sequential_p
from axislab.stats.verdict import sequential_verdict
from axislab.study.book import Book
from axislab.study.columns import LEVEL
from axislab.study.outcomes import Outcome
from axislab.study.plan import Pair
from axislab.study.values import METRICS, Values, metric_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class Peek:
    """One arm minus another, after each task in the order of the plan.

    The order was drawn before anything ran, and a task counts once all before it are finished, so
    that quick tasks do not come first. Look as often as you like.
    """

    arm: str
    minus: str
    metric: str
    sequence: ConfidenceSequence
    simulated: bool
    clustered: bool
    """What is counted are clusters of tasks."""
    waiting: int
    """Tasks that are finished and do not count yet: one before them is not."""

    @property
    def p(self) -> float | None:
        """The smallest p so far; it may be held against 0.05 at any time."""
        last = self.sequence.last
        return None if last is None else last.p

    @property
    def decided(self) -> bool:
        """It is known which arm is better, or that they differ by less than the margin."""
        return self.sequence.decision is not None

    @property
    def verdict(self) -> str:
        """One plain sentence that claims no more than the numbers do."""
        return sequential_verdict(
            self.sequence,
            a=self.arm,
            b=self.minus,
            metric=METRICS[self.metric].label,
            simulated=self.simulated,
            clustered=self.clustered,
        )

    @property
    def df(self) -> pd.DataFrame:
        """One row a look: n, estimate, low, high, p."""
        return self.sequence.frame()

    def __repr__(self) -> str:
        lines = [self.verdict, *(f"Note: {note}" for note in self.sequence.notes)]
        if self.waiting:
            lines.append(f"Note: {self.waiting} tasks wait for one before them")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return "".join(f"<p>{html.escape(line)}</p>" for line in repr(self).splitlines())


def peek(
    values: Values,
    arm: str,
    minus: str,
    *,
    finished: Sequence[Sequence[str]],
    metric: str = "correct",
    level: float = LEVEL,
    margin: float | None = None,
) -> Peek:
    """The confidence sequence of one arm minus another.

    Args:
        values: What there is.
        arm: Name of an arm.
        minus: The one it is held against.
        finished: Blocks of tasks, in the order of the plan, all of whose pairs are finished in
            both arms, up to the first of which that is not so.
        metric: What is compared; its scale must have ends.
        level: Confidence over all looks together.
        margin: Differences smaller than this count as none.

    Raises:
        DataError: No such arm or metric, or a metric without a scale.
    """
    wanted = metric_of(metric)
    if wanted.bounds is None:
        raise DataError(
            f"metric={metric!r} has no ends, and a confidence sequence needs them: give 'correct', "
            "'score' or 'answered'"
        )
    matrices = [values.matrix(name, wanted) for name in (arm, minus)]
    place = {task_id: i for i, task_id in enumerate(values.tasks)}
    with np.errstate(invalid="ignore"):
        apart = _means(matrices[0]) - _means(matrices[1])
    found = [_block_mean(apart[[place[task_id] for task_id in block]]) for block in finished]
    both = np.isfinite(apart).sum()
    counted = sum(len(block) for block in finished)
    return Peek(
        arm=arm,
        minus=minus,
        metric=metric,
        sequence=confidence_sequence(
            np.array(found, dtype=float), level=level, margin=margin, scale=_scale(wanted.bounds)
        ),
        simulated=values.simulated,
        clustered=values.clusters is not None,
        waiting=max(0, int(both) - counted),
    )


class Decider:
    """Says when every contrast with the baseline is decided, by the p that may be looked at.

    Args:
        book: The study's.
        blocks: Tasks in the order of the plan, those of a cluster together.
        baseline: The arm that others are compared with.
        arms: All arms.
    """

    def __init__(
        self, book: Book, blocks: Sequence[Sequence[str]], *, baseline: str, arms: Sequence[str]
    ) -> None:
        self._book = book
        self._baseline = baseline
        self._others = [arm for arm in arms if arm != baseline]
        self._apart: dict[str, list[float]] = {arm: [] for arm in self._others}
        self._open = set(self._others)
        pairs: dict[str, list[Pair]] = {}
        for pair in book.pairs:
            pairs.setdefault(pair.task_id, []).append(pair)
        self._blocks = [[pair for task_id in block for pair in pairs[task_id]] for block in blocks]
        self._next = 0
        self._alpha = (1 - LEVEL) / len(self._others)

    def __call__(self) -> bool:
        """Take in what has finished since; true once nothing is open."""
        grown = False
        while self._next < len(self._blocks):
            block = self._blocks[self._next]
            if not all(self._book.is_finished(pair) for pair in block):
                break
            self._take(self._book.outcomes(block))
            self._next += 1
            grown = True
        if grown:
            self._open -= {arm for arm in self._open if self._is_decided(arm)}
        return not self._open

    def _take(self, outcomes: Sequence[Outcome]) -> None:
        base = _by_task(outcomes, self._baseline)
        for arm in self._others:
            mine = _by_task(outcomes, arm)
            apart = [mine[task_id] - base[task_id] for task_id in mine.keys() & base.keys()]
            if apart:
                self._apart[arm].append(sum(apart) / len(apart))

    def _is_decided(self, arm: str) -> bool:
        p = sequential_p(np.array(self._apart[arm], dtype=float))
        return bool(len(p)) and bool(p[-1] <= self._alpha)


def _by_task(outcomes: Sequence[Outcome], arm: str) -> dict[str, float]:
    """Mean of the judged runs of an arm on each task."""
    found: dict[str, list[float]] = {}
    for outcome in outcomes:
        if outcome.arm == arm and outcome.correct is not None:
            found.setdefault(outcome.task_id, []).append(float(outcome.correct))
    return {task_id: sum(values) / len(values) for task_id, values in found.items()}


def _means(matrix: np.ndarray) -> np.ndarray:
    there = np.isfinite(matrix)
    total = np.where(there, matrix, 0.0).sum(axis=1)
    count = there.sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _block_mean(apart: np.ndarray) -> float:
    known = apart[np.isfinite(apart)]
    return float(known.mean()) if len(known) else float("nan")


def _scale(bounds: tuple[float, float]) -> float:
    return bounds[1] - bounds[0]
