"""How many times the tokens, dollars or seconds of arm b arm a takes, on the same tasks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from axislab.errors import DataError
from axislab.stats.intervals import Clusters, check_level
from axislab.stats.pairs import Pairs, pair_up
from axislab.stats.score import Array

ENOUGH_FOR_RATIOS = 100
"""With fewer tasks (clusters) intervals of skewed costs cover less than they say."""
_AT_ONCE = 2_000_000
"""Numbers of one block of resamples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedRatio:
    """Mean of arm a over mean of arm b, on the tasks whose amounts are known for both."""

    ratio: float | None
    """Mean of a / mean of b; None without tasks or where a mean is 0."""
    low: float | None
    high: float | None
    level: float
    p: float | None
    """Two-sided p value of a ratio of 1."""
    delta_low: float | None
    """Lower end by the delta method and t alone, which is too narrow for skewed costs."""
    delta_high: float | None
    log_se: float | None
    """Standard error of the logarithm of the ratio, by the delta method."""
    mean_a: float | None
    """Mean a task, in the unit of the input; repeats of a task are averaged first."""
    mean_b: float | None
    tasks: int
    clusters: int | None
    dropped: int
    """Tasks without a known amount in both arms."""
    method: str
    notes: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """What the statistics count: clusters where there are some, else tasks, never runs."""
        return self.tasks if self.clusters is None else self.clusters


@dataclass(frozen=True, slots=True, eq=False)
class _Units:
    """What is resampled: totals of each task or cluster."""

    a: Array
    b: Array

    @property
    def log_ratio(self) -> float:
        return float(np.log(self.a.sum() / self.b.sum()))

    @property
    def log_se(self) -> float:
        """Delta method: the spread of each unit's share of a minus its share of b."""
        n = len(self.a)
        apart = self.a / self.a.sum() - self.b / self.b.sum()
        apart[np.abs(apart) < 1e-12 / n] = 0.0
        return float(np.sqrt(n / (n - 1) * np.sum(apart**2)))


def paired_ratio(
    a: ArrayLike,
    b: ArrayLike,
    *,
    clusters: Clusters = None,
    level: float = 0.95,
    resamples: int = 1999,
    seed: int = 0,
) -> PairedRatio:
    """The ratio of two arms' mean amounts on the same tasks, with an interval.

    On the log scale, with the delta method's standard error (Cochran 1977, section 6.4). The ends
    are those of the bootstrap-t over tasks or clusters (Efron and Tibshirani 1993, ch. 12; Hall
    1988), equal-tailed and symmetric, whichever reaches further, and never inside the delta
    method's own t interval: costs are skewed, and delta with t, or a BCa bootstrap, covers too
    seldom. p is the larger of the symmetric bootstrap-t's and delta's, and never below 2^(1-k)
    with k tasks (clusters) on which the arms differ. No method sees what has not happened yet:
    where one task in ten costs six times as much, and the arms are otherwise alike, 20 tasks
    cover 88 % and 100 tasks 92 %.

    Args:
        a: Amounts of one arm (tokens, dollars, seconds): one a task, or tasks x repeats; NaN where
            unknown. None below 0.
        b: Amounts of the other, the same tasks in the same order.
        clusters: Name of each task's cluster.
        level: Confidence.
        resamples: Bootstrap samples.
        seed: Of the bootstrap.

    Raises:
        DataError: A negative amount, not the same tasks, or no numbers.

    Examples:
        >>> paired_ratio([2.0, 4.0, 6.2], [1.0, 2.0, 3.0]).ratio
        2.033333333333333
    """
    check_level(level)
    if resamples < 99:
        raise DataError(f"resamples={resamples!r}: give 99 or more")
    pairs = pair_up(a, b, clusters=clusters)
    for name, values in (("a", pairs.a), ("b", pairs.b)):
        if len(values) and values.min() < 0:
            raise DataError(f"{name} holds {float(values.min())!r}: amounts are 0 or more")
    if pairs.codes is None:
        units = _Units(pairs.a, pairs.b)
    else:
        units = _Units(
            np.bincount(pairs.codes, weights=pairs.a), np.bincount(pairs.codes, weights=pairs.b)
        )
    notes = _notes(pairs, len(units.a))
    if not len(units.a) or units.a.sum() <= 0 or units.b.sum() <= 0:
        why = "no task" if not len(units.a) else "a mean of 0"
        return _ratio(pairs, units, level=level, notes=(*notes, f"no ratio: {why}"))
    if len(units.a) == 1:
        why = "one task (cluster) is all there is: nothing is known of its spread"
        return _ratio(pairs, units, level=level, ratio=np.exp(units.log_ratio), notes=(*notes, why))
    return _with_interval(pairs, units, level, notes, resamples=resamples, seed=seed)


def _notes(pairs: Pairs, n: int) -> tuple[str, ...]:
    notes = []
    if 0 < n < ENOUGH_FOR_RATIOS:
        notes.append(
            f"with {n} tasks (clusters), fewer than {ENOUGH_FOR_RATIOS}, the interval of a ratio "
            "of skewed amounts may cover only 90 %"
        )
    if pairs.dropped:
        notes.append(f"{pairs.dropped:,} tasks without a known amount in both arms are not counted")
    return tuple(notes)


def _with_interval(
    pairs: Pairs,
    units: _Units,
    level: float,
    notes: tuple[str, ...],
    *,
    resamples: int,
    seed: int,
) -> PairedRatio:
    n, center, se = len(units.a), units.log_ratio, units.log_se
    least = 2.0 ** (1 - int(np.count_nonzero(units.a != units.b)))
    if se == 0:
        ratio = float(np.exp(center))
        same = abs(center) < 1e-12
        notes = (*notes, "every task has the same ratio: nothing is known of its spread")
        ends = {"low": ratio, "high": ratio, "delta_low": ratio, "delta_high": ratio}
        p = 1.0 if same else least
        return _ratio(pairs, units, level=level, ratio=ratio, p=p, log_se=0.0, notes=notes, **ends)
    drawn = np.sort(_bootstrap_t(units, resamples=resamples, seed=seed))
    tail = max(1, int((resamples + 1) * (1 - level) / 2))
    sizes = np.sort(np.abs(drawn))
    middle = sizes[min(resamples - 1, resamples - int((resamples + 1) * (1 - level)))]
    plain = float(stats.t.ppf((1 + level) / 2, n - 1))
    up = max(plain, float(middle), float(-drawn[tail - 1]))
    down = max(plain, float(middle), float(drawn[resamples - tail]))
    beyond = float((np.count_nonzero(sizes >= abs(center) / se) + 1) / (resamples + 1))
    by_delta = float(2 * stats.t.sf(abs(center) / se, n - 1))
    with np.errstate(over="ignore"):
        return _ratio(
            pairs,
            units,
            level=level,
            ratio=float(np.exp(center)),
            low=float(np.exp(center - down * se)),
            high=float(np.exp(center + up * se)),
            delta_low=float(np.exp(center - plain * se)),
            delta_high=float(np.exp(center + plain * se)),
            p=min(1.0, max(least, beyond, by_delta)),
            log_se=se,
            notes=notes,
        )


def _bootstrap_t(units: _Units, *, resamples: int, seed: int) -> Array:
    """Studentised log ratios of resampled units; infinite where a resample has no spread."""
    n = len(units.a)
    rng = np.random.default_rng(seed)
    a, b = units.a / units.a.mean(), units.b / units.b.mean()
    parts = np.stack([a, b, a * a, b * b, a * b], axis=1)
    drawn = []
    block = max(1, _AT_ONCE // n)
    for first in range(0, resamples, block):
        size = min(block, resamples - first)
        often = rng.multinomial(n, np.full(n, 1 / n), size=size).astype(float)
        total_a, total_b, aa, bb, ab = (often @ parts).T
        with np.errstate(divide="ignore", invalid="ignore"):
            off = np.log(total_a / total_b)
            variance = aa / total_a**2 + bb / total_b**2 - 2 * ab / (total_a * total_b)
            variance = np.where(variance > 1e-18, variance, 0.0) * n / (n - 1)
            t = off / np.sqrt(variance)
        # Without spread t is endless, unless the resample says just what the data say.
        endless = np.where(off < 0, -np.inf, np.inf)
        t = np.where(np.isfinite(t), t, np.where(np.abs(off) < 1e-9, 0.0, endless))
        drawn.append(t)
    return np.concatenate(drawn)


def _ratio(
    pairs: Pairs,
    units: _Units,
    *,
    level: float,
    ratio: float | None = None,
    low: float | None = None,
    high: float | None = None,
    delta_low: float | None = None,
    delta_high: float | None = None,
    p: float | None = None,
    log_se: float | None = None,
    notes: tuple[str, ...],
) -> PairedRatio:
    some = len(pairs.a) > 0
    return PairedRatio(
        ratio=None if ratio is None else float(ratio),
        low=low,
        high=high,
        level=level,
        p=p,
        delta_low=delta_low,
        delta_high=delta_high,
        log_se=log_se,
        mean_a=float(pairs.a.mean()) if some else None,
        mean_b=float(pairs.b.mean()) if some else None,
        tasks=len(pairs.a),
        clusters=None if pairs.codes is None else len(units.a),
        dropped=pairs.dropped,
        method="bootstrap-t on the log scale" if low is not None else "none",
        notes=notes,
    )
