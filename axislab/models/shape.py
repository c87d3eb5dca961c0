"""What must hold of a reply before the run goes on with it; a model of the user's own may err."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields

from axislab.borders import shown
from axislab.messages import ToolCall, Usage
from axislab.models.base import ModelReply

_COUNTS = tuple(field.name for field in fields(Usage) if field.name != "estimated")
_TEXTS = ("text", "reasoning", "finish_reason", "cost_missing", "request_id", "model")


def what_is_wrong(reply: object) -> str | None:
    """Half a sentence that follows "complete() returned"; None if nothing is.

    Found here it is the model's fault, named; found later it is an event that cannot be written.
    """
    if not isinstance(reply, ModelReply):
        return f"{type(reply).__name__!r}, a ModelReply is wanted"
    return next(_faults(reply), None)


def _faults(reply: ModelReply) -> Iterator[str]:
    for name in _TEXTS:
        yield from _wanted(reply, name, "text or None", _is_text(getattr(reply, name)))
    cost = reply.cost_usd
    yield from _wanted(reply, "cost_usd", "a number or None", cost is None or _is_number(cost))
    yield from _wanted(reply, "latency", "a number of seconds", _is_number(reply.latency))
    yield from _usage_faults(reply)
    if not isinstance(reply.tool_calls, tuple | list):
        yield from _wanted(reply, "tool_calls", "a tuple of ToolCall", False)
        return
    for place, call in enumerate(reply.tool_calls):
        yield from _call_faults(call, place)


def _usage_faults(reply: ModelReply) -> Iterator[str]:
    if reply.usage is None:
        return
    if not isinstance(reply.usage, Usage):
        yield from _wanted(reply, "usage", "a Usage or None", False)
        return
    for name in _COUNTS:
        count = getattr(reply.usage, name)
        if count is not None and (type(count) is not int or count < 0):
            yield f"a usage with {name}={shown(count)}; a number of tokens or None is wanted"


def _call_faults(call: object, place: int) -> Iterator[str]:
    if not isinstance(call, ToolCall):
        yield f"tool_calls[{place}]={shown(call)}; a ToolCall is wanted"
        return
    for name in ("id", "name", "arguments"):
        if not isinstance(value := getattr(call, name), str):
            hint = ", such as json.dumps(…)" if name == "arguments" else ""
            yield f"tool_calls[{place}] with {name}={shown(value)}; text is wanted{hint}"
    if not _is_text(call.provider_id):
        yield f"tool_calls[{place}] with provider_id={shown(call.provider_id)}; text is wanted"


def _wanted(reply: ModelReply, name: str, wanted: str, fine: bool) -> Iterator[str]:
    if not fine:
        yield f"a ModelReply with {name}={shown(getattr(reply, name))}; {wanted} is wanted"


def _is_text(value: object) -> bool:
    return value is None or isinstance(value, str)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
