"""The operations beside replies: results, undo, recovery, markers, reopening, calibration."""

import json

import pytest
from runtime_kit import STOP, Letters, answer, begun, calls, config, exchange, say, texts

from axislab.errors import (
    AxislabError,
    ConfigError,
    InvalidMessage,
    OperationRefused,
    TemplateError,
)
from axislab.messages import Message, Role
from axislab.runtime.conversation import ConversationRuntime
from axislab.runtime.markers import Compaction, DiscardAll, Rollback
from axislab.runtime.stages import ConversationStage as S

# initialize


@pytest.mark.parametrize(
    "template",
    [
        "{question}",
        "{}",
        "{0}",
        "{",
        "}",
        "{task",
        "{task.x}",
        "{task:{w}}",
        "{task:d}",
        "{task!z}",
    ],
)
def test_a_template_with_another_placeholder_is_refused_and_leaves_nothing(template):
    conversation = ConversationRuntime(config(system_prompt="S", user_prompt_template=template))
    for _ in range(2):
        with pytest.raises(TemplateError, match="user_prompt_template"):
            conversation.initialize_conversation("t")
        assert conversation.stage is S.NOT_INITIALIZED
        assert len(conversation.full) == 0


@pytest.mark.parametrize(
    ("template", "text"),
    [("{task}", "t{x}"), ("{{task}} {task}", "{task} t{x}"), ("none", "none"), ("", "")],
)
def test_a_template_is_filled_in_once(template, text):
    assert texts(begun("t{x}", user_prompt_template=template)) == [text]


def test_a_conversation_begins_once():
    conversation = begun()
    with pytest.raises(OperationRefused, match=r"reset\(\)"):
        conversation.initialize_conversation("again")


def test_nothing_but_reading_is_possible_before_the_beginning():
    conversation = ConversationRuntime()
    marker = Rollback(0, "x")
    for refused in (
        lambda: say(conversation, "x"),
        lambda: conversation.explain(Message.assistant("x")),
        lambda: answer(conversation),
        conversation.rollback_assistant_tool_calls,
        conversation.rollback_latest_tool_exchange_and_force_finalize,
        conversation.force_finalize_due_to_context_limit_after_error,
        conversation.reopen_after_context_reset,
        lambda: conversation.append_marker(marker),
        lambda: conversation.append_raw_marker(marker.to_message()),
    ):
        with pytest.raises(AxislabError):
            refused()
    assert (conversation.action, len(conversation.full)) == (None, 0)
    assert conversation.budget().remaining_tokens is None


# results


def test_results_must_answer_every_pending_call_once():
    conversation = begun()
    conversation.apply_assistant_message(calls("c1", "c2"))
    one, two = (Message.tool("r", tool_call_id=i) for i in ("c1", "c2"))
    user = Message(role=Role.USER, content="r", tool_call_id="c2")
    for results, why in [
        ([one], "2 tool results are awaited, got 1"),
        ([one, one], "results for calls"),
        ([one, Message.tool("r", tool_call_id="c3")], "results for calls"),
        ([one, user], "role 'tool'"),
    ]:
        with pytest.raises(InvalidMessage, match=why):
            conversation.apply_batch_tool_messages(results)
        assert [c.id for c in conversation.pending] == ["c1", "c2"]
    step = conversation.apply_batch_tool_messages([two, one])
    assert [m.tool_call_id for m in step.appended] == ["c2", "c1"]
    assert {m.name for m in step.appended} == {"search"}


def test_results_keep_a_name_they_come_with():
    conversation = begun()
    conversation.apply_assistant_message(calls("c1"))
    step = conversation.apply_batch_tool_messages(
        [Message.tool("r", tool_call_id="c1", name="mine")]
    )
    assert step.appended[0].name == "mine"


def test_results_are_refused_where_none_are_awaited():
    for results in ([], [Message.tool("r", tool_call_id="c1")]):
        with pytest.raises(InvalidMessage):
            begun().apply_batch_tool_messages(results)


# undo of tool calls


def test_undo_is_refused_without_pending_calls_whatever_the_limits():
    for rollbacks in (0, 2):
        with pytest.raises(OperationRefused, match="no tool calls are pending"):
            begun(max_rollbacks=rollbacks).rollback_assistant_tool_calls()


def test_undo_gives_none_when_rollbacks_are_off_or_used_up():
    conversation = begun(max_rollbacks=1)
    conversation.apply_assistant_message(calls("c1"))
    assert conversation.rollback_assistant_tool_calls("because").info.rollback_reason == "because"
    conversation.apply_assistant_message(calls("c2"))
    assert conversation.rollback_assistant_tool_calls() is None
    assert len(conversation.pending) == 1
    conversation.reset_rollback_counter()
    step = conversation.rollback_assistant_tool_calls()
    assert step.info.rollback_reason == "duplicate_query"
    assert (conversation.pending, conversation.turn_idx) == ((), 0)
    off = begun()
    off.apply_assistant_message(calls("c1"))
    assert off.rollback_assistant_tool_calls() is None


def test_tool_results_do_not_reset_the_counter():
    conversation = begun(max_rollbacks=3)
    conversation.apply_assistant_message(calls("c1"))
    conversation.rollback_assistant_tool_calls()
    exchange(conversation, "c2")
    assert conversation.rollback_count == 1


# recovery


def test_a_context_error_hides_the_newest_exchange_and_keeps_the_turn():
    conversation = begun()
    exchange(conversation, "c1", "c2")
    error = {"input_tokens": 5000}
    step = conversation.force_finalize_due_to_context_limit_after_error(error)
    error["input_tokens"] = 0
    assert texts(conversation) == ["task", STOP]
    assert step.info.rollback_message_count == 3
    assert step.info.context_limit_estimate["provider_error"] == {"input_tokens": 5000}
    assert conversation.turn_idx == 1


@pytest.mark.parametrize("error", [None, {}])
def test_a_context_error_without_particulars_leaves_none(error):
    step = begun().force_finalize_due_to_context_limit_after_error(error)
    assert "provider_error" not in step.info.context_limit_estimate


def test_a_context_error_never_hides_the_task():
    conversation = begun()
    exchange(conversation, "c1")
    conversation.append_raw_marker(Rollback(2, "x").to_message())
    step = conversation.force_finalize_due_to_context_limit_after_error()
    assert texts(conversation) == ["task", STOP]
    assert (step.info.rollback_message_count, len(step.appended)) == (0, 1)


def test_the_search_for_the_newest_exchange_stops_at_a_system_message():
    conversation = begun(system_prompt="S")
    exchange(conversation, "c1")
    conversation.append_raw_marker(Rollback(99, "x").to_message())
    assert texts(conversation) == ["S"]
    step = conversation.force_finalize_due_to_context_limit_after_error()
    assert step.info.rollback_message_count == 0


@pytest.mark.parametrize("where", [S.INITIAL_USER, S.REPROMPT, S.FINAL_PROMPT])
def test_a_context_error_where_nothing_can_be_hidden_ends_if_the_prompt_does_not_fit(where):
    conversation = begun(
        "t" * 30,
        final_response_prompt="W" if where is S.FINAL_PROMPT else None,
        window=60,
        min_tokens_for_generation=40,
        runtime={"estimator": Letters()},
    )
    # The lower line is only asked where the provider complains, so the chain is kept out of it.
    conversation.chain = tuple(r for r in conversation.chain if r.name != "context_budget")
    if where is S.REPROMPT:
        say(conversation, "<tool_call>")
    if where is S.FINAL_PROMPT:
        say(conversation, "Elbe")
    assert conversation.stage is where
    step = conversation.force_finalize_due_to_context_limit_after_error()
    assert [S(s) for s in step.stage_path] == [where, S.TOKEN_EXCEEDED]
    assert step.info.context_budget_stop is True
    assert step.done_reason == "terminated_token_exceed"


def test_a_context_error_in_the_forced_round_changes_nothing():
    for knobs in ({}, {"preflight": False, "window": 10}):
        conversation = begun(max_turns=1, **knobs)
        before = tuple(conversation.full)
        step = conversation.force_finalize_due_to_context_limit_after_error({"a": 1})
        assert tuple(conversation.full) == before
        assert step.info.context_limit_error_during_force_final is True
        assert step.info.finalization_trigger == "context_limit"
        assert step.info.context_limit_estimate["warning_prompt_fits"] is True
        assert say(conversation, "Elbe").done_reason == "terminated_turn_limit"


def test_without_preflight_only_the_provider_tells():
    conversation = begun(
        preflight=False, window=10, min_tokens_for_generation=9, warning_threshold=3
    )
    exchange(conversation, "c1", text="r" * 500)
    step = conversation.force_finalize_due_to_context_limit_after_error()
    assert step.stage is S.FORCE_FINAL
    record = step.info.context_limit_estimate
    assert record["context_limit_detection"] == "provider_error"
    assert (record["exceeds_context"], record["hard_stop"]) == (True, False)
    assert (record["estimated_total_tokens"], record["remaining_tokens"]) == (0, None)
    assert (record["reserved_output_tokens"], record["context_warning_threshold"]) == (1024, 3)


def test_a_context_error_is_refused_while_tools_run_and_after_the_end():
    conversation = begun()
    conversation.apply_assistant_message(calls("c1"))
    with pytest.raises(OperationRefused):
        conversation.force_finalize_due_to_context_limit_after_error()
    answer(conversation)
    say(conversation, "Elbe")
    with pytest.raises(OperationRefused):
        conversation.force_finalize_due_to_context_limit_after_error()


def test_the_latest_exchange_can_be_hidden_again_and_again():
    conversation = begun()
    exchange(conversation, "c1")
    exchange(conversation, "c2", "c3")
    roll_back = conversation.rollback_latest_tool_exchange_and_force_finalize
    step = roll_back()
    assert step.info.conditional() == {
        "finalization_trigger": "context_limit",
        "has_early_stop_prompt": True,
        "force_finalize_stage": "force_final_await_assistant",
        "rollback_message_count": 3,
        "rollback_reason": "token_exhaustion",
        "force_finalization_recovery": True,
        "token_exhaustion_recovery": True,
    }
    step = roll_back("context_limit")
    assert step.info.rollback_message_count == 3
    assert step.info.context_limit_error_recovery is True
    assert roll_back("other") is None
    assert texts(conversation) == ["task", STOP]
    assert conversation.turn_idx == 2


def test_another_reason_for_hiding_the_latest_exchange_sets_neither_recovery_key():
    conversation = begun()
    exchange(conversation, "c1")
    info = conversation.rollback_latest_tool_exchange_and_force_finalize("because").info
    assert info.rollback_reason == "because"
    assert (info.token_exhaustion_recovery, info.context_limit_error_recovery) == (None, None)


def test_the_latest_exchange_is_not_looked_for_behind_anything_else():
    silent = begun(early_stop_prompt=None)
    exchange(silent, "c1")
    assert silent.rollback_latest_tool_exchange_and_force_finalize().stage is S.FORCE_FINAL
    asked = begun()
    exchange(asked, "c1")
    say(asked, "<tool_call>")
    assert asked.rollback_latest_tool_exchange_and_force_finalize() is None
    imported = begun()
    exchange(imported, "c1")
    imported.append_raw_marker(Compaction("S", 1, 1).to_message())
    assert imported.rollback_latest_tool_exchange_and_force_finalize() is None
    hidden = begun()
    exchange(hidden, "c1")
    hidden.append_raw_marker(DiscardAll(0).to_message())
    assert hidden.rollback_latest_tool_exchange_and_force_finalize() is None


def test_the_latest_exchange_cannot_be_hidden_from_a_stage_without_that_move():
    conversation = begun(max_rollbacks=1)
    exchange(conversation, "c1")
    conversation.reopen_after_context_reset()
    assert conversation.rollback_latest_tool_exchange_and_force_finalize() is None
    conversation.apply_assistant_message(calls("c2"))
    with pytest.raises(OperationRefused):
        conversation.rollback_latest_tool_exchange_and_force_finalize()


# after tools


def roomy(**knobs):
    base = {"window": 61, "warning_threshold": 10, "early_stop_prompt": "s" * 10}
    return begun(runtime={"estimator": Letters()}, **{**base, **knobs})


@pytest.mark.parametrize(
    ("length", "hard_line", "stage"),
    [
        (37, 0, S.TOOL_MESSAGES),
        (38, 0, S.FORCE_FINAL),
        (38, 1, S.FORCE_FINAL),
        (57, 1, S.TOKEN_EXCEEDED),
        (57, 0, S.FORCE_FINAL),
        (52, 5, S.FORCE_FINAL),
        (53, 5, S.TOKEN_EXCEEDED),
    ],
)
def test_the_two_lines_after_tool_results(length, hard_line, stage):
    conversation = roomy(min_tokens_for_generation=hard_line)
    step = exchange(conversation, "c1", text="r" * length)
    assert step.stage is stage
    if stage is S.FORCE_FINAL:
        assert step.info.rollback_message_count == 2
        assert conversation.visible[-1].text == "s" * 10


def test_without_a_force_prompt_only_the_list_itself_counts():
    conversation = roomy(early_stop_prompt=None)
    assert exchange(conversation, "c1", text="r" * 47).stage is S.TOOL_MESSAGES
    assert exchange(conversation, "c2", text="r").stage is S.FORCE_FINAL


@pytest.mark.parametrize(("prompt", "stage"), [(52, S.FORCE_FINAL), (53, S.TOKEN_EXCEEDED)])
def test_after_hiding_the_prompt_must_leave_the_hard_line(prompt, stage):
    conversation = roomy(early_stop_prompt="s" * prompt, min_tokens_for_generation=5)
    step = exchange(conversation, "c1", text="r" * 5)
    assert step.stage is stage
    assert step.info.context_limit_estimate["warning_remaining_tokens"] == 61 - 4 - prompt


def test_without_a_hard_line_the_prompt_is_given_even_if_it_does_not_fit():
    step = exchange(roomy(early_stop_prompt="s" * 90), "c1")
    assert step.stage is S.FORCE_FINAL
    assert step.info.context_limit_estimate["warning_prompt_fits"] is False


# markers


def test_markers_are_taken_only_while_a_reply_is_awaited():
    conversation = begun()
    conversation.apply_assistant_message(calls("c1"))
    with pytest.raises(OperationRefused, match="while a reply is awaited"):
        conversation.append_marker(Rollback(1, "x"))


@pytest.mark.parametrize(
    ("marker", "why"),
    [
        (Rollback(5, "x"), "system message or the task"),
        (Rollback(1, "x"), "a tool call without its result"),
        (Rollback(-1, "x"), "malformed"),
        (Rollback(True, "x"), "malformed"),
        (Compaction("s", 1, 3), "system message or the task"),
        (Compaction("s", 2, 1), "a tool result without its call"),
        (Compaction("s", 3, 1), "a tool call without its result"),
        (Compaction("s", 2, 3), "outside the 4 visible"),
        (Compaction("s", 2, 0), "malformed"),
        (DiscardAll(1), "system message or the task"),
        (DiscardAll(3), "a tool call without its result"),
        (DiscardAll(5), "outside the 4 visible"),
        (DiscardAll(-1), "malformed"),
    ],
)
def test_a_marker_that_would_spoil_the_history_is_refused(marker, why):
    conversation = begun(system_prompt="S")
    exchange(conversation, "c1")
    with pytest.raises(OperationRefused, match=why):
        conversation.append_marker(marker)
    assert len(conversation.full) == 4


@pytest.mark.parametrize(
    ("marker", "left"),
    [
        (Rollback(0, "x"), ["S", "task", "", "result"]),
        (Rollback(2, "x"), ["S", "task"]),
        (Compaction("sum", 2, 2), ["S", "task", "sum"]),
        (DiscardAll(2), ["S", "task"]),
        (DiscardAll(4), ["S", "task", "", "result"]),
    ],
)
def test_a_marker_that_cuts_at_whole_exchanges_is_taken(marker, left):
    conversation = begun(system_prompt="S")
    exchange(conversation, "c1")
    step = conversation.append_marker(marker)
    assert (step.operation, step.info.conditional()) == ("marker", {})
    assert texts(conversation) == left


def test_raw_markers_are_taken_as_they_stand_but_never_first():
    conversation = begun()
    conversation.apply_assistant_message(calls("c1"))
    conversation.append_raw_marker(Message(role=Role.RUNTIME, name="rollback", content="{"))
    conversation.append_raw_marker(Rollback(9, "x").to_message())
    assert (texts(conversation), len(conversation.full)) == ([], 4)
    assert len(conversation.pending) == 1
    with pytest.raises(InvalidMessage, match="ConversationRuntime"):
        conversation.append_raw_marker(Message.user("x"))
    with pytest.raises(InvalidMessage, match="system or user"):
        ConversationRuntime().append_raw_marker(Rollback(1, "x").to_message())


# reopening, reset, clone


def test_a_conversation_that_has_begun_and_not_ended_can_be_reopened():
    conversation = begun(max_turns=2, max_rollbacks=2)
    conversation.apply_assistant_message(calls("c0"))
    conversation.rollback_assistant_tool_calls()
    exchange(conversation, "c1")
    assert conversation.finalization_trigger == "turn_limit"
    conversation.append_marker(DiscardAll(1))
    step = conversation.reopen_after_context_reset()
    assert step.stage_path == (
        "force_final_await_assistant",
        "initial_user_message_await_assistant",
    )
    assert (conversation.rollback_count, conversation.finalization_trigger) == (0, None)
    assert conversation.turn_idx == 1
    conversation.apply_assistant_message(calls("c2"))
    conversation.reopen_after_context_reset()
    assert conversation.pending == ()
    say(conversation, "Elbe")
    with pytest.raises(OperationRefused, match="reopened"):
        conversation.reopen_after_context_reset()


def test_reset_keeps_only_the_turn_limit():
    conversation = begun(window=900, max_rollbacks=2, max_turns=3)
    conversation.record_observed_prompt_tokens(conversation.visible, 800)
    conversation.apply_assistant_message(calls("c0"))
    conversation.rollback_assistant_tool_calls()
    conversation.max_turns = 1
    conversation.reset()
    assert (conversation.stage, conversation.turn_idx) == (S.NOT_INITIALIZED, 0)
    assert (conversation.rollback_count, conversation.calibration_ratio) == (0, 1.0)
    assert (len(conversation.full), conversation.estimate()) == (0, 0)
    assert conversation.initialize_conversation("t").stage is S.FORCE_FINAL


@pytest.mark.parametrize("value", [0, -1, True, 2.5, "3"])
def test_a_turn_limit_that_is_none_is_refused(value):
    conversation = begun(max_turns=2)
    with pytest.raises(ConfigError, match="max_turns"):
        conversation.max_turns = value
    assert conversation.max_turns == 2
    conversation.max_turns = None
    assert exchange(conversation, "c1").stage is S.TOOL_MESSAGES


def test_a_clone_of_a_subclass_is_of_that_subclass():
    class Mine(ConversationRuntime):
        pass

    conversation = Mine(config())
    assert type(conversation.clone()) is Mine


# what was observed


def test_observed_tokens_are_learnt_from_only_where_they_can_be_compared():
    stale = begun(window=900)
    assert not stale.record_observed_prompt_tokens(list(stale.visible)[:-1], 50)
    assert not stale.record_observed_prompt_tokens([Message.user("other")], 50)
    assert stale.record_observed_prompt_tokens(list(stale.visible), 50)
    for tokens in (0, -3, None, 7.5):
        assert not stale.record_observed_prompt_tokens(stale.visible, tokens)
    for knobs in ({}, {"window": 900, "preflight": False}):
        conversation = begun(**knobs)
        assert not conversation.record_observed_prompt_tokens(conversation.visible, 50)


def test_an_empty_prompt_teaches_nothing():
    conversation = ConversationRuntime(config(window=900))
    assert not conversation.record_observed_prompt_tokens([], 50)
    assert conversation.estimate() == 0
    told = ConversationRuntime(config(window=900), tools=["search"])
    assert told.record_observed_prompt_tokens([], 50)
    assert told.estimate() == 50


def observed(**knobs):
    conversation = begun(window=9000, runtime={"estimator": Letters()}, **knobs)
    exchange(conversation, "c1", text="r" * 96)
    conversation.record_observed_prompt_tokens(conversation.visible, 150)
    assert (conversation.estimate(), conversation.calibration_ratio) == (150, 1.1)
    return conversation


def test_the_anchor_is_lost_when_the_list_gets_shorter_and_does_not_come_back():
    conversation = observed()
    conversation.append_marker(Rollback(2, "x"))
    assert conversation.estimate() == int(4 * 1.1)
    exchange(conversation, "c2", text="r" * 96)
    assert conversation.estimate() == int(100 * 1.1)


def test_the_anchor_holds_while_only_later_messages_are_hidden():
    conversation = observed(refusal_keywords=("I cannot",), max_rollbacks=9)
    say(conversation, "I cannot")
    conversation.append_marker(Rollback(0, "x"))
    assert conversation.estimate() == 150
    conversation.apply_assistant_message(calls("c2", text="x" * 10))
    assert conversation.estimate() == 150 + int(10 * 1.1)
    conversation.rollback_assistant_tool_calls()
    assert conversation.estimate() == 150


@pytest.mark.parametrize("marker", [Compaction("s" * 100, 1, 2), DiscardAll(1), DiscardAll(3)])
def test_every_splice_loses_the_anchor_even_one_that_hides_nothing(marker):
    conversation = observed()
    conversation.append_marker(marker)
    size = sum(len(m.text) for m in conversation.visible)
    assert conversation.estimate() == int(size * 1.1)
    assert conversation.calibration_ratio == 1.1


@pytest.mark.parametrize("marker", [Compaction("s", 1, 9), DiscardAll(4), Rollback(0, "x")])
def test_a_raw_marker_out_of_range_leaves_the_anchor(marker):
    conversation = observed()
    conversation.append_raw_marker(marker.to_message())
    assert conversation.estimate() == 150


def test_a_step_reports_itself_as_json():
    conversation = begun(refusal_keywords=("I cannot",), max_rollbacks=1)
    step = say(conversation, "I cannot")
    shown = step.info.to_dict()
    assert json.loads(json.dumps(shown)) == shown
    assert shown["stage_path"][0] == "initial_user_message_await_assistant"
    assert shown["refusal_keywords"] == ["I cannot"]
    assert step.info.raw_message_count - step.info.visible_message_count == 2
