"""From a frame of runs to a sentence."""

from __future__ import annotations

import doctest
import importlib
import math
import pkgutil

import numpy as np
import pandas as pd
import pytest

import axislab.stats
from axislab.errors import DataError
from axislab.stats.outcomes import outcomes
from axislab.stats.paired import paired_difference
from axislab.stats.ratios import paired_ratio
from axislab.stats.sequential import confidence_sequence
from axislab.stats.verdict import points, ratio_verdict, sequential_verdict, verdict


def runs(**columns) -> pd.DataFrame:
    rows = {
        "task_id": ["t1", "t2", "t1", "t2", "t1"],
        "arm": ["a", "a", "b", "b", "a"],
        "repeat": [0, 0, 0, 0, 1],
        "correct": [True, False, None, True, False],
    }
    return pd.DataFrame(rows | columns).convert_dtypes()


def test_a_frame_becomes_tasks_by_repeats_for_each_arm():
    found = outcomes(runs(cluster=["c", None, "c", None, "c"], simulated=True))
    assert found.tasks == ("t1", "t2")
    assert found.clusters == ("c", None)
    assert found.simulated
    np.testing.assert_array_equal(found.of("a"), [[1, 0], [0, math.nan]])
    np.testing.assert_array_equal(found.of("b"), [[math.nan, math.nan], [1, math.nan]])


def test_the_order_of_rows_changes_nothing_but_the_order_of_tasks():
    frame = runs()
    one, other = outcomes(frame), outcomes(frame.iloc[::-1])
    a = paired_difference(one.of("a"), one.of("b"))
    assert a == paired_difference(other.of("a"), other.of("b"))


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (runs().drop(columns="correct"), "no correct"),
        (runs(repeat=0), "is there twice"),
        (runs(arm=["a", None, "b", "b", "a"]), "runs of a study"),
        (runs(simulated=[True, False, True, True, True]), "never pooled"),
        (runs(cluster=["c", "d", "e", "d", "c"]), "is in clusters 'c' and 'e'"),
    ],
)
def test_frames_that_cannot_be_compared_are_refused(frame, words):
    with pytest.raises(DataError, match=words):
        outcomes(frame)


def test_an_unknown_arm_is_named_with_what_there_is():
    with pytest.raises(DataError, match="no arm 'c': allowed: a, b"):
        outcomes(runs()).of("c")


def clear(better: int, worse: int, same: int):
    x = [1] * better + [-1] * worse + [0] * same
    return paired_difference([v > 0 for v in x], [v < 0 for v in x])


def test_a_clear_difference_is_said_with_its_interval():
    said = verdict(clear(30, 8, 62), a="three", b="one")
    assert said == (
        "'three' has higher accuracy than 'one' on tasks like these: +22.0 points "
        "(95 % interval +10.5 to +33.3, p < 0.001, 100 tasks)."
    )
    assert "lower accuracy" in verdict(clear(8, 30, 62), a="three", b="one")


def test_simulated_runs_are_said_to_be_simulated_in_every_verdict():
    pair = {"a": "x", "b": "y", "simulated": True}
    nothing = paired_difference([], [])
    amounts = np.random.default_rng(1).lognormal(size=(2, 40))
    said = [
        verdict(clear(30, 8, 62), **pair),
        verdict(clear(3, 2, 10), **pair),
        verdict(nothing, **pair),
        ratio_verdict(paired_ratio(*amounts), **pair),
        ratio_verdict(paired_ratio([], []), **pair),
        sequential_verdict(confidence_sequence([1.0] * 30), **pair),
        sequential_verdict(confidence_sequence([0.0] * 30), **pair),
        sequential_verdict(confidence_sequence([]), **pair),
    ]
    assert all(x.startswith("On simulated runs, ") and x.endswith(".") for x in said)
    assert all(x.count(". ") == 0 for x in said), said


@pytest.mark.parametrize("counts", [(12, 8, 80), (3, 2, 10), (0, 0, 20), (1, 0, 0), (10, 10, 0)])
def test_what_is_not_decided_is_never_called_equal_or_better(counts):
    said = verdict(clear(*counts), a="x", b="y")
    assert said.startswith("Not decided: ")
    assert not any(word in said for word in ("higher", "lower", "equal", "same", "significant"))


def test_an_undecided_verdict_says_how_many_tasks_would_decide():
    found = clear(12, 8, 80)
    assert f"about {found.decisive_n:,} tasks would decide it" in verdict(found, a="x", b="y")
    assert "four times in five" in verdict(clear(10, 10, 80), a="x", b="y")


def test_few_informative_tasks_are_said_whatever_the_verdict():
    assert "only 5 of 15 tasks tell the two apart" in verdict(clear(3, 2, 10), a="x", b="y")
    said = verdict(clear(9, 0, 10), a="x", b="y")
    assert said.startswith("'x' has higher")
    assert "rests on only 9 tasks" in said


def test_a_p_that_does_not_survive_the_other_comparisons_decides_nothing():
    found = clear(20, 8, 72)
    assert found.p < 0.05
    said = verdict(found, a="x", b="y", p_adjusted=0.08)
    assert said.startswith("Not decided")
    assert "adjusted p = 0.080" in said


def test_an_interval_that_holds_0_decides_nothing_whatever_p_is():
    rng = np.random.default_rng(2)
    for _ in range(200):
        a, b = rng.binomial(5, [[0.06], [0.01]], size=(2, 20)) / 5
        found = paired_difference(np.stack([a, a], axis=1), np.stack([b, b], axis=1))
        if found.p <= 0.05 and found.low <= 0 <= found.high:
            assert verdict(found, a="x", b="y").startswith("Not decided")
            return
    pytest.fail("no study was on the border")


def test_ratios_are_said_with_their_warning():
    rng = np.random.default_rng(3)
    b = rng.lognormal(size=40)
    said = ratio_verdict(paired_ratio(2 * b * rng.uniform(0.9, 1.1, 40), b), a="x", b="y")
    assert said.startswith("'x' takes more cost than 'y' (×")
    assert "fewer than 100" in said
    same = ratio_verdict(paired_ratio(b, b[::-1]), a="x", b="y", metric="output tokens")
    assert same.startswith("Not decided whether 'x' takes more or less output tokens than 'y'")


def test_a_running_study_says_that_it_is_held_at_every_look():
    said = sequential_verdict(confidence_sequence([1.0, 0.0] * 40), a="x", b="y")
    assert said.startswith("'x' has higher accuracy")
    assert "at every look" in said
    flat = confidence_sequence([0.0] * 200, margin=0.05)
    assert "differ by less than 5.0 points" in sequential_verdict(flat, a="x", b="y")


@pytest.mark.parametrize(
    ("share", "text"), [(0.081, "+8.1"), (-0.2, "−20.0"), (0.0, "0.0"), (-0.0001, "0.0")]
)
def test_points_have_a_sign(share, text):
    assert points(share) == text


@pytest.mark.parametrize("name", [m.name for m in pkgutil.iter_modules(axislab.stats.__path__)])
def test_the_examples_in_the_docstrings_run(name):
    failed, _ = doctest.testmod(importlib.import_module(f"axislab.stats.{name}"))
    assert failed == 0
