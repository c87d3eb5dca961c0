"""Before and after a study: the effect it could have seen, and the tasks that would decide."""

from __future__ import annotations

import math

import numpy as np
from scipy import optimize, special, stats

from axislab.errors import DataError

MOST_TASKS = 10_000_000
"""Above this `tasks_needed` answers None: no study is so large."""


def _check(*, power: float, alpha: float) -> None:
    for name, value in (("power", power), ("alpha", alpha)):
        if not 0 < value < 1:
            raise DataError(f"{name}={value!r}: give a number between 0 and 1")
    if power <= alpha:
        raise DataError(f"power={power!r} is not above alpha={alpha!r}: ask for more power")


def power_of(difference: float, sd: float, *, tasks: float, alpha: float = 0.05) -> float:
    """The chance that a paired two-sided t test over tasks finds a true difference.

    Exact for normal differences, by the noncentral t distribution (Cohen 1988, ch. 2); close for
    means of 0 and 1 where at least 10 tasks tell the arms apart.

    Args:
        difference: The true mean difference.
        sd: Standard deviation of the tasks' differences (means over repeats).
        tasks: Tasks, or clusters; at least 2.
        alpha: False positives allowed.

    Examples:
        >>> round(power_of(0.5, 1.0, tasks=34), 4)
        0.8078
    """
    if tasks < 2 or sd <= 0:
        raise DataError(f"tasks={tasks!r}, sd={sd!r}: give 2 tasks or more and a positive sd")
    df = tasks - 1
    shift = abs(difference) / sd * math.sqrt(tasks)
    critical = float(stats.t.ppf(1 - alpha / 2, df))
    if shift > 37:  # the noncentral distribution function gives no number out there
        return 1.0
    above, below = special.nctdtr(df, shift, critical), special.nctdtr(df, shift, -critical)
    return float(np.clip(1 - above + (below if np.isfinite(below) else 0.0), 0.0, 1.0))


def detectable_difference(
    sd: float, *, tasks: float, power: float = 0.8, alpha: float = 0.05
) -> float | None:
    """The smallest true mean difference that so many tasks would find with this power.

    Assumes a paired two-sided t test over tasks and that the tasks' differences keep their sd.

    Args:
        sd: Standard deviation of the tasks' differences.
        tasks: Tasks, or clusters.
        power: Chance of finding it.
        alpha: False positives allowed.

    Returns:
        None below two tasks, or where nothing is known of the sd (it is 0).

    Examples:
        >>> round(detectable_difference(0.5, tasks=100), 3)
        0.141
    """
    _check(power=power, alpha=alpha)
    if tasks < 2 or sd <= 0:
        return None
    high = 1.0
    while power_of(high, 1.0, tasks=tasks, alpha=alpha) < power:
        high *= 2
    found = optimize.brentq(
        lambda d: power_of(d, 1.0, tasks=tasks, alpha=alpha) - power, 0.0, high, xtol=1e-13
    )
    return float(found) * sd


def tasks_needed(
    difference: float, sd: float, *, power: float = 0.8, alpha: float = 0.05
) -> int | None:
    """How many tasks would find a true mean difference of this size with this power.

    Assumes what `detectable_difference` assumes.

    Args:
        difference: The true mean difference.
        sd: Standard deviation of the tasks' differences.
        power: Chance of finding it.
        alpha: False positives allowed.

    Returns:
        None for a difference or sd of 0, and where it would be over ten million.

    Examples:
        >>> tasks_needed(0.5, 1.0)
        34
    """
    _check(power=power, alpha=alpha)
    if difference == 0 or sd <= 0:
        return None

    def lack(tasks: float) -> float:
        return power_of(difference, sd, tasks=tasks, alpha=alpha) - power

    high = 4.0
    while lack(high) < 0:
        high *= 2
        if high > MOST_TASKS:
            return None
    if lack(2.0) >= 0:
        return 2
    return math.ceil(float(optimize.brentq(lack, 2.0, high, xtol=1e-9)) - 1e-6)


def discordant_sd(discordance: float, difference: float = 0.0) -> float:
    """Standard deviation of one task's difference, one run an arm, right or wrong.

    Args:
        discordance: Share of tasks that one arm solves and the other does not.
        difference: Difference of the two accuracies, at most the discordance.

    Examples:
        >>> discordant_sd(0.25)
        0.5
    """
    if not (0 <= discordance <= 1 and abs(difference) <= discordance):
        raise DataError(
            f"discordance={discordance!r}, difference={difference!r}: give a share from 0 to 1 "
            "and a difference no larger"
        )
    return math.sqrt(discordance - difference**2)
