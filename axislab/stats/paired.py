"""The difference of two arms on the same tasks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from axislab.errors import DataError
from axislab.stats.clustered import ClusterMean, cluster_mean
from axislab.stats.intervals import Clusters, check_level, wide_interval
from axislab.stats.mcnemar import exact_p, mid_p, tango_interval
from axislab.stats.pairs import Pairs, pair_up
from axislab.stats.power import detectable_difference, tasks_needed

FEW_INFORMATIVE = 10
"""With fewer tasks that tell two arms apart a result says that it rests on little."""
_FEWEST_FOR_ATOM = 6
"""With fewer, tasks not seen may differ by the whole scale; 5 cannot reach p = 0.05 either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """Arm a minus arm b on the tasks that both have run; shares from 0 to 1, not percent."""

    difference: float | None
    """Mean over tasks of a minus b; None without a common task."""
    low: float | None
    high: float | None
    level: float
    """Confidence of low to high, e.g. 0.95."""
    p: float | None
    """Two-sided p value of no difference, by `method`; None where there is none."""
    p_exact: float | None
    """McNemar's exact p; None unless every arm ran every task once, right or wrong."""
    method: str
    """The test behind p."""
    interval_method: str
    mean_a: float | None
    mean_b: float | None
    se: float | None
    """Standard error of the difference; None where it cannot be known."""
    df: float | None
    """Degrees of freedom of t; None for McNemar's test."""
    tasks: int
    """Tasks that both arms have run."""
    clusters: int | None
    """Clusters they form; None if no two belong together."""
    runs_a: int
    runs_b: int
    better: int
    """Tasks on which a is better than b."""
    worse: int
    """Tasks on which b is better than a."""
    dropped: int
    """Tasks that only one arm, or neither, has run."""
    effect_size: float | None
    """Cohen's d_z: mean over standard deviation of the tasks' differences; None if that is 0."""
    odds_ratio: float | None
    """better / worse where p_exact is given (inf if none is worse); None elsewhere."""
    sd: float | None
    """Standard deviation of the tasks' differences; None below two tasks."""
    detectable: float | None
    """True difference found with 80 % power by as many tasks of this spread; None if unknown."""
    decisive_n: int | None
    """What `n` would have to be for 80 % power if the true difference is the one seen."""
    notes: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """What the statistics count: clusters where there are some, else tasks, never runs."""
        return self.tasks if self.clusters is None else self.clusters

    @property
    def informative(self) -> int:
        """Tasks that tell the arms apart; with one run an arm, the discordant ones."""
        return self.better + self.worse

    @property
    def few(self) -> bool:
        """Fewer than 10 tasks tell the arms apart."""
        return self.informative < FEW_INFORMATIVE


def paired_difference(
    a: ArrayLike,
    b: ArrayLike,
    *,
    clusters: Clusters = None,
    level: float = 0.95,
    bounds: tuple[float, float] | None = (0.0, 1.0),
) -> PairedDifference:
    """Arm a minus arm b on the same tasks.

    One run a task and arm, right or wrong, without clusters: McNemar's mid-p (the exact p beside
    it) and Tango's score interval. Several repeats, graded scores (set F1) or clusters: t over the
    tasks' mean differences, or over clusters (Miller 2024, arXiv 2411.00640). There p is never
    below 2^(1-k) with k informative tasks (clusters), the least that any choice of signs could
    give, since the t test is too bold where few tasks vary (Bowyer, Aitchison, Ivanova 2025, arXiv
    2503.01747, on errors of the normal approximation for few tasks); and the t interval is widened
    to Tango's idea carried to such means wherever that reaches further. Tasks weigh the same,
    however many repeats they have.

    Args:
        a: Scores of one arm: one a task, or tasks x repeats; NaN where a run is not there.
        b: Scores of the other, the same tasks in the same order.
        clusters: Name of each task's cluster; None for a task of its own.
        level: Confidence of the interval.
        bounds: Ends of the scale of scores; None if there are none, which leaves the t interval.

    Raises:
        DataError: Not the same tasks, scores outside the bounds, or no numbers.

    Examples:
        >>> found = paired_difference([1, 1, 1, 0, 1], [0, 1, 0, 0, 0])
        >>> found.difference, found.better, found.p
        (0.6, 3, 0.125)
    """
    check_level(level)
    pairs = pair_up(a, b, clusters=clusters)
    if not len(pairs.a):
        return _nothing(pairs, level)
    scale = _scale(pairs, bounds)
    if pairs.single and bounds == (0.0, 1.0):
        return _single(pairs, level)
    return _over_tasks(pairs, level, scale)


def _scale(pairs: Pairs, bounds: tuple[float, float] | None) -> float | None:
    """The largest difference there can be."""
    if bounds is None:
        return None
    both = np.concatenate([pairs.a, pairs.b])
    if both.min() < bounds[0] or both.max() > bounds[1]:
        raise DataError(
            f"scores from {float(both.min())!r} to {float(both.max())!r} are not all within "
            f"bounds={bounds!r}; give the ends of their scale, or bounds=None"
        )
    return bounds[1] - bounds[0]


def _single(pairs: Pairs, level: float) -> PairedDifference:
    apart = pairs.apart
    better, worse = int((apart > 0).sum()), int((apart < 0).sum())
    low, high = tango_interval(better, worse, len(apart), level=level)
    odds = None if better + worse == 0 else better / worse if worse else float("inf")
    return _result(
        pairs,
        cluster_mean(apart, None),
        level=level,
        ends=(low, high),
        p=mid_p(better, worse),
        p_exact=exact_p(better, worse),
        odds_ratio=odds,
        method="McNemar mid-p",
        interval_method="Tango score",
    )


def _over_tasks(pairs: Pairs, level: float, scale: float | None) -> PairedDifference:
    apart = pairs.apart
    about = cluster_mean(apart, pairs.codes)
    unit = "tasks" if pairs.codes is None else "clusters"
    informative = int(np.count_nonzero(about.values))
    notes: tuple[str, ...] = ()
    ends: tuple[float, float] | None = None
    if about.se is None:
        notes = (f"one of the {unit} is all there is: nothing is known of their spread",)
        ends = None if scale is None else (-scale, scale)
    elif scale is None:
        reach = float(stats.t.ppf((1 + level) / 2, about.df)) * about.se
        ends = (about.mean - reach, about.mean + reach)
    else:
        seen = float(np.abs(about.values).max())
        varied = informative >= _FEWEST_FOR_ATOM and about.se > 0
        atom = seen if varied else scale
        ends = wide_interval(about, level=level, low=-scale, high=scale, atom=atom)
    return _result(
        pairs,
        about,
        level=level,
        ends=ends,
        p=_t_p(about, informative),
        df=about.df,
        method=f"t over {unit}",
        interval_method=f"t over {unit}" + ("" if scale is None else ", or score where wider"),
        notes=notes,
    )


def _t_p(about: ClusterMean, informative: int) -> float | None:
    if about.se is None or about.df is None:
        return None
    if informative == 0:
        return 1.0
    least = 2.0 ** (1 - informative)
    if about.se == 0:
        return least
    return max(least, float(2 * stats.t.sf(abs(about.mean) / about.se, about.df)))


def _result(
    pairs: Pairs,
    about: ClusterMean,
    *,
    level: float,
    ends: tuple[float, float] | None,
    p: float | None,
    method: str,
    interval_method: str,
    p_exact: float | None = None,
    odds_ratio: float | None = None,
    df: float | None = None,
    notes: tuple[str, ...] = (),
) -> PairedDifference:
    apart = pairs.apart
    sd = float(apart.std(ddof=1)) if len(apart) > 1 else None
    # A mean over clusters varies as that of so many equal units of this spread would.
    unit_sd = 0.0 if about.se is None else about.se * about.n**0.5
    informative = int(np.count_nonzero(apart))
    return PairedDifference(
        difference=about.mean,
        low=None if ends is None else ends[0],
        high=None if ends is None else ends[1],
        level=level,
        p=p,
        p_exact=p_exact,
        method=method,
        interval_method=interval_method,
        mean_a=float(pairs.a.mean()),
        mean_b=float(pairs.b.mean()),
        se=about.se,
        df=df,
        tasks=len(apart),
        clusters=None if pairs.codes is None else about.n,
        runs_a=pairs.runs_a,
        runs_b=pairs.runs_b,
        better=int((apart > 0).sum()),
        worse=int((apart < 0).sum()),
        dropped=pairs.dropped,
        effect_size=about.mean / sd if sd else None,
        odds_ratio=odds_ratio,
        sd=sd,
        detectable=detectable_difference(unit_sd, tasks=about.n),
        decisive_n=tasks_needed(about.mean, unit_sd),
        notes=(*_notes(pairs, informative), *notes),
    )


def _notes(pairs: Pairs, informative: int) -> tuple[str, ...]:
    notes = []
    if informative < FEW_INFORMATIVE:
        tasks = f"{len(pairs.a):,} task{'' if len(pairs.a) == 1 else 's'}"
        notes.append(
            f"only {informative} of {tasks} tell the arms apart; with fewer than "
            f"{FEW_INFORMATIVE} a result rests on little"
        )
    if pairs.dropped:
        notes.append(f"{pairs.dropped:,} tasks that not both arms have run are not counted")
    return tuple(notes)


def _nothing(pairs: Pairs, level: float) -> PairedDifference:
    return PairedDifference(
        difference=None,
        low=None,
        high=None,
        level=level,
        p=None,
        p_exact=None,
        method="none",
        interval_method="none",
        mean_a=None,
        mean_b=None,
        se=None,
        df=None,
        tasks=0,
        clusters=None,
        runs_a=0,
        runs_b=0,
        better=0,
        worse=0,
        dropped=pairs.dropped,
        effect_size=None,
        odds_ratio=None,
        sd=None,
        detectable=None,
        decisive_n=None,
        notes=("there is no task that both arms have run",),
    )
