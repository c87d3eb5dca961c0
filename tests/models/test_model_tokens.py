"""Tokens are counted message by message, offline, in any script."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axislab.messages import Message, Role, ToolCall
from axislab.models.tokens import (
    PER_MESSAGE,
    LiteLLMTokenEstimator,
    estimate_message,
    estimate_text,
)

CHINESE = "研究人员在同一组任务上比较两种策略的结果。" * 20


@pytest.fixture(scope="module")
def estimator() -> LiteLLMTokenEstimator:
    return LiteLLMTokenEstimator("openai/gpt-4o")


def conversation(number: int = 1) -> list[Message]:
    call = ToolCall(id=f"c{number}", name="search", arguments='{"query": "the capital of Osk"}')
    return [
        Message.system("You are a helpful agent."),
        Message.user("What is the capital of Osk?"),
        Message.assistant(None, [call]),
        Message.tool("The capital of Osk is Tal Moor.", tool_call_id=f"c{number}"),
        Message.assistant("Tal Moor"),
    ]


def test_it_says_what_it_is(estimator: LiteLLMTokenEstimator) -> None:
    assert (estimator.additive, estimator.includes_tools) == (True, False)
    assert estimator.method == "litellm:openai/gpt-4o"


def test_it_is_additive(estimator: LiteLLMTokenEstimator) -> None:
    messages = conversation()
    assert estimator.count(messages) == sum(estimator.count([m]) for m in messages)
    assert estimator.count([]) == 0
    assert estimator.fallbacks == 0


def test_the_sum_is_close_to_a_count_of_the_whole(estimator: LiteLLMTokenEstimator) -> None:
    from axislab.models._litellm import load_litellm
    from axislab.models.outgoing import wire_messages

    messages = [message for number in range(5) for message in conversation(number)]
    whole = load_litellm().token_counter(model="openai/gpt-4o", messages=wire_messages(messages))
    around = 5 * (PER_MESSAGE + 1)  # of calls, their names included: litellm leaves it out
    told = estimator.count(messages) + estimator.overhead(None)
    assert told == pytest.approx(whole + around, rel=0.01)


def test_a_result_is_counted_though_its_call_stands_in_another_message(
    estimator: LiteLLMTokenEstimator,
) -> None:
    short, long = (Message.tool("found " * n, tool_call_id="c1") for n in (1, 101))
    assert estimator.count([long]) - estimator.count([short]) == pytest.approx(100, abs=2)


def test_chinese_is_not_counted_as_a_quarter(estimator: LiteLLMTokenEstimator) -> None:
    message = Message.user(CHINESE)
    assert estimator.count([message]) > len(CHINESE) * 0.5
    assert estimate_message(message) == pytest.approx(len(CHINESE), rel=0.1)


def test_markers_have_no_tokens(estimator: LiteLLMTokenEstimator) -> None:
    assert estimator.count([Message(role=Role.RUNTIME, content="{}", name="rollback")]) == 0


@pytest.mark.parametrize("text", ["\ud83d", "<|endoftext|>", "\x00", ""])
def test_odd_texts_are_counted(estimator: LiteLLMTokenEstimator, text: str) -> None:
    assert 1 <= estimator.count([Message.user(text)]) < 20


@pytest.mark.parametrize("name", ["groq/llama-3.1-8b-instant", "no-such-model", "ollama/llama2"])
def test_any_model_is_counted_without_the_network(name: str) -> None:
    estimator = LiteLLMTokenEstimator(name)
    assert estimator.count([Message.user("four words are here")]) in range(3, 15)


def test_what_a_tokenizer_cannot_count_is_counted_by_characters() -> None:
    estimator = LiteLLMTokenEstimator(object())  # type: ignore[arg-type]
    message = Message.user("four words are here")
    assert estimator.count([message]) == estimate_message(message)
    assert estimator.fallbacks == 1


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("汉字", 2), ("汉字ab", 3), ("😀", 1)],
)
def test_an_estimate_by_characters(text: str, tokens: int) -> None:
    assert estimate_text(text) == tokens


@given(st.text(), st.text())
def test_estimates_grow_with_the_text(one: str, two: str) -> None:
    assert estimate_text(one) <= estimate_text(one + two) <= estimate_text(one) + estimate_text(two)
