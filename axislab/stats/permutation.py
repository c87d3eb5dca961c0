"""The randomisation test of a paired difference."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from axislab.stats.intervals import Clusters
from axislab.stats.pairs import pair_up


def sign_flip_p(
    a: ArrayLike,
    b: ArrayLike,
    *,
    clusters: Clusters = None,
    resamples: int = 9999,
    seed: int = 0,
) -> float | None:
    """Permutation p of no difference: the arms of a task (cluster) may be swapped.

    Fisher's (1935) randomisation test of the mean difference, two-sided; all sign patterns where
    there are no more than `resamples`, else as many drawn ones. A check of t that needs no normal
    distribution, but assumes differences that are symmetric if there is no effect.

    Args:
        a: Scores of one arm, as for `paired_difference`.
        b: Scores of the other.
        clusters: Name of each task's cluster.
        resamples: Most sign patterns.
        seed: Of the drawn ones.

    Returns:
        None without a common task.

    Examples:
        >>> sign_flip_p([1, 1, 1, 1], [0, 0, 0, 1])
        0.25
    """
    pairs = pair_up(a, b, clusters=clusters)
    apart = pairs.apart
    if not len(apart):
        return None
    sums = apart if pairs.codes is None else np.bincount(pairs.codes, weights=apart)
    sums = sums[sums != 0]
    if not len(sums):
        return 1.0
    seen = abs(sums.sum()) * (1 - 1e-12)
    if len(sums) < 40 and 2 ** len(sums) <= resamples:
        patterns = (np.arange(2 ** len(sums))[:, None] >> np.arange(len(sums))) & 1
        return float(np.mean(np.abs((2 * patterns - 1) @ sums) >= seen))
    rng = np.random.default_rng(seed)
    hits = sum(
        int(abs((rng.integers(0, 2, len(sums)) * 2 - 1) @ sums) >= seen) for _ in range(resamples)
    )
    return (hits + 1) / (resamples + 1)
