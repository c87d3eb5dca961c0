"""Tasks and sets of tasks."""

import copy
import datetime
import json
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axislab.errors import DataError
from axislab.tasks import Task, TaskSet, as_task, prompt_id


def tiny() -> TaskSet:
    return TaskSet(
        [
            Task("a", "What is the capital of Osk?", "Brell", {"kind": "single", "hops": 1}),
            Task("b", "Who?", ("Ana Voss", "A. Voss"), {"kind": "bridge", "hops": 2}),
            Task("c", "By how much?", "12", {"kind": "bridge", "hops": 3, "cluster": "x"}),
            Task("d", "<b>Why & how</b>?"),
        ],
        name="tiny",
    )


def test_a_task_cannot_be_changed_not_even_inside_its_metadata():
    task = Task("a", "p", metadata={"list": [1, 2], "deep": {"x": [3]}})
    with pytest.raises(FrozenInstanceError):
        task.prompt = "other"
    with pytest.raises(TypeError):
        task.metadata["kind"] = "y"
    with pytest.raises(TypeError):
        task.metadata["deep"]["x"] = 1
    assert task.metadata["list"] == (1, 2)


def test_a_task_does_not_follow_changes_of_the_dict_it_was_made_from():
    source = {"list": [1]}
    task = Task("a", "p", metadata=source)
    source["list"].append(2)
    source["kind"] = "late"
    assert task.to_dict()["metadata"] == {"list": [1]}


@pytest.mark.parametrize("prompt", ["", "  \n", None, 3])
def test_a_prompt_that_is_no_text_is_refused_and_the_task_named(prompt):
    with pytest.raises(DataError, match="task 'q7': the prompt is"):
        Task("q7", prompt)


@pytest.mark.parametrize("bad", ["", " ", None, True, 1.5])
def test_an_id_that_is_no_name_is_refused(bad):
    with pytest.raises(DataError, match="a task's id is"):
        Task(bad, "p")


@pytest.mark.parametrize(
    ("given_", "stored"),
    [
        ("4", "4"),
        (" 4 ", "4"),
        (4, "4"),
        (4.0, "4"),
        (0.25, "0.25"),
        (True, "true"),
        (None, None),
        ("", None),
        (" ", None),
        (float("nan"), None),
        ([], None),
        (["a", "b", "a"], ("a", "b")),
        ([1, None], ("1",)),
        (np.int64(3), "3"),
        (np.array(["x", "y"]), ("x", "y")),
    ],
)
def test_expected_is_a_text_several_texts_or_unknown(given_, stored):
    assert Task("a", "p", given_).expected == stored


@pytest.mark.parametrize("bad", [{"a": 1}, object(), [["a"]]])
def test_an_expected_answer_that_is_no_text_is_refused_and_the_task_named(bad):
    with pytest.raises(DataError, match="task 'a'"):
        Task("a", "p", bad)


def test_answers_lists_all_that_count():
    assert [t.answers for t in tiny()][:2] == [("Brell",), ("Ana Voss", "A. Voss")]
    assert tiny()["d"].answers == ()


def test_metadata_take_numpy_and_dates_as_json_and_nothing_else():
    day = datetime.date(2026, 1, 2)
    task = Task("a", "p", metadata={"n": np.int64(2), "day": day, "v": np.arange(2), "x": np.nan})
    assert task.to_dict()["metadata"] == {"n": 2, "day": "2026-01-02", "v": [0, 1], "x": None}
    with pytest.raises(DataError, match=r"task 'a': metadata\.image holds a object"):
        Task("a", "p", metadata={"image": object()})


@pytest.mark.parametrize("bad", [{"id": 1}, {"prompt": "x"}, ["kind"], None])
def test_metadata_are_a_mapping_without_the_names_of_a_tasks_fields(bad):
    with pytest.raises(DataError, match="task 'a': metadata"):
        Task("a", "p", metadata=bad)


def test_kind_and_cluster_come_from_the_metadata():
    assert (tiny()["c"].kind, tiny()["c"].cluster) == ("bridge", "x")
    assert (tiny()["d"].kind, tiny()["d"].cluster) == (None, None)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@given(
    expected=st.none() | st.text(max_size=5) | st.lists(st.text(max_size=4), max_size=3),
    metadata=st.dictionaries(st.sampled_from(["kind", "cluster", "hops", "é"]), json_values),
)
def test_a_task_survives_json_and_copies(expected, metadata):
    task = Task("a", "p", expected, metadata)
    assert Task.from_dict(json.loads(json.dumps(task.to_dict()))) == task
    assert copy.deepcopy(task) == task
    assert hash(copy.copy(task)) == hash(task)


def test_from_dict_names_the_field_that_is_wrong():
    with pytest.raises(DataError, match="'answer' is no field of a task"):
        Task.from_dict({"id": "a", "prompt": "p", "answer": "4"})
    with pytest.raises(DataError, match="a task needs 'prompt'"):
        Task.from_dict({"id": "a"})


def test_a_set_gives_tasks_by_place_and_id_and_sets_by_slice():
    tasks = tiny()
    assert tasks[0].id == tasks["a"].id == "a"
    assert tasks[-1].id == "d"
    assert isinstance(tasks[:2], TaskSet)
    assert tasks[1:3].ids == ("b", "c")
    assert tasks[1:3].name == "tiny"
    with pytest.raises(IndexError):
        tasks[9]
    with pytest.raises(DataError, match="'tiny' has no task 'z'"):
        tasks["z"]
    with pytest.raises(DataError, match="it is empty"):
        tasks[:0]["z"]


def test_a_set_knows_what_is_in_it():
    tasks = tiny()
    assert "a" in tasks
    assert tasks[0] in tasks
    assert "z" not in tasks
    assert 3 not in tasks
    assert len(tasks) == len(list(tasks)) == 4


def test_ids_that_occur_twice_are_refused_and_named():
    with pytest.raises(DataError, match="'tiny' has more than one task with id 'b'"):
        TaskSet([*tiny(), Task("b", "again")], name="tiny")
    many = [Task(str(n % 9), "p") for n in range(18)]
    with pytest.raises(DataError, match="'4' and 4 more; ids must differ"):
        TaskSet(many)


def test_a_set_takes_nothing_but_tasks():
    with pytest.raises(DataError, match="item 1 of 'tasks' is 'What"):
        TaskSet([Task("a", "p"), "What?"])


def test_the_fingerprint_follows_the_content_and_neither_name_nor_order():
    tasks = tiny()
    assert len(tasks.fingerprint) == 64
    assert TaskSet(reversed(tasks), name="other").fingerprint == tasks.fingerprint
    assert tasks[:3].fingerprint != tasks.fingerprint
    for change in ({"prompt": "x"}, {"expected": "x"}, {"metadata": {"kind": "x"}}, {"id": "x"}):
        changed = TaskSet([replace(tasks[0], **change), *tasks[1:]])
        assert changed.fingerprint != tasks.fingerprint


def test_the_fingerprint_is_the_same_in_every_process_and_release():
    tasks = TaskSet([Task("a", "1 + 1?", "2", {"kind": "add"})])
    assert tasks.fingerprint.startswith("2162aa17c04cc514")


def test_sets_are_equal_by_their_tasks():
    assert tiny() == tiny()
    assert hash(tiny()) == hash(tiny())
    assert tiny() != tiny()[:2]
    assert tiny() != list(tiny())


@given(seed=st.integers(0, 50), n=st.integers(0, 30), m=st.integers(0, 30))
def test_a_smaller_sample_is_a_part_of_a_larger_one(seed, n, m):
    tasks = TaskSet([Task(str(k), f"p{k}") for k in range(30)])
    small, large = sorted([n, m])
    assert tasks.sample(small, seed=seed) == tasks.sample(large, seed=seed)[:small]
    assert sorted(tasks.sample(30, seed=seed).ids) == sorted(tasks.ids)


def test_a_sample_depends_on_the_seed_and_not_on_the_order():
    tasks = TaskSet([Task(str(k), f"p{k}") for k in range(30)])
    assert tasks.sample(10, seed=1) != tasks.sample(10, seed=2)
    assert TaskSet(reversed(tasks)).sample(10, seed=1) == tasks.sample(10, seed=1)


@pytest.mark.parametrize("n", [-1, 5])
def test_a_sample_larger_than_the_set_is_refused(n):
    with pytest.raises(DataError, match=f"cannot draw {n} tasks from 4"):
        tiny().sample(n, seed=1)


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        ({"kind": "bridge"}, ("b", "c")),
        ({"kind": "bridge", "hops": 2}, ("b",)),
        ({"hops": [1, 3]}, ("a", "c")),
        ({"hops": range(2, 9)}, ("b", "c")),
        ({"hops": lambda n: n > 2}, ("c",)),
        ({"id": {"a", "d"}}, ("a", "d")),
        ({"kind": "none such"}, ()),
        ({"kind": "sing"}, ()),
    ],
)
def test_where_keeps_what_fits(wanted, ids):
    assert tiny().where(**wanted).ids == ids


def test_where_takes_a_function_of_the_task_and_lists_as_values():
    assert tiny().where(lambda task: "?" in task.prompt, hops=1).ids == ("a",)
    tasks = TaskSet([Task("a", "p", metadata={"seen": ["x", "y"]}), Task("b", "p", metadata={})])
    assert tasks.where(seen=("x", "y")).ids == ("a",)


def test_where_refuses_a_key_that_no_task_has():
    with pytest.raises(DataError, match=r"has 'hop' in its metadata: did you mean 'hops'\?"):
        tiny().where(hop=2)


def test_map_changes_every_task_and_takes_only_tasks():
    louder = tiny().map(lambda task: replace(task, prompt=task.prompt.upper()))
    assert louder["b"].prompt == "WHO?"
    assert (louder.ids, louder.name) == (tiny().ids, "tiny")
    with pytest.raises(DataError, match="item 0 of 'tiny' is 'a'"):
        tiny().map(lambda task: task.id)


def test_df_has_a_row_per_task_and_a_column_per_key():
    frame = tiny().df
    assert list(frame.columns) == ["id", "prompt", "expected", "kind", "hops", "cluster"]
    assert list(frame["id"]) == list(tiny().ids)
    assert frame["expected"][1] == ("Ana Voss", "A. Voss")
    assert frame["hops"].isna().tolist() == [False, False, False, True]
    assert list(TaskSet([]).df.columns) == ["id", "prompt", "expected"]


def test_reprs_say_name_size_and_kinds():
    assert repr(tiny()) == "<TaskSet 'tiny': 4 tasks (2 bridge, 1 single)>"
    assert repr(TaskSet([])) == "<TaskSet 'tasks': 0 tasks>"


def test_the_html_table_is_short_and_escaped():
    page = tiny()._repr_html_()
    assert "&lt;b&gt;Why &amp; how&lt;/b&gt;?" in page
    assert "<b>Why" not in page
    assert "more" not in page
    page = TaskSet([Task(f"t{n}", "p" * 500) for n in range(30)], name="<i>")._repr_html_()
    assert "&lt;i&gt;" in page
    assert "… and 22 more" in page
    assert "p" * 121 not in page
    assert "&lt;b&gt;" in tiny()["d"]._repr_html_()


def test_as_task_keeps_a_task_and_names_a_text_by_its_content():
    task = tiny()[0]
    assert as_task(task) is task
    made = as_task("What is 2 + 2?")
    assert made == as_task("What is 2 + 2?")
    assert made.id == prompt_id("What is 2 + 2?")
    assert made.id != as_task("What is 2 + 3?").id
    assert made.expected is None


def test_as_task_reads_a_dict_as_lines():
    made = as_task({"city": "Brell", "years": [1, 2], "deep": {"é": None}})
    assert made.prompt == 'city: Brell\nyears: [1, 2]\ndeep: {"é": null}'


def test_as_task_reads_a_dict_with_a_prompt_as_a_task():
    made = as_task({"prompt": "1 + 1?", "expected": "2"})
    assert (made.id, made.prompt, made.expected) == (prompt_id("1 + 1?"), "1 + 1?", "2")
    assert as_task(tiny()["b"].to_dict()) == tiny()["b"]


def test_as_task_never_shows_the_model_an_expected_answer():
    with pytest.raises(DataError, match="would be shown to the model"):
        as_task({"question": "1 + 1?", "expected": "2"})


@pytest.mark.parametrize("empty", ["", " \n\t", {}])
def test_an_empty_task_is_refused(empty):
    with pytest.raises(DataError, match="empty"):
        as_task(empty)


@pytest.mark.parametrize("bad", [None, 3, ["What?"]])
def test_as_task_refuses_what_is_no_task(bad):
    with pytest.raises(DataError, match="a task is a Task, a text or a dict"):
        as_task(bad)


def test_metadata_that_holds_itself_or_is_nested_without_end_is_refused():
    ring, deep = [], []
    ring.append(ring)
    for _ in range(150):
        deep = [deep]
    for value in (ring, deep, {"a": ring}):
        with pytest.raises(DataError, match="nested more than 100 levels"):
            Task("a", "p", metadata={"m": value})
