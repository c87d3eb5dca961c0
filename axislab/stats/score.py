"""Score intervals of a bounded mean: Wilson's, Tango's, and the same idea for any bounded values.

A score interval holds every mean that a score test does not reject. The variance in that test is
the one the data would have under the tested mean, fitted by maximum likelihood over the observed
values and the two ends of the scale. Where the values are 0 and 1 this is Wilson's interval
(1927); where they are -1, 0 and 1 (the differences of two arms on one run a task each) it is
Tango's (1998, Statistics in Medicine 17:891-908). For other values the fit is Owen's empirical
likelihood under a given mean (2001, ch. 2), with the ends of the scale as further atoms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_POLE = 1e-12
"""How near the weights of the fit may come to a pole, as a share of the way."""


def find_roots(
    function: Callable[[Array], Array], start: Array, end: Array, *, rounds: int = 80
) -> Array:
    """Roots of many functions at once, each between two points where its sign differs.

    Chandrupatla's method (1997, Advances in Engineering Software 28:145-149): inverse quadratic
    steps where they are safe, else halving.

    Args:
        function: From an array of places to an array of values.
        start: One end for each.
        end: The other end for each.
        rounds: Most evaluations.
    """
    a, b = np.array(end, dtype=float), np.array(start, dtype=float)
    fa, fb = function(a), function(b)
    t = np.full(a.shape, 0.5)
    best = a
    for _ in range(rounds):
        x = a + t * (b - a)
        fx = function(x)
        same = np.sign(fx) == np.sign(fa)
        c, fc = np.where(same, a, b), np.where(same, fa, fb)
        b, fb = np.where(same, b, a), np.where(same, fb, fa)
        a, fa = x, fx
        best = np.where(np.abs(fa) < np.abs(fb), a, b)
        span = np.abs(b - a)
        tolerance = 4 * np.finfo(float).eps * np.abs(best) + 1e-16
        if np.all((span <= 2 * tolerance) | (fa == 0) | (fb == 0)):
            break
        t = _next_step(a, b, c, fa, fb, fc)
        edge = np.minimum(0.5, tolerance / np.where(span > 0, span, 1.0))
        t = np.clip(t, edge, 1 - edge)
    return best


def _next_step(a: Array, b: Array, c: Array, fa: Array, fb: Array, fc: Array) -> Array:
    """How far to go from a to b: where the inverse parabola crosses, if that is safe."""
    with np.errstate(all="ignore"):
        xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
        safe = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
        step = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    return np.where(safe & np.isfinite(step), step, 0.5)


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Values and how often each was seen, in one study or in many at once."""

    values: Array
    """The different values, K of them."""
    counts: Array
    """How often each was seen: studies x K."""
    low: Array
    """Lower end of the scale, one a study."""
    high: Array
    """Upper end of the scale, one a study."""
    sizes: Array | None = None
    """Weight of each value, mean 1 (sizes of clusters); all 1 if None."""

    @property
    def n(self) -> Array:
        """Observations in each study."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def mean(self) -> Array:
        """Weighted mean of each study."""
        weights = self.counts if self.sizes is None else self.counts * self.sizes
        return np.asarray((weights @ self.values) / weights.sum(axis=1))


def sample(
    values: Array, *, low: float, high: float, sizes: Array | None = None, pool: bool = True
) -> Sample:
    """One study as a Sample; equal values are pooled unless they have weights of their own."""
    bounds = (np.array([low]), np.array([high]))
    if sizes is not None or not pool:
        return Sample(values, np.ones((1, len(values))), *bounds, sizes=sizes)
    atoms, counts = np.unique(values, return_counts=True)
    return Sample(atoms, counts[None, :].astype(float), *bounds)


def null_variance(data: Sample, mean: Array) -> Array:
    """Variance of one value if the mean were this, by constrained maximum likelihood.

    Args:
        data: What was seen.
        mean: The mean assumed, one a study, inside the scale.
    """
    away = data.values[None, :] - mean[:, None]
    if data.sizes is not None:
        away = away * data.sizes
    seen = data.counts > 0
    side = np.where(mean > data.mean, 1.0, -1.0)
    gap = np.where(side > 0, data.high, data.low) - mean
    reach = np.maximum(np.abs(gap), np.max(np.where(seen, away * side[:, None], 0.0), axis=1))
    steepest = -side / np.where(reach > 0, reach, 1.0)

    def slope(share: Array) -> Array:
        base = 1 + (steepest * share)[:, None] * away
        pull = np.where(seen, data.counts * away / base, 0.0)
        return np.asarray(side * pull.sum(axis=1))

    last = np.full(len(mean), 1 - _POLE)
    with np.errstate(divide="ignore", invalid="ignore"):
        at_the_end = slope(last) < 0
        share = find_roots(
            lambda at: np.where(at_the_end, at - 0.5, slope(at)), np.zeros(len(mean)), last
        )
        share = np.where(at_the_end, 1.0, share)
        base = 1 + (steepest * share)[:, None] * away
        # A value at the very end of the scale has a pole there, but then the root is before it.
        fit = np.where(seen & (base > 0), data.counts / base, 0.0) / data.n[:, None]
    spare = np.where(at_the_end, np.clip(1 - fit.sum(axis=1), 0, None), 0.0)
    return np.asarray((fit * away**2).sum(axis=1) + spare * gap**2)


def score_statistic(data: Sample, mean: Array) -> Array:
    """Squared score statistic of a mean: chi-squared with one degree of freedom, or t squared."""
    off = data.mean - mean
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(off == 0, 0.0, data.n * off**2 / null_variance(data, mean))


def score_interval(data: Sample, critical: float) -> tuple[Array, Array]:
    """Lower and upper ends of the score interval, one a study.

    Args:
        data: What was seen.
        critical: Quantile of the normal or t distribution.
    """
    if not np.isfinite(critical):
        return data.low.copy(), data.high.copy()
    mean, n = data.mean, data.n

    def limit(bound: Array) -> Array:
        way = bound - mean
        at_bound = np.abs(way) < _POLE

        def excess(share: Array) -> Array:
            tested = mean + share * np.where(at_bound, 0.0, way)
            off = n * (mean - tested) ** 2
            return np.where(at_bound, share - 0.5, off - critical**2 * null_variance(data, tested))

        first, last = np.full(len(mean), 1e-9), np.full(len(mean), 1 - 1e-12)
        found = mean + find_roots(excess, first, last) * way
        return np.where(at_bound, bound, found)

    return limit(data.low), limit(data.high)
