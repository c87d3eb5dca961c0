"""Turns our messages into what is sent: known keys only, ids paired, text that can be encoded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from axislab.messages import Json, Message, Role, ToolCall, ToolSpec
from axislab.models.call_ids import CallIds
from axislab.models.pairing import paired
from axislab.models.profiles import PROFILES, ProviderProfile
from axislab.models.shaping import shape

_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME: Final = 64
_REMEMBERED: Final = 2_000
"""Characters of arguments up to which the verdict on them is kept."""
_UNNAMED: Final = "unnamed"
_PLAIN: Final = PROFILES["axislab"]


def wire_messages(
    messages: Iterable[Message],
    *,
    tools: Sequence[ToolSpec] = (),
    profile: ProviderProfile = _PLAIN,
    thinking: bool = False,
) -> list[dict[str, Json]]:
    """The chat-completions form of the messages; markers are left out.

    Args:
        messages: The visible messages.
        tools: The tools offered; names of other tools are made to fit what providers accept.
        profile: What the provider demands.
        thinking: The model was asked to think, so reasoning is expected in the history.
    """
    history = paired(messages)
    writer = _Writer(profile, {tool.name for tool in tools}, wanted=_wanted(history, thinking))
    return shape([writer.write(message) for message in history], profile)


def wire_alone(message: Message) -> dict[str, Json] | None:
    """What one message is on the wire apart from its neighbours; None for a marker.

    A result stands here without its call, and a call without its result: for counting, message
    by message, what a conversation of them will cost.
    """
    if message.role is Role.RUNTIME:
        return None
    return _Writer(_PLAIN, set(), wanted=False).write(message)


def _wanted(history: Sequence[Message], thinking: bool) -> bool:
    """True if the model thinks and calls tools, as far as the history shows."""
    thinks = thinking or any(message.reasoning for message in history)
    return thinks and any(message.tool_calls for message in history)


class _Writer:
    """Writes the messages of one conversation."""

    def __init__(self, profile: ProviderProfile, offered: set[str], *, wanted: bool) -> None:
        self._profile = profile
        self._offered = offered
        self._wanted = wanted
        self._ids = CallIds(profile)
        self._names: dict[str, str] = {}

    def write(self, message: Message) -> dict[str, Json]:
        wire: dict[str, Json] = {"role": message.role.value, "content": clean(message.text)}
        if message.role is Role.ASSISTANT and self._profile.reasoning != "dropped":
            wire.update(self._reasoning(message))
        if message.tool_calls:
            if not message.content and self._profile.empty_content == "null":
                wire["content"] = None
            wire["tool_calls"] = self._calls(message.tool_calls)
        if message.role is Role.TOOL:
            own = message.tool_call_id or ""
            wire["tool_call_id"] = self._ids.of(own)
            if self._profile.named_results:
                wire["name"] = self._names.get(own, _UNNAMED)
        return wire

    def _calls(self, calls: Sequence[ToolCall]) -> list[dict[str, Json]]:
        out = []
        for call, wire_id in zip(calls, self._ids.give(calls), strict=True):
            out.append(_wire_call(call, wire_id, self._offered))
            self._names[call.id] = out[-1]["function"]["name"]
        return out

    def _reasoning(self, message: Message) -> dict[str, Json]:
        """The key that takes the reasoning back, if the provider wants any."""
        how = self._profile.reasoning
        text = clean(message.reasoning or "")
        if how == "required" and self._wanted:
            return {"reasoning_content": text or self._profile.no_reasoning}
        if how == "kept" and text and message.tool_calls:
            return {"reasoning_content": text}
        if how == "signed" and (blocks := _blocks(message.signed_reasoning)):
            return {"thinking_blocks": blocks}
        return {}


def _blocks(text: str | None) -> list[Json]:
    try:
        blocks = json.loads(text or "[]")
    except (ValueError, RecursionError):  # a trace that was edited
        return []
    return blocks if isinstance(blocks, list) else []


def wire_tools(tools: Iterable[ToolSpec]) -> list[dict[str, Json]]:
    """The chat-completions form of the tools."""
    return [tool.to_dict() for tool in tools]


def tools_of(messages: Iterable[Message]) -> tuple[ToolSpec, ...]:
    """Bare specs of the tools that were called, for providers that refuse a history without."""
    names = {call.name: None for message in messages for call in message.tool_calls if call.name}
    return tuple(ToolSpec(name=name) for name in names)


def clean(text: str) -> str:
    """The text with lone surrogates replaced: they fail in UTF-8, and so in every later call."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def safe_arguments(text: str) -> str:
    """Arguments that may be sent back: the text itself if it is a JSON object, else "{}".

    Servers answer a cut or broken one with an error, and then with the same error for ever.
    """
    return _judged(text) if len(text) <= _REMEMBERED else _judged.__wrapped__(text)


@lru_cache(maxsize=1024)  # every turn sends the whole history again
def _judged(text: str) -> str:
    try:
        value = _STRICT.decode(text)
        if isinstance(value, str):  # encoded twice
            text, value = value, _STRICT.decode(value)
    except (ValueError, RecursionError):
        return "{}"
    if not isinstance(value, dict):
        return "{}"
    if (
        "\\" in text and "\\ud" in text.lower()
    ):  # an escaped surrogate is valid JSON, yet not valid text
        return clean(json.dumps(value, ensure_ascii=False))
    return clean(text)


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is not JSON")


_STRICT: Final = json.JSONDecoder(parse_constant=_refuse)


def _wire_call(call: ToolCall, wire_id: str, offered: set[str]) -> dict[str, Json]:
    name = call.name if call.name in offered else _NAME.sub("_", call.name)[:_LONGEST_NAME]
    return {
        "id": wire_id,
        "type": "function",
        "function": {"name": name or _UNNAMED, "arguments": safe_arguments(call.arguments)},
    }
