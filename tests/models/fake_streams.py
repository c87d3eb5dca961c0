"""How the fake server streams: any of its bodies cut into chunks, in every way servers do it.

`BODY` streams that body in small pieces; `BODY~VARIANT` in another way, `BREAK~HOW` badly.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

Chunk = dict[str, Any]
PIECE = 3
"""Characters in a piece of text."""


@dataclass
class Plan:
    """What is sent as the answer to a request for a stream."""

    events: list[Any] = field(default_factory=list)
    """Chunks, raw text to send as it is, or a number of seconds to wait."""
    done: bool = True
    """[DONE] comes at the end."""
    whole: bool = True
    """The body's end is sent; else the connection breaks."""
    kind: str = "text/event-stream"
    raw: bytes | None = None
    """Instead of events."""


def pieces(text: str, size: int = PIECE) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), size)]


def chunk(body: Chunk, delta: Chunk, finish: str | None = None, *, index: int = 0) -> Chunk:
    choice = {"index": index, "delta": delta, "finish_reason": finish}
    head = {k: body[k] for k in ("id", "created", "model") if k in body}
    return {**head, "object": "chat.completion.chunk", "choices": [choice]}


def deltas(message: Chunk) -> Iterator[Chunk]:
    """The message in pieces, as OpenAI cuts it."""
    yield {"role": "assistant", "content": "" if message.get("content") is not None else None}
    for name in ("reasoning_content", "reasoning", "refusal", "content"):
        for piece in pieces(message.get(name) or ""):
            yield {name: piece}
    for index, call in enumerate(message.get("tool_calls") or ()):
        yield from call_deltas(call, index)
    if legacy := message.get("function_call"):
        yield {"function_call": {"name": legacy["name"], "arguments": ""}}
        for piece in pieces(legacy["arguments"]):
            yield {"function_call": {"arguments": piece}}


def call_deltas(call: Chunk, index: int) -> Iterator[Chunk]:
    arguments = call["function"]["arguments"]
    if not isinstance(arguments, str):
        yield {"tool_calls": [{"index": index, **call}]}
        return
    head = {**call, "function": {**call["function"], "arguments": ""}}
    yield {"tool_calls": [{"index": index, **head}]}
    for piece in pieces(arguments, 4):
        yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def streamed(body: Chunk) -> list[Any]:
    """The body as OpenAI streams it, with its usage at the end."""
    choice = body["choices"][0]
    out = [chunk(body, delta) for delta in deltas(choice["message"])]
    out.append(chunk(body, {}, choice["finish_reason"]))
    if body.get("usage"):
        out.append({**chunk(body, {}), "choices": [], "usage": body["usage"]})
    return out


def each_call(event: Any) -> Iterator[Chunk]:
    for choice in event.get("choices") or () if isinstance(event, dict) else ():
        yield from choice["delta"].get("tool_calls") or ()


def without_index(body: Chunk) -> list[Any]:
    """No delta of a tool call says which call it is of."""
    events = streamed(body)
    for event in events:
        for call in each_call(event):
            call.pop("index")
    return events


def whole_calls(body: Chunk, *, index: bool = True) -> list[Any]:
    """Each call comes in one delta, all with index 0 (or none), as some servers send them."""
    message = body["choices"][0]["message"]
    text = {k: v for k, v in message.items() if k != "tool_calls"}
    events = streamed({**body, "choices": [{**body["choices"][0], "message": text}]})
    calls = [
        chunk(body, {"tool_calls": [{**({"index": 0} if index else {}), **call}]})
        for call in message["tool_calls"]
    ]
    return [events[0], *calls, *events[1:]]


def one_delta(body: Chunk) -> list[Any]:
    """The whole message in one chunk, usage and finish reason included."""
    message = copy.deepcopy(body["choices"][0]["message"])
    for index, call in enumerate(message.get("tool_calls") or ()):
        call["index"] = index
    event = chunk(body, message, body["choices"][0]["finish_reason"])
    return [{**event, **({"usage": body["usage"]} if "usage" in body else {})}]


def repeated_ids(body: Chunk) -> list[Any]:
    """Every delta of a call repeats its id and its name."""
    events = streamed(body)
    calls = body["choices"][0]["message"]["tool_calls"]
    for event in events:
        for call in each_call(event):
            whole = calls[call["index"]]
            call["id"] = whole.get("id")
            call["function"]["name"] = whole["function"]["name"]
    return events


def two_choices(body: Chunk) -> list[Any]:
    """Another choice nobody asked for comes in between."""
    out: list[Any] = []
    for event in streamed(body):
        other = {"content": "other ", "tool_calls": None}
        out += [chunk(body, other, index=1), event]
    return [*out[:-1], chunk(body, {}, "length", index=1), out[-1]]


def comments(body: Chunk) -> list[Any]:
    """Comments and empty lines between the events, as proxies send to keep a line open."""
    out: list[Any] = [": PROCESSING\n\n"]
    for event in streamed(body):
        out += [event, ": keep-alive\n\n"]
    return out


def crlf(body: Chunk) -> list[Any]:
    return [f"data:{json.dumps(event)}\r\n\r\n" for event in streamed(body)]


def running_usage(body: Chunk) -> list[Any]:
    """Every chunk says the usage so far, as vLLM can; the last one is right."""
    events = streamed(body)
    for number, event in enumerate(events[:-1]):
        event["usage"] = {"prompt_tokens": 11, "completion_tokens": min(number, 6)}
    return events


def null_usage(body: Chunk) -> list[Any]:
    """Every chunk but the last has `usage: null`, as OpenAI sends them."""
    events = streamed(body)
    for event in events[:-1]:
        event["usage"] = None
    return events


def interleaved(body: Chunk) -> list[Any]:
    """The pieces of several calls come in turns."""
    choice = body["choices"][0]
    runs = [
        [chunk(body, d) for d in call_deltas(call, index)]
        for index, call in enumerate(choice["message"]["tool_calls"])
    ]
    longest = max(map(len, runs))
    turns = [run[i] for i in range(longest) for run in runs if i < len(run)]
    others = [event for event in streamed(body) if not any(each_call(event))]
    return [*others[:-2], *turns, *others[-2:]]


VARIANTS: dict[str, Callable[[Chunk], list[Any]]] = {
    "noindex": without_index,
    "whole": whole_calls,
    "whole-noindex": lambda body: whole_calls(body, index=False),
    "one": one_delta,
    "repeat": repeated_ids,
    "two": two_choices,
    "comments": comments,
    "crlf": crlf,
    "usage": running_usage,
    "nullusage": null_usage,
    "turns": interleaved,
}


def bad_plan(how: str, body: Chunk) -> Plan | None:
    """A stream that is no reply, or a part of one."""
    events = streamed(body)
    part = events[:2]
    error: dict[str, Any] = {"message": "The worker died.", "type": None, "code": None}
    plans = {
        "break": Plan(part, whole=False),
        "break-first": Plan([], whole=False),
        "early": Plan(part, done=False),
        "early-done": Plan(part),
        "stall": Plan([*part, 20.0]),
        "silent": Plan([20.0]),
        "trickle": Plan([*part, *[e for _ in range(200) for e in (0.05, events[1])], events[-2]]),
        "chunk": Plan([*part, 'data: {"id": "chatcmpl-1", "choi\n\n', *events[2:]]),
        "shape": Plan([*part, 'data: ["no", "chunk"]\n\n', *events[2:]]),
        "error": Plan([*part, {"error": error}]),
        "break-usage": Plan(running_usage(body)[:3], whole=False),
        "error-usage": Plan([*running_usage(body)[:3], {"error": error}]),
        "error-first": Plan([{"error": {**error, "code": 500}}]),
        "error-429": Plan([*part, {"error": {**error, "code": 429}}]),
        "error-overloaded": Plan([*part, {"error": {**error, "type": "overloaded_error"}}]),
        "error-key": Plan([*part, {"error": {**error, "message": "Key sk-test-4f8a2b7c9d1e."}}]),
        "html": Plan(kind="text/html", raw=b"<!doctype html><title>Sign in</title>"),
        "json": Plan(kind="application/json", raw=json.dumps(body).encode()),
        "json-error": Plan(kind="application/json", raw=json.dumps({"error": error}).encode()),
        "empty": Plan(raw=b""),
        "only-done": Plan([]),
        "only-comments": Plan([": PROCESSING\n\n"]),
        # These two hold a whole reply, and what goes wrong comes after it.
        "late-break": Plan(events, done=False, whole=False),
        "late-stall": Plan([*events, 20.0]),
    }
    return plans.get(how)


def plan_of(name: str, bodies: dict[str, Any]) -> Plan | None:
    """What to stream for a model's name; None if the name says nothing of it."""
    base, _, variant = name.partition("~")
    if base == "bad":
        return bad_plan(variant, bodies["ok"])
    if base not in bodies or not bodies[base].get("choices"):
        return None
    if "message" not in bodies[base]["choices"][0]:
        return None
    return Plan(VARIANTS[variant](bodies[base]) if variant else streamed(bodies[base]))


def encoded(event: Any) -> bytes:
    """One event as it goes over the line."""
    text = event if isinstance(event, str) else f"data: {json.dumps(event)}\n\n"
    return text.encode()
