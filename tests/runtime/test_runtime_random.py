"""Random conversations: the runtime agrees with a naive model, and its promises hold."""

import hashlib
import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runtime_model import Model
from runtime_ops import DEFAULTS, Source, random_config

from axislab.errors import AxislabError
from axislab.runtime.info import ALWAYS, ConversationStepInfo
from axislab.runtime.markers import Compaction, DiscardAll, Rollback
from axislab.runtime.stages import VALID_STAGE_TRANSITION, StepAction
from axislab.runtime.transcript import pairing_problem, replay_visible, task_prefix
from tests.conformance.axis import OPERATIONS, Session

SEEDS = st.randoms(use_true_random=True)
LENGTH = 18


def row(m):
    """A message of the model as the case files write it."""
    digest = hashlib.sha1((m["content"] or "").encode()).hexdigest()[:10]
    tail = f"for={m['for']};name={m['name']}" if m["role"] == "tool" else ""
    if m["calls"]:
        tail = "calls=" + ",".join(c["id"] for c in m["calls"])
    return f"{m['role']}|{digest}|{tail}"


def of_model(record):
    """What the model says an operation came to."""
    shown = {
        "raised": "raised" in record,
        "visible": [row(m) for m in record["visible"]],
        "ratio": pytest.approx(record["ratio"], abs=1e-9),
    }
    for key in ("stage", "raw_count", "turn_idx", "rollback_count", "pending", "estimate"):
        shown[key] = record[key]
    for key in ("stage_path", "info", "done_reason", "returned_none", "budget"):
        shown[key] = record.get(key)
    return shown


def of_runtime(record, estimate):
    """What the runtime says, through the adapter of the case files."""
    shown = {"raised": "raised" in record, "visible": record["visible"], "estimate": estimate}
    shown["ratio"] = record["calibration_ratio"]
    for key in ("stage", "raw_count", "turn_idx", "rollback_count", "pending"):
        shown[key] = record[key]
    for key in ("stage_path", "info", "done_reason", "returned_none", "budget"):
        shown[key] = record.get(key)
    return shown


@settings(max_examples=500, deadline=None)
@given(SEEDS)
def test_the_runtime_and_the_naive_model_agree_on_every_operation(rng):
    config = random_config(rng)
    model, session, source = Model(config), Session(config), Source(rng)
    for _ in range(LENGTH):
        op = source.op(model)
        expected = of_model(model.run(op))
        got = of_runtime(session.run(op), session.runtime.estimate())
        assert got == expected, op


def test_random_conversations_come_to_every_legal_move():
    missing = set(VALID_STAGE_TRANSITION)
    for seed in range(3_000):
        rng = random.Random(seed)
        model, source = Model(random_config(rng)), Source(rng)
        for _ in range(LENGTH):
            missing -= set(pairwise(model.run(source.op(model)).get("stage_path", ())))
        if not missing:
            return
    raise AssertionError(missing)


def everything(runtime):
    """All that can be seen of a conversation."""
    return {
        "stage": runtime.stage,
        "action": runtime.action,
        "visible": tuple(runtime.visible),
        "full": tuple(runtime.full),
        "turn": runtime.turn_idx,
        "rollbacks": runtime.rollback_count,
        "pending": runtime.pending,
        "trigger": runtime.finalization_trigger,
        "ratio": runtime.calibration_ratio,
        "max_turns": runtime.max_turns,
        "estimate": runtime.estimate(),
        "budget": runtime.budget(),
    }


class Seen:
    """A runtime as `Source` wants to see it."""

    def __init__(self, runtime):
        self.stage = str(runtime.stage)
        self.pending = [{"id": c.id} for c in runtime.pending]
        self.visible = runtime.visible


class Driver:
    """Random operations on one runtime; those that are refused are noted."""

    def __init__(self, rng, *, raw_markers=True):
        self.rng = rng
        self.session = Session(random_config(rng))
        self.source = Source(rng, raw_markers=raw_markers)

    @property
    def runtime(self):
        return self.session.runtime

    def step(self):
        """Run one operation: its name, and its result or the error."""
        op = self.source.op(Seen(self.runtime))
        if op["op"] == "clone":
            self.session.runtime = self.runtime.clone()
            return op["op"], None
        try:
            return op["op"], OPERATIONS[op["op"]](self.runtime, op)
        except AxislabError as problem:
            return op["op"], problem


@settings(max_examples=150, deadline=None)
@given(SEEDS)
def test_a_refused_operation_changes_nothing_at_all(rng):
    driver = Driver(rng)
    for _ in range(LENGTH):
        before = everything(driver.runtime)
        name, result = driver.step()
        if isinstance(result, AxislabError) or name in ("budget", "replay", "clone"):
            assert everything(driver.runtime) == before


@settings(max_examples=150, deadline=None)
@given(SEEDS)
def test_every_step_makes_legal_moves_from_where_the_conversation_stood(rng):
    driver = Driver(rng)
    for _ in range(LENGTH):
        before = str(driver.runtime.stage)
        name, result = driver.step()
        path = getattr(result, "stage_path", None)
        if path is None or name == "reopen":
            continue
        assert path[0] == before
        assert path[-1] == result.stage == driver.runtime.stage
        assert set(pairwise(path)) <= VALID_STAGE_TRANSITION
        assert driver.runtime.turn_idx >= 0


@settings(max_examples=150, deadline=None)
@given(SEEDS)
def test_the_visible_list_is_the_full_list_replayed_and_the_report_counts_both(rng):
    driver = Driver(rng)
    for _ in range(LENGTH):
        before = len(driver.runtime.full)
        _, result = driver.step()
        runtime = driver.runtime
        assert replay_visible(runtime.full) == tuple(runtime.visible)
        if isinstance(result, AxislabError) or not hasattr(result, "info"):
            continue
        info = result.info
        assert info.raw_message_count == len(runtime.full) == before + len(result.appended)
        assert info.visible_message_count == len(result.visible) == len(runtime.visible)
        assert info.appended_message_count == len(result.appended)
        assert tuple(result.full) == tuple(runtime.full)
        known = {*ConversationStepInfo.__annotations__}
        assert {*ALWAYS} <= info.to_dict().keys() <= known
        assert result.rollback_count == runtime.rollback_count
        assert result.pending == tuple(c.id for c in runtime.pending)


def any_marker(rng, size):
    """A marker that may or may not be allowed."""
    kind = rng.choice((Rollback, Compaction, DiscardAll))
    if kind is Rollback:
        return Rollback(rng.randint(-1, size), "tool_error")
    at = rng.randint(-1, size + 1)
    if kind is DiscardAll:
        return DiscardAll(at)
    return Compaction("SUMMARY", at, rng.randint(0, max(size - at, 0) + 1))


@settings(max_examples=300, deadline=None)
@given(SEEDS)
def test_with_our_own_markers_the_model_always_gets_a_well_formed_history(rng):
    driver = Driver(rng, raw_markers=False)
    head = ()
    for _ in range(LENGTH + 10):
        runtime = driver.runtime
        marked = rng.random() < 0.2
        if marked:
            try:
                runtime.append_marker(any_marker(rng, len(runtime.visible)))
            except AxislabError:
                continue
            name = "append_marker"
        else:
            waiting = runtime.action is StepAction.EXECUTE_TOOLS
            name, _ = driver.step()
            if waiting and name == "reopen":
                return  # a reopening gives up the calls that wait: the caller discards them first
        runtime = driver.runtime
        visible = tuple(runtime.visible)
        if name in ("init", "reset"):
            head = visible[: task_prefix(visible)]
        assert visible[: len(head)] == head, name
        if runtime.action is StepAction.CALL_MODEL:
            assert head
            assert pairing_problem(visible, open_end=False) is None, name


@settings(max_examples=150, deadline=None)
@given(SEEDS)
def test_a_clone_and_its_original_go_on_apart(rng):
    driver = Driver(rng)
    for _ in range(rng.randint(1, LENGTH)):
        driver.step()
    original = driver.runtime
    before = everything(original)
    driver.session.runtime = original.clone()
    assert everything(driver.runtime) == before
    for _ in range(6):
        driver.step()
    driver.runtime.max_turns = 7
    assert everything(original) == before


def test_the_config_of_a_case_that_cannot_be_built_is_refused_at_every_operation():
    session = Session({**DEFAULTS, "max_rollbacks": -1})
    for op in ({"op": "init", "task": "t"}, {"op": "replay"}, {"op": "budget"}):
        record = session.run(op)
        assert record["raised"] == "ConfigError"
        assert record["state_unchanged"]
        assert record["stage"] == "not_initialized"
