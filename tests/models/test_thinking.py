"""Thinking that is no answer, and replies that may have been cut."""

from typing import Any

import pytest
from fake_server import FakeServer
from hypothesis import given
from hypothesis import strategies as st

import axislab as al
from axislab.messages import ToolCall, Usage
from axislab.models.base import ModelReply
from axislab.models.thoughts import split_thinking
from axislab.models.truncation import marked

LIMIT = 100


@pytest.mark.parametrize(
    ("reply", "only"),
    [
        (ModelReply(reasoning="hm"), True),
        (ModelReply(text=" \n", reasoning="hm", finish_reason="length"), True),
        (ModelReply(text="", usage=Usage(reasoning_tokens=9)), True),
        (ModelReply(text=""), False),
        (ModelReply(text="", usage=Usage(reasoning_tokens=0)), False),
        (ModelReply(reasoning="  "), False),
        (ModelReply(text="42", reasoning="hm"), False),
        (ModelReply(reasoning="hm", tool_calls=(ToolCall(id="", name="x"),)), False),
    ],
)
def test_thinking_only_is_not_an_empty_reply(reply: ModelReply, only: bool) -> None:
    assert reply.thinking_only is only


def called(*arguments: str, **reply: Any) -> ModelReply:
    calls = tuple(ToolCall(id="", name="x", arguments=text) for text in arguments)
    return ModelReply(tool_calls=calls, **reply)


@pytest.mark.parametrize(
    ("reply", "cut"),
    [
        (ModelReply(text="a", usage=Usage(output_tokens=LIMIT)), True),
        (ModelReply(text="a", usage=Usage(output_tokens=LIMIT - 1)), False),
        (ModelReply(text="a", usage=Usage(output_tokens=LIMIT, estimated=True)), False),
        (ModelReply(text="a", usage=Usage()), False),
        (ModelReply(text="a", finish_reason="length"), False),
        (called("{}", '{"q": "cu', finish_reason="length"), True),
        (called("[1]", finish_reason="length"), True),
        (called("{}", finish_reason="length"), False),
        (called('{"q": "cu', finish_reason="stop"), False),
        (ModelReply(text="a", possibly_truncated=True), True),
    ],
)
def test_a_reply_that_may_have_been_cut_is_marked(reply: ModelReply, cut: bool) -> None:
    assert marked(reply, limit=LIMIT).possibly_truncated is cut


@given(st.text(alphabet="a<> /\n"), st.text(alphabet="ab \n"))
def test_a_closed_block_and_what_follows_are_told_apart(thought: str, said: str) -> None:
    if "<" in thought:
        thought = thought.replace("<", "")
    spoken = split_thinking(f"<think>{thought}</think>{said}")
    assert (spoken.said, spoken.thought) == (said.lstrip(), thought if thought.strip() else "")


@given(st.text(alphabet="ab<>/` \n"))
def test_text_without_tags_stays_as_it_is(text: str) -> None:
    assert split_thinking(text).said == text


@pytest.fixture
def asked(server: FakeServer) -> Any:
    def run(name: str, **knobs: Any) -> Any:
        lab = al.Lab(f"openai/{name}", api_base=server.url, api_key="k")
        return lab.run(al.Recipe(name="r").with_(**knobs), "What is 6 * 7?")

    return run


@pytest.mark.parametrize("name", ["reasoning-only", "reasoning-hidden", "think-open"])
def test_thinking_that_used_the_whole_budget_is_not_asked_again(
    name: str, asked: Any, server: FakeServer
) -> None:
    before = server.count(name)
    run = asked(name, on_empty_reply="retry", max_rollbacks=3, attempts=3, on_length="rollback")
    assert server.count(name) == before + 1
    assert run.done_reason == "terminated_token_exceed"
    (row,) = al.budgets_df(run).to_dict("records")
    assert (row["thinking_only"], row["finish_reason"]) == (True, "length")
    (said,) = [m for m in run.trace.full if m.role == "assistant"]
    assert (said.text, bool(said.reasoning)) == ("", name != "reasoning-hidden")


def test_an_empty_reply_is_asked_again_as_the_recipe_says(asked: Any, server: FakeServer) -> None:
    before = server.count("empty")
    run = asked("empty", on_empty_reply="retry", max_rollbacks=2)
    assert server.count("empty") == before + 3
    assert set(al.budgets_df(run).thinking_only) == {False}


def test_a_reply_that_may_have_been_cut_is_seen_in_the_frame(asked: Any) -> None:
    assert al.budgets_df(asked("ok", max_output_tokens=7)).possibly_truncated.tolist() == [True]
    assert al.budgets_df(asked("ok")).possibly_truncated.tolist() == [False]
    assert al.budgets_df(asked("tool-cut")).possibly_truncated.tolist() == [True]
    failed = al.budgets_df(asked("status-400", attempts=1))
    assert failed.possibly_truncated.isna().tolist() == [True]


def test_a_thought_told_twice_is_kept_once(asked: Any) -> None:
    (said,) = [m for m in asked("think").trace.full if m.role == "assistant"]
    assert (said.text, said.reasoning) == ("42", "6 * 7")
