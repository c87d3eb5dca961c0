"""Turns our messages into what is sent: known keys only, ids paired, text that can be encoded."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from axislab.messages import Json, Message, Role, ToolCall, ToolSpec

_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME: Final = 64
_UNNAMED: Final = "unnamed"


def wire_messages(
    messages: Iterable[Message], *, tools: Sequence[ToolSpec] = ()
) -> list[dict[str, Json]]:
    """The chat-completions form of the messages; markers are left out.

    Args:
        messages: The visible messages.
        tools: The tools offered; names of other tools are made to fit what providers accept.
    """
    offered = {tool.name for tool in tools}
    sent: dict[str, str] = {}
    out = []
    for message in messages:
        if message.role is Role.RUNTIME:
            continue
        wire: dict[str, Json] = {"role": str(message.role)}
        if message.tool_calls:
            ids = _wire_ids(message.tool_calls, taken=set(sent.values()))
            sent.update(zip((call.id for call in message.tool_calls), ids, strict=True))
            wire["content"] = clean(message.content) if message.content else None
            wire["tool_calls"] = [
                _wire_call(call, wire_id, offered)
                for call, wire_id in zip(message.tool_calls, ids, strict=True)
            ]
        else:
            wire["content"] = clean(message.text)
        if message.role is Role.TOOL:
            own = message.tool_call_id or ""
            wire["tool_call_id"] = sent.get(own, own)
        out.append(wire)
    return out


def wire_tools(tools: Iterable[ToolSpec]) -> list[dict[str, Json]]:
    """The chat-completions form of the tools."""
    return [tool.to_dict() for tool in tools]


def tools_of(messages: Iterable[Message]) -> tuple[ToolSpec, ...]:
    """Bare specs of the tools that were called, for providers that refuse a history without."""
    names = {call.name: None for message in messages for call in message.tool_calls if call.name}
    return tuple(ToolSpec(name=name) for name in names)


def clean(text: str) -> str:
    """The text with lone surrogates replaced: they fail in UTF-8, and so in every later call."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def safe_arguments(text: str) -> str:
    """Arguments that may be sent back: the text itself if it is a JSON object, else "{}".

    Servers answer a cut or broken one with an error, and then with the same error for ever.
    """
    try:
        value = json.loads(text, parse_constant=_refuse)
        if isinstance(value, str):  # encoded twice
            text, value = value, json.loads(value, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return "{}"
    if not isinstance(value, dict):
        return "{}"
    if "\\ud" in text.lower():  # an escaped surrogate is valid JSON, yet not valid text
        return clean(json.dumps(value, ensure_ascii=False))
    return clean(text)


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is not JSON")


def _wire_ids(calls: Sequence[ToolCall], *, taken: set[str]) -> list[str]:
    """The provider's id of each call, or ours where it gave none or gave it twice.

    Args:
        calls: Of one message.
        taken: Ids sent before, which one of ours must not equal.
    """
    given = Counter(call.provider_id for call in calls)
    kept = {name for name, count in given.items() if name and count == 1}
    ids: list[str] = []
    for index, call in enumerate(calls):
        if call.provider_id in kept and call.provider_id:
            ids.append(call.provider_id)
            continue
        own = call.id or f"call_{index}"
        while own in kept or own in ids or own in taken:
            own += "_"
        ids.append(own)
    return ids


def _wire_call(call: ToolCall, wire_id: str, offered: set[str]) -> dict[str, Json]:
    name = call.name if call.name in offered else _NAME.sub("_", call.name)[:_LONGEST_NAME]
    return {
        "id": wire_id,
        "type": "function",
        "function": {"name": name or _UNNAMED, "arguments": safe_arguments(call.arguments)},
    }
