"""Every arm against the baseline, as a frame: one row an arm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from axislab.errors import DataError, did_you_mean
from axislab.stats.multiple import Correction, adjust
from axislab.stats.outcomes import Outcomes
from axislab.stats.paired import PairedDifference, paired_difference
from axislab.stats.ratios import PairedRatio, paired_ratio
from axislab.stats.verdict import ratio_verdict, verdict

if TYPE_CHECKING:
    import pandas as pd

Kind: TypeAlias = Literal["difference", "ratio"]

DTYPES = {
    **dict.fromkeys(("arm", "baseline", "metric", "kind"), "string"),
    **dict.fromkeys(("difference", "low", "high", "level", "p", "p_adjusted"), "Float64"),
    **dict.fromkeys(("p_exact", "mean", "baseline_mean", "effect_size", "detectable"), "Float64"),
    **dict.fromkeys(("n", "tasks", "clusters", "informative", "better", "worse"), "Int64"),
    **dict.fromkeys(("dropped", "decisive_n"), "Int64"),
    **dict.fromkeys(("method", "verdict", "notes"), "string"),
    "simulated": "boolean",
}
"""Columns of `contrasts_df`. In a row of kind "ratio", difference, low and high are ratios."""


def contrasts_df(
    data: Outcomes,
    *,
    baseline: str,
    kind: Kind = "difference",
    metric: str | None = None,
    correction: Correction = "holm",
    level: float = 0.95,
    bounds: tuple[float, float] | None = (0.0, 1.0),
) -> pd.DataFrame:
    """Each arm against the baseline on the tasks that both have run.

    Args:
        data: What `outcomes` gave.
        baseline: Arm the others are held against.
        kind: "difference" for accuracy and scores, "ratio" for tokens, dollars and seconds.
        metric: Name of what was measured; the column it came from if None.
        correction: "holm" or "fdr", over the arms where there is more than one.
        level: Confidence of each interval, which is not widened for several arms.
        bounds: Ends of the scale of scores; None if there are none.

    Raises:
        DataError: No such arm, or an unknown kind.

    Examples:
        >>> import pandas as pd
        >>> from axislab.stats.outcomes import outcomes
        >>> rows = {"task_id": ["t", "t"], "arm": ["a", "b"], "repeat": 0, "correct": [True, False]}
        >>> contrasts_df(outcomes(pd.DataFrame(rows)), baseline="b").difference.tolist()
        [1.0]
    """
    import pandas as pd

    if kind not in ("difference", "ratio"):
        raise DataError(f"kind={kind!r}: {did_you_mean(kind, ('difference', 'ratio'))}")
    other = data.of(baseline)
    arms = [arm for arm in data.arms if arm != baseline]
    found: list[PairedDifference | PairedRatio] = [
        paired_ratio(data.of(arm), other, clusters=data.clusters, level=level)
        if kind == "ratio"
        else paired_difference(
            data.of(arm), other, clusters=data.clusters, level=level, bounds=bounds
        )
        for arm in arms
    ]
    adjusted = adjust([one.p for one in found], method=correction)
    if len(arms) < 2:
        adjusted = [None] * len(arms)
    rows = [
        _row(one, arm=arm, baseline=baseline, metric=metric or data.value, p_adjusted=p, data=data)
        for arm, one, p in zip(arms, found, adjusted, strict=True)
    ]
    frame = pd.DataFrame(rows, columns=list(DTYPES))
    return frame.astype(DTYPES)


def _row(
    found: PairedDifference | PairedRatio,
    *,
    arm: str,
    baseline: str,
    metric: str,
    p_adjusted: float | None,
    data: Outcomes,
) -> dict[str, Any]:
    names = {"a": arm, "b": baseline, "metric": metric}
    ratio = isinstance(found, PairedRatio)
    said = (
        ratio_verdict(found, **names, simulated=data.simulated, p_adjusted=p_adjusted)
        if isinstance(found, PairedRatio)
        else verdict(found, **names, simulated=data.simulated, p_adjusted=p_adjusted)
    )
    row: dict[str, Any] = {name: getattr(found, name, None) for name in DTYPES}
    row |= {
        "arm": arm,
        "baseline": baseline,
        "metric": metric,
        "kind": "ratio" if ratio else "difference",
        "mean": found.mean_a,
        "baseline_mean": found.mean_b,
        "p_adjusted": p_adjusted,
        "verdict": said,
        "notes": "; ".join(found.notes) or None,
        "simulated": data.simulated,
    }
    if isinstance(found, PairedRatio):
        row["difference"] = found.ratio
    return {name: None if _nan(value) else value for name, value in row.items()}


def _nan(value: object) -> bool:
    return isinstance(value, float) and bool(np.isnan(value))
