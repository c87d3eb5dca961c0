"""Snapshots: any state comes back exactly, the log only grows, and it stays small."""

import copy
import json
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from datetime import time as clock_time
from decimal import Decimal
from enum import Enum, Flag, StrEnum
from pathlib import Path
from zoneinfo import ZoneInfo

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axislab.errors import TraceError, TransitionNotAllowed
from axislab.fsm.delta import diff, patch, same
from axislab.fsm.dialog import DialogState, dialog_machine
from axislab.fsm.dialog_values import DialogContext, Intent, PlanStep, Relation, StepResult
from axislab.fsm.exact import ExactJson
from axislab.fsm.snapshots import MOST_OVER_STATE, Snapshots
from tests.fsm.dialog_turns import DEPLOY, begun, turns


class Colour(Enum):
    RED = (1, 2)


class Mode(StrEnum):
    FAST = "fast"


class Right(Flag):
    READ = 1
    WRITE = 2


@dataclass
class Point:
    x: float
    tags: set = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Fixed:
    name: str
    mode: Mode = Mode.FAST


VALUES = [
    None,
    True,
    0,
    -0.0,
    10**5000,
    float("inf"),
    "中文 \ud800 \x00 \u2028",
    "\ud83d\ude00",
    b"\x00\xff",
    1 + 2j,
    Decimal("1.10"),
    date(2026, 11, 30),
    datetime(2026, 11, 30, 12, tzinfo=UTC),
    datetime(2026, 11, 30, 12, 0, 0, 123456),
    datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1),
    datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=5, minutes=30))),
    clock_time(1, 2, tzinfo=UTC),
    timedelta(days=-1, microseconds=7),
    {1, "a", (2, 3)},
    frozenset({frozenset({1}), 2}),
    ((), [[]], ({},)),
    {"$": "set", "v": 1},
    {1: "int", "1": "text", (1, None): {"x": 1}},
    {"\ud800": 1},
    Colour.RED,
    Mode.FAST,
    Right.READ | Right.WRITE,
    Right(0),
    Point(1.5, {"a", Colour.RED}),
    Fixed("x"),
    [Fixed("x"), Fixed("x")],
]


@pytest.mark.parametrize(
    "value", VALUES, ids=[f"{type(v).__name__}-{i}" for i, v in enumerate(VALUES)]
)
def test_what_json_cannot_carry_comes_back_equal(value):
    exact = ExactJson()
    text = json.dumps(exact.encode({"at": [value]}), allow_nan=False)
    (back,) = exact.decode(json.loads(text))["at"]
    assert back == value
    assert type(back) is type(value)
    if not isinstance(value, int | set | frozenset | Point):
        assert repr(back) == repr(value)


class Bag(dict):
    pass


@dataclass
class Loose:
    x: int


def loose():
    value = Loose(1)
    value.y = 2
    return value


def unset():
    value = Loose(1)
    del value.x
    return value


def loop():
    value = []
    value.append(value)
    return value


@dataclass
class Listed(list):
    x: int = 0


class OddZone(tzinfo):
    def utcoffset(self, moment):
        return timedelta(0)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (object(), r"\$\.results\.x is a object"),
        (Bag(), r"\$\.results\.x is a Bag"),
        (Path("a"), r"\$\.results\.x is a .*Path"),
        (lambda: 0, "is a function"),
        (pd.Timestamp("2026-01-01"), "is a Timestamp"),
        ([1, {2: object()}], r"\$\.results\.x\[1\]\[2\] is a object"),
        ({object(): 1}, r"key \$\.results\.x\["),
        (Point(object()), r"\$\.results\.x\.x is a object"),
        (loose(), r"\$\.results\.x\.y is no field"),
        (unset(), r"\$\.results\.x\.x was never set"),
        (loop(), "holds itself"),
        (Listed(), "more than its fields"),
        (Colour, "is a EnumType"),
        (datetime(2026, 1, 1, tzinfo=OddZone()), "time zone"),
    ],
)
def test_what_would_not_come_back_equal_is_refused_with_its_path(value, words):
    with pytest.raises(TraceError, match=words):
        ExactJson().encode({"results": {"x": value}})


def test_a_class_is_found_by_name_only_where_it_was_given_and_nothing_is_imported():
    tree = ExactJson().encode([Colour.RED, Point(1.0)])
    with pytest.raises(TraceError, match=r"Colour, which is not known here: give .* types="):
        ExactJson().decode(tree)
    assert ExactJson([Colour, Point]).decode(tree) == [Colour.RED, Point(1.0)]
    for evil in ("os:system", "builtins:eval"):
        with pytest.raises(TraceError, match="not known here"):
            ExactJson().decode({"$": "dataclass", "t": evil, "v": {}})


def test_no_constructor_runs_when_a_value_is_read():
    ran = []

    @dataclass
    class Loud:
        x: int

        def __post_init__(self):
            ran.append(self.x)

    exact = ExactJson()
    tree = exact.encode(Loud(1))
    ran.clear()
    assert exact.decode(tree).x == 1
    assert ran == []


def test_a_class_whose_fields_are_others_now_is_refused():
    tree = ExactJson().encode(Loose(1))
    tree["v"] = {"y": 1}
    with pytest.raises(TraceError, match="other fields than when it was kept: x, y"):
        ExactJson([Loose]).decode(tree)


@pytest.mark.parametrize(
    "tree",
    [
        {"$": "date", "v": "no"},
        {"$": "what", "v": 1},
        {"$": "set"},
        {"$": "set", "v": [[]]},
        {"$": "complex", "v": [1]},
        {"$": "Decimal", "v": "x"},
    ],
)
def test_a_tree_that_is_none_of_ours_is_refused(tree):
    with pytest.raises(TraceError, match="is no value of a snapshot"):
        ExactJson().decode(tree)


def test_reading_a_value_leaves_its_tree_as_it_was():
    tree = ExactJson().encode({"p": Point(1.0, {"a"}), "l": [[1], (2,)]})
    kept = copy.deepcopy(tree)
    value = ExactJson([Point]).decode(tree)
    value["l"][0].append(9)
    value["p"].tags.clear()
    assert tree == kept


def test_classes_of_a_notebook_come_back_in_another_process():
    code = """
import json, sys
from dataclasses import dataclass
from enum import Enum
from axislab.fsm.exact import ExactJson

class Level(Enum):
    HIGH = object

@dataclass
class Finding:
    level: Level
    nodes: set

value = {"found": Finding(Level.HIGH, {"node-7"})}
if len(sys.argv) > 1:
    assert ExactJson([Level, Finding]).decode(json.loads(sys.argv[1])) == value
    print("equal")
else:
    print(json.dumps(ExactJson().encode(value)))
"""

    def run(*more):
        command = [sys.executable, "-c", code, *more]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert "__main__:Finding" in (text := run())
    assert run(text) == "equal\n"


def test_only_enums_and_dataclasses_can_be_given():
    with pytest.raises(TraceError, match="neither an enum nor a dataclass"):
        ExactJson([int])


TREES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.text("ab"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc"), inner, max_size=4),
    max_leaves=12,
)


@given(TREES, TREES)
def test_a_delta_makes_exactly_the_new_tree_and_leaves_the_old_one(old, new):
    kept = copy.deepcopy(old)
    delta = diff(old, new)
    made = patch(old, None if delta is None else json.loads(json.dumps(delta)))
    assert same(made, new)
    assert (delta is None) == same(old, new)
    assert same(old, kept)


@pytest.mark.parametrize(
    ("old", "delta"),
    [([1], ["i", 3, ["=", 1]]), (1, ["+", "x"]), ({}, ["?"]), ({"a": 1}, ["o", 1]), ([], [])],
)
def test_a_delta_that_does_not_fit_is_refused(old, delta):
    with pytest.raises(TraceError, match="does not fit"):
        patch(old, delta)


@pytest.mark.parametrize(
    ("old", "new", "delta"),
    [
        ("ab", "abc", ["+", "c"]),
        ("", "abc", ["=", "abc"]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, ["=", {"b": 2, "a": 1}]),
        ({"a": 1, "b": 2}, {"b": 2}, ["o", {}, ["a"]]),
        ([1, 2, 3], [2, 3], ["l", 0, 1, []]),
        ([{"a": [1]}], [{"a": [1, 2]}], ["i", 0, ["o", {"a": ["l", 1, 0, [2]]}]]),
    ],
)
def test_a_delta_is_as_small_as_the_change(old, new, delta):
    assert diff(old, new) == delta
    assert same(patch(old, delta), new)


def test_true_one_and_one_point_zero_are_three_values():
    assert diff([1], [True]) == ["i", 0, ["=", True]]
    assert diff(0.0, -0.0) == ["=", -0.0]
    assert not same({"a": 1, "b": 2}, {"b": 2, "a": 1})


# A machine that writes its history ---------------------------------------------------------------


def test_every_moment_is_recovered_exactly():
    history, machine = begun(every=7, key_states=["TASK_PLAN"])
    expected = [(machine.path, machine.context)]
    turns(machine, 12, size=60, seen=lambda: expected.append((machine.path, machine.context)))
    with pytest.raises(TransitionNotAllowed):
        machine.fire("task_done")
    expected.append(expected[-1])
    assert len(history) == len(expected)
    for seq, (path, context) in enumerate(expected):
        moment = history.recover(at=seq)
        assert moment.path == tuple(state.name for state in path)
        assert moment.context == context
    assert history.recover() == history.recover(at=-1) == list(history)[-1]
    assert sum(t.full for t in history.transitions) >= 1


def test_what_is_recovered_is_a_value_of_its_own():
    history, machine = begun()
    turns(machine, 2)
    first = history.recover().context
    first.executed.clear()
    first.heard.append("x")
    assert history.recover().context == machine.context


def test_old_moments_do_not_change_when_the_machine_goes_on():
    history, machine = begun()
    turns(machine, 1)
    before = history.recover(at=3)
    lines = history.transitions
    machine.fire("step_started")
    assert history.recover(at=3) == before
    assert history.transitions[: len(lines)] == lines


def test_the_log_holds_source_and_target_and_refused_events_which_change_nothing():
    history, machine = begun()
    with pytest.raises(TransitionNotAllowed):
        machine.fire("task_done")
    machine.fire("user_input", text="hi")
    frame = pd.DataFrame(history.transitions)
    assert frame["event"].tolist() == ["", "task_done", "user_input"]
    assert frame["outcome"].tolist() == ["fired", "refused", "fired"]
    assert frame[["source", "target"]].iloc[-1].tolist() == ["IDLE", "INTENT_PARSE"]
    assert history.changes(1) is None
    assert history.changes(2) == ["o", {"v": ["o", {"heard": ["l", 0, 0, ["hi"]]}]}]


def test_a_history_goes_on_from_its_lines():
    lines = []
    history, machine = begun(sink=lines.append, every=5)
    turns(machine, 3)
    types = [DialogContext, Intent, PlanStep, StepResult, Relation]
    again = Snapshots(lines=lines, types=types, every=5)
    assert list(again) == list(history)
    assert (again.size, again.log_size) == (history.size, history.log_size)
    assert history.size + history.log_size == sum(map(len, lines))
    moment = again.recover()
    other = dialog_machine(moment.context, path=machine.path, journal=again.journal)
    other.fire("step_started")
    assert again.recover().context == other.context
    assert len(again) == len(history) + 1


def test_500_turns_stay_within_one_and_a_half_times_the_state_and_any_is_restored_fast():
    history, machine = begun(every=50, key_states=["CONFIRMING", "COMPLETED"])
    turns(machine, 500)
    assert len(history) == 2004
    assert history.size <= MOST_OVER_STATE * history.state_size
    text = json.dumps([history.recover().context.conclusions, history.size])
    reading = min(_seconds(lambda: json.loads(text)) for _ in range(5))
    worst = max(min(_seconds(lambda s=s: history.recover(at=s)) for _ in range(3)) for s in AT)
    # Against the machine's own speed, so that its load is no matter.
    assert worst < 400 * reading


AT = (0, 3, 500, 1003, 1999, 2003)


def _seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def test_whole_states_are_due_at_key_states_and_after_every_so_many_lines_if_they_are_worth_it():
    history, machine = begun(every=50)
    turns(machine, 200, size=6000)
    full = [t.seq for t in history.transitions if t.full]
    assert full[0] == 0
    assert len(full) > 2
    assert history.size <= MOST_OVER_STATE * history.state_size


def test_a_state_that_shrinks_forces_whole_ones_so_that_the_way_back_stays_short():
    history, machine = begun(every=50)
    for _ in range(60):
        machine.fire("user_input", text="deploy " * 40)
        machine.fire("intent_resolved", intent=DEPLOY)
        machine.fire("steps_confirmed", steps=[PlanStep(name="a")])
        machine.fire("step_started")
        machine.fire("step_finished", result=StepResult(step="a", output="x" * 500))
        machine.fire("task_done")
        machine.fire("new_task")
    full = [t.seq for t in history.transitions if t.full]
    longest = max(b - a for a, b in zip(full, [*full[1:], len(history)], strict=True))
    assert longest < len(history) / 10
    assert history.recover().context == machine.context


def test_a_value_that_cannot_be_kept_leaves_machine_and_history_as_they_were():
    history, machine = begun()
    machine.fire("user_input", text="x")
    before = machine.path, machine.context, machine.log, history.transitions
    with pytest.raises(TraceError, match=r"\$\.intents\[0\] is a Odd"):
        machine.fire("intent_resolved", intent=Odd())
    assert (machine.path, machine.context, machine.log, history.transitions) == before
    machine.fire("intent_resolved", intent=DEPLOY)
    assert history.recover().context == machine.context


class Odd:
    name, confidence = "odd", 1.0


@pytest.mark.parametrize("at", [5, -6])
def test_a_moment_that_was_not_is_refused(at):
    history, machine = begun()
    turns(machine, 0)
    with pytest.raises(TraceError, match="has the lines 0 to 3"):
        history.recover(at=at)


def test_lines_that_are_none_are_refused():
    for line in (b"{}\n", b"x\n", b'{"seq":0,"time":"","kind":"message"}\n'):
        with pytest.raises(TraceError, match="a history"):
            Snapshots(lines=[line])
    lines = []
    _, machine = begun(sink=lines.append)
    turns(machine, 1)
    with pytest.raises(TraceError, match="line 1 has seq 1: lines are missing"):
        Snapshots(lines=lines[1:])


def test_a_whole_state_that_is_damaged_is_refused_and_names_its_line():
    lines = []
    history, machine = begun(sink=lines.append, key_states=["TASK_PLAN"])
    turns(machine, 6, size=6000)
    seq = next(t.seq for t in history.transitions if t.full and t.seq)
    lines[seq] = re.sub(rb'"packed":"....', b'"packed":"AAAA', lines[seq])
    with pytest.raises(TraceError, match=f"line {seq + 1}: its state cannot be read"):
        Snapshots(lines=lines[: seq + 1])


def test_a_machine_that_is_elsewhere_cannot_write_into_a_history():
    history, _ = begun()
    other = dialog_machine(path=(DialogState.CONFIRMING,), journal=history.journal)
    with pytest.raises(TraceError, match="left CONFIRMING, but this history is elsewhere"):
        other.fire("cancel")
    assert other.state is DialogState.CONFIRMING


def test_a_history_begins_once_and_before_its_machine():
    history, _ = begun()
    with pytest.raises(TraceError, match="has begun"):
        history.start(DialogContext(), path=["IDLE"])
    with pytest.raises(TraceError, match="has not begun"):
        dialog_machine(journal=Snapshots().journal).fire("user_input")
    with pytest.raises(TraceError, match="every=0"):
        Snapshots(every=0)
    assert repr(history).startswith("<Snapshots 1 lines, 1 of them whole")
