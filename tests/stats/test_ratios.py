"""Ratios of skewed amounts: coverage where the truth is known, and what odd input gives."""

from __future__ import annotations

import numpy as np
import pytest

from axislab.errors import DataError
from axislab.stats.ratios import paired_ratio


def amounts(n: int, *, spread: float, shared: float, retries: bool, studies: int, seed: int):
    """Two arms' costs: log-normal, alike on a task; arm a may rarely have to start again."""
    rng = np.random.default_rng(seed)
    task = rng.normal(size=(studies, n)) * np.sqrt(shared)
    a, b = (
        np.exp(spread * (task + rng.normal(size=(studies, n)) * np.sqrt(1 - shared)))
        for _ in range(2)
    )
    if not retries:
        return 1.5 * a, b, 1.5
    return a * (1 + 4 * (rng.random((studies, n)) < 0.2)), b, 1.8


WORLDS = [(0.5, 0.5, False), (1.0, 0.0, False), (1.0, 0.9, False), (0.5, 0.5, True)]


def coverage(n: int, world, studies: int) -> float:
    spread, shared, retries = world
    a, b, truth = amounts(
        n, spread=spread, shared=shared, retries=retries, studies=studies, seed=21
    )
    inside = [
        found.low <= truth <= found.high
        for found in (paired_ratio(x, y, resamples=399) for x, y in zip(a, b, strict=True))
    ]
    return float(np.mean(inside))


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize(("n", "least"), [(20, 0.9), (50, 0.9), (100, 0.93)])
def test_ratios_cover_the_truth(n, least, world):
    assert coverage(n, world, 400) >= least


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize(("n", "least"), [(20, 0.9), (50, 0.9), (100, 0.93), (500, 0.93)])
def test_ratios_cover_the_truth_in_many_studies(n, least, world):
    assert coverage(n, world, 4_000) >= least


def test_delta_with_t_alone_covers_too_seldom():
    """Why the textbook interval is not taken for skewed costs."""
    a, b, truth = amounts(20, spread=1.0, shared=0.9, retries=False, studies=600, seed=22)
    found = [paired_ratio(x, y, resamples=99) for x, y in zip(a, b, strict=True)]
    assert np.mean([x.delta_low <= truth <= x.delta_high for x in found]) < 0.92


def test_fewer_than_100_tasks_are_said():
    a, b, _ = amounts(99, spread=0.5, shared=0.5, retries=False, studies=1, seed=23)
    assert "fewer than 100" in paired_ratio(a[0], b[0]).notes[0]
    a, b, _ = amounts(100, spread=0.5, shared=0.5, retries=False, studies=1, seed=23)
    assert paired_ratio(a[0], b[0]).notes == ()


def test_the_other_way_round_is_the_reciprocal():
    a, b, _ = amounts(60, spread=0.7, shared=0.5, retries=False, studies=1, seed=24)
    one, other = paired_ratio(a[0], b[0]), paired_ratio(b[0], a[0])
    assert one.ratio == pytest.approx(1 / other.ratio)
    assert (one.low, one.high) == pytest.approx((1 / other.high, 1 / other.low))
    assert one.p == pytest.approx(other.p)


def test_the_unit_of_the_amounts_does_not_matter():
    a, b, _ = amounts(60, spread=0.7, shared=0.5, retries=False, studies=1, seed=25)
    one, other = paired_ratio(a[0], b[0]), paired_ratio(1e-6 * a[0], 1e-6 * b[0])
    assert (one.low, one.high, one.p) == pytest.approx((other.low, other.high, other.p))


def test_two_clusters_of_copies_are_no_more_than_two_tasks():
    a, b = [1.0, 1.0, 4.0, 4.0], [1.0, 1.0, 3.0, 3.0]
    found = paired_ratio(a, b, clusters=["x", "x", "y", "y"])
    alone = paired_ratio([2.0, 8.0], [2.0, 6.0])
    assert (found.n, found.ratio, found.low) == (2, alone.ratio, alone.low)


@pytest.mark.parametrize(
    ("a", "b", "why"),
    [
        ([], [], "no task"),
        ([np.nan], [1.0], "no task"),
        ([0.0, 0.0], [1.0, 2.0], "a mean of 0"),
        ([1.0, 2.0], [0.0, 0.0], "a mean of 0"),
        ([2.0], [1.0], "nothing is known of its spread"),
    ],
)
def test_where_there_is_no_interval_the_result_says_why(a, b, why):
    found = paired_ratio(a, b)
    assert found.low is found.high is found.p is None
    assert why in found.notes[-1]


def test_tasks_of_unknown_cost_are_dropped_and_counted():
    found = paired_ratio([1.0, 2.0, np.nan, 3.0], [1.0, 2.0, 3.0, np.nan])
    assert (found.tasks, found.dropped, found.ratio) == (2, 2, 1.0)
    assert "2 tasks without a known amount" in found.notes[1]


def test_one_ratio_for_every_task_has_no_spread_and_says_so():
    found = paired_ratio([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
    assert (found.low, found.high, found.p) == (pytest.approx(2), pytest.approx(2), 0.25)
    assert "same ratio" in found.notes[-1]
    assert paired_ratio([2.0, 4.0], [2.0, 4.0]).p == 1.0


def test_few_amounts_above_zero_leave_the_ratio_open():
    found = paired_ratio([1.0, 0.0, 0.0], [0.0, 0.0, 2.0])
    assert (found.low, found.high) == (0.0, np.inf)
    assert found.p > 0.05


def test_the_same_seed_gives_the_same_numbers():
    a, b, _ = amounts(30, spread=1.0, shared=0.5, retries=True, studies=1, seed=26)
    assert paired_ratio(a[0], b[0]) == paired_ratio(a[0], b[0])
    assert paired_ratio(a[0], b[0]) != paired_ratio(a[0], b[0], seed=1)


@pytest.mark.parametrize(
    ("a", "options", "words"),
    [
        ([-1.0, 2.0], {}, "0 or more"),
        ([1.0, 2.0, 3.0], {}, "same tasks"),
        ([1.0, 2.0], {"resamples": 9}, "99 or more"),
        ([1.0, 2.0], {"level": 95}, "between 0 and 1"),
        ([1.0, np.inf], {}, "infinite"),
        (["x", "y"], {}, "give numbers"),
    ],
)
def test_what_cannot_be_a_ratio_is_refused(a, options, words):
    with pytest.raises(DataError, match=words):
        paired_ratio(a, [1.0, 2.0], **options)
