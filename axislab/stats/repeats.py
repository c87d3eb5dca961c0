"""What repeats of a task say: pass@k, pass^k, and how much of the spread is between tasks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from axislab.errors import DataError
from axislab.stats.intervals import Clusters, MeanInterval, mean_interval, runs_matrix
from axislab.stats.score import Array


def _chosen_from(count: Array, k: int) -> Array:
    """Logarithm of the ways to choose k of so many; minus infinity where there are fewer."""
    enough = count >= k
    held = np.where(enough, count, k)
    ways = gammaln(held + 1) - gammaln(k + 1) - gammaln(held - k + 1)
    return np.where(enough, ways, -np.inf)


def _share(part: Array, whole: Array, k: int) -> Array:
    below = _chosen_from(whole, k)
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(below), np.exp(_chosen_from(part, k) - below), np.nan)


def _counts(outcomes: ArrayLike, k: int) -> tuple[Array, Array]:
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise DataError(f"k={k!r}: give a whole number, 1 or more")
    matrix = runs_matrix(outcomes, name="outcomes")
    known = matrix[np.isfinite(matrix)]
    if not np.all((known == 0) | (known == 1)):
        raise DataError("pass@k and pass^k need runs that are right (1) or wrong (0)")
    return np.nansum(matrix, axis=1), np.isfinite(matrix).sum(axis=1).astype(float)


def pass_at_k(
    outcomes: ArrayLike, k: int, *, clusters: Clusters = None, level: float = 0.95
) -> MeanInterval:
    """The chance that at least one of k runs of a task is right, averaged over tasks.

    Of a task with c right of r runs it is 1 - C(r - c, k) / C(r, k), without bias (Chen et al.
    2021, "Evaluating large language models trained on code", arXiv 2107.03374).

    Args:
        outcomes: Tasks x repeats of 0 and 1; NaN where a run is not there.
        k: Runs allowed; tasks with fewer are not counted.
        clusters: Name of each task's cluster.
        level: Confidence of the interval, by t over tasks.

    Examples:
        >>> pass_at_k([[1, 0, 0], [1, 1, 0]], 2).mean
        0.8333333333333333
    """
    right, runs = _counts(outcomes, k)
    return mean_interval(1 - _share(runs - right, runs, k), clusters=clusters, level=level)


def pass_hat_k(
    outcomes: ArrayLike, k: int, *, clusters: Clusters = None, level: float = 0.95
) -> MeanInterval:
    """The chance that all of k runs of a task are right, averaged over tasks: pass^k.

    Of a task with c right of r runs it is C(c, k) / C(r, k), without bias (Yao et al. 2024,
    "tau-bench", arXiv 2406.12045).

    Args:
        outcomes: Tasks x repeats of 0 and 1; NaN where a run is not there.
        k: Runs asked for; tasks with fewer are not counted.
        clusters: Name of each task's cluster.
        level: Confidence of the interval, by t over tasks.

    Examples:
        >>> round(pass_hat_k([[1, 0, 0], [1, 1, 0]], 2).mean, 4)
        0.1667
    """
    right, runs = _counts(outcomes, k)
    return mean_interval(_share(right, runs, k), clusters=clusters, level=level)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Where the variance of runs lies; all in squared units of the score."""

    between: float | None
    """Variance of the tasks' true means; None below two tasks or without repeats."""
    within: float | None
    """Variance of runs of one task; None without a repeat."""

    @property
    def intraclass(self) -> float | None:
        """Share of the variance that lies between tasks: 1 where repeats say nothing new."""
        if self.between is None or self.within is None or self.between + self.within == 0:
            return None
        return self.between / (self.between + self.within)

    def of_mean(self, *, repeats: int) -> float | None:
        """Variance of one task's mean over so many repeats (Miller 2024, section 4)."""
        if self.between is None or self.within is None:
            return None
        return self.between + self.within / repeats


def spread(values: ArrayLike) -> Spread:
    """Split the variance of runs into that between tasks and that within a task.

    By analysis of variance with unequal repeats (Searle, Casella, McCulloch 1992, section 3.6);
    a negative estimate between tasks is 0.

    Args:
        values: Tasks x repeats; NaN where a run is not there.

    Examples:
        >>> spread([[0, 0], [1, 1], [0, 1]]).within
        0.16666666666666666
    """
    matrix = runs_matrix(values)
    there = np.isfinite(matrix)
    matrix, there = matrix[there.any(axis=1)], there[there.any(axis=1)]
    runs = there.sum(axis=1)
    tasks, total = len(runs), int(runs.sum())
    if total <= tasks:
        return Spread(between=None, within=None)
    means = np.where(there, matrix, 0.0).sum(axis=1) / runs
    residual = np.where(there, matrix - means[:, None], 0.0)
    within = float((residual**2).sum() / (total - tasks))
    if tasks < 2:
        return Spread(between=None, within=within)
    grand = float((runs * means).sum() / total)
    outer = float((runs * (means - grand) ** 2).sum() / (tasks - 1))
    per_task = (total - float((runs**2).sum()) / total) / (tasks - 1)
    return Spread(between=max(0.0, (outer - within) / per_task), within=within)
