"""Every option of the conversation: what each of its values does."""

import pytest
from runtime_kit import STOP, answer, begun, calls, exchange, say, texts

from axislab.messages import Message, Role
from axislab.runtime.stages import ConversationStage as S

TAG = "<tool_call>{}</tool_call>"


# on_length


def test_on_length_accept_lets_a_cut_reply_go_on_as_usual():
    conversation = begun(on_length="accept", refusal_keywords=("I cannot",), max_rollbacks=1)
    assert say(conversation, "I cannot", "length").stage is S.INITIAL_USER
    assert conversation.apply_assistant_message(calls("c1"), "length").stage is S.TOOL_CALLS
    answer(conversation)
    assert say(conversation, "Elbe", "length").stage is S.COMPLETED


def test_on_length_accept_still_ends_at_nothing_at_all():
    assert say(begun(on_length="accept"), None, "length").stage is S.TOKEN_EXCEEDED


def test_on_length_rollback_hides_the_cut_reply_until_the_limit():
    conversation = begun(on_length="rollback", max_rollbacks=1)
    step = say(conversation, "The El", "length")
    assert step.stage is S.INITIAL_USER
    assert step.info.conditional() == {
        "assistant_rollback_count": 1,
        "rollback_reason": "token_exhaustion",
        "finish_reason": "length",
        "token_exhaustion_had_content": True,
    }
    assert texts(conversation) == ["task"]
    assert say(conversation, "The El", "length").stage is S.TOKEN_EXCEEDED


def test_on_length_rollback_hides_cut_calls_as_well():
    conversation = begun(on_length="rollback", max_rollbacks=1)
    step = conversation.apply_assistant_message(calls("c1"), "length")
    assert step.info.token_exhaustion_had_content is False
    assert (conversation.pending, conversation.turn_idx) == ((), 0)


def test_on_length_rollback_takes_a_direct_answer_first_and_needs_rollbacks():
    hook = {"direct_answer": lambda m: "42" if "42" in m.text else None}
    conversation = begun(on_length="rollback", max_rollbacks=1, runtime=hook)
    assert say(conversation, "42 and", "length").stage is S.COMPLETED
    assert say(begun(on_length="rollback"), "The", "length").stage is S.TOKEN_EXCEEDED


# on_rollback_limit


@pytest.mark.parametrize(
    ("text", "knobs"),
    [
        ("I cannot", {"refusal_keywords": ("I cannot",)}),
        (TAG, {"strategy": "rollback"}),
    ],
)
def test_at_the_rollback_limit_stop_keeps_the_reply_and_forces_the_answer(text, knobs):
    conversation = begun(on_rollback_limit="stop", max_rollbacks=1, **knobs)
    say(conversation, text)
    step = say(conversation, text)
    assert step.stage is S.FORCE_FINAL
    assert step.info.finalization_trigger == "rollback_limit"
    assert texts(conversation) == ["task", text, STOP]
    assert "no rollback is left" in step.decision.because
    assert say(conversation, "Elbe").done_reason == "terminated_rollback_limit"


def test_stop_does_nothing_where_rollbacks_are_off():
    conversation = begun(on_rollback_limit="stop", refusal_keywords=("I cannot",))
    assert say(conversation, "I cannot").stage is S.COMPLETED


def test_at_the_rollback_limit_accept_takes_the_reply():
    conversation = begun(max_rollbacks=1, refusal_keywords=("I cannot",))
    say(conversation, "I cannot")
    assert say(conversation, "I cannot").stage is S.COMPLETED


# on_empty_reply


@pytest.mark.parametrize("text", [None, "", " \n"])
def test_an_empty_reply_is_hidden_and_asked_again_until_the_limit(text):
    conversation = begun(on_empty_reply="retry", max_rollbacks=1)
    step = say(conversation, text)
    assert (step.stage, step.info.rollback_reason) == (S.INITIAL_USER, "empty_reply")
    assert (len(texts(conversation)), conversation.turn_idx) == (1, 0)
    assert say(conversation, text).stage is S.COMPLETED


def test_an_empty_reply_that_stays_in_sight_is_asked_again_and_does_not_count():
    conversation = begun(on_empty_reply="retry_visible", max_rollbacks=2)
    exchange(conversation, "c1")
    step = say(conversation, "")
    assert [S(s) for s in step.stage_path] == [
        S.TOOL_MESSAGES,
        S.RECEIVED,
        S.ROLLBACK,
        S.TOOL_MESSAGES,
    ]
    assert texts(conversation) == ["task", "", "result", ""]
    assert (conversation.turn_idx, conversation.rollback_count) == (1, 1)
    assert step.info.rollback_reason == "empty_reply"


def test_an_empty_reply_is_accepted_where_rollbacks_are_off():
    assert say(begun(on_empty_reply="retry"), "").stage is S.COMPLETED


def test_an_empty_reply_to_the_final_prompt_is_asked_again_too():
    conversation = begun(on_empty_reply="retry", max_rollbacks=1, final_response_prompt="WRAP UP")
    say(conversation, "Elbe")
    assert say(conversation, "").stage is S.FINAL_PROMPT


def test_text_and_calls_are_no_empty_reply():
    conversation = begun(on_empty_reply="retry", max_rollbacks=1)
    assert conversation.apply_assistant_message(calls("c1")).stage is S.TOOL_CALLS
    answer(conversation)
    assert say(conversation, "Elbe").stage is S.COMPLETED


# max_reprompts


def test_reprompts_that_are_used_up_leave_the_text_as_it_is():
    conversation = begun(max_reprompts=2)
    assert [say(conversation, TAG).stage for _ in range(3)] == [
        S.REPROMPT,
        S.REPROMPT,
        S.COMPLETED,
    ]
    conversation.reset()
    conversation.initialize_conversation("again")
    assert say(conversation, TAG).stage is S.REPROMPT
    assert say(begun(max_reprompts=0), TAG).stage is S.COMPLETED


# agg_reject_tool_message


def rejected(conversation, rows, ids):
    results = [Message(role=Role.TOOL, content=t, tool_call_id=i) for i, t in rows]
    step = conversation.apply_batch_tool_messages(results, rejected_ids=ids)
    return [(m.tool_call_id, m.name, m.content) for m in step.appended]


def waiting(**knobs):
    conversation = begun(**knobs)
    made = calls("c1", "c2", "c3").tool_calls + calls("c4", name="read").tool_calls
    conversation.apply_assistant_message(Message.assistant(None, made))
    return conversation


ROWS = [("c4", "limit"), ("c1", "limit"), ("c2", "fine"), ("c3", None)]


def test_rejected_results_of_equal_content_are_merged_after_all_others():
    assert rejected(waiting(agg_reject_tool_message=True), ROWS, {"c1", "c3", "c4"}) == [
        ("c2", "search", "fine"),
        ("c4,c1", "read,search", "limit"),
        ("c3", "search", None),
    ]


def test_no_content_and_empty_content_are_not_equal():
    rows = [("c1", None), ("c2", ""), ("c3", ""), ("c4", None)]
    conversation = waiting(agg_reject_tool_message=True)
    assert rejected(conversation, rows, {"c1", "c2", "c3", "c4"}) == [
        ("c1,c4", "read,search", None),
        ("c2,c3", "search", ""),
    ]


def test_results_that_were_not_rejected_are_never_merged():
    rows = [("c1", "limit"), ("c2", "limit"), ("c3", "limit"), ("c4", "limit")]
    conversation = waiting(agg_reject_tool_message=True)
    assert [r[0] for r in rejected(conversation, rows, {"c1"})] == ["c2", "c3", "c4", "c1"]
    conversation = waiting(agg_reject_tool_message=True)
    assert [r[0] for r in rejected(conversation, rows, None)] == ["c1", "c2", "c3", "c4"]


def test_nothing_is_merged_by_default():
    assert [r[0] for r in rejected(waiting(), ROWS, {"c1", "c4"})] == ["c4", "c1", "c2", "c3"]


# detector


def test_the_structured_detector_reports_where_it_found_something():
    conversation = begun(
        detector="structured",
        strategy="rollback",
        max_rollbacks=2,
        runtime={"tool_names": ["search"]},
    )
    step = say(conversation, "I'm sorry, but I can\u2019t help with that.")
    assert step.info.rollback_reason == "assistant_refusal"
    assert step.info.matched_spans == ((0, 22),)
    step = say(conversation, 'Now:\nsearch("Osk")')
    assert step.info.rollback_reason == "format_error"
    assert step.info.matched_spans == ((5, 18),)
    assert step.info.conditional()["matched_spans"] == [[5, 18]]


def test_the_substring_detector_reports_no_spans():
    assert say(begun(), TAG).info.matched_spans is None


# prompts


def test_empty_prompts_are_none():
    conversation = begun(
        system_prompt="", early_stop_prompt="", final_response_prompt="", max_turns=1
    )
    assert texts(conversation) == ["task"]
    assert conversation.stage is S.FORCE_FINAL
    assert say(conversation, "Elbe").stage is S.COMPLETED


def test_both_prompts_force_together_and_either_alone():
    def forced(**knobs):
        return texts(begun(max_turns=1, **knobs))[1:]

    assert forced(early_stop_prompt="A", final_response_prompt="B") == ["A\n\nB"]
    assert forced(early_stop_prompt="", final_response_prompt="B") == ["B"]
    assert forced(early_stop_prompt="A") == ["A"]
    assert forced(early_stop_prompt=None) == []
