"""Two arms, one run a task each, right or wrong: McNemar's test and Tango's interval."""

from __future__ import annotations

import numpy as np
from scipy import special, stats

from axislab.errors import DataError
from axislab.stats.intervals import check_level
from axislab.stats.score import Sample, score_interval


def _check(better: int, worse: int) -> tuple[int, int]:
    pair = int(better), int(worse)
    if pair != (better, worse) or min(pair) < 0:
        raise DataError(f"better={better!r}, worse={worse!r}: give whole numbers, 0 or more")
    return pair


def exact_p(better: int, worse: int) -> float:
    """McNemar's exact p, two-sided: discordant tasks fall to each arm with chance 1/2.

    Twice the binomial tail (McNemar 1947; Fagerland, Lydersen, Laake 2013, BMC Med. Res.
    Methodol. 13:91). Never above its level, but well below it for few tasks.

    Args:
        better: Tasks that only the first arm solves.
        worse: Tasks that only the second arm solves.

    Examples:
        >>> exact_p(1, 7)
        0.0703125
    """
    better, worse = _check(better, worse)
    if better + worse == 0:
        return 1.0
    return float(min(1.0, 2 * special.bdtr(min(better, worse), better + worse, 0.5)))


def mid_p(better: int, worse: int) -> float:
    """McNemar's mid-p, two-sided: what was seen counts half (Lancaster 1961).

    Recommended by Fagerland, Lydersen, Laake (2013), who saw it exceed its level in none of
    9,595 settings; 1 where no task is discordant. Where as many tasks speak for either arm it
    is 1 less half the chance of just that.

    Args:
        better: Tasks that only the first arm solves.
        worse: Tasks that only the second arm solves.

    Examples:
        >>> round(mid_p(1, 7), 7)
        0.0390625
    """
    better, worse = _check(better, worse)
    total = better + worse
    if total == 0:
        return 1.0
    few = min(better, worse)
    if better == worse:
        return float(1 - 0.5 * stats.binom.pmf(few, total, 0.5))
    below = special.bdtr(few - 1, total, 0.5) if few else 0.0
    return float(special.bdtr(few, total, 0.5) + below)


def tango_interval(
    better: int, worse: int, tasks: int, *, level: float = 0.95
) -> tuple[float, float]:
    """Tango's score interval (1998) of the difference of two accuracies on the same tasks.

    Args:
        better: Tasks that only the first arm solves.
        worse: Tasks that only the second arm solves.
        tasks: All tasks.
        level: Confidence.

    Examples:
        >>> [round(end, 3) for end in tango_interval(1, 7, 21)]
        [-0.517, -0.026]
    """
    better, worse = _check(better, worse)
    if tasks < max(1, better + worse):
        raise DataError(f"tasks={tasks!r} for {better} and {worse} discordant ones: give all tasks")
    counts = np.array([[worse, tasks - better - worse, better]], dtype=float)
    data = Sample(np.array([-1.0, 0.0, 1.0]), counts, -np.ones(1), np.ones(1))
    low, high = score_interval(data, float(stats.norm.ppf((1 + check_level(level)) / 2)))
    return float(low[0]), float(high[0])
