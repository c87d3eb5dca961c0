"""The seven levels, the two skip rules, and the budget between them."""

import pytest
from runtime_kit import STOP, Letters, answer, begun, calls, exchange, say, texts

from axislab.errors import InvalidMessage
from axislab.messages import Message, Role
from axislab.runtime.rules import CHAIN
from axislab.runtime.stages import ConversationStage as S
from axislab.runtime.stages import FinalizationTrigger, RollbackReason, StepAction

TAG = '<tool_call>{"name": "search", "arguments": {}}</tool_call>'
REFUSING = {"refusal_keywords": ("I cannot",), "max_rollbacks": 2}


def direct(message):
    """A direct-answer hook: what follows FINAL."""
    return message.text.removeprefix("FINAL ") if message.text.startswith("FINAL ") else None


def short_path(step):
    return [S(stage) for stage in step.stage_path[1:]]


# Level 1 and its companion


@pytest.mark.parametrize("content", [None, ""])
def test_l1_a_reply_cut_before_any_text_ends_the_conversation(content):
    step = begun().apply_assistant_message(Message.assistant(content), "length")
    assert (step.decision.level, step.stage) == ("L1", S.TOKEN_EXCEEDED)
    assert step.done_reason == "terminated_token_exceed"
    assert step.info.conditional() == {}


def test_l1_holds_in_the_forced_round_too():
    step = begun(max_turns=1).apply_assistant_message(Message.assistant(None), "length")
    assert step.stage is S.TOKEN_EXCEEDED


@pytest.mark.parametrize("text", ["  ", "The Elbe"])
def test_l1b_a_cut_text_ends_the_conversation_unless_it_holds_a_direct_answer(text):
    step = say(begun(final_response_prompt="WRAP UP"), text, "length")
    assert (step.decision.level, step.stage) == ("L1b", S.TOKEN_EXCEEDED)
    assert step.info.conditional() == {
        "finish_reason": "length",
        "token_exhaustion_had_content": True,
    }


def test_l1b_cut_calls_are_not_run():
    conversation = begun()
    step = conversation.apply_assistant_message(calls("c1"), "length")
    assert step.stage is S.TOKEN_EXCEEDED
    assert step.info.token_exhaustion_had_content is False
    assert conversation.pending == ()


def test_l1b_a_cut_direct_answer_is_taken_and_resets_the_counter():
    conversation = begun(**REFUSING, runtime={"direct_answer": direct})
    say(conversation, "I cannot")
    step = say(conversation, "FINAL I cannot be wrong", "length")
    assert (step.decision.level, step.stage) == ("L1b", S.COMPLETED)
    assert step.info.direct_final_answer == "I cannot be wrong"
    assert step.info.finish_reason == "length"
    assert conversation.rollback_count == 0


# Level 2


def test_l2_a_forced_reply_is_taken_as_it_is():
    conversation = begun(max_turns=1, **REFUSING, runtime={"direct_answer": direct})
    step = say(conversation, f"I cannot {TAG}", "length")
    assert (step.decision.level, step.stage) == ("L2", S.FORCE_COMPLETED)
    assert step.done_reason == "terminated_turn_limit"
    assert step.info.conditional() == {"finalization_trigger": "turn_limit"}


def test_l2_a_silently_forced_reply_completes_and_keeps_the_counter():
    conversation = begun(max_turns=2, early_stop_prompt=None, **REFUSING)
    say(conversation, "I cannot")
    exchange(conversation, "c1")
    assert texts(conversation)[-1] == "result"
    step = say(conversation, "I cannot")
    assert (step.stage, step.done_reason) == (S.COMPLETED, "assistant_final_answer")
    assert step.info.finalization_trigger == "turn_limit"
    assert conversation.rollback_count == 1


def test_l2_forced_calls_are_rejected_even_beside_text():
    step = begun(max_turns=1).apply_assistant_message(calls("c1", "c2", text="Elbe"))
    assert (step.stage, step.action) == (S.CALLS_REJECTED, StepAction.DONE)
    assert step.info.tool_request_count == 2
    assert step.done_reason == "assistant_tool_calls_rejected_due_to_force_finalization"


# Level 3


def test_l3_calls_beat_refusals_tags_and_direct_answers():
    conversation = begun(**REFUSING, runtime={"direct_answer": direct})
    step = conversation.apply_assistant_message(calls("c1", text=f"FINAL I cannot {TAG}"))
    assert (step.decision.level, step.stage) == ("L3", S.TOOL_CALLS)
    assert [c.id for c in conversation.pending] == ["c1"]


# Level 4


def test_l4a_a_refusal_is_hidden_and_its_turn_does_not_count():
    conversation = begun(**REFUSING, fold_case=True)
    step = say(conversation, "i CANNOT help")
    assert short_path(step) == [S.RECEIVED, S.ROLLBACK, S.INITIAL_USER]
    assert (conversation.turn_idx, conversation.rollback_count) == (0, 1)
    assert step.info.conditional() == {
        "assistant_rollback_count": 1,
        "rollback_reason": "assistant_refusal",
        "refusal_keywords": ["I cannot"],
    }
    assert texts(conversation) == ["task"]


def test_l4a_keywords_are_case_sensitive_by_default():
    assert say(begun(**REFUSING), "i CANNOT help").stage is S.COMPLETED


def test_l4b_the_three_strategies():
    kept = begun()
    step = say(kept, TAG)
    assert (step.stage, step.action) == (S.REPROMPT, StepAction.CALL_MODEL)
    assert len(texts(kept)) == 3
    assert step.info.wrong_tool_call_format_keywords == ("<tool_call>", "</tool_call>")
    assert step.info.offending_content_length == len(TAG)

    hidden = begun(strategy="rollback", max_rollbacks=1)
    step = say(hidden, TAG)
    assert step.info.rollback_reason == RollbackReason.FORMAT_ERROR
    assert texts(hidden) == ["task"]
    assert say(hidden, TAG).stage is S.COMPLETED, "at the limit it goes through"

    assert say(begun(strategy="ignore"), TAG).stage is S.COMPLETED


def test_l4b_a_rollback_without_rollbacks_lets_the_text_through():
    assert say(begun(strategy="rollback"), TAG).stage is S.COMPLETED


def test_l4b_reprompts_leave_the_counter_alone_and_meet_the_turn_limit():
    conversation = begun(max_turns=3, **REFUSING)
    say(conversation, "I cannot")
    step = say(conversation, TAG)
    assert (step.stage, conversation.rollback_count) == (S.REPROMPT, 1)
    step = say(conversation, TAG)
    assert short_path(step) == [S.RECEIVED, S.REPROMPT, S.FORCE_FINAL]
    assert [m.text for m in step.appended][-1] == STOP
    assert step.info.finalization_trigger == FinalizationTrigger.TURN_LIMIT
    assert step.info.format_error_strategy == "reprompt"


# Levels 5 to 7


def test_l5_a_direct_answer_skips_the_final_prompt():
    conversation = begun(final_response_prompt="WRAP UP", runtime={"direct_answer": direct})
    step = say(conversation, "FINAL " + "x " * 300)
    assert (step.decision.level, step.stage) == ("L5", S.COMPLETED)
    assert len(step.info.direct_final_answer_preview) == 241


def test_l6_the_final_prompt_follows_once_and_the_hook_may_decline():
    conversation = begun(final_response_prompt="WRAP UP")
    step = say(conversation, "Elbe")
    assert (step.decision.level, step.stage) == ("L6", S.FINAL_PROMPT)
    assert say(conversation, "").stage is S.COMPLETED
    declined = begun(
        final_response_prompt="WRAP UP", runtime={"wants_final_prompt": lambda m: "!" in m.text}
    )
    assert say(declined, "Elbe").decision.level == "L7"


def test_l6_both_prompts_may_follow_each_other():
    conversation = begun(final_response_prompt="WRAP UP", max_turns=2)
    step = say(conversation, "Elbe")
    assert [m.text for m in step.appended][1:] == ["WRAP UP", f"{STOP}\n\nWRAP UP"]


def test_skip_rule_2_after_the_final_prompt_text_is_taken_but_calls_are_run():
    conversation = begun(final_response_prompt="WRAP UP", **REFUSING)
    say(conversation, "Elbe")
    reports = conversation.explain(Message.assistant("I cannot " + TAG))
    skipped = [r.rule for r in reports if r.outcome == "skipped"]
    assert skipped == ["refusal", "format_error", "direct_answer", "final_prompt"]
    exchange(conversation, "c1")
    assert conversation.stage is S.TOOL_MESSAGES
    assert say(conversation, "I cannot").info.rollback_reason == "assistant_refusal"
    assert say(conversation, "Elbe").stage is S.FINAL_PROMPT
    assert say(conversation, "I cannot " + TAG).stage is S.COMPLETED


def test_l7_an_empty_text_completes_and_the_counter_starts_over():
    conversation = begun(**REFUSING)
    say(conversation, "I cannot")
    step = say(conversation, None)
    assert (step.decision.level, step.stage) == ("L7", S.COMPLETED)
    assert conversation.rollback_count == 0


def test_a_hidden_reply_leads_back_to_where_it_was_received():
    conversation = begun(final_response_prompt="WRAP UP", **REFUSING)
    say(conversation, TAG)
    assert say(conversation, "I cannot").stage is S.REPROMPT
    conversation.apply_assistant_message(calls("c1"))
    assert conversation.rollback_assistant_tool_calls().stage is S.REPROMPT


# The budget between levels 1 and 3


def tight(text="", **knobs):
    """41 characters of window: 4 are the task, 17 the force prompt, 10 the warning line."""
    base = {"window": 41, "min_tokens_for_generation": 5, "warning_threshold": 10}
    return begun(runtime={"estimator": Letters()}, **{**base, **knobs})


def test_the_budget_is_checked_only_with_a_hard_line():
    conversation = tight(min_tokens_for_generation=0)
    step = conversation.apply_assistant_message(calls("c1", text="x" * 40))
    assert step.stage is S.TOOL_CALLS


@pytest.mark.parametrize(
    ("length", "stage"),
    [(27, S.TOOL_CALLS), (28, S.FORCE_FINAL), (32, S.FORCE_FINAL), (33, S.TOKEN_EXCEEDED)],
)
def test_the_two_lines_after_a_reply_with_calls(length, stage):
    conversation = tight()
    step = conversation.apply_assistant_message(calls("c1", text="x" * length))
    assert step.stage is stage
    record = step.info.context_limit_estimate
    if stage is S.TOKEN_EXCEEDED:
        assert len(record) == 11
        assert step.info.context_budget_stop is True
        assert step.decision.level == "budget"


def test_a_warning_hides_unanswered_calls_before_the_force_prompt():
    conversation = tight()
    step = conversation.apply_assistant_message(calls("c1", text="x" * 30))
    assert short_path(step) == [S.RECEIVED, S.CONTEXT_ROLLBACK, S.FORCE_FINAL]
    assert texts(conversation) == ["task", STOP]
    assert conversation.turn_idx == 1, "a context rollback keeps the turn"
    assert step.info.rollback_message_count == 1


def test_unanswered_calls_are_hidden_even_where_the_prompt_does_not_fit_then():
    conversation = tight(early_stop_prompt="s" * 33)
    step = conversation.apply_assistant_message(calls("c1", text="x" * 30))
    assert short_path(step) == [S.RECEIVED, S.CONTEXT_ROLLBACK, S.TOKEN_EXCEEDED]
    assert step.info.context_limit_estimate["warning_prompt_fits"] is False


@pytest.mark.parametrize("length", [30, 60])
@pytest.mark.parametrize("options", [{}, {"final_response_prompt": "W", "hook": lambda _: False}])
def test_a_finished_answer_is_taken_however_little_is_left(length, options):
    hook = options.get("hook")
    prompt = options.get("final_response_prompt")
    conversation = begun(
        runtime={"estimator": Letters(), "wants_final_prompt": hook},
        window=41,
        min_tokens_for_generation=5,
        warning_threshold=10,
        final_response_prompt=prompt,
    )
    step = say(conversation, "x" * length)
    assert (step.stage, step.decision.level) == (S.COMPLETED, "L7")


def test_the_answer_to_the_final_prompt_is_taken_too():
    conversation = tight(final_response_prompt="W", window=60)
    assert say(conversation, "Elbe").stage is S.FINAL_PROMPT
    assert say(conversation, "I cannot" + "x" * 60).stage is S.COMPLETED


@pytest.mark.parametrize(
    ("text", "knobs"),
    [
        (" " * 30, {}),
        ("I cannot" + "x" * 22, REFUSING),
        (TAG, {}),
        (TAG, {"strategy": "rollback", "max_rollbacks": 1}),
        ("Elbe" * 8, {"final_response_prompt": "W"}),
    ],
)
@pytest.mark.parametrize(("left", "stage"), [(9, S.FORCE_FINAL), (4, S.TOKEN_EXCEEDED)])
def test_what_would_need_another_generation_meets_the_budget(text, knobs, left, stage):
    base = {"early_stop_prompt": None, "min_tokens_for_generation": 5, **knobs}
    window = len("task") + len(text) + left
    conversation = begun(
        runtime={"estimator": Letters()}, window=window, warning_threshold=10, **base
    )
    step = say(conversation, text)
    assert (step.stage, step.decision.rule) == (stage, "context_budget")
    assert step.info.finalization_trigger == "context_limit"
    assert conversation.rollback_count == 0


def test_a_direct_answer_is_taken_however_little_is_left():
    conversation = begun(
        runtime={"estimator": Letters(), "direct_answer": direct},
        window=41,
        min_tokens_for_generation=5,
        final_response_prompt="WRAP UP",
    )
    step = say(conversation, "FINAL " + "x" * 60)
    assert (step.stage, step.decision.level) == (S.COMPLETED, "L5")
    assert step.info.direct_final_answer == "x" * 60


# The turn limit


def test_the_turn_limit_holds_past_the_count_too():
    conversation = begun(max_turns=9)
    exchange(conversation, "c1")
    exchange(conversation, "c2")
    conversation.max_turns = 1
    assert exchange(conversation, "c3").stage is S.FORCE_FINAL


def test_the_turn_limit_is_not_asked_after_a_rollback():
    conversation = begun(max_turns=2, **REFUSING)
    conversation.apply_assistant_message(calls("c1"))
    conversation.max_turns = 1
    assert conversation.rollback_assistant_tool_calls().stage is S.INITIAL_USER
    assert say(conversation, "I cannot").stage is S.INITIAL_USER
    assert conversation.reopen_after_context_reset().stage is S.INITIAL_USER


def test_exhausted_tools_force_the_answer_before_any_other_check():
    conversation = tight(max_turns=2, window=45)
    conversation.apply_assistant_message(calls("c1"))
    step = answer(conversation, "x" * 100, tools_exhausted=True)
    assert step.stage is S.FORCE_FINAL
    assert step.info.tools_exhausted is True
    assert step.info.finalization_trigger == "tools_exhausted"
    assert say(conversation, "Elbe").done_reason == "terminated_tools_exhausted"


def test_the_chain_is_a_table_of_rules_that_say_what_they_are_for():
    assert [r.level for r in CHAIN] == [
        *("L1", "L2", "L1b", "budget", "L3", "L4", "L4a", "L4b", "L5", "L6", "L7")
    ]
    assert all(r.summary.endswith(".") for r in CHAIN)


@pytest.mark.parametrize("role", [r for r in Role if r is not Role.ASSISTANT])
def test_only_assistant_messages_are_replies(role):
    conversation = begun()
    for act in (conversation.apply_assistant_message, conversation.explain):
        with pytest.raises(InvalidMessage, match="role 'assistant'"):
            act(Message(role=role, content="x"))
    assert (len(conversation.full), conversation.turn_idx) == (1, 0)
