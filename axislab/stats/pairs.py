"""Two arms side by side: the tasks that both have run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from axislab.errors import DataError
from axislab.stats.clustered import cluster_codes
from axislab.stats.intervals import Clusters, runs_matrix, task_means
from axislab.stats.score import Array


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """The tasks that both arms have run."""

    a: Array
    b: Array
    codes: Array | None
    runs_a: int
    runs_b: int
    dropped: int

    @property
    def apart(self) -> Array:
        """Difference of each task; what only rounding keeps from 0 is 0."""
        apart = self.a - self.b
        noise = 1e-12 * np.maximum(np.abs(self.a), np.abs(self.b))
        return np.where(np.abs(apart) <= noise, 0.0, apart)

    @property
    def single(self) -> bool:
        """One run an arm and task, right or wrong, and no clusters."""
        both = np.concatenate([self.a, self.b])
        return (
            self.codes is None
            and self.runs_a == self.runs_b == len(self.a)
            and bool(np.all((both == 0) | (both == 1)))
        )


def pair_up(a: ArrayLike, b: ArrayLike, *, clusters: Clusters = None) -> Pairs:
    """Two arms as means of the tasks that both have run.

    Args:
        a: Values of one arm: one a task, or tasks x repeats; NaN where a run is not there.
        b: Values of the other, the same tasks in the same order.
        clusters: Name of each task's cluster.

    Raises:
        DataError: Not the same number of tasks, or no numbers.
    """
    first, second = runs_matrix(a, name="a"), runs_matrix(b, name="b")
    if len(first) != len(second):
        raise DataError(
            f"a has {len(first)} tasks and b {len(second)}: give the same tasks in the same order, "
            "NaN where a run is not there"
        )
    codes = cluster_codes(clusters, tasks=len(first))
    mean_a, mean_b = task_means(first), task_means(second)
    both = np.isfinite(mean_a) & np.isfinite(mean_b)
    if codes is not None:
        codes = np.unique(codes[both], return_inverse=True)[1]
        codes = codes if len(codes) and codes.max() + 1 < len(codes) else None
    return Pairs(
        mean_a[both],
        mean_b[both],
        codes,
        int(np.isfinite(first[both]).sum()),
        int(np.isfinite(second[both]).sum()),
        int((~both).sum()),
    )
