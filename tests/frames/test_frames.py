"""Every frame: the same first columns, stable dtypes, NA for unknown."""

from __future__ import annotations

import doctest
import importlib
import time
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axislab.errors import DataError
from axislab.frames.answers import answers_df
from axislab.frames.attempts import attempts_df
from axislab.frames.budgets import budgets_df
from axislab.frames.catalogue import TABLES, columns, knobs
from axislab.frames.messages import messages_df
from axislab.frames.rollbacks import rollbacks_df
from axislab.frames.runs import runs_df
from axislab.frames.source import runs_of
from axislab.frames.steps import steps_df
from axislab.frames.tools import tools_df
from axislab.frames.transitions import transitions_df
from axislab.lab import Lab
from axislab.messages import Message
from axislab.models.scripted import ScriptedModel
from axislab.recipe import Recipe
from axislab.runtime.markers import Compaction, DiscardAll, Rollback
from axislab.runtime.stages import VALID_STAGE_TRANSITION
from axislab.runtime.stages import ConversationStage as S
from axislab.tasks import Task
from axislab.trace.run import Run
from axislab.trace.trace import Record, Trace
from tests.frames.synthetic import Story, call, walk, walks

FRAMES = {
    "runs": runs_df,
    "steps": steps_df,
    "transitions": transitions_df,
    "messages": messages_df,
    "rollbacks": rollbacks_df,
    "budgets": budgets_df,
    "tools": tools_df,
    "answers": answers_df,
    "attempts": attempts_df,
}
each_frame = pytest.mark.parametrize("name", FRAMES)


def rollback_story() -> Story:
    """One refusal, hidden; then a call, a result, and an answer."""
    story = Story(arm="a", repeat=2, profile="stubborn")
    story.begin()
    story.request(input_tokens=20)
    story.rollbacks = 1
    story.step(
        "assistant",
        [S.INITIAL_USER, S.RECEIVED, S.ROLLBACK, S.INITIAL_USER],
        [Message.assistant("I  cannot\nhelp."), Rollback(1, "assistant_refusal")],
        rule="refusal",
        level="L4a",
        rollback_reason="assistant_refusal",
        rollback_message_count=1,
    )
    story.request(outcome="timeout", output_tokens=None, error="too slow")
    story.request(attempt=2, input_tokens=25)
    story.turn, story.rollbacks = 1, 0
    path = [S.INITIAL_USER, S.RECEIVED, S.TOOL_CALLS]
    story.step("assistant", path, [Message.assistant(None, [call("c0")])], rule="tool_calls")
    story.tool(repairs=["trim", "fuzzy"], duplicate=False)
    story.step("tools", [S.TOOL_CALLS, S.TOOL_MESSAGES], [Message.tool("…", tool_call_id="c0")])
    story.request(input_tokens=60)
    story.turn = 2
    story.step(
        "assistant",
        [S.TOOL_MESSAGES, S.RECEIVED, S.COMPLETED],
        [Message.assistant("Tal Moor")],
        rule="completed",
        level="L7",
        done_reason="assistant_final_answer",
    )
    story.finish(answer="Tal Moor", answer_status="ok", correct=True, score=1.0)
    return story


def test_all_frames_are_in_the_catalogue():
    assert list(FRAMES) == list(TABLES)


@each_frame
def test_a_frame_says_which_run_first_and_more_about_the_run_last(name):
    frame = FRAMES[name](walks(3))
    columns = list(frame.columns)
    assert frame.simulated.all()
    assert set(frame.run_id) <= {"r0000", "r0001", "r0002"}
    assert columns[:3] == ["run_id", "task_id", "arm"]
    assert columns[-5:] == ["study", "model", "simulated", "seed", "repeat"]


@each_frame
def test_no_runs_give_an_empty_frame_of_the_same_columns_and_dtypes(name):
    empty, full = FRAMES[name]([]), FRAMES[name](walks(5))
    assert len(empty) == 0
    assert len(full) > 0
    assert empty.dtypes.to_dict() == full.dtypes.to_dict()


@each_frame
def test_the_documentation_lists_every_column_with_its_dtype(name):
    doc, frame = columns(name), FRAMES[name]([])
    assert list(doc.column) == list(frame.columns)
    assert list(doc.dtype) == [str(d) for d in frame.dtypes]
    assert doc.description.str.endswith(".").all()
    for row in doc.itertuples():
        assert f"{row.column} " in FRAMES[name].__doc__
        assert row.description in FRAMES[name].__doc__


@each_frame
def test_a_run_a_list_a_study_a_trace_a_file_and_a_folder_give_the_same_frame(name, tmp_path):
    stories = [rollback_story()]
    path = stories[0].write(tmp_path)
    run = stories[0].run()
    frame = FRAMES[name](run)
    sources = [[run], (r for r in [run]), SimpleNamespace(runs=[run]), run.trace]
    sources += [path, str(path), tmp_path, [tmp_path]]
    for source in sources:
        pd.testing.assert_frame_equal(FRAMES[name](source), frame)


@each_frame
def test_a_header_alone_gives_a_frame(name):
    run = Story().run()
    assert len(FRAMES[name](run)) == (1 if name == "runs" else 0)


@each_frame
def test_an_empty_trace_gives_a_frame(name):
    frame = FRAMES[name](Run(Trace()))
    assert len(frame) == (1 if name == "runs" else 0)


def test_the_examples_in_the_docstrings_run():
    modules = ["catalogue", "columns", "source", *(n for n in TABLES)]
    for name in modules:
        result = doctest.testmod(importlib.import_module(f"axislab.frames.{name}"))
        assert result.failed == 0
    assert doctest.testmod(importlib.import_module("axislab.frames.runs")).attempted == 1


@pytest.mark.parametrize("data", [None, 3, {"runs": 1}, b"x", [3]])
def test_what_is_no_run_is_refused_with_what_would_do(data):
    with pytest.raises(DataError, match="give a Run, a list of runs"):
        runs_of(data)


def test_a_frame_is_not_taken_for_runs():
    with pytest.raises(DataError, match="a frame is made of runs"):
        steps_df(runs_df(walks(1)))


def test_a_path_that_does_not_exist_is_named():
    with pytest.raises(DataError, match="'nowhere' does not exist"):
        runs_df("nowhere")


def test_an_empty_folder_is_an_empty_frame(tmp_path):
    assert runs_df(tmp_path).empty


def test_an_unknown_frame_is_refused_with_the_nearest_name():
    with pytest.raises(DataError, match="did you mean 'rollbacks'"):
        columns("rollback")
    assert columns("runs_df").equals(columns("runs"))
    assert len(columns()) == sum(len(columns(name)) for name in FRAMES)


def test_runs_df_holds_how_a_run_ended_and_what_it_used():
    row = runs_df(rollback_story().run()).iloc[0]
    want = {
        "run_id": "r0",
        "arm": "a",
        "repeat": 2,
        "study": "s",
        "kind": "single",
        "cluster": "osk",
        "status": "COMPLETED",
        "done_reason": "assistant_final_answer",
        "answer": "Tal Moor",
        "answer_status": "ok",
        "expected": "Tal Moor",
        "correct": True,
        "score": 1.0,
        "final_stage": "assistant_completed",
        "steps": 5,
        "turns": 2,
        "rollbacks": 1,
        "model_calls": 3,
        "requests": 4,
        "failed_requests": 1,
        "input_tokens": 105,
        "output_tokens": 90,
        "tool_calls": 1,
        "tool_failures": 0,
        "tool_rejections": 0,
        "recipe_fingerprint": "abc123",
        "profile": "stubborn",
    }
    assert {k: row[k] for k in want} == want
    unknown = [
        "uncached_tokens",
        "cached_tokens",
        "cache_write_tokens",
        "reasoning_tokens",
        "cost_usd",
        "error_kind",
        "seconds_thinking",
    ]
    assert row[unknown].isna().all()
    assert row.started_at == pd.Timestamp("2026-11-30T12:00:00Z")
    assert row.completed_at > row.started_at


def test_tokens_are_unknown_when_one_answered_request_did_not_report_them():
    story = Story()
    story.request(input_tokens=10)
    story.request(observed=None, output_tokens=None)
    row = runs_df(story.run()).iloc[0]
    assert pd.isna(row.input_tokens)
    assert pd.isna(row.output_tokens)


def test_token_columns_add_up_in_every_row_and_over_the_run():
    story = Story()
    for fresh, read, written in ((5, 90, 0), (7, 60, 40), (11, 0, 0)):
        story.request(
            input_tokens=fresh + read + written,
            uncached_tokens=fresh,
            cached_tokens=read,
            cache_write_tokens=written,
            reasoning_tokens=3,
            cost_usd=0.5,
        )
    run = story.run()
    pieces = ["uncached_tokens", "cached_tokens", "cache_write_tokens"]
    rows, total = budgets_df(run), runs_df(run).iloc[0]
    assert rows[pieces].sum(axis=1).tolist() == rows.input_tokens.tolist()
    assert total[pieces].tolist() == rows[pieces].sum().tolist() == [23, 150, 40]
    assert total.input_tokens == 213
    assert (total.reasoning_tokens, total.cost_usd) == (9, 1.5)
    assert pd.isna(total.cost_missing)


def test_a_run_without_a_price_says_why():
    story = Story()
    story.request(input_tokens=10, cost_usd=1.0)
    story.request(input_tokens=10, cost_missing="no price is known")
    row = runs_df(story.run()).iloc[0]
    assert pd.isna(row.cost_usd)
    assert row.cost_missing == "no price is known"


def test_a_run_without_an_end_has_no_time_of_completion():
    story = Story()
    story.begin()
    row = runs_df(story.run()).iloc[0]
    assert row.status == "INTERRUPTED"
    assert pd.isna(row.completed_at)
    assert pd.isna(row.correct)
    assert row.input_tokens == 0, "nothing was asked, so nothing was used"


def test_seconds_are_summed_by_phase():
    story = Story()
    story.phase(None, "THINKING")
    story.phase("THINKING", "TOOL_CALLING", 1.5)
    story.phase("TOOL_CALLING", "OBSERVING", 0.25)
    story.phase("OBSERVING", "THINKING")
    story.phase("THINKING", None, 0.5)
    row = runs_df(story.run()).iloc[0]
    assert row.seconds_thinking == 2.0
    assert row.seconds_tool_calling == 0.25
    assert pd.isna(row.seconds_observing), "one visit was not measured"


def test_steps_df_has_one_row_a_step():
    frame = steps_df(rollback_story().run())
    assert list(frame.step) == [0, 1, 2, 3, 4]
    assert list(frame.turn) == [0, 0, 1, 1, 2]
    assert list(frame.hidden_count) == [0, 1, 1, 1, 1]
    assert list(frame.raw_count - frame.visible_count - frame.hidden_count) == [0, 1, 1, 1, 1]
    assert frame.stage_path[1] == (
        "initial_user_message_await_assistant → assistant_message_received → "
        "assistant_message_rollback → initial_user_message_await_assistant"
    )
    assert list(frame.level.dropna()) == ["L4a", "L7"]
    assert frame.seconds.is_monotonic_increasing


def test_transitions_df_says_why_an_edge_was_taken():
    frame = transitions_df(rollback_story().run())
    into = frame[frame.target == S.ROLLBACK].iloc[0]
    assert (into.reason, into.reason_kind) == ("assistant_refusal", "rollback")
    assert (into.source_kind, into.target_kind) == ("normal", "recovery")
    answer = frame[frame.target == S.COMPLETED].iloc[0]
    assert (answer.reason, answer.reason_kind) == ("completed", "rule")
    assert frame[frame.source == S.ROLLBACK].reason.isna().all()
    assert list(frame.order) == list(range(len(frame)))


def test_transitions_df_gives_the_trigger_of_a_forced_answer():
    frame = transitions_df(walks(200))
    forced = frame[frame.target == S.FORCE_FINAL]
    assert set(forced.reason) == {"turn_limit", "context_limit", "tools_exhausted"}
    assert set(forced.reason_kind) == {"trigger"}
    room = frame[frame.target == S.CONTEXT_ROLLBACK]
    assert set(room.reason) == {"context_limit"}


def test_messages_df_says_what_hid_a_message():
    frame = messages_df(rollback_story().run())
    assert list(frame.role) == [
        "system",
        "user",
        "assistant",
        "ConversationRuntime",
        "assistant",
        "tool",
        "assistant",
    ]
    hidden = frame[frame.hidden_by.notna()]
    assert list(hidden["index"]) == [2]
    assert list(hidden.hidden_by) == ["assistant_refusal"]
    assert list(hidden.hidden_at_step) == [1]
    assert list(hidden.hidden_at_index) == [3]
    assert list(frame.visible_at_end) == [True, True, False, False, True, True, True]
    assert list(frame.is_marker) == [False, False, False, True, False, False, False]
    assert frame.tools_called[4] == "search"
    assert pd.isna(frame.content[4])
    assert frame.chars[4] == 0


def test_rollbacks_df_describes_what_was_hidden():
    row = rollbacks_df(rollback_story().run()).iloc[0]
    assert row[["kind", "reason", "step", "index", "turn", "consecutive"]].tolist() == [
        "rollback",
        "assistant_refusal",
        1,
        3,
        0,
        1,
    ]
    assert row[["hidden_messages", "hidden_replies"]].tolist() == [1, 1]
    assert row.preview == "I cannot help."
    assert row.hidden_tokens == 4 + 4
    assert pd.isna(row.tools)


def test_every_kind_of_marker_is_a_row_and_a_malformed_one_hides_nothing():
    story = Story()
    story.begin()
    said = [Message.assistant(f"reply {i}") for i in range(4)]
    broken = Message.from_dict({"role": "ConversationRuntime", "name": "rollback", "content": "{"})
    path = [S.INITIAL_USER]
    story.step("other", path, [*said, Compaction("so far", 2, 2), broken, DiscardAll(2)])
    frame = rollbacks_df(story.run())
    assert list(frame.kind) == ["compaction", "malformed", "discard_all"]
    assert list(frame.hidden_messages) == [2, 0, 3], "the summary is hidden with the rest"
    assert frame.reason.isna().all()
    hidden = messages_df(story.run()).set_index("index").hidden_by.dropna()
    assert hidden.to_dict() == {
        2: "compaction",
        3: "compaction",
        4: "discard_all",
        5: "discard_all",
    }
    assert runs_df(story.run()).rollbacks[0] == 0


def test_budgets_df_compares_the_estimate_with_what_was_counted():
    story = Story()
    story.begin()
    estimate = story.tokens
    story.request(input_tokens=20, estimator="chars/4")
    story.step("x", [S.INITIAL_USER], calibration_ratio=0.9)
    story.request(outcome="rate_limit", output_tokens=None, error="too many", retry_in=0.5)
    row, failed = budgets_df(story.run()).itertuples()
    assert row.error == estimate - 20
    assert row.estimator == "chars/4"
    assert pd.isna(failed.estimator), "traces of earlier versions do not say"
    assert row.relative_error == (estimate - 20) / 20
    assert row.window == 4000
    assert row.remaining == 4000 - estimate - 100
    assert row.warning_threshold == 600, "max_output_tokens, as none is set"
    assert row.min_tokens_for_generation == 200
    assert pd.isna(row.calibration_ratio)
    assert failed.calibration_ratio == 0.9
    assert (failed.error_message, failed.retry_in) == ("too many", 0.5)
    assert pd.isna(row.retry_in)
    assert pd.isna(failed.error)


def test_without_a_window_nothing_is_said_about_what_remains():
    story = Story(window=None)
    story.begin()
    story.request()
    row = budgets_df(story.run()).iloc[0]
    assert row[["window", "remaining", "estimated_prompt_tokens", "error"]].isna().all()


def test_tools_df_has_a_row_for_rejected_calls_and_for_those_that_never_ended():
    story = Story()
    story.tool(repairs=["trim", "fuzzy"], truncated=3, duplicate=True)
    story.tool(name="read", status="rejected", reason="unknown_tool", latency=None)
    trace = story.trace()
    started = {"call_id": "c9", "name": "read", "arguments": "{}", "step": 0, "idempotent": True}
    trace.append(Record(99, "2026-11-30T12:00:09Z", "tool.started", started))
    frame = tools_df(trace).set_index("call_id")
    assert list(frame.index) == ["c0", "c1", "c9"]
    assert frame.repairs["c0"] == "trim, fuzzy"
    assert frame.result_chars["c0"] == len("[d0001] Osk: …")
    assert list(frame.started) == [True, False, True]
    assert list(frame.finished) == [True, True, False]
    assert pd.isna(frame.status["c9"])
    assert frame.idempotent["c9"]
    assert runs_df(trace).tool_rejections[0] == 1


def test_values_of_a_wrong_type_read_as_na_with_one_warning():
    trace = Story().trace()
    for turn in ("three", True, 2**70, 1.5, 4.0):
        trace.append(Record(1, "2026-11-30T12:00:01Z", "step", {"step": 0, "turn": turn}))
    with pytest.warns(UserWarning, match="4 values of 'turn' are no Int64.*'three'"):
        frame = steps_df(trace)
    assert frame.turn.isna().tolist() == [True, True, True, True, False]
    assert frame.turn[4] == 4


@pytest.mark.parametrize(
    ("field", "value", "column"),
    [
        ("visible_count", "many", "visible_count"),
        ("calibration_ratio", "high", "calibration_ratio"),
        ("visible_count", float("inf"), "visible_count"),
    ],
)
def test_a_wrong_value_of_any_dtype_is_na(field, value, column):
    trace = Story().trace()
    trace.append(Record(1, "2026-11-30T12:00:01Z", "step", {"step": 0, field: value}))
    with pytest.warns(UserWarning, match=f"1 values of '{column}'"):
        assert pd.isna(steps_df(trace)[column][0])


def test_text_columns_show_what_is_no_text_as_json():
    trace = Story().trace()
    finished = {"call_id": "c", "name": {"x": [1]}, "status": "success", "duplicate": "yes"}
    trace.append(Record(1, "2026-11-30T12:00:01Z", "tool.finished", {**finished, "repairs": []}))
    with pytest.warns(UserWarning, match="values of 'duplicate' are no boolean"):
        row = tools_df(trace).iloc[0]
    assert row["name"] == '{"x": [1]}'
    assert row[["duplicate", "repairs", "result_chars"]].isna().all()


def test_a_time_that_cannot_be_read_is_unknown():
    trace = Story().trace()
    trace.append(Record(1, "yesterday", "step", {"step": 0}))
    assert pd.isna(steps_df(trace).seconds[0])


def test_what_a_rollback_hid_is_described_by_its_reply_and_tools():
    story = Story()
    story.begin()
    said = Message.assistant("x " * 400, [call("c0", "read")])
    result = Message.tool("…", tool_call_id="c0", name="read")
    story.step("a", [S.INITIAL_USER], [said, result, Rollback(2, "tool_error")])
    story.step("b", [S.INITIAL_USER], [Message.user("again"), Rollback(1, "")])
    first, second = rollbacks_df(story.run()).itertuples()
    assert first.tools == "read"
    assert len(first.preview) == 240
    assert first.preview.endswith("…")
    assert pd.isna(second.preview)
    assert pd.isna(second.reason)
    assert messages_df(story.run()).hidden_by.dropna().tolist()[-1] == "rollback"


def test_half_a_surrogate_pair_does_not_break_a_frame():
    story = Story()
    story.begin()
    story.step("x", [S.INITIAL_USER], [Message.assistant("half \ud83d")])
    assert messages_df(story.run()).content[2].startswith("half ")


def test_simulated_and_real_runs_keep_their_label():
    frame = runs_df([walk(0, simulated=True), walk(1, simulated=False)])
    assert list(frame.simulated) == [True, False]


def test_ten_thousand_steps_take_well_under_a_second():
    story = Story()
    story.begin()
    for _ in range(10_000):
        story.step("x", [S.TOOL_MESSAGES, S.RECEIVED, S.TOOL_CALLS], [Message.assistant("a")])
    run = story.run()
    start = time.process_time()
    frame = steps_df(run)
    assert len(frame) == 10_001
    assert time.process_time() - start < 1.5


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([None, 1500, 4000]))
def test_the_frames_of_any_run_agree_with_each_other(number, window):
    run = walk(number, window=window, trouble=1.5)
    runs, steps, messages = runs_df(run), steps_df(run), messages_df(run)
    edges = transitions_df(run)
    assert set(zip(edges.source, edges.target, strict=True)) <= VALID_STAGE_TRANSITION
    assert len(edges) == sum(p.count("→") for p in steps.stage_path)
    assert int(messages.visible_at_end.sum()) == len(run.trace.visible())
    assert runs.rollbacks[0] == (rollbacks_df(run).kind == "rollback").sum()
    assert int(messages.hidden_by.notna().sum()) == steps.hidden_count.iloc[-1]
    assert rollbacks_df(run).hidden_messages.sum() == steps.hidden_count.iloc[-1]
    assert runs.requests[0] == len(budgets_df(run))
    assert runs.tool_calls[0] == len(tools_df(run))


def test_importing_the_frames_loads_no_pandas():
    code = "import sys, axislab.frames.catalogue; sys.exit('pandas' in sys.modules)"
    import subprocess
    import sys

    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0


def test_metadata_of_the_tasks_can_be_columns_of_runs_df():
    def said(hops):
        return Lab(ScriptedModel(["x"], after="repeat")).run(
            Recipe(), Task(f"t{hops}", "x", metadata={"hops": hops, "topic": "seas"})
        )

    frame = runs_df([said(1), said(3)], metadata=["hops", "topic", "absent"])
    assert frame["hops"].tolist() == [1, 3]
    assert frame["topic"].tolist() == ["seas", "seas"]
    assert frame["absent"].isna().all()
    with pytest.raises(DataError, match="there already"):
        runs_df([], metadata=["status"])


def test_a_message_that_calls_tools_shows_them_with_their_arguments():
    script = ScriptedModel([ScriptedModel.call("look", query="Osk"), "x"])
    run = Lab(script).run(Recipe(), "x")
    calls = messages_df(run)["calls"]
    assert calls.dropna().tolist() == ['look({"query": "Osk"})']


def test_every_knob_is_documented_with_default_and_meaning():
    frame = knobs()
    assert {"max_turns", "temperature", "detector", "attempts"} <= set(frame["knob"])
    assert not frame["description"].isna().any()
    assert (frame["description"].str.len() > 5).all()
    row = frame.set_index("knob").loc["on_length"]
    assert (row["group"], row["default"]) == ("conversation", "'terminate'")
    assert "rollback" in row["allowed"]
    assert set(knobs("sampling")["group"]) == {"sampling"}
    with pytest.raises(DataError, match="sampling"):
        knobs("samplin")
