"""Every documented way to write a tool call as text is seen, and talk about them is not."""

from __future__ import annotations

import pytest
from runtime_kit import config
from tool_dialects import DIALECTS, JSON_CALL, QUOTED

import axislab as al
from axislab.messages import Message
from axislab.models.base import ModelReply
from axislab.runtime.conversation import ConversationRuntime
from axislab.runtime.decisions import insert_before
from axislab.runtime.detectors import StructuredDetector
from axislab.runtime.reasoning_calls import CALL_IN_REASONING
from axislab.runtime.rules import CHAIN

KNOWN = StructuredDetector(tool_names=["search", "read"])
UNKNOWN = StructuredDetector()
WANTED = insert_before(CHAIN, "empty_reply", CALL_IN_REASONING)


@pytest.mark.parametrize("name", DIALECTS)
def test_a_documented_call_is_found_whether_or_not_the_tools_are_known(name):
    assert KNOWN.textual_calls(DIALECTS[name])
    assert UNKNOWN.textual_calls(DIALECTS[name])


@pytest.mark.parametrize("name", DIALECTS)
def test_it_is_found_after_some_thinking_too(name):
    thought = f"The user asks for Osk, so I will look it up.\n{DIALECTS[name]}"
    (first, *_) = KNOWN.textual_calls(thought)
    assert first.start > 0


@pytest.mark.parametrize("name", QUOTED)
def test_who_speaks_of_calls_makes_none(name):
    assert KNOWN.textual_calls(QUOTED[name]) == ()
    assert UNKNOWN.textual_calls(QUOTED[name]) == ()


def judged(thought, *, text=None, strategy="reprompt", chain=WANTED, finish="stop"):
    runtime = ConversationRuntime(
        config(detector="structured", strategy=strategy, max_rollbacks=1),
        max_output_tokens=100,
        tool_names=("search",),
        chain=chain,
    )
    runtime.initialize_conversation("q")
    return runtime.apply_assistant_message(Message.assistant(text, reasoning=thought), finish)


@pytest.mark.parametrize("name", DIALECTS)
def test_a_call_that_was_only_thought_is_a_format_error_if_the_recipe_wants_that(name):
    assert judged(DIALECTS[name]).decision.rule == "call_in_reasoning"
    assert judged(DIALECTS[name], chain=CHAIN).decision.rule == "completed"


def test_the_rule_obeys_the_strategy_of_format_errors():
    hidden = judged(JSON_CALL, strategy="rollback")
    assert hidden.info.rollback_reason == "format_error"
    assert judged(JSON_CALL, strategy="ignore").decision.rule == "completed"


@pytest.mark.parametrize(
    "reply",
    [
        {"thought": JSON_CALL, "text": "It is Osk."},
        {"thought": "I think it is Osk."},
        {"thought": None},
        {"thought": "In Python, functools has a cache."},
    ],
)
def test_other_thinking_is_left_alone(reply):
    assert judged(**reply).decision.rule == "completed"


def test_thinking_cut_by_length_stays_the_end():
    decision = judged(JSON_CALL, finish="length").decision
    assert decision.rule == "token_exhaustion"
    assert decision.because.startswith("thinking used all tokens of the reply")
    assert "thinking" not in judged(None, finish="length").decision.because


def test_a_recipe_with_the_rule_gets_its_call_in_the_end():
    @al.tool
    def search(query: str) -> str:
        """Look something up."""
        return f"found {query}"

    model = al.ScriptedModel([ModelReply(text="", reasoning=JSON_CALL), "It is Osk."])
    recipe = al.Recipe(name="r", tools=(search,), chain=WANTED).with_(detector="structured")
    run = al.Lab(model).run(recipe, "Who?")
    assert (run.status, run.output) == ("COMPLETED", "It is Osk.")
    assert al.steps_df(run).rule.dropna().tolist() == ["call_in_reasoning", "completed"]
