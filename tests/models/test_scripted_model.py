"""The scripted model says its lines, one for each request."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from axislab.errors import ConfigError, ErrorKind, ModelError
from axislab.messages import Message, ToolCall, Usage
from axislab.models.base import ChatModel, ModelReply, ModelRequest
from axislab.models.scripted import ScriptedModel

HELLO = ModelRequest(messages=[Message.user("hello")])


def ask(model: ScriptedModel, request: ModelRequest = HELLO) -> ModelReply:
    return asyncio.run(model.complete(request))


def test_it_is_a_chat_model_and_says_that_it_is_simulated() -> None:
    model = ScriptedModel(["a"])
    assert isinstance(model, ChatModel)
    assert model.simulated
    assert repr(model) == "ScriptedModel('scripted', simulated, 1 line, 0 requests)"
    model.check()


def test_lines_are_said_in_order_and_requests_are_kept() -> None:
    model = ScriptedModel(["one", "two"])
    assert [ask(model).text, ask(model).text] == ["one", "two"]
    assert model.requests == [HELLO, HELLO]


def test_a_text_stops_and_calls_are_tool_calls() -> None:
    call = ScriptedModel.call("search", query="Ø", k=2)
    text, one, two = (ask(ScriptedModel([line])) for line in ("a", call, [call, call]))
    assert (text.finish_reason, one.finish_reason) == ("stop", "tool_calls")
    assert one.tool_calls[0].arguments == '{"query": "Ø", "k": 2}'
    assert len(two.tool_calls) == 2


def test_calls_get_provider_ids_that_differ_within_a_script() -> None:
    call = ScriptedModel.call("search")
    model = ScriptedModel([[call, call], call])
    ids = [c.provider_id for _ in range(2) for c in ask(model).tool_calls]
    assert len(set(ids)) == 3
    assert None not in ids


def test_a_provider_id_of_the_script_is_kept() -> None:
    call = ToolCall(id="mine", name="search", provider_id="theirs")
    other = ToolCall(id="mine", name="search")
    calls = ask(ScriptedModel([[call, other]])).tool_calls
    assert [(c.id, c.provider_id) for c in calls] == [("mine", "theirs"), ("", "mine")]


def test_a_whole_reply_is_returned_with_what_it_says() -> None:
    usage = Usage(input_tokens=3, output_tokens=4)
    reply = ModelReply(text=None, reasoning="hm", finish_reason="length", usage=usage)
    got = ask(ScriptedModel([reply]))
    assert (got.text, got.reasoning, got.finish_reason, got.usage) == (None, "hm", "length", usage)


def test_errors_are_raised() -> None:
    problem = ModelError("busy", kind=ErrorKind.OVERLOADED)
    model = ScriptedModel([problem, KeyboardInterrupt()])
    with pytest.raises(ModelError) as raised:
        ask(model)
    assert raised.value is problem
    with pytest.raises(KeyboardInterrupt):
        ask(model)


def test_a_function_sees_the_request() -> None:
    model = ScriptedModel([lambda request: request.messages[0].text.upper()])
    assert ask(model).text == "HELLO"


def test_one_function_answers_every_request() -> None:
    model = ScriptedModel(lambda request: request.messages[0].text)
    assert [ask(model).text for _ in range(3)] == ["hello"] * 3


def test_a_used_up_script_raises_and_says_how_long_it_was() -> None:
    model = ScriptedModel(["a"])
    ask(model)
    with pytest.raises(ModelError, match=r"request 2, but the script has 1.*after='repeat'"):
        ask(model)


def test_after_repeat_says_the_last_line_again() -> None:
    model = ScriptedModel(["a", "b"], after="repeat")
    assert [ask(model).text for _ in range(4)] == ["a", "b", "b", "b"]


@pytest.mark.parametrize(
    ("replies", "options", "match"),
    [
        ([], {}, "at least one line"),
        ("text", {}, r"\['text'\]"),
        (["a"], {"after": "stop"}, "after='stop'"),
    ],
)
def test_what_is_no_script_is_refused(replies: Any, options: Any, match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        ScriptedModel(replies, **options)


@pytest.mark.parametrize("line", [3, [], ["a", "b"], None])
def test_what_is_no_line_is_refused_when_its_turn_comes(line: Any) -> None:
    with pytest.raises(ConfigError, match="no line of a script"):
        ask(ScriptedModel([line]))


class Untouchable(Sequence[Message]):
    """Messages that may not be looked at."""

    def __getitem__(self, index: Any) -> Any:
        raise AssertionError("looked at")

    def __len__(self) -> int:
        raise AssertionError("looked at")

    def __iter__(self) -> Iterator[Message]:
        raise AssertionError("looked at")


def test_messages_are_not_looked_at_unless_they_are_counted() -> None:
    request = ModelRequest(messages=Untouchable())
    fixed = Usage(input_tokens=1, output_tokens=2)
    assert ask(ScriptedModel(["a"]), request).usage is None
    assert ask(ScriptedModel(["a"], usage=fixed), request).usage == fixed
    with pytest.raises(AssertionError, match="looked at"):
        ask(ScriptedModel(["a"], usage="estimate"), request)


def test_estimated_usage_is_marked_and_grows_with_the_prompt() -> None:
    model = ScriptedModel(["four letters"], usage="estimate", after="repeat")
    short = ask(model).usage
    long = ask(model, ModelRequest(messages=[Message.user("hello " * 100)])).usage
    assert short is not None
    assert long is not None
    assert short.estimated
    assert short.output_tokens == 3
    assert (long.input_tokens or 0) > (short.input_tokens or 0) + 100


def test_delay_waits() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        start = loop.time()
        await ScriptedModel(["a"], delay=0.05).complete(HELLO)
        return loop.time() - start

    assert asyncio.run(main()) >= 0.045


def test_there_is_no_cost_and_the_reason_is_told() -> None:
    reply = ask(ScriptedModel(["a"]))
    assert reply.cost_usd is None
    assert reply.cost_missing
