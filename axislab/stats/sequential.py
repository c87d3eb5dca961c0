"""Looking at a study while it runs: a confidence sequence and a p that stay valid at every look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from axislab.errors import DataError
from axislab.stats.intervals import check_level, runs_matrix, task_means
from axislab.stats.score import Array, find_roots

if TYPE_CHECKING:
    import pandas as pd

Decision: TypeAlias = Literal["better", "worse", "equivalent"]

_BETS = np.geomspace(0.05, 0.98, 12)
"""Shares of the largest bet that cannot lose everything; a mixture over them."""
_WEIGHTS = np.sqrt(_BETS) / np.sqrt(_BETS).sum() / 2
_MOST_LOOKS = 100
_ROUNDING = 1e-9
METHOD = "betting confidence sequence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What was known after so many tasks."""

    n: int
    """Tasks (clusters) so far."""
    estimate: float
    """Mean difference so far."""
    low: float
    high: float
    p: float
    """Smallest anytime-valid p so far; at most alpha once decided, whenever one looked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceSequence:
    """Intervals that hold the true difference at all looks at once, with the stated confidence."""

    looks: tuple[Look, ...]
    level: float
    decided_at: int | None
    """Tasks after which p first was at most 1 - level; None if it never was."""
    margin: float | None
    """Differences smaller than this count as none."""
    method: str = METHOD
    notes: tuple[str, ...] = ()

    @property
    def last(self) -> Look | None:
        """The latest look; None before the first task."""
        return self.looks[-1] if self.looks else None

    @property
    def decision(self) -> Decision | None:
        """Better, worse, equivalent (within the margin), or None: not decided."""
        last = self.last
        if last is None:
            return None
        if self.margin is not None and -self.margin < last.low and last.high < self.margin:
            return "equivalent"
        if self.decided_at is None:
            return None
        return "better" if last.low > -_ROUNDING else "worse" if last.high < _ROUNDING else None

    def frame(self) -> pd.DataFrame:
        """One row a look: n, estimate, low, high, p."""
        import pandas as pd

        names = ("n", "estimate", "low", "high", "p")
        return pd.DataFrame({name: [getattr(x, name) for x in self.looks] for name in names})


def sequential_p(differences: ArrayLike, *, scale: float = 1.0) -> Array:
    """The anytime-valid p of no difference after each task: the smallest so far.

    Args:
        differences: Mean difference of each task, in an order fixed beforehand.
        scale: Largest difference there can be.

    Examples:
        >>> round(float(sequential_p([1.0] * 6)[-1]), 3)
        0.113
    """
    x = _check(differences, scale) / scale
    if not len(x):
        return x
    atoms, places = np.unique(x, return_inverse=True)
    gains = _log_gains(atoms, np.zeros(1))[0]
    wealth = _log_mean(np.cumsum(gains[:, places], axis=1).T)
    return np.asarray(np.minimum.accumulate(np.minimum(1.0, np.exp(-wealth))))


def confidence_sequence(
    differences: ArrayLike,
    *,
    level: float = 0.95,
    scale: float = 1.0,
    margin: float | None = None,
    looks: Sequence[int] | None = None,
) -> ConfidenceSequence:
    """Intervals for the mean difference that stay valid however often one looks, and a p.

    Betting (Waudby-Smith and Ramdas 2024, J. R. Stat. Soc. B 86:1-27): for a difference m,
    capital is bet on and against the next task's difference being above m, a fixed mixture
    (Robbins 1970) of 12 stakes each way; if m is the true mean, no strategy and no stopping rule
    multiplies it by 1/alpha with more than chance alpha (Ville 1939). The interval holds the m
    against which that has not happened at any look; p is the smallest 1 / capital against 0.
    Differences need only lie between -scale and scale and have the same mean whatever came
    before: nothing is normal, and repeats averaged per task are fine.

    The order must not depend on the outcomes: take tasks in the (shuffled) order of the plan, not
    of completion, since short runs finish first. For clusters give the means of whole clusters.
    For several comparisons divide 1 - level by their number.

    Args:
        differences: Mean difference of each task; NaN ones are left out.
        level: Confidence over all looks together.
        scale: Largest difference there can be.
        margin: Differences smaller than this count as none, which can then be decided, too.
        looks: Numbers of tasks to look at; up to 100 spread over the way if None. p is followed
            at every task in any case.

    Raises:
        DataError: Differences beyond the scale.

    Examples:
        >>> confidence_sequence([1.0, 0.0, 1.0] * 20).decision
        'better'
    """
    check_level(level)
    if margin is not None and not margin > 0:
        raise DataError(f"margin={margin!r}: give a positive difference, or None")
    x = _check(differences, scale)
    n = len(x)
    p = sequential_p(x, scale=scale)
    alpha = 1 - level
    hits = np.flatnonzero(p <= alpha)
    decided = int(hits[0]) + 1 if len(hits) else None
    at = _looks(n, looks, decided)
    if not len(at):
        return ConfidenceSequence(
            looks=(), level=level, decided_at=None, margin=margin, notes=("no task yet",)
        )
    means = np.cumsum(x)[at - 1] / at
    low, high = _ends(x / scale, at, np.log(1 / alpha))
    low, high = low * scale, high * scale
    notes: tuple[str, ...] = ()
    inner_low, inner_high = np.maximum.accumulate(low), np.minimum.accumulate(high)
    if np.any(inner_low > inner_high):
        notes = ("looks contradict each other, so that each stands alone: the mean has drifted",)
        inner_low, inner_high = low, high
    rows = zip(at, means, inner_low, inner_high, p[at - 1], strict=True)
    return ConfidenceSequence(
        looks=tuple(
            Look(n=int(k), estimate=float(m), low=float(lo), high=float(hi), p=float(q))
            for k, m, lo, hi, q in rows
        ),
        level=level,
        decided_at=decided,
        margin=margin,
        notes=notes,
    )


def _check(differences: ArrayLike, scale: float) -> Array:
    x = task_means(runs_matrix(differences, name="differences"))
    x = x[np.isfinite(x)]
    if not scale > 0:
        raise DataError(f"scale={scale!r}: give the largest difference there can be")
    if len(x) and np.abs(x).max() > scale:
        raise DataError(f"a difference of {float(np.abs(x).max())!r} is beyond scale={scale!r}")
    return x


def _looks(n: int, looks: Sequence[int] | None, decided: int | None) -> Array:
    if looks is None:
        at = np.unique(np.linspace(1, n, min(n, _MOST_LOOKS)).round().astype(int))
    else:
        at = np.unique(np.array(list(looks), dtype=int))
        if len(at) and (at[0] < 1 or at[-1] > n):
            raise DataError(f"looks={list(looks)!r}: give numbers of tasks from 1 to {n}")
    return at if decided is None or not len(at) else np.union1d(at, decided)


def _log_mean(capitals: Array) -> Array:
    """Log of the mixed capital, of the logs of each stake's: rows x stakes."""
    most = capitals.max(axis=1, keepdims=True)
    mixed = np.exp(capitals - most) @ np.concatenate([_WEIGHTS, _WEIGHTS])
    return np.asarray(np.log(mixed) + most[:, 0])


def _log_gains(atoms: Array, mean: Array) -> Array:
    """Log of what each stake is multiplied by: means x stakes x atoms, on the scale -1 to 1."""
    away = atoms[None, None, :] - mean[:, None, None]
    up = _BETS[None, :, None] / (1 + mean)[:, None, None]
    down = -_BETS[None, :, None] / (1 - mean)[:, None, None]
    return np.asarray(np.log1p(np.concatenate([up * away, down * away], axis=1)))


def _ends(x: Array, at: Array, threshold: float) -> tuple[Array, Array]:
    """Where the capital of each look reaches the threshold, on either side of the mean."""
    atoms, places = np.unique(x, return_inverse=True)
    seen = np.cumsum(places[:, None] == np.arange(len(atoms))[None, :], axis=0)[at - 1]
    means = (seen @ atoms) / at

    def end(bound: float) -> Array:
        way = bound - means

        def excess(share: Array) -> Array:
            gains = _log_gains(atoms, means + share * way)
            return _log_mean(np.einsum("lka,la->lk", gains, seen.astype(float))) - threshold

        last = np.full(len(at), 1 - 1e-9)
        at_bound = np.abs(way) < 1e-9
        with np.errstate(divide="ignore", invalid="ignore"):
            open_end = at_bound | (excess(last) < 0)
            found = find_roots(
                lambda share: np.where(open_end, share - 0.5, excess(share)),
                np.zeros(len(at)),
                last,
                rounds=60,
            )
        return np.where(open_end, bound, means + found * way)

    return end(-1.0), end(1.0)
