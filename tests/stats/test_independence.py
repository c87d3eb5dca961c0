"""Repeats that are copies do not count; equal text alone is only remarked on."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axislab.errors import DataError
from axislab.stats.independence import EVIDENCE, check_independence


def frame(*rows: dict) -> pd.DataFrame:
    """Rows of requests; a run is named after its task, arm and repeat."""
    names = ("run_id", "task_id", "arm", "repeat", *EVIDENCE, "text", "cluster")
    full = [
        {"task_id": "t1", "arm": "a", "repeat": 0} | row | {"run_id": row.get("run_id")}
        for row in rows
    ]
    for row in full:
        row["run_id"] = row["run_id"] or f"{row['task_id']}/{row['arm']}/{row['repeat']}"
    return pd.DataFrame(full).reindex(columns=list(names))


@pytest.mark.parametrize("mark", EVIDENCE)
def test_a_repeat_with_the_same_mark_is_a_copy(mark):
    found = check_independence(frame({mark: "k1"}, {mark: "k1", "repeat": 1}))
    (copy,) = found.copies
    assert (copy.run_id, copy.of, copy.by, copy.repeat) == ("t1/a/1", "t1/a/0", mark, 1)
    assert found.counted == {"t1/a/0"}
    assert found.dropped == 1
    assert "1 of 2 runs are copies of another run (same " in found.notes[0]


@pytest.mark.parametrize("mark", EVIDENCE)
def test_repeats_with_marks_of_their_own_count(mark):
    found = check_independence(frame({mark: "k1"}, {mark: "k2", "repeat": 1}))
    assert (found.dropped, found.notes) == (0, ())
    assert len(found.counted) == 2


def test_equal_text_by_draws_of_their_own_is_remarked_on_and_counted():
    rows = ({"draw": f"d{i}", "repeat": i, "text": "42"} for i in range(3))
    found = check_independence(frame(*rows))
    assert len(found.counted) == 3
    assert found.same_text[0].runs == ("t1/a/0", "t1/a/1", "t1/a/2")
    assert "3 runs answered with the same text" in found.notes[0]


def test_the_text_of_a_copy_is_not_remarked_on_again():
    found = check_independence(
        frame({"draw": "d", "text": "42"}, {"draw": "d", "text": "42", "repeat": 1})
    )
    assert found.same_text == ()


def test_arms_may_share_a_prefix_and_draws():
    found = check_independence(frame({"request_id": "r1"}, {"request_id": "r1", "arm": "b"}))
    assert (found.dropped, len(found.counted), found.tasks) == (0, 2, 1)


def test_a_run_that_shares_some_of_its_requests_counts_and_is_named():
    found = check_independence(
        frame(
            {"cache_key": "k1"},
            {"cache_key": "k2"},
            {"cache_key": "k1", "repeat": 1},
            {"cache_key": "k3", "repeat": 1},
        )
    )
    assert found.dropped == 0
    (part,) = found.partial
    assert (part.run_id, part.shared, part.requests) == ("t1/a/1", 1, 2)
    assert "share some of their replies" in found.notes[0]
    assert found.frame().counted.tolist() == [True]


def test_two_tasks_with_one_cache_entry_are_one_task():
    found = check_independence(frame({"cache_key": "k"}, {"cache_key": "k", "task_id": "t2"}))
    assert (found.tasks, found.n, found.copies[0].task_id) == (1, 1, "t2")


def test_the_first_repeat_is_the_one_that_counts_whatever_the_order_of_rows():
    found = check_independence(frame({"draw": "d", "repeat": 2}, {"draw": "d", "repeat": 0}))
    assert found.counted == {"t1/a/0"}


def test_runs_without_any_mark_are_counted_and_said():
    found = check_independence(frame({}, {"repeat": 1}))
    assert (found.unmarked, found.dropped) == (2, 0)
    assert "is not known" in found.notes[0]


def test_n_is_clusters_where_tasks_share_one():
    rows = [
        {"task_id": f"t{i}", "draw": f"d{i}", "cluster": "c" if i < 2 else None} for i in range(4)
    ]
    found = check_independence(frame(*rows))
    assert (found.tasks, found.clusters, found.n) == (4, 3, 3)
    alone = check_independence(frame(*({**row, "cluster": None} for row in rows)))
    assert (alone.clusters, alone.n) == (None, 4)


def test_only_the_columns_that_identify_a_run_are_needed():
    found = check_independence(frame({}, {"repeat": 1})[["run_id", "task_id", "arm", "repeat"]])
    assert found.runs == 2
    with pytest.raises(DataError, match="no arm, repeat"):
        check_independence(pd.DataFrame({"run_id": ["r"], "task_id": ["t"]}))


def test_no_runs_are_no_runs():
    found = check_independence(frame({}).iloc[:0])
    assert (found.runs, found.n, found.notes) == (0, 0, ())
    assert found.frame().empty


def test_nullable_columns_are_read_as_others_are():
    rows = frame({"draw": "d"}, {"draw": "d", "repeat": 1}).convert_dtypes()
    assert check_independence(rows).dropped == 1


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (({"run_id": "r"}, {"run_id": "r", "task_id": "t2"}), "give every run its own id"),
        (({"task_id": None, "run_id": "r"},), "no task_id"),
    ],
)
def test_rows_that_contradict_each_other_are_refused(rows, words):
    with pytest.raises(DataError, match=words):
        check_independence(frame(*rows))


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("xyz")), max_size=12, unique=True))
def test_of_every_draw_one_run_counts(runs):
    rows = [{"repeat": i, "draw": f"{d}{m}"} for i, (d, m) in enumerate(runs)]
    doubled = rows + [{**row, "repeat": row["repeat"] + 100} for row in rows]
    if rows:
        found = check_independence(frame(*doubled))
        assert len(found.counted) == len(rows) == found.dropped
