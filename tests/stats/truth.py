"""Worlds whose true effect is known: tasks of differing difficulty, arms that draw on their own.

A world is the distribution of one task's difference of means over repeats. Given the task, every
run of either arm is drawn independently; tasks are drawn from the world. So the counts of a
study's differences are multinomial, and thousands of studies are one draw.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from axislab.stats.score import Sample, score_interval, score_statistic

TYPES = 48


@dataclass(frozen=True)
class World:
    """How likely each arm solves a task of each type; all types are equally frequent."""

    name: str
    a: np.ndarray
    b: np.ndarray

    @property
    def effect(self) -> float:
        return float((self.a - self.b).mean())

    @property
    def discordance(self) -> float:
        return float((self.a * (1 - self.b) + self.b * (1 - self.a)).mean())

    def differences(self, repeats: int) -> tuple[np.ndarray, np.ndarray]:
        """Possible differences of a task's means, and their chances."""
        runs = np.arange(repeats + 1)
        a = stats.binom.pmf(runs[:, None], repeats, self.a[None, :])
        b = stats.binom.pmf(runs[:, None], repeats, self.b[None, :])
        joint = np.einsum("it,jt->ij", a, b) / len(self.a)
        chance = np.bincount(
            (runs[:, None] - runs[None, :] + repeats).ravel(), weights=joint.ravel()
        )
        return np.arange(-repeats, repeats + 1) / repeats, chance / chance.sum()

    def table(self) -> np.ndarray:
        """Chances of one run an arm: both right, only a, only b, neither."""
        a, b = self.a, self.b
        return np.array([(p).mean() for p in (a * b, a * (1 - b), (1 - a) * b, (1 - a) * (1 - b))])


def difficulties(base: float, alike: float) -> np.ndarray:
    """Chances of tasks with this mean; `alike` is the intraclass correlation of two runs."""
    k = 1 / alike - 1
    return stats.beta.ppf((np.arange(TYPES) + 0.5) / TYPES, base * k, (1 - base) * k)


def shifted(b: np.ndarray, effect: float) -> np.ndarray:
    """The arm that differs by this on average, more where there is more room."""
    room = (1 - b).mean() if effect > 0 else b.mean()
    return b + effect / room * ((1 - b) if effect > 0 else b)


def worlds(base: float, effect: float = 0.0) -> list[World]:
    """Worlds of one base rate, from hardly any discordance up to 0.6."""
    found = []
    for alike in (0.9, 0.6, 0.2):
        b = difficulties(base, alike)
        found.append(World(f"{base} alike {alike}", shifted(b, effect), b))
    b = difficulties(base, 0.2)
    if base == 0.5:  # the arms are good at opposite tasks
        found.append(World(f"{base} opposed", shifted(1 - b, effect), b))
    else:  # what is hard for one says nothing of the other
        a, b = (grid.ravel() for grid in np.meshgrid(b, b))
        found.append(World(f"{base} unrelated", shifted(a, effect), b))
    return found


def effects(base: float) -> list[float]:
    return [e for e in (0.05, -0.05, 0.2, -0.2) if 0.05 - 1e-9 <= base + e <= 0.95 + 1e-9]


def draw(world: World, *, n: int, repeats: int, studies: int, seed: int) -> Sample:
    """Studies of a world."""
    rng = np.random.default_rng([seed, n, repeats])
    atoms, chance = world.differences(repeats)
    counts = rng.multinomial(n, chance, size=studies).astype(float)
    return Sample(atoms, counts, np.full(studies, -1.0), np.full(studies, 1.0))


def scatter(data: Sample, study: int) -> np.ndarray:
    """One study's differences, a task each."""
    return np.repeat(data.values, data.counts[study].astype(int))


def t_values(data: Sample) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error of every study."""
    n = data.n
    square = (data.counts @ data.values**2 - n * data.mean**2) / (n - 1)
    return data.mean, np.sqrt(np.where(square > 1e-15, square, 0.0) / n)


def informative(data: Sample) -> np.ndarray:
    return data.counts[:, data.values != 0].sum(axis=1)


def p_over_tasks(data: Sample) -> np.ndarray:
    """What `paired_difference` gives for repeats, for all studies at once."""
    mean, se = t_values(data)
    some = informative(data)
    with np.errstate(divide="ignore", invalid="ignore"):
        by_t = np.where(se > 0, 2 * stats.t.sf(np.abs(mean) / se, data.n - 1), 0.0)
    return np.where(some == 0, 1.0, np.maximum(by_t, 2.0 ** (1 - some)))


def largest_unseen(data: Sample) -> np.ndarray:
    """How far a task not seen yet may differ, for the score interval of every study."""
    seen = np.max(np.where(data.counts > 0, np.abs(data.values), 0.0), axis=1)
    return np.where((informative(data) >= 6) & (t_values(data)[1] > 0), seen, 1.0)


def holds(data: Sample, effect: float) -> np.ndarray:
    """Whether the interval of `paired_difference` for repeats holds the effect, for all studies."""
    critical = stats.t.ppf(0.975, data.n[0] - 1)
    mean, se = t_values(data)
    atom = largest_unseen(data)
    inside = np.abs(effect) < atom
    scored = np.zeros(len(mean), dtype=bool)
    part = Sample(data.values, data.counts[inside], -atom[inside], atom[inside])
    with np.errstate(divide="ignore", invalid="ignore"):
        found = score_statistic(part, np.full(int(inside.sum()), effect))
    scored[inside] = found <= critical**2
    return (np.abs(mean - effect) <= critical * se) | scored


def widths(data: Sample, studies: int) -> np.ndarray:
    """Widths of those intervals, for the first few studies."""
    data = Sample(data.values, data.counts[:studies], data.low[:studies], data.high[:studies])
    critical = stats.t.ppf(0.975, data.n[0] - 1)
    mean, se = t_values(data)
    atom = largest_unseen(data)
    low, high = score_interval(Sample(data.values, data.counts, -atom, atom), critical)
    low, high = np.minimum(low, mean - critical * se), np.maximum(high, mean + critical * se)
    return np.minimum(high, 1.0) - np.maximum(low, -1.0)


def pooled(data: Sample) -> tuple[Sample, np.ndarray]:
    """Each different study once, and where in them the studies are."""
    counts, places = np.unique(data.counts, axis=0, return_inverse=True)
    ends = data.low[: len(counts)], data.high[: len(counts)]
    return Sample(data.values, counts, *ends), places.ravel()
