"""Scenarios that call tools, in all the ways in which models and servers do it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from misbehaving.parts import (
    HELLO,
    QUERY,
    Answer,
    Heard,
    Maker,
    call,
    calls,
    completion,
    message,
    says,
    then_answers,
)

OTHER = '{"query": "lab"}'


def _called(heard: Heard, arguments: str) -> Answer:
    made = [call(heard.tool, arguments, id=f"call_{heard.results + 1}")]
    fields = {"content": None, "tool_calls": made}
    return Answer(body=completion(heard, fields, finish="tool_calls"))


def _forever(heard: Heard) -> Answer:
    return _called(heard, json.dumps({"query": f"axis {heard.results}"}))


def _same(heard: Heard) -> Answer:
    return _called(heard, QUERY)


def _with_text(heard: Heard) -> Answer:
    fields = {"content": "I look it up.", "tool_calls": [call(heard.tool)]}
    return Answer(body=completion(heard, fields, finish="tool_calls"))


def _unknown(heard: Heard) -> Answer:
    fields = {"content": None, "tool_calls": [call(heard.argument or "no_such_tool")]}
    return Answer(body=completion(heard, fields, finish="tool_calls"))


def _legacy(heard: Heard) -> Answer:
    fields = {"content": None, "function_call": call(heard.tool)["function"]}
    return Answer(body=completion(heard, fields, finish="function_call"))


def _written(form: str) -> Maker:
    """The call as text: NAME and ARGUMENTS are filled in."""
    return lambda heard: says(form.replace("NAME", heard.tool).replace("ARGUMENTS", QUERY))(heard)


def _with_call(change: Callable[[dict[str, Any]], object]) -> Maker:
    """One good call after something was done to it."""

    def make(heard: Heard) -> Answer:
        item = call(heard.tool)
        change(item)
        fields = {"content": None, "tool_calls": [item]}
        return Answer(body=completion(heard, fields, finish="tool_calls"))

    return then_answers(make)


CALLS: dict[str, Maker] = {
    "tool": calls(QUERY),
    "tool_forever": _forever,
    "tool_same": _same,
    "tool_two": calls(QUERY, OTHER),
    "tool_with_text": then_answers(_with_text),
    "tool_finish_stop": calls(QUERY, finish="stop"),
    "tool_cut": calls('{"query": "axis and the ori', finish="length"),
    "tool_finish_no_calls": says(HELLO, finish="tool_calls"),
    "tool_empty_list": message(content=HELLO, tool_calls=[]),
    "tool_bad_json": calls("{'query': 'axis',}"),
    "tool_args_object": calls({"query": "axis"}),
    "tool_args_array": calls('["axis"]'),
    "tool_args_empty": calls(""),
    "tool_args_null": calls(None),
    "tool_args_double": calls(json.dumps(QUERY)),
    "tool_args_fenced": calls(f"```json\n{QUERY}\n```"),
    "tool_null_id": calls(QUERY, ids=[None]),
    "tool_no_id": _with_call(lambda item: item.pop("id")),
    "tool_empty_id": calls(QUERY, ids=[""]),
    "tool_same_id": calls(QUERY, OTHER, ids=["call_1", "call_1"]),
    "tool_no_name": _with_call(lambda item: item["function"].update(name=None)),
    "tool_no_type": _with_call(lambda item: item.pop("type")),
    "tool_no_function": _with_call(lambda item: item.pop("function")),
    "tool_unknown": then_answers(_unknown),
    "tool_legacy": then_answers(_legacy),
    "tool_as_json_text": _written('{"name": "NAME", "arguments": ARGUMENTS}'),
    "tool_as_tag_text": _written(
        '<tool_call>\n{"name": "NAME", "arguments": ARGUMENTS}\n</tool_call>'
    ),
    "tool_as_mcp_text": _written(
        "<use_mcp_tool>\n<server_name>tools</server_name>\n<tool_name>NAME</tool_name>\n"
        "<arguments>\nARGUMENTS\n</arguments>\n</use_mcp_tool>"
    ),
}
"""A tool is offered, and the model does something about it."""
