"""Paired differences: what holds for all data, and what odd data give."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from axislab.errors import DataError
from axislab.stats.intervals import mean_interval
from axislab.stats.multiple import adjust
from axislab.stats.paired import paired_difference
from axislab.stats.permutation import sign_flip_p
from axislab.stats.power import detectable_difference, discordant_sd, power_of, tasks_needed
from axislab.stats.repeats import pass_at_k, pass_hat_k, spread

shapes = st.tuples(st.integers(1, 12), st.integers(1, 4))
truths = hnp.arrays(float, shapes, elements=st.sampled_from([0.0, 1.0, math.nan]))
scores = hnp.arrays(float, shapes, elements=st.floats(0, 1, width=32) | st.just(math.nan))


def arms(values):
    return values.flatmap(
        lambda a: st.tuples(
            st.just(a),
            hnp.arrays(float, a.shape, elements=st.sampled_from(list(a.ravel()) or [0.0])),
            st.none() | st.lists(st.sampled_from("xyz"), min_size=len(a), max_size=len(a)),
        )
    )


@given(arms(truths | scores))
@settings(max_examples=150, deadline=None)
def test_swapping_the_arms_flips_every_sign(given_arms):
    a, b, clusters = given_arms
    one = paired_difference(a, b, clusters=clusters)
    other = paired_difference(b, a, clusters=clusters)
    assert (one.better, one.worse, one.tasks) == (other.worse, other.better, other.tasks)
    assert (one.p, one.p_exact) == (pytest.approx(other.p), other.p_exact)
    if one.difference is not None:
        assert one.difference == pytest.approx(-other.difference, abs=1e-12)
        assert (one.low, one.high) == pytest.approx((-other.high, -other.low), abs=1e-9)


@given(arms(truths | scores), st.sampled_from([0.5, 0.95, 0.999]))
@settings(max_examples=150, deadline=None)
def test_a_result_is_always_honest(given_arms, level):
    a, b, clusters = given_arms
    found = paired_difference(a, b, clusters=clusters, level=level)
    if found.tasks == 0:
        assert found.difference is found.low is found.p is None
        assert found.notes
        return
    assert -1 <= found.low <= found.difference <= found.high <= 1
    assert found.high - found.low > 0
    assert found.p is None or 0 < found.p <= 1
    assert found.n <= found.tasks <= min(found.runs_a, found.runs_b)
    assert found.tasks + found.dropped == len(a)
    assert found.few == any("tell the arms apart" in note for note in found.notes)


@given(arms(truths | scores))
@settings(max_examples=80, deadline=None)
def test_more_confidence_is_a_wider_interval(given_arms):
    a, b, clusters = given_arms
    low, mid, high = (
        paired_difference(a, b, clusters=clusters, level=x) for x in (0.8, 0.95, 0.99)
    )
    if mid.low is not None:
        assert high.low - 1e-9 <= mid.low <= low.low + 1e-9
        assert low.high - 1e-9 <= mid.high <= high.high + 1e-9


@given(st.integers(1, 40), st.data())
@settings(max_examples=80, deadline=None)
def test_one_more_task_won_moves_the_interval_up(tasks, data):
    better = data.draw(st.integers(0, tasks - 1))
    worse = data.draw(st.integers(0, tasks - 1 - better))

    def of(more):
        x = [1] * (better + more) + [-1] * worse + [0] * (tasks - better - more - worse)
        return paired_difference([v > 0 for v in x], [v < 0 for v in x])

    before, after = of(0), of(1)
    assert after.difference > before.difference
    assert after.low >= before.low - 1e-12
    assert after.high >= before.high - 1e-12


@given(scores, st.none() | st.just("one"))
@settings(max_examples=100, deadline=None)
def test_the_mean_of_one_arm_lies_in_its_interval(values, clusters):
    names = None if clusters is None else [clusters] * len(values)
    found = mean_interval(values, clusters=names)
    if found.mean is None:
        assert found.notes
    else:
        assert 0 <= found.low <= found.mean + 1e-12
        assert found.mean - 1e-12 <= found.high <= 1


def test_no_discordant_task_is_no_evidence_of_equality():
    found = paired_difference([1] * 20, [1] * 20)
    assert (found.difference, found.p, found.p_exact, found.odds_ratio) == (0.0, 1.0, 1.0, None)
    assert found.low == pytest.approx(-0.161, abs=1e-3)
    assert found.high == pytest.approx(0.161, abs=1e-3)
    assert found.detectable is None
    assert found.decisive_n is None
    assert "only 0 of 20 tasks" in found.notes[0]


@pytest.mark.parametrize("repeats", [1, 3])
def test_one_task_tells_next_to_nothing(repeats):
    found = paired_difference([[1] * repeats], [[0] * repeats])
    assert found.difference == 1.0
    assert found.low < 0 < found.high
    assert found.p is None or found.p >= 0.5


def test_the_same_difference_on_every_task_is_not_certainty():
    a, b = np.full((8, 2), 0.75), np.full((8, 2), 0.5)
    found = paired_difference(a, b)
    assert found.p == 2.0**-7
    assert found.low < 0.25 < found.high
    assert found.effect_size is None


def test_five_tasks_that_tell_the_arms_apart_never_reach_5_percent():
    a, b = np.zeros((100, 2)), np.zeros((100, 2))
    a[:5] = 1
    found = paired_difference(a, b)
    assert found.p == 2.0**-4


def test_without_repeats_mcnemar_and_with_repeats_t_is_used():
    one, two = [1, 0, 1], [[1, 1], [0, 1], [1, 0]]
    assert paired_difference(one, one).method == "McNemar mid-p"
    assert paired_difference(two, two).method == "t over tasks"
    assert paired_difference(one, one, clusters=["x", "x", "y"]).method == "t over clusters"
    assert paired_difference([0.5, 1, 0], one).method == "t over tasks"
    assert paired_difference(two, two).p_exact is None


def test_n_is_clusters_where_tasks_belong_together():
    a, b = [1, 1, 0, 1, 0, 1], [0, 0, 0, 0, 1, 1]
    alone = paired_difference(a, b)
    found = paired_difference(a, b, clusters=["x", "x", "y", "y", None, None])
    assert (alone.n, alone.clusters) == (6, None)
    assert (found.n, found.tasks, found.clusters) == (4, 6, 4)
    everything = paired_difference(a, b, clusters=["x"] * 6)
    assert (everything.n, everything.p, everything.low, everything.high) == (1, None, -1, 1)


def test_a_run_that_is_missing_drops_no_task_and_a_task_that_is_missing_is_counted():
    nan = math.nan
    found = paired_difference([[1, nan], [0, 1], [nan, nan]], [[0, 0], [nan, 1], [1, 1]])
    assert (found.tasks, found.dropped, found.runs_a, found.runs_b) == (2, 1, 3, 3)
    assert found.difference == pytest.approx((1 - 0.5) / 2 + 0)
    assert "1 tasks that not both arms have run" in found.notes[1]


def test_rounding_tells_no_arms_apart():
    found = paired_difference([[0.1, 0.2, 0.3]] * 3, [[0.3, 0.2, 0.1]] * 3)
    assert found.informative == 0
    assert found.p == 1.0


def test_frames_with_na_and_booleans_are_welcome():
    a = pd.Series([True, False, None, True], dtype="boolean")
    assert paired_difference(a, [0, 0, 1, 0]).tasks == 3
    frame = pd.DataFrame({0: a, 1: a})
    assert paired_difference(frame, [0, 0, 1, 0]).runs_a == 6


def test_repeats_of_one_arm_are_graded_by_t_and_seconds_have_no_bounds():
    assert mean_interval([[1, 0], [1, 1], [0, 0]]).method == "t over tasks, or score where wider"
    seconds = mean_interval([3.0, 8.0, 40.0], bounds=None)
    assert seconds.method == "t over tasks"
    assert seconds.low < 0
    assert mean_interval([3.0], bounds=None).low is None


@pytest.mark.parametrize(("n", "base"), [(20, 0.1), (20, 0.5), (50, 0.9)])
def test_the_interval_of_one_arms_repeats_covers_its_accuracy(n, base):
    rng = np.random.default_rng(31)
    chance = rng.beta(4 * base, 4 * (1 - base), size=(200, n))
    runs = rng.binomial(3, chance) / 3
    found = [mean_interval(np.stack([x, x], axis=1)) for x in runs]
    assert np.mean([x.low <= base <= x.high for x in found]) >= 0.92


@pytest.mark.parametrize(
    ("a", "b", "options", "words"),
    [
        ([1, 0], [1], {}, "same tasks in the same order"),
        ([2.0, 0], [1, 0], {}, "within"),
        ([1, 0], [1, 0], {"level": 1.0}, "between 0 and 1"),
        ([1, 0], [1, 0], {"clusters": ["x"]}, "one for each task"),
        ([1, 0], ["right", "wrong"], {}, "give numbers"),
        ([1, 0], [[[1]], [[0]]], {}, "3 dimensions"),
        ([1, math.inf], [1, 0], {}, "infinite"),
    ],
)
def test_what_cannot_be_compared_is_refused(a, b, options, words):
    with pytest.raises(DataError, match=words):
        paired_difference(a, b, **options)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: pass_at_k([[1, 0]], 0), "1 or more"),
        (lambda: pass_at_k([[1, 0]], True), "whole number"),
        (lambda: pass_hat_k([[0.5, 0]], 1), "right"),
        (lambda: mean_interval([2.0]), "outside bounds"),
        (lambda: adjust([0.1, 1.2]), "from 0 to 1"),
        (lambda: adjust([0.1], method="hulm"), "did you mean 'holm'"),
        (lambda: power_of(0.1, 1.0, tasks=1), "2 tasks"),
        (lambda: tasks_needed(0.1, 1.0, power=1.5), "power=1.5"),
        (lambda: detectable_difference(1.0, tasks=9, power=0.01), "not above"),
        (lambda: discordant_sd(0.1, 0.2), "no larger"),
    ],
)
def test_what_makes_no_sense_is_refused(call, words):
    with pytest.raises(DataError, match=words):
        call()


def test_tasks_with_fewer_than_k_runs_are_left_out_of_pass_at_k():
    found = pass_at_k([[1, 0], [0, math.nan]], 2)
    assert (found.mean, found.tasks) == (1.0, 1)
    assert "1 tasks without a run" in found.notes[0]
    assert pass_at_k([[1], [0]], 2).mean is None


@given(
    hnp.arrays(
        float, st.tuples(st.integers(1, 8), st.integers(1, 6)), elements=st.sampled_from([0.0, 1.0])
    )
)
@settings(max_examples=60, deadline=None)
def test_more_runs_help_pass_at_k_and_hurt_pass_hat_k(runs):
    ks = range(1, runs.shape[1] + 1)
    any_right = [pass_at_k(runs, k).mean for k in ks]
    all_right = [pass_hat_k(runs, k).mean for k in ks]
    assert any_right[0] == pytest.approx(all_right[0])
    assert all(y >= x - 1e-12 for x, y in pairwise(any_right))
    assert all(y <= x + 1e-12 for x, y in pairwise(all_right))


@given(st.lists(st.none() | st.floats(0, 1), max_size=8), st.sampled_from(["holm", "fdr"]))
def test_adjusted_p_values_are_never_smaller_and_keep_their_order(p, method):
    found = adjust(p, method=method)
    assert [x is None for x in found] == [x is None for x in p]
    pairs = sorted((a, b) for a, b in zip(p, found, strict=True) if a is not None)
    assert all(a <= b + 1e-12 <= 1 + 1e-9 for a, b in pairs)
    assert all(x[1] <= y[1] + 1e-12 for x, y in pairwise(pairs))


def test_signs_flip_by_drawing_where_there_are_too_many_patterns():
    rng = np.random.default_rng(32)
    a, b = rng.uniform(size=(2, 60))
    assert sign_flip_p(a, b) == pytest.approx(paired_difference(a, b).p, abs=0.02)
    assert sign_flip_p(a, b) == sign_flip_p(a, b)
    assert sign_flip_p(a, a) == 1.0
    assert sign_flip_p([], []) is None
    assert sign_flip_p([1, 1, 1, 1], [0, 0, 0, 0], clusters=["x", "x", "y", "y"]) == 0.5


def test_a_spread_that_cannot_be_known_is_none():
    assert spread([[1.0], [0.0]]).within is None
    assert spread([[1.0, 0.0]]).between is None
    assert spread([[1.0, 0.0]]).of_mean(repeats=2) is None
    assert spread([[1.0, 1.0], [1.0, 1.0]]).intraclass is None


def test_no_study_is_large_enough_for_a_difference_of_nothing():
    assert tasks_needed(0.0, 1.0) is None
    assert tasks_needed(1e-6, 1.0) is None
    assert tasks_needed(5.0, 0.01) == 2
    assert detectable_difference(0.0, tasks=10) is None
    assert detectable_difference(1.0, tasks=1) is None
    assert power_of(1.0, 0.001, tasks=100) == 1.0
