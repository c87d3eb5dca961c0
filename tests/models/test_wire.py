"""What is sent and what is read: pure functions on both sides of the wire."""

import json
from types import SimpleNamespace as Box
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axislab.errors import ErrorKind, ModelError
from axislab.messages import Message, Role, ToolCall, ToolSpec, Usage
from axislab.models.incoming import RawReply, read_reply
from axislab.models.outgoing import (
    clean,
    safe_arguments,
    tools_of,
    wire_messages,
    wire_tools,
)

KEYS = {"role", "content", "tool_calls", "tool_call_id"}


def calls(*pairs: tuple[str, str | None], arguments: str = "{}") -> Message:
    return Message.assistant(
        None,
        [
            ToolCall(id=own, name="search", arguments=arguments, provider_id=theirs)
            for own, theirs in pairs
        ],
    )


def result(own: str) -> Message:
    return Message.tool("found", tool_call_id=own, name="search")


def sent_ids(*messages: Message) -> tuple[list[str], list[str]]:
    wire = wire_messages(messages)
    called = [call["id"] for message in wire for call in message.get("tool_calls", [])]
    answered = [message["tool_call_id"] for message in wire if "tool_call_id" in message]
    return called, answered


def test_only_known_keys_are_sent() -> None:
    messages = [
        Message.system("be brief"),
        Message.user("hi"),
        Message(role=Role.ASSISTANT, content="hm", reasoning="secret thought", name="bot"),
        calls(("c1", "p1")),
        result("c1"),
    ]
    for wire in wire_messages(messages):
        assert wire.keys() <= KEYS
    assert "secret thought" not in json.dumps(wire_messages(messages))


def test_markers_are_never_sent() -> None:
    marker = Message(role=Role.RUNTIME, content='{"count": 1}', name="rollback")
    assert wire_messages([Message.user("a"), marker, Message.user("b")]) == [
        {"role": "user", "content": "a"},
        {"role": "user", "content": "b"},
    ]


def test_provider_ids_go_back_verbatim_and_results_name_the_id_that_was_sent() -> None:
    called, answered = sent_ids(calls(("c1", "p/1"), ("c2", "p 2")), result("c2"), result("c1"))
    assert called == ["p/1", "p 2"]
    assert answered == ["p 2", "p/1"]


def test_ids_a_provider_repeats_in_later_turns_stay_with_their_turn() -> None:
    called, answered = sent_ids(
        calls(("c1", "call_0")), result("c1"), calls(("c2", "call_0")), result("c2")
    )
    assert called == answered == ["call_0", "call_0"]


@pytest.mark.parametrize("theirs", [None, "", "same"])
def test_ours_is_sent_where_the_provider_gave_no_unique_id(theirs: str | None) -> None:
    called, answered = sent_ids(calls(("c1", theirs), ("c2", theirs)), result("c1"), result("c2"))
    assert called == answered == ["c1", "c2"]


def test_our_id_gives_way_to_an_equal_one_of_the_provider() -> None:
    called, answered = sent_ids(calls(("x", None), ("y", "x")), result("x"), result("y"))
    assert called == answered == ["x_", "x"]


def test_our_id_gives_way_to_one_of_an_earlier_turn() -> None:
    called, answered = sent_ids(
        calls(("call_1", "call_2")), result("call_1"), calls(("call_2", None)), result("call_2")
    )
    assert called == answered == ["call_2", "call_2_"]


IDS = st.none() | st.sampled_from(["", "a", "b", "c0", "c1"])


@given(st.lists(IDS, min_size=1, max_size=6))
def test_sent_ids_are_unique_and_every_result_meets_its_call(theirs: list[str | None]) -> None:
    pairs = [(f"c{n}", given_id) for n, given_id in enumerate(theirs)]
    called, answered = sent_ids(calls(*pairs), *(result(own) for own, _ in pairs))
    assert called == answered
    assert len(set(called)) == len(called)
    assert all(called)


def test_content_of_a_call_is_null_and_other_content_is_text() -> None:
    wire = wire_messages([calls(("c1", None)), result("c1"), Message.assistant(None)])
    assert wire[0]["content"] is None
    assert wire[2] == {"role": "assistant", "content": ""}


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ('{"q": "x"}', '{"q": "x"}'),
        (' {"q" : 1}', ' {"q" : 1}'),
        ('"{\\"q\\": 1}"', '{"q": 1}'),
        ('{"q": "cut', "{}"),
        ("", "{}"),
        ("null", "{}"),
        ('["a"]', "{}"),
        ("{'q': 1}", "{}"),
        ('{"q": NaN}', "{}"),
        ('"text"', "{}"),
        ('{"q": ' * 100_000, "{}"),
    ],
)
def test_arguments_that_are_sent_are_an_object(text: str, sent: str) -> None:
    assert safe_arguments(text) == sent


@given(st.text())
def test_any_arguments_become_encodable_json_objects(text: str) -> None:
    for arguments in (text, json.dumps(text), json.dumps({"q": text})):
        sent = safe_arguments(arguments)
        assert isinstance(json.loads(sent), dict)
        json.dumps(json.loads(sent), ensure_ascii=False).encode()


def test_escaped_halves_of_characters_are_cleaned_too() -> None:
    assert safe_arguments('{"q": "\\ud83d"}') == '{"q": "?"}'
    assert json.loads(safe_arguments('{"q": "\\ud83d\\ude00"}')) == {"q": "😀"}


@given(st.text(st.characters(exclude_categories=[])))
def test_all_text_that_is_sent_can_be_encoded(text: str) -> None:
    message = Message.assistant(text, [ToolCall(id="c", name=text, arguments=text)])
    for wire in wire_messages([Message.user(text), message]):
        json.dumps(wire, ensure_ascii=False).encode()
    assert clean(clean(text)) == clean(text)


def test_clean_leaves_good_text_alone() -> None:
    text = "答案 😀 \x00 é"
    assert clean(text) is text


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("functions.search", "functions_search"),
        ("", "unnamed"),
        ("a b", "a_b"),
        ("x" * 90, "x" * 64),
    ],
)
def test_names_no_provider_accepts_are_made_to_fit(name: str, sent: str) -> None:
    message = Message.assistant(None, [ToolCall(id="c", name=name)])
    assert wire_messages([message])[0]["tool_calls"][0]["function"]["name"] == sent


def test_names_of_offered_tools_stay_as_they_are() -> None:
    message = Message.assistant(None, [ToolCall(id="c", name="web.search")])
    wire = wire_messages([message], tools=[ToolSpec(name="web.search")])
    assert wire[0]["tool_calls"][0]["function"]["name"] == "web.search"


def test_tools_are_sent_as_functions() -> None:
    spec = ToolSpec(name="a", description="does a", parameters={"type": "object"})
    assert wire_tools([spec]) == [
        {
            "type": "function",
            "function": {"name": "a", "description": "does a", "parameters": {"type": "object"}},
        }
    ]
    assert [tool.name for tool in tools_of([calls(("c1", None), ("c2", None))])] == ["search"]


def response(**message: Any) -> Any:
    finish = message.pop("finish_reason", "stop")
    usage = message.pop("usage", Box(prompt_tokens=5, completion_tokens=2))
    choice = Box(message=Box(**message), finish_reason=finish)
    return Box(choices=[choice], usage=usage, id="r1", model="m")


def raw(**choice: Any) -> RawReply:
    seen = RawReply()
    usage = choice.pop("usage", {"prompt_tokens": 1})
    body = {"choices": [choice], "usage": usage}
    seen.see({"log_event_type": "post_api_call", "original_response": json.dumps(body)})
    return seen


@pytest.mark.parametrize("content", [None, "", "text"])
def test_no_text_and_empty_text_are_told_apart(content: str | None) -> None:
    assert read_reply(response(content=content), model="m").text == content


@pytest.mark.parametrize(
    ("mapped", "told", "reason"),
    [
        ("stop", "stop", "stop"),
        ("stop", "end_turn", "stop"),
        ("stop", "EOS", "stop"),
        ("stop", None, None),
        ("stop", "", None),
        ("stop", "engine_abort", "engine_abort"),
        ("length", "max_tokens", "length"),
        ("tool_calls", "tool_calls", "tool_calls"),
        ("tool_calls", "stop", "stop"),
        ("tool_calls", None, None),
    ],
)
def test_a_finish_reason_is_what_was_told(mapped: str, told: str | None, reason: Any) -> None:
    got = read_reply(
        response(content="a", finish_reason=mapped), model="m", raw=raw(finish_reason=told)
    )
    assert got.finish_reason == reason


def test_without_the_raw_reply_the_mapped_reason_has_to_do() -> None:
    assert read_reply(response(content="a"), model="m").finish_reason == "stop"


def test_a_raw_reply_of_another_shape_is_no_evidence() -> None:
    seen = RawReply()
    for text in ("not json", '{"content": []}', "[]", 7, '{"choices": null}'):
        seen.see({"log_event_type": "post_api_call", "original_response": text})
    seen.see({"log_event_type": "pre_api_call", "original_response": '{"choices": []}'})
    assert seen.data is None


@pytest.mark.parametrize(
    ("prompt", "completion", "content", "usage"),
    [
        (5, 2, "a", Usage(input_tokens=5, output_tokens=2)),
        (0, 0, "a", None),
        (0, 0, "", None),
        (5, 0, "", Usage(input_tokens=5, output_tokens=0)),
        (5, 0, "a", Usage(input_tokens=5)),
        (0, 7, "a", Usage(output_tokens=7)),
        (None, None, "a", None),
        (True, -1, "a", None),
    ],
)
def test_zeros_that_cannot_be_true_are_not_reported(
    prompt: Any, completion: Any, content: str, usage: Usage | None
) -> None:
    told = Box(prompt_tokens=prompt, completion_tokens=completion)
    assert read_reply(response(content=content, usage=told), model="m").usage == usage


def test_usage_litellm_made_up_is_not_reported() -> None:
    assert read_reply(response(content="a"), model="m", raw=raw(usage=None)).usage is None


def test_an_id_litellm_made_up_is_not_the_providers() -> None:
    item = Box(id="uuid", function=Box(name="search", arguments="{}"))
    seen = raw(message={"tool_calls": [{"id": None}]})
    got = read_reply(response(content=None, tool_calls=[item]), model="m", raw=seen)
    assert got.tool_calls == (ToolCall(id="", name="search"),)


@pytest.mark.parametrize("empty", [Box(choices=[]), Box(choices=None), Box()])
def test_no_choices_are_a_malformed_reply(empty: Any) -> None:
    with pytest.raises(ModelError, match="no choices") as raised:
        read_reply(empty, model="m")
    assert raised.value.kind is ErrorKind.MALFORMED_REPLY


def test_a_choice_without_message_is_a_malformed_reply() -> None:
    with pytest.raises(ModelError, match="without a message"):
        read_reply(Box(choices=[Box(message=None)]), model="m")


@pytest.mark.parametrize(
    ("content", "text", "reasoning"),
    [
        ("<think>so far", "", "so far"),
        ("\n<think>so far", "", "so far"),
        ("<think>a</think>b", "b", "a"),
        ("<think></think>\n\nb", "b", None),
        ("<think>a</think> <think>c</think>\nb", "b", "a\nc"),
        ("I look.\n</think>\n\nIt is b.", "It is b.", "I look."),
        ("</think>\n\nb", "b", None),
        ("a `</think>` ends it", "a `</think>` ends it", None),
        ("In <think> or\n</think>\nb", "In <think> or\n</think>\nb", None),
        ("say <think>", "say <think>", None),
    ],
)
def test_what_was_thought_is_no_part_of_the_answer(
    content: str, text: str, reasoning: str | None
) -> None:
    got = read_reply(response(content=content), model="m")
    assert (got.text, got.reasoning) == (text, reasoning)


def test_a_refusal_is_read_as_the_text() -> None:
    refused = response(content=None, refusal="I will not.")
    older = response(content=None, provider_specific_fields={"refusal": "I will not."})
    assert [read_reply(r, model="m").text for r in (refused, older)] == ["I will not."] * 2


@pytest.mark.parametrize(
    ("arguments", "text"), [("{}", "{}"), ('{"q', '{"q'), (None, ""), ({"q": "é"}, '{"q": "é"}')]
)
def test_arguments_are_kept_as_written(arguments: Any, text: str) -> None:
    item = Box(id="p", function=Box(name=None, arguments=arguments))
    (call,) = read_reply(response(content=None, tool_calls=[item]), model="m").tool_calls
    assert (call.arguments, call.provider_id, call.name) == (text, "p", "")
