"""A completion in the events of a stream, and the scenarios that damage the stream itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from misbehaving.parts import (
    HELLO,
    QUERY,
    Answer,
    Heard,
    Json,
    Maker,
    calls,
    completion,
    says,
    so,
)

Events = tuple[Json, ...]


def events_of(heard: Heard, body: Json) -> Events:
    """The body cut into chunks, with all that is odd about it."""
    if not isinstance(body, dict) or not body.get("choices"):
        return (body,)
    return tuple(_events(heard, body))


def _events(heard: Heard, body: dict[str, Any]) -> Iterator[Json]:
    for choice in body["choices"]:
        for delta in _deltas(choice["message"]) if "message" in choice else ():
            yield _chunk(body, choice, delta)
        yield _chunk(body, choice, {}, finish=choice.get("finish_reason"))
    if heard.wants_usage and "usage" in body:
        yield {**_chunk(body, {}, {}), "choices": [], "usage": body["usage"]}


def _chunk(body: Json, choice: Json, delta: Json, *, finish: Json = None) -> dict[str, Any]:
    head = {key: body[key] for key in ("id", "created", "model") if key in body}
    inner = {"index": choice.get("index", 0), "delta": delta, "finish_reason": finish}
    return {**head, "object": "chat.completion.chunk", "choices": [inner]}


def _deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    # Thinking comes before the text, and calls after it.
    later = {"content": message.get("content"), "tool_calls": message.get("tool_calls")}
    for name, value in message.items():
        if name not in ("role", *later):
            yield from ({name: piece} for piece in _cut(value))
    yield from ({"content": piece} for piece in _cut(later["content"]))
    for place, item in enumerate(later["tool_calls"] or ()):
        yield from _call_deltas(place, item)


def _call_deltas(place: int, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    opening = {"index": place, **item}
    function = item.get("function")
    if function is not None:
        opening["function"] = {**function, "arguments": ""}
    yield {"tool_calls": [opening]}
    for piece in _cut((function or {}).get("arguments")):
        yield {"tool_calls": [{"index": place, "function": {"arguments": piece}}]}


def _cut(value: Json) -> list[Json]:
    """A text in three pieces; anything else in one, and None in none."""
    if not isinstance(value, str):
        return [] if value is None else [value]
    size = max(1, -(-len(value) // 3))
    return [value[start : start + size] for start in range(0, len(value), size)]


def _altered(maker: Maker, alter: Callable[[Events], Events], *, end: Json = "done") -> Maker:
    """The same answer, with other events if it is streamed."""

    def make(heard: Heard) -> Answer:
        answer = maker(heard)
        events = alter(events_of(heard, answer.body))
        return so(maker, events=events, end=end)(heard)

    return make


def _first(events: Events) -> Events:
    """Up to the first piece of the text."""
    return events[:2]


def _without_finish(events: Events) -> Events:
    return tuple(e for e in events if not any(c["finish_reason"] for c in e["choices"]))


def _broken_event(events: Events) -> Events:
    return (*events[:2], 'data: {"choices": [{"delta": {"con', *events[2:])


def _error_event(events: Events) -> Events:
    error = {"message": "The server failed while it answered.", "type": "server_error", "code": 500}
    return (*events[:2], {"error": error})


def _commented(events: Events) -> Events:
    return tuple(line for event in events for line in (": still here", event))


def _without_index(events: Events) -> Events:
    for event in events:
        for choice in event["choices"]:
            for item in choice["delta"].get("tool_calls", ()):
                del item["index"]
    return events


def _in_one_piece(events: Events) -> Events:
    """The pieces of a call as the one delta that some servers send."""
    pieces = [
        c["delta"]["tool_calls"][0]
        for e in events
        for c in e["choices"]
        if "tool_calls" in c["delta"]
    ]
    if not pieces:
        return events
    whole = {**pieces[0]["function"]}
    whole["arguments"] = "".join(piece["function"]["arguments"] for piece in pieces)
    delta = {"role": "assistant", "tool_calls": [{**pieces[0], "function": whole}]}
    first = {**events[0], "choices": [{**events[0]["choices"][0], "delta": delta}]}
    rest = [e for e in events[1:] if not any("tool_calls" in c["delta"] for c in e["choices"])]
    return (first, *rest)


def _cut_in_the_call(events: Events) -> Events:
    return events[:3]


def _not_a_stream(heard: Heard) -> Answer:
    return Answer(body=json.dumps(completion(heard, {"content": HELLO})).encode())


_HELLO = says(HELLO)

STREAMS: dict[str, Maker] = {
    "stream_slow": lambda heard: so(_HELLO, pause=heard.seconds(0.02))(heard),
    "stream_stall": _altered(_HELLO, _first, end="silent"),
    "stream_cut": _altered(_HELLO, _first, end="cut"),
    "stream_early_end": _altered(_HELLO, _first, end="open"),
    "stream_no_finish": _altered(_HELLO, _without_finish),
    "stream_no_done": so(_HELLO, end="open"),
    "stream_empty": so(_HELLO, events=()),
    "stream_bad_chunk": _altered(_HELLO, _broken_event),
    "stream_error": _altered(_HELLO, _error_event, end="open"),
    "stream_comments": so(_altered(_HELLO, _commented), newline="\r\n"),
    "stream_not_sse": _not_a_stream,
    "stream_tool_no_index": _altered(calls(QUERY), _without_index),
    "stream_tool_whole": _altered(calls(QUERY), _in_one_piece),
    "stream_tool_cut": _altered(calls(QUERY), _cut_in_the_call, end="cut"),
}
"""Streams that are damaged; plain, all of them are good answers."""
