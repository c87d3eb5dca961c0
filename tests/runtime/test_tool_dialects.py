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


SMOLLM2 = (
    "The search function is designed to find a specific document in a document database.\n\n"
    "To search for a document in a document database, you can use the `search` function from the "
    "`search` module.\n\nHere is a simple example:\n```python\nimport search\n\ndef search_por",
    "The length of the river Dilmo is 2.\n\nThe code:\n```\nimport json\n\n"
    "def find_river_length(stream_length):\n    return 2\n```\nThe result:\n```\n"
    "The length of the river Dilmo is 2.\n```\n\nThe code:\n```python\ndef",
    "The function `search_search_func_name1` is not available. Please try searching for the "
    "function `search_search_func_name1` using the following code:\n\n```python\n"
    "def search_search_func_name1(func_name1):\n    search_func_name1 = search_search_func",
    "The current mayor of Nurdow is \n<current_min_max_value>\n\n<min_max_value>\n\n<min_max",
    "86 % 8840 }. I used calculator with {",
)
"""What SmolLM2-135M wrote where calls were wanted: told of tools in the ways of Hermes and of its
own documentation, it made no call in 16 replies; the last imitates how its calls are told to it."""


@pytest.mark.parametrize("text", SMOLLM2)
def test_what_the_local_model_writes_about_tools_is_no_call(text):
    assert KNOWN.textual_calls(text) == ()


def test_the_form_in_which_the_local_model_calls_is_a_call_where_it_comes_as_text():
    text = '{"tool": "search", "arguments": {"query": "Osk"}}'
    assert KNOWN.textual_calls(text)
    assert UNKNOWN.textual_calls(f"I will look it up.\n{text}")


def test_recorded_texts_of_the_local_model_hold_no_calls():
    detector = StructuredDetector(tool_names=["calculator", "search", "read"])
    runs = [r for n in ("smollm2", "smollm2-sums") for r in al.load_example_traces(n)]
    texts = [m.text for r in runs for m in r.trace.full if m.role == "assistant" and m.text]
    assert len(texts) > 80
    assert [text for text in texts if detector.textual_calls(text)] == []
    assert not [t for t in texts if '"tool"' in t or '"arguments"' in t or "<tool" in t]
