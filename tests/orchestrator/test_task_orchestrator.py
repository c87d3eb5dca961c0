"""The loop: every way a run can go, and what it says about it."""

from __future__ import annotations

import asyncio

import pytest

from axislab.errors import ErrorKind, ModelError, TraceError
from axislab.messages import ToolCall, Usage
from axislab.models.base import ModelReply
from axislab.models.scripted import ScriptedModel
from axislab.orchestrator.task import RunIdentity, TaskOrchestrator
from axislab.recipe import Recipe
from axislab.runtime.decisions import Rule
from axislab.runtime.rules import CHAIN
from axislab.tasks import Task
from axislab.tools.base import tool
from tests.orchestrator.harness import call, play


@tool(query="name")
def lookup(name: str) -> str:
    """Look a place up.

    Args:
        name: What to look up.
    """
    if name == "nowhere":
        raise ValueError("no such place")
    return f"{name} lies in Verren"


CUT = ModelError("tool arguments were cut", kind=ErrorKind.TRUNCATED)
TOO_LONG = ModelError("too long", kind=ErrorKind.CONTEXT_LIMIT, window=100, requested=200)


def test_a_tool_and_an_answer_make_a_completed_run():
    played = play([call("lookup", name="Osk"), r"\boxed{Verren}"], tools=(lookup,))
    end = played.finished
    assert (end.status, end.answer, end.correct) == ("COMPLETED", "Verren", True)
    assert end.done_reason == "assistant_final_answer"
    assert [e.kind for e in played.events][:2] == ["run.started", "status"]
    assert end.turns == 2


def test_a_wrong_answer_is_incorrect_and_none_is_a_format_error():
    assert play([r"\boxed{Tal}"]).finished.correct is False
    unboxed = play(["Verren"]).finished
    assert (unboxed.answer, unboxed.answer_status, unboxed.correct) == (None, "format_error", False)


@pytest.mark.parametrize(
    ("reason", "script", "knobs"),
    [
        ("assistant_refusal", ["I cannot help", "ok"], {"refusal_keywords": ("I cannot",)}),
        ("format_error", ["<tool_call>x", "ok"], {"strategy": "rollback"}),
        (
            "duplicate_query",
            [call("lookup", name="Osk"), call("lookup", name="Osk"), "ok"],
            {"on_duplicate": "rollback"},
        ),
        ("tool_error", [call("lookup", name="nowhere"), "ok"], {"on_tool_error": "rollback"}),
        ("token_exhaustion", [call("lookup", name="Osk"), CUT, "ok"], {}),
        ("context_limit", [call("lookup", name="Osk"), TOO_LONG, "ok"], {}),
        ("empty_reply", ["", "ok"], {"on_empty_reply": "retry"}),
        (
            "token_exhaustion",
            [ModelReply(text="The answer is Ver", finish_reason="length"), "ok"],
            {"on_length": "rollback"},
        ),
    ],
)
def test_every_rollback_reason_occurs_in_a_run(reason, script, knobs):
    played = play(script, tools=(lookup,), max_rollbacks=2, **knobs)
    assert played.reasons == [reason]
    assert played.finished.status == "COMPLETED"
    assert played.visible[-1] == "ok"
    hidden = [s.rollback_message_count for s in played.of("step") if s.rollback_reason]
    assert hidden[0] >= 1


def test_all_calls_of_a_turn_are_looked_at_before_any_runs():
    ran = []

    @tool(query="name")
    def probe(name: str) -> str:
        """Look.

        Args:
            name: What.
        """
        ran.append(name)
        return name

    twin = [call("probe", name="B"), call("probe", name="A")]
    script = [call("probe", name="A"), twin, call("probe", name="B"), "ok"]
    played = play(script, tools=(probe,), on_duplicate="rollback", max_rollbacks=1)
    assert ran == ["A", "B"]
    assert played.reasons == ["duplicate_query"]


def test_at_the_rollback_limit_a_duplicate_is_run():
    script = [call("lookup", name="Osk")] * 3 + ["ok"]
    played = play(script, tools=(lookup,), on_duplicate="rollback", max_rollbacks=1)
    assert played.reasons == ["duplicate_query"]
    assert [e.duplicate for e in played.of("tool.finished")] == [False, True]


def test_a_hidden_answer_may_be_asked_for_again():
    script = [
        [call("lookup", name="Osk"), call("lookup", name="nowhere")],
        call("lookup", name="Osk"),
        "ok",
    ]
    played = play(
        script,
        tools=(lookup,),
        on_duplicate="rollback",
        on_tool_error="rollback",
        max_rollbacks=3,
    )
    assert played.reasons == ["tool_error"]


@pytest.mark.parametrize(
    ("knob", "script", "done"),
    [
        ("on_duplicate", [call("lookup", name="Osk")] * 2, "stopped_duplicate_query"),
        ("on_tool_error", [call("lookup", name="nowhere")], "stopped_tool_error"),
    ],
)
def test_a_policy_may_stop_the_run(knob, script, done):
    end = play(script, tools=(lookup,), **{knob: "stop"}).finished
    assert (end.status, end.done_reason, end.correct) == ("FAILED", done, False)


def test_a_truncation_error_may_end_the_run():
    script = [call("lookup", name="Osk"), CUT]
    end = play(script, tools=(lookup,), on_truncation_error="stop").finished
    assert (end.status, end.error_kind, end.correct) == ("FAILED", "truncated", None)


def test_a_context_error_in_the_forced_round_ends_the_run_at_once():
    model = ScriptedModel([TOO_LONG] * 5)
    played = play(model, max_turns=1)
    assert played.finished.done_reason == "terminated_context_limit"
    assert played.finished.status == "FAILED"
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    "problem",
    [
        ModelError("no key", kind=ErrorKind.AUTH),
        ValueError("odd"),
        RuntimeError("odd"),
        KeyError("x"),
    ],
)
def test_every_model_error_ends_in_a_finished_trace(problem):
    played = play([problem])
    end = played.finished
    assert end.status == "FAILED"
    assert end.done_reason.startswith("model_error: ")
    assert end.correct is None
    assert played.orchestrator.lifecycle.status.name == "FAILED"
    assert played.of("model.request")[0].outcome != "ok"


def test_a_hook_that_raises_ends_the_run_and_keeps_its_cause():
    def bad(message):
        raise ZeroDivisionError("oops")

    recipe = Recipe(direct_answer=bad)
    played = play(["hello"], recipe=recipe)
    assert played.finished.status == "FAILED"
    assert "ZeroDivisionError: oops" in played.finished.error
    assert isinstance(played.ending.cause.__cause__, ZeroDivisionError)


def test_a_good_tool_resets_the_shared_counter():
    script = ["I cannot", call("lookup", name="Osk"), "I cannot", "ok"]
    played = play(script, tools=(lookup,), max_rollbacks=1, refusal_keywords=("I cannot",))
    assert played.reasons == ["assistant_refusal"] * 2
    assert [s.counter_reset for s in played.of("step") if s.operation == "tools"] == [True]


def test_without_the_reset_the_limit_holds_over_good_tools():
    script = ["I cannot", call("lookup", name="Osk"), "I cannot"]
    played = play(
        script,
        tools=(lookup,),
        max_rollbacks=1,
        refusal_keywords=("I cannot",),
        reset_after_success=False,
    )
    assert played.reasons == ["assistant_refusal"]
    assert played.finished.output == "I cannot"


def test_the_output_of_an_empty_last_reply_is_empty():
    played = play([[call("lookup", name="Osk")], ""], tools=(lookup,))
    assert played.finished.output == ""
    assert played.finished.status == "COMPLETED"


def test_the_turn_limit_forces_the_answer():
    script = [call("lookup", name="Osk"), r"\boxed{Verren}"]
    end = play(script, tools=(lookup,), max_turns=2).finished
    assert (end.status, end.done_reason) == ("COMPLETED", "terminated_turn_limit")


def test_rejected_calls_fail_the_run_unless_an_answer_stands_beside_them():
    script = [call("lookup", name="Osk")] * 2
    end = play(script, tools=(lookup,), max_turns=2).finished
    assert (end.status, end.answer_status) == ("FAILED", "no_answer")
    beside = ModelReply(text=r"\boxed{Verren}", tool_calls=(call("lookup", name="Osk"),))
    good = play([beside], tools=(lookup,), max_turns=1).finished
    assert (good.status, good.correct) == ("COMPLETED", True)


def test_reprompts_without_a_bound_end_at_the_safety_limit():
    script = ScriptedModel(["<tool_call>x"], after="repeat")
    played = play(script, max_turns=None, max_reprompts=None, max_rounds=50)
    assert played.finished.done_reason == "terminated_loop_safety_limit"
    assert played.finished.status == "FAILED"


def test_tool_results_can_be_shown_as_user_messages_while_the_trace_keeps_them():
    model = ScriptedModel([call("lookup", name="Osk"), "ok"])
    played = play(model, tools=(lookup,), tool_result_role="user")
    assert [str(m.role) for m in model.requests[-1].messages] == [
        "system",
        "user",
        "assistant",
        "user",
    ]
    assert [str(m.role) for m in played.orchestrator.runtime.visible][3] == "tool"


def test_only_the_newest_tool_results_are_shown_if_so_configured():
    calls = [call("lookup", name=name) for name in ("A", "B", "C")]
    model = ScriptedModel([*calls, "ok"])
    play(model, tools=(lookup,), context_policy="keep_newest", keep_tool_results=1)
    shown = [m.text for m in model.requests[-1].messages if str(m.role) == "tool"]
    assert [("lies in" in text) for text in shown] == [False, False, True]


def test_a_result_that_is_no_longer_shown_may_be_asked_for_again():
    names = ("A", "B", "A", "B", "B")
    script = [*(call("lookup", name=name) for name in names), "ok"]
    played = play(
        script,
        tools=(lookup,),
        context_policy="keep_newest",
        keep_tool_results=1,
        on_duplicate="rollback",
        max_rollbacks=3,
    )
    assert played.reasons == ["duplicate_query"]


def test_each_repetition_of_a_request_has_its_own_draw_key():
    model = ScriptedModel(["I cannot", "I cannot", "ok"])
    play(model, max_rollbacks=2, refusal_keywords=("I cannot",))
    keys = [request.draw for request in model.requests]
    assert len(set(keys)) == 3
    assert all("t1" not in key and "Osk" not in key for key in keys)


def test_the_arm_is_part_of_the_draws_only_when_they_are_independent():
    task = Task("t1", "x")

    def key(arm, coupling):
        return RunIdentity(run_id="r", arm=arm, coupling=coupling).draw_key(task)

    assert key("a", "independent") != key("b", "independent")
    assert key("a", "common") == key("b", "common")


def test_observed_prompt_tokens_calibrate_the_estimate():
    usage = Usage(input_tokens=60, output_tokens=5)
    model = ScriptedModel([call("lookup", name="Osk"), "ok"], usage=usage)
    played = play(model, tools=(lookup,), window=10_000)
    first, second, third, last = played.of("step")
    assert (first.observed_tokens, second.observed_tokens) == (None, 60)
    assert first.calibration_ratio == 1.0
    assert second.calibration_ratio != 1.0
    assert (third.observed_tokens, last.observed_tokens) == (None, 60)


def test_estimated_usage_calibrates_nothing():
    model = ScriptedModel([call("lookup", name="Osk"), "ok"], usage="estimate")
    played = play(model, tools=(lookup,), window=10_000)
    assert {s.calibration_ratio for s in played.of("step")} == {1.0}


def test_cancelling_leaves_the_run_interrupted_and_without_an_end():
    events = []

    async def stopped():
        model = ScriptedModel(["late"], delay=30)
        orchestrator = TaskOrchestrator(
            Recipe(),
            Task("t1", "x"),
            model=model,
            identity=RunIdentity(run_id="r"),
            emit=events.append,
        )
        job = asyncio.create_task(orchestrator.run())
        await asyncio.sleep(0.05)
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job
        return orchestrator

    orchestrator = asyncio.run(stopped())
    assert orchestrator.lifecycle.status.name == "INTERRUPTED"
    assert events[-1].kind == "status"
    assert events[-1].target == "INTERRUPTED"
    requests = [e for e in events if e.kind == "model.request"]
    assert [r.outcome for r in requests] == ["cancelled"]


def test_an_event_that_cannot_be_recorded_stops_the_run():
    def emit(event):
        if event.kind == "step":
            raise TraceError("the disk is full")

    orchestrator = TaskOrchestrator(
        Recipe(),
        Task("t1", "x"),
        model=ScriptedModel(["ok"]),
        identity=RunIdentity(run_id="r"),
        emit=emit,
    )
    with pytest.raises(TraceError, match="disk is full"):
        asyncio.run(orchestrator.run())


def test_status_and_phase_follow_the_work():
    played = play([call("lookup", name="Osk"), "ok"], tools=(lookup,))
    assert [(e.source, e.target) for e in played.of("status")] == [
        ("READY", "RUNNING"),
        ("RUNNING", "COMPLETED"),
    ]
    assert [e.target for e in played.of("phase")] == [
        "THINKING",
        "TOOL_CALLING",
        "OBSERVING",
        "THINKING",
        None,
    ]


def test_an_undone_call_goes_through_observing_and_a_refusal_stays_in_thinking():
    script = ["I cannot", call("lookup", name="nowhere"), "ok"]
    played = play(
        script,
        tools=(lookup,),
        on_tool_error="rollback",
        max_rollbacks=3,
        refusal_keywords=("I cannot",),
    )
    assert [e.target for e in played.of("phase")] == [
        "THINKING",
        "TOOL_CALLING",
        "OBSERVING",
        "THINKING",
        None,
    ]
    assert played.orchestrator.lifecycle.thinking_steps == 3


def test_two_calls_with_one_provider_id_get_ids_of_their_own():
    twins = tuple(
        ToolCall(id="", name="lookup", arguments=f'{{"name": "{name}"}}', provider_id="x")
        for name in ("A", "B")
    )
    played = play([ModelReply(tool_calls=twins), "ok"], tools=(lookup,))
    assert [e.call_id for e in played.of("tool.finished")] == ["call_1", "call_2"]


def test_an_unknown_tool_and_broken_arguments_are_observations():
    broken = ModelReply(
        tool_calls=(
            call("nope", x=1),
            ToolCall(id="", name="lookup", arguments='{"name": '),
        )
    )
    played = play([broken, "ok"], tools=(lookup,))
    assert [e.reason for e in played.of("tool.finished")] == ["unknown_tool", "parameter_error"]
    assert played.finished.status == "COMPLETED"


def test_a_recipe_can_put_a_rule_into_the_chain():
    from axislab.runtime.decisions import Decision, Pass, Verdict, insert_before

    def short(turn):
        """Too short an answer is asked again."""
        if len(turn.text) > 5 or not turn.may_roll_back:
            return Pass("long enough")
        return Decision(
            rule="short", level="L4", verdict=Verdict.ROLL_BACK, reason="too_short", because="short"
        )

    chain = insert_before(CHAIN, "refusal", Rule("short", "L4", short))
    played = play(["no", "long enough"], recipe=Recipe(chain=chain), max_rollbacks=1)
    assert played.reasons == ["too_short"]
    assert [s.rule for s in played.of("step")] == [None, "short", "completed"]
