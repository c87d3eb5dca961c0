"""Looking while a study runs: what holds at every look."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axislab.errors import DataError
from axislab.stats.sequential import confidence_sequence, sequential_p

paths = st.lists(st.sampled_from([-1.0, -0.5, 0.0, 1 / 3, 1.0]), min_size=1, max_size=60)


@given(paths)
@settings(max_examples=60, deadline=None)
def test_swapping_the_arms_flips_the_sequence(path):
    one, other = confidence_sequence(path), confidence_sequence([-x for x in path])
    assert one.last.p == pytest.approx(other.last.p)
    assert (one.last.low, one.last.high) == pytest.approx((-other.last.high, -other.last.low))
    assert one.decided_at == other.decided_at


@given(paths)
@settings(max_examples=60, deadline=None)
def test_knowledge_only_grows(path):
    found = confidence_sequence(path)
    assert found.notes == () or "drifted" in found.notes[0]
    for x, y in pairwise(found.looks):
        assert y.p <= x.p
        if not found.notes:
            assert x.low - 1e-9 <= y.low
            assert y.high <= x.high + 1e-9
    assert all(-1 <= x.low <= x.high <= 1 for x in found.looks)


@given(paths)
@settings(max_examples=60, deadline=None)
def test_p_and_the_interval_agree_on_what_is_decided(path):
    found = confidence_sequence(path)
    if not found.notes:
        outside = found.last.low > 1e-9 or found.last.high < -1e-9
        assert outside == (found.last.p <= 0.05) == (found.decision is not None)


def test_the_price_of_a_bet_is_fair():
    """The capital against the truth is a martingale: its mean over all outcomes stays 1."""
    outcomes = np.array(np.meshgrid(*[[-1.0, 1.0]] * 10)).reshape(10, -1).T
    # p is the smallest 1 / capital, so that one look's capital is at most its reciprocal.
    best = np.array([1 / sequential_p(path)[-1] for path in outcomes])
    for alpha in (0.5, 0.2, 0.05):
        assert np.mean(best >= 1 / alpha) <= alpha


@pytest.mark.parametrize("effect", [-0.3, 0.0, 0.1])
def test_the_truth_is_held_at_every_look(effect):
    rng = np.random.default_rng(41)
    missed = 0
    for _ in range(200):
        path = rng.choice([-1.0, 0.0, 1.0], size=150, p=[0.2 - effect / 2, 0.6, 0.2 + effect / 2])
        looks = confidence_sequence(path, looks=range(10, 151, 10)).looks
        missed += any(not x.low <= effect <= x.high for x in looks)
    assert missed / 200 <= 0.062


def test_a_clear_case_is_decided_early_and_either_way():
    path = [1.0, 0.0, 1.0, 0.0] * 50
    found = confidence_sequence(path)
    assert found.decision == "better"
    assert found.decided_at < 40
    assert found.decided_at in [x.n for x in found.looks]
    assert confidence_sequence([-x for x in path]).decision == "worse"


def test_a_difference_too_small_to_matter_can_be_decided_too():
    path = [0.0] * 300 + [1.0, -1.0] * 3
    assert confidence_sequence(path).decision is None
    assert confidence_sequence(path, margin=0.1).decision == "equivalent"


def test_the_scale_only_scales():
    path = [1.0, -0.5, 0.0, 1.0] * 10
    one, ten = confidence_sequence(path), confidence_sequence([10 * x for x in path], scale=10)
    assert (10 * one.last.low, one.last.p) == pytest.approx((ten.last.low, ten.last.p))


def test_before_the_first_task_nothing_is_known():
    found = confidence_sequence([])
    assert found.last is found.decision is found.decided_at is None
    assert found.frame().columns.tolist() == ["n", "estimate", "low", "high", "p"]
    assert confidence_sequence([math.nan, 1.0]).last.n == 1
    assert sequential_p([]).tolist() == []


def test_ten_thousand_tasks_do_not_overflow():
    found = confidence_sequence([1.0] * 10_000, looks=[10_000])
    assert found.last.low == pytest.approx(1, abs=0.01)
    assert 0 <= found.last.p < 1e-100


def test_looks_that_contradict_each_other_are_said():
    found = confidence_sequence([1.0] * 200 + [-1.0] * 400)
    assert "drifted" in found.notes[0]
    assert found.last.low <= found.last.estimate <= found.last.high


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scale": 0.5}, "beyond scale"),
        ({"scale": 0}, "largest difference"),
        ({"margin": 0}, "positive"),
        ({"looks": [3]}, "from 1 to 2"),
        ({"level": 2}, "between 0 and 1"),
    ],
)
def test_what_cannot_be_followed_is_refused(options, words):
    with pytest.raises(DataError, match=words):
        confidence_sequence([1.0, 0.0], **options)
