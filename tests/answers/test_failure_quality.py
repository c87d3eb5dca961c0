"""How useful an account of a failure is, and how the prompts of the stage are put together."""

from __future__ import annotations

import pytest

from axislab.answer_policy import AnswerPolicy
from axislab.answers.failure import summary_quality
from axislab.answers.prompts import (
    Experience,
    failure_messages,
    form_of,
    open_end,
    with_experiences,
)
from axislab.messages import Message, ToolCall

GOOD = (
    "Failure type: incomplete. I searched twice and read d0012. The river of Osk is Bebo. "
    "Still missing: its source."
)
CALL = ToolCall(id="c1", name="search", arguments="{}")
ASKED = [Message.user("task"), Message.assistant(None, [CALL])]
RESULT = Message.tool("found", tool_call_id="c1")


def test_an_account_with_all_that_helps_is_worth_most():
    assert summary_quality(GOOD, "Which river?").score == 1.0


@pytest.mark.parametrize(
    ("text", "lacks"),
    [
        (GOOD.replace("Still missing: its source.", ""), "missing"),
        (GOOD.replace("Failure type: incomplete. ", ""), "kind of failure"),
        (GOOD.replace("I searched twice and read d0012. ", ""), "what was done"),
    ],
)
def test_what_an_account_lacks_is_named(text, lacks):
    quality = summary_quality(text, "")
    assert quality.score < 1
    assert len(quality.missing) == 1
    assert lacks in quality.missing[0]


def test_what_the_task_says_itself_is_no_finding():
    task = "Which river is at Port Osk?"
    account = "It failed: I searched for Port Osk, nothing more, and the river is missing."
    found = account + " Bebo was named 3 times."
    assert "repeat every fact" in summary_quality(account, task).missing[-1]
    assert summary_quality(found, task).score > summary_quality(account, task).score


@pytest.mark.parametrize("text", ["", "I'm sorry.", "I cannot help with 12 things.", "抱歉"])
def test_nothing_and_an_apology_are_worth_nothing(text):
    assert summary_quality(text).score == 0.0


def test_a_chinese_account_counts():
    assert summary_quality("失败类型:受阻。尝试了搜索,河流是白河。仍需要源头。").score == 1.0


@pytest.mark.parametrize(
    ("messages", "as_text", "count"),
    [
        ([], False, 0),
        ([Message.user("task")], False, 0),
        ([Message.system("s"), Message.user("task")], True, 0),
        ([*ASKED, RESULT], True, 1),
        ([*ASKED, RESULT], False, 0),
        (ASKED, False, 1),
        ([Message.user("task"), Message.assistant("a"), Message.user("now!")], False, 1),
        ([*ASKED, RESULT, Message.user("now!")], False, 1),
        ([Message.user("task"), Message.assistant("a")], False, 0),
        ([Message.user("task"), Message.assistant(" ")], False, 1),
    ],
)
def test_what_gives_way_to_a_prompt_of_the_stage(messages, as_text, count):
    assert open_end(messages, results_as_text=as_text) == count


def test_the_account_is_asked_for_on_a_copy_without_open_calls():
    policy = AnswerPolicy(failure_prompt="why?", failure_prefix="<think>")
    reply = Message.assistant("I look.", [CALL])
    before = [Message.user("task"), reply]
    sent = failure_messages(before, policy, results_as_text=False, again="More facts.")
    assert [m.text for m in sent] == ["task", "I look.", "why?\n\nMore facts.", "<think>"]
    assert not any(m.tool_calls for m in sent)
    assert before[1] is reply


def test_experiences_stand_after_the_task_under_their_numbers():
    text = with_experiences("task", [Experience(1, "one"), Experience(3, "three")])
    assert text.startswith("task\n\n")
    assert text.index("Attempt 1:\none") < text.index("Attempt 3:\nthree")
    assert with_experiences("task", []) == "task"


def test_every_format_says_how_the_answer_is_written():
    assert "\\boxed" in form_of(AnswerPolicy())
    assert '"final"' in form_of(AnswerPolicy(answer_format="json", answer_pattern="final"))
    assert "A: (.*)" in form_of(AnswerPolicy(answer_format="regex", answer_pattern="A: (.*)"))
