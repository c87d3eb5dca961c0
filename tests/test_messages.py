"""Messages as values: to JSON and back, and what is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axislab.errors import InvalidMessage
from axislab.messages import (
    Message,
    Role,
    ToolCall,
    ToolResult,
    ToolSpec,
    ToolStatus,
    Usage,
)

TEXT = st.text(max_size=12)
CALLS = st.builds(
    ToolCall,
    id=TEXT,
    name=TEXT,
    arguments=TEXT,
    provider_id=st.one_of(st.none(), TEXT),
)
MESSAGES = st.builds(
    Message,
    role=st.sampled_from(Role),
    content=st.one_of(st.none(), TEXT),
    tool_calls=st.lists(CALLS, max_size=3).map(tuple),
    tool_call_id=st.one_of(st.none(), TEXT),
    name=st.one_of(st.none(), TEXT),
    reasoning=st.one_of(st.none(), TEXT),
)


@given(MESSAGES)
def test_a_message_is_read_back_as_it_was_written(message):
    assert Message.from_dict(json.loads(json.dumps(message.to_dict()))) == message


def test_empty_fields_are_left_out():
    assert Message.user("x").to_dict() == {"role": "user", "content": "x"}
    assert Message.assistant().to_dict() == {"role": "assistant", "content": None}
    call = ToolCall(id="c1", name="f", provider_id="p")
    assert Message.assistant(None, [call]).to_dict()["tool_calls"] == [
        {"id": "c1", "name": "f", "arguments": "{}", "provider_id": "p"}
    ]


def test_chat_completions_messages_are_read_as_well():
    message = Message.from_dict(
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "a"}, {"type": "image"}, "odd"],
            "reasoning_content": "hm",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {"id": 7, "name": "g", "arguments": {"ä": 1}},
                {"function": {}},
            ],
        }
    )
    assert (message.content, message.reasoning) == ("a", "hm")
    assert message.tool_calls == (
        ToolCall(id="c1", name="f"),
        ToolCall(id="7", name="g", arguments='{"ä": 1}'),
        ToolCall(id="", name=""),
    )


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"role": "asistant"}, "did you mean 'assistant'"),
        ({"role": "developer"}, "allowed: "),
        ({}, "role None"),
        ({"role": ["user"]}, r"role \['user'\]"),
        ({"role": "user", "content": 7}, "got 7"),
        ({"role": "assistant", "tool_calls": "f"}, "must be a list"),
        ({"role": "assistant", "tool_calls": {"a": 1}}, "must be a list"),
        ({"role": "assistant", "tool_calls": ["f"]}, "must be an object"),
        ({"role": "assistant", "tool_calls": [{"name": "f", "arguments": {1}}]}, "not JSON"),
        ({"role": "user", "content": b"bytes"}, "got b'bytes'"),
        (None, "got None"),
        ("hello", "got 'hello'"),
    ],
)
def test_what_is_no_message_is_refused(data, why):
    with pytest.raises(InvalidMessage, match=why):
        Message.from_dict(data)


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab"),
        ([{"type": "text", "text": None}, {"type": "image_url", "image_url": {}}], ""),
    ],
)
def test_the_parts_of_a_content_are_its_texts(parts, text):
    assert Message.from_dict({"role": "user", "content": parts}).content == text


def test_no_calls_may_be_written_as_none_or_an_empty_list():
    for calls in (None, []):
        assert Message.from_dict({"role": "assistant", "tool_calls": calls}).tool_calls == ()


def test_the_text_of_a_message_is_never_none():
    assert (Message.assistant().text, Message.system("s").text) == ("", "s")


def test_a_result_becomes_the_message_that_answers_the_call():
    result = ToolResult(call_id="c1", name="f", content="r", status=ToolStatus.FAILED)
    assert result.to_message() == Message.tool("r", tool_call_id="c1", name="f")


def test_a_tool_is_told_in_the_chat_completions_form():
    assert ToolSpec(name="f", description="d").to_dict() == {
        "type": "function",
        "function": {"name": "f", "description": "d", "parameters": {"type": "object"}},
    }


def test_usage_that_was_not_reported_is_none_and_not_zero():
    usage = Usage()
    assert (usage.input_tokens, usage.output_tokens, usage.estimated) == (None, None, False)


@pytest.mark.parametrize(
    ("given", "read", "written", "uncached"),
    [
        (100, 60, 30, 10),
        (100, 0, 0, 100),
        (100, None, 0, None),
        (100, 0, None, None),
        (None, 0, 0, None),
        (10, 8, 3, None),
    ],
)
def test_uncached_tokens_are_what_is_left_of_the_input(given, read, written, uncached):
    usage = Usage(input_tokens=given, cached_tokens=read, cache_write_tokens=written)
    assert usage.uncached_tokens == uncached
