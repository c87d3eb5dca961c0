"""What a scenario is made of: the request it hears, and the answer it gives."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

Json: TypeAlias = Any
HELLO = "Hello from a bad day."
QUERY = '{"query": "axis"}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A request for a chat completion."""

    body: Mapping[str, Json]
    scenario: str
    """The scenario asked for, without its argument."""
    argument: str = ""
    """What stood behind the colon."""

    @property
    def streamed(self) -> bool:
        """True if the client asked for a stream."""
        return self.body.get("stream") is True

    @property
    def wants_usage(self) -> bool:
        """True if the client asked for the usage at the end of the stream."""
        return bool((self.body.get("stream_options") or {}).get("include_usage"))

    @property
    def messages(self) -> list[Mapping[str, Json]]:
        """The conversation."""
        return list(self.body.get("messages") or ())

    @property
    def tool(self) -> str:
        """The first tool that is offered."""
        offered = self.body.get("tools") or ()
        return str(offered[0]["function"]["name"]) if offered else "search"

    @property
    def results(self) -> int:
        """Tool results in the conversation."""
        return sum(message["role"] == "tool" for message in self.messages)

    def seconds(self, default: float) -> float:
        """The argument as a number of seconds."""
        return float(self.argument or default)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What goes over the wire, well or badly."""

    body: Json = None
    """A JSON value, or bytes that are sent as they are (and never as a stream)."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    kind: str = "application/json"
    events: tuple[Json, ...] | None = None
    """Events of the stream instead of those made of the body: JSON values, or whole lines."""
    fault: Literal["", "silent", "half", "short", "close", "reset"] = ""
    """silent: not a byte; half: half of the body, then silence; short: less than promised;
    close and reset: the connection ends before the first byte."""
    end: Literal["done", "open", "cut", "silent"] = "done"
    """How a stream ends: with [DONE], without, in the middle of the body, or not at all."""
    wait: float = 0.0
    """Seconds before the first byte."""
    pause: float = 0.0
    """Seconds between two events, or two tenths of a body."""
    newline: str = "\n"


Maker: TypeAlias = Callable[[Heard], Answer]


def tokens(text: str) -> int:
    """A count that is easy to check: four characters are one."""
    return -(-len(text) // 4)


def usage_of(heard: Heard, written: str) -> dict[str, int]:
    """The tokens of request and reply."""
    given = sum(3 + tokens(str(message.get("content") or "")) for message in heard.messages)
    made = tokens(written)
    return {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}


def completion(
    heard: Heard, message: Json, *, finish: Json = "stop", **top: Json
) -> dict[str, Any]:
    """A chat completion around one message; `top` replaces its own fields."""
    written = "".join(json.dumps(value) for value in message.values() if value)
    return {
        "id": "chatcmpl-bad",
        "object": "chat.completion",
        "created": 1_760_000_000,
        "model": heard.body.get("model"),
        "choices": [
            {"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}
        ],
        "usage": usage_of(heard, written),
        **top,
    }


def message(*, finish: Json = "stop", **fields: Json) -> Maker:
    """Answers with a message of these fields."""
    return lambda heard: Answer(body=completion(heard, fields, finish=finish))


def says(text: Json, *, finish: Json = "stop", **top: Json) -> Maker:
    """Answers with a text."""
    return lambda heard: Answer(body=completion(heard, {"content": text}, finish=finish, **top))


def call(name: Json, arguments: Json = QUERY, *, id: Json = "call_1") -> dict[str, Any]:
    """One tool call of a message."""
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calls(
    *arguments: Json, ids: Iterable[Json] = ("call_1", "call_2"), finish: Json = "tool_calls"
) -> Maker:
    """Answers with a call of the offered tool for each of the arguments, then with the result."""

    def make(heard: Heard) -> Answer:
        made = [call(heard.tool, each, id=id) for each, id in zip(arguments, ids, strict=False)]
        return Answer(body=completion(heard, {"content": None, "tool_calls": made}, finish=finish))

    return then_answers(make)


def then_answers(maker: Maker) -> Maker:
    """The same answer, until there is a tool's result to quote."""

    def make(heard: Heard) -> Answer:
        if not heard.results:
            return maker(heard)
        return says(f"The tool says: {heard.messages[-1]['content'][:60]} \\boxed{{42}}")(heard)

    return make


def changed(maker: Maker, change: Callable[[dict[str, Any]], object]) -> Maker:
    """The same answer after something was done to its body."""

    def make(heard: Heard) -> Answer:
        answer = maker(heard)
        change(answer.body)
        return answer

    return make


def so(maker: Maker, **how: Any) -> Maker:
    """The same answer, sent in another way."""
    return lambda heard: replace(maker(heard), **how)


def raw(data: bytes, *, kind: str = "application/json", status: int = 200) -> Maker:
    """Answers with these bytes."""
    return lambda heard: Answer(body=data, kind=kind, status=status)


def fails(
    status: int,
    text: str,
    *,
    type: Json = "invalid_request_error",
    code: Json = None,
    headers: Mapping[str, str] | None = None,
    **more: Json,
) -> Maker:
    """Answers with an error in OpenAI's shape; `more` goes into the error object."""
    error = {"message": text, "type": type, "param": None, "code": code, **more}
    return lambda heard: Answer(body={"error": error}, status=status, headers=headers or {})
