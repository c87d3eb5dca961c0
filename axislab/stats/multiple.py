"""P values of several comparisons at once: Holm, and Benjamini and Hochberg."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from axislab.errors import DataError, did_you_mean
from axislab.stats.score import Array

Correction: TypeAlias = Literal["holm", "fdr"]


def adjust(p_values: Sequence[float | None], *, method: Correction = "holm") -> list[float | None]:
    """P values to hold against alpha when several comparisons were made.

    "holm" keeps the chance of even one false claim below alpha, whatever the comparisons share
    (Holm 1979, Scand. J. Stat. 6:65-70). "fdr" keeps the expected share of false claims among all
    claims below it (Benjamini and Hochberg 1995, J. R. Stat. Soc. B 57:289-300), which allows
    comparisons with one common baseline.

    Args:
        p_values: One a comparison; None where there is none, which stays so and is not counted.
        method: "holm" or "fdr".

    Raises:
        DataError: A p outside 0 to 1, or an unknown method.

    Examples:
        >>> adjust([0.01, 0.04, None, 0.03])
        [0.03, 0.06, None, 0.06]
    """
    if method not in ("holm", "fdr"):
        raise DataError(f"method={method!r}: {did_you_mean(method, ('holm', 'fdr'))}")
    places = [i for i, p in enumerate(p_values) if p is not None and p == p]
    known = np.array([p_values[i] for i in places], dtype=float)
    if known.size and not (known.min() >= 0 and known.max() <= 1):
        raise DataError(f"p_values={list(p_values)!r}: give numbers from 0 to 1, or None")
    adjusted: list[float | None] = [None] * len(p_values)
    found = (_holm if method == "holm" else _benjamini_hochberg)(known)
    for place, value in zip(places, found, strict=True):
        adjusted[place] = float(value)
    return adjusted


def _holm(p: Array) -> Array:
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    back = np.empty_like(p)
    back[order] = np.minimum(stepped, 1.0)
    return back


def _benjamini_hochberg(p: Array) -> Array:
    from scipy.stats import false_discovery_control

    return np.asarray(false_discovery_control(p)) if len(p) else p
