"""summary: one row an arm, with both denominators and a reason for what is not known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean, median
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from axislab.stats.intervals import mean_interval
from axislab.stats.repeats import pass_at_k, pass_hat_k
from axislab.study.columns import SUMMARY
from axislab.study.frame import frame_of
from axislab.study.outcomes import ENDS, Outcome
from axislab.study.values import METRICS, Values

if TYPE_CHECKING:
    import pandas as pd

N = TypeVar("N", int, float)


def summary_frame(values: Values, *, baseline: str) -> pd.DataFrame:
    """One row an arm."""
    return frame_of(SUMMARY, [_row(values, arm, arm == baseline) for arm in values.arms])


def _row(values: Values, arm: str, is_baseline: bool) -> dict[str, object]:
    mine = values.of_arm(arm)
    dropped = sum(outcome.arm == arm for outcome in values.outcomes) - len(mine)
    tasks = len({outcome.task_id for outcome in mine})
    return {
        "arm": arm,
        "baseline": is_baseline,
        "tasks": tasks,
        "repeats": values.repeats,
        "runs": len(mine),
        "planned": len(values.tasks) * values.repeats,
        "copies": dropped,
        **_accuracy(values, arm, mine),
        **_ends(mine),
        **_means(values, arm, mine),
        **_amounts(mine),
        **_times(mine),
        "simulated": values.simulated,
    }


def _accuracy(values: Values, arm: str, mine: Sequence[Outcome]) -> dict[str, object]:
    metric = METRICS["correct"]
    found = mean_interval(values.matrix(arm, metric), clusters=values.clusters)
    judged = [outcome for outcome in mine if outcome.correct is not None]
    right = sum(bool(outcome.correct) for outcome in judged)
    answered = [outcome for outcome in judged if outcome.end == "answered"]
    several = values.repeats > 1 and judged
    k, matrix = values.repeats, values.matrix(arm, metric)
    return {
        "pass_at_k": pass_at_k(matrix, k).mean if several else None,
        "pass_hat_k": pass_hat_k(matrix, k).mean if several else None,
        "clusters": found.clusters,
        "accuracy": found.mean,
        "accuracy_low": found.low,
        "accuracy_high": found.high,
        "accuracy_method": found.method if judged else None,
        "judged": len(judged),
        "correct": right,
        "accuracy_answered": _share(sum(bool(o.correct) for o in answered), len(answered)),
    }


def _ends(mine: Sequence[Outcome]) -> dict[str, object]:
    counts = {end: sum(outcome.end == end for outcome in mine) for end in ENDS}
    whole = len(mine) - counts["failed"]
    return {
        **counts,
        **{f"{end}_share": _share(counts[end], len(mine)) for end in ENDS},
        **{f"{end}_of_unfailed": _share(counts[end], whole) for end in ENDS[:-1]},
    }


def _means(values: Values, arm: str, mine: Sequence[Outcome]) -> dict[str, object]:
    score = mean_interval(values.matrix(arm, METRICS["score"]), bounds=None)
    return {
        "score": score.mean,
        "turns": _mean([o.turns for o in mine]),
        "rollbacks": _mean([o.rollbacks for o in mine]),
    }


def _amounts(mine: Sequence[Outcome]) -> dict[str, object]:
    right = sum(bool(outcome.correct) for outcome in mine)
    cost = _total(mine, lambda o: o.cost_usd)
    tokens = _total(mine, lambda o: o.tokens)
    shared = _total(mine, lambda o: o.shared_tokens)
    return {
        "requests": sum(o.requests for o in mine),
        "cached": sum(o.cached_requests for o in mine),
        "shared_requests": sum(o.shared_requests for o in mine),
        "shared_tokens": shared,
        "own_tokens": None if tokens is None or shared is None else tokens - shared,
        "input_tokens": _total(mine, lambda o: o.input_tokens),
        "output_tokens": _total(mine, lambda o: o.output_tokens),
        "cached_tokens": _total(mine, lambda o: o.cached_tokens),
        "tokens_per_run": None if tokens is None or not mine else tokens / len(mine),
        "cost_usd": cost,
        "cost_missing": _why_missing(mine) if cost is None else None,
        "cost_per_correct": None if cost is None or not right else cost / right,
        "spent_usd": _total(mine, lambda o: o.spent_usd),
    }


def _why_missing(mine: Sequence[Outcome]) -> str:
    unknown = [outcome.cost_missing for outcome in mine if outcome.cost_usd is None]
    return next((why for why in unknown if why), "no runs")


def _times(mine: Sequence[Outcome]) -> dict[str, object]:
    known = [outcome.seconds for outcome in mine if outcome.seconds is not None]
    return {
        "seconds_median": median(known) if known else None,
        "seconds_p90": float(np.quantile(known, 0.9)) if known else None,
    }


def _total(mine: Sequence[Outcome], value: Callable[[Outcome], N | None]) -> N | None:
    """The sum; None where one is not known, or there is nothing to sum."""
    known = [amount for outcome in mine if (amount := value(outcome)) is not None]
    return sum(known) if mine and len(known) == len(mine) else None


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _mean(values: Sequence[int]) -> float | None:
    return fmean(values) if values else None
