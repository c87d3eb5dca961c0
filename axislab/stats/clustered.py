"""The mean of tasks, some of which may belong together: its standard error and its degrees."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from axislab.errors import DataError
from axislab.stats.score import Array


@dataclass(frozen=True, slots=True, eq=False)
class ClusterMean:
    """A mean over tasks with the standard error of independent clusters."""

    mean: float
    se: float | None
    """None where one cluster is all there is."""
    df: float | None
    """Degrees of freedom for t; likewise."""
    values: Array
    """Mean of each cluster; of each task, if no two belong together."""
    sizes: Array | None
    """Size of each cluster over their mean size; None if all are the same."""

    @property
    def n(self) -> int:
        """Clusters, or tasks if no two belong together."""
        return len(self.values)


def cluster_codes(clusters: Sequence[Hashable] | Array | None, *, tasks: int) -> Array | None:
    """Numbers of clusters from 0; a task without a cluster (None, NaN, NA) is one of its own.

    Raises:
        DataError: Not one for each task.
    """
    if clusters is None:
        return None
    if len(clusters) != tasks:
        raise DataError(f"{len(clusters)} clusters for {tasks} tasks: give one for each task")
    seen: dict[Hashable, int] = {}
    for place, name in enumerate(clusters):
        key: Hashable = ("none", place) if _missing(name) else ("named", name)
        seen.setdefault(key, len(seen))
    if len(seen) == tasks:
        return None
    return np.array(
        [
            seen[("none", place) if _missing(name) else ("named", name)]
            for place, name in enumerate(clusters)
        ]
    )


def _missing(name: object) -> bool:
    return name is None or type(name).__name__ in {"NAType", "NaTType"} or name != name


def cluster_mean(values: Array, codes: Array | None) -> ClusterMean:
    """The mean of values with an error that allows for values of one cluster being alike.

    Miller (2024, "Adding error bars to evals", arXiv 2411.00640) sums the residuals of a cluster;
    here with the small-sample form of that: bias-reduced residuals and degrees of freedom by
    Bell and McCaffrey (2002), as in Imbens and Kolesar (2016, Rev. Econ. Stat. 98:701-712). With
    no two values in a cluster it is the plain mean: s / sqrt(n), n - 1 degrees.

    Args:
        values: One a task, at least one.
        codes: Cluster of each, as `cluster_codes` gives; None if no two belong together.
    """
    total = len(values)
    mean = float(values.mean())
    if codes is None:
        if total == 1:
            return ClusterMean(mean, None, None, values, None)
        spread = float(values.std(ddof=1)) if np.ptp(values) > 0 else 0.0
        return ClusterMean(mean, spread / total**0.5, float(total - 1), values, None)
    sizes = np.bincount(codes).astype(float)
    means = np.bincount(codes, weights=values) / sizes
    even = None if np.all(sizes == sizes[0]) else sizes / sizes.mean()
    if len(sizes) == 1:
        return ClusterMean(mean, None, None, means, even)
    share = sizes / total
    inflate = 1 / np.sqrt(1 - share)
    sums = sizes * (means - mean) * inflate
    se = float(np.sqrt(np.sum(sums**2))) / total if np.ptp(means) > 0 else 0.0
    inner = np.outer(inflate, inflate) * (np.diag(share) - np.outer(share, share))
    df = float(np.trace(inner) ** 2 / np.sum(inner**2))
    return ClusterMean(mean, se, df, means, even)
