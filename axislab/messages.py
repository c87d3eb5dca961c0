"""Messages, tool calls and token counts, as values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from axislab.errors import InvalidMessage, did_you_mean

Json: TypeAlias = Any
"""Anything JSON can hold."""


class Role(StrEnum):
    """Who a message is from."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    RUNTIME = "ConversationRuntime"
    """A marker: it changes what the model sees and is never sent to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One tool call of an assistant message."""

    id: str
    """Ours: unique within the run."""
    name: str
    arguments: str = "{}"
    """JSON text, exactly as the model wrote it."""
    provider_id: str | None = None
    """The provider's id, sent back to it verbatim; None where it gave none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation."""

    role: Role
    content: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    """For a tool message: the id of the call it answers."""
    name: str | None = None
    """For a tool message: the tool. For a marker: its kind."""
    reasoning: str | None = None
    """Thinking the provider reported apart from the content."""
    signed_reasoning: str | None = None
    """JSON text of the same thinking as the provider signed it; sent back to it verbatim."""

    @property
    def text(self) -> str:
        """The content, or an empty string."""
        return self.content or ""

    @classmethod
    def system(cls, content: str) -> Message:
        """A system message."""
        return cls(role=Role.SYSTEM, content=content)

    @classmethod
    def user(cls, content: str) -> Message:
        """A user message."""
        return cls(role=Role.USER, content=content)

    @classmethod
    def assistant(
        cls,
        content: str | None = None,
        tool_calls: Iterable[ToolCall] = (),
        *,
        reasoning: str | None = None,
        signed_reasoning: str | None = None,
    ) -> Message:
        """An assistant message."""
        return cls(
            role=Role.ASSISTANT,
            content=content,
            tool_calls=tuple(tool_calls),
            reasoning=reasoning,
            signed_reasoning=signed_reasoning,
        )

    @classmethod
    def tool(cls, content: str, *, tool_call_id: str, name: str | None = None) -> Message:
        """The result of one tool call."""
        return cls(role=Role.TOOL, content=content, tool_call_id=tool_call_id, name=name)

    def to_dict(self) -> dict[str, Json]:
        """The message as JSON for a trace: empty fields are left out."""
        out: dict[str, Json] = {"role": str(self.role), "content": self.content}
        if self.tool_calls:
            out["tool_calls"] = [_call_to_dict(call) for call in self.tool_calls]
        for key in ("tool_call_id", "name", "reasoning", "signed_reasoning"):
            if (value := getattr(self, key)) is not None:
                out[key] = value
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Message:
        """The inverse of `to_dict`; chat-completions messages are read as well.

        Raises:
            InvalidMessage: The role is none of ours, or a field has a wrong type.
        """
        if not isinstance(data, Mapping):
            raise InvalidMessage(f"a message is an object with a role, got {data!r}")
        name = data.get("role")
        try:
            role = Role(str(name))
        except ValueError:
            allowed = did_you_mean(str(name), map(str, Role))
            raise InvalidMessage(f"role {name!r}: {allowed}") from None
        calls = data.get("tool_calls") or ()
        if not isinstance(calls, Sequence) or isinstance(calls, str):
            raise InvalidMessage(f"tool_calls must be a list, got {calls!r}")
        return cls(
            role=role,
            content=_text(data.get("content")),
            tool_calls=tuple(_call_from_dict(c) for c in calls),
            tool_call_id=_optional(data.get("tool_call_id")),
            name=_optional(data.get("name")),
            reasoning=_optional(data.get("reasoning", data.get("reasoning_content"))),
            signed_reasoning=_optional(data.get("signed_reasoning")),
        )


def _call_to_dict(call: ToolCall) -> dict[str, Json]:
    out: dict[str, Json] = {"id": call.id, "name": call.name, "arguments": call.arguments}
    if call.provider_id is not None:
        out["provider_id"] = call.provider_id
    return out


def _call_from_dict(data: object) -> ToolCall:
    if not isinstance(data, Mapping):
        raise InvalidMessage(f"a tool call must be an object, got {data!r}")
    inner = data.get("function")
    source = inner if isinstance(inner, Mapping) else data
    arguments = source.get("arguments", "{}")
    if not isinstance(arguments, str):
        try:
            arguments = json.dumps(arguments, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError) as problem:
            raise InvalidMessage(f"arguments of a tool call are not JSON: {problem}") from problem
    return ToolCall(
        id=str(data.get("id") or ""),
        name=str(source.get("name") or ""),
        arguments=arguments,
        provider_id=_optional(data.get("provider_id")),
    )


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        parts = (part.get("text") for part in value if isinstance(part, Mapping))
        return "".join(part for part in parts if isinstance(part, str))  # pictures have none
    raise InvalidMessage(f"content must be text, a list of parts or None, got {value!r}")


def _optional(value: object) -> str | None:
    return None if value is None else str(value)


class ToolStatus(StrEnum):
    """How a tool call ended."""

    SUCCESS = "success"
    FAILED = "failed"
    """It ran, or its arguments were read, and it did not work."""
    REJECTED = "rejected"
    """It was not run: unknown tool, limit, policy or person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool call came to; every call gets exactly one."""

    call_id: str
    name: str
    content: str
    """What the model reads."""
    status: ToolStatus = ToolStatus.SUCCESS
    reason: str | None = None
    """Why it failed or was rejected: parameter_error, unknown_tool, timeout, …"""
    latency: float | None = None
    """Seconds the tool ran; None if it never did."""
    arguments: str | None = None
    """JSON text the tool was run with, after repair; None if it never ran."""
    repairs: tuple[str, ...] = ()
    """Names of the repair rules applied to the arguments."""
    truncated: int = 0
    """Characters cut off the result to keep it under the size cap."""

    def to_message(self) -> Message:
        """The tool message that answers the call."""
        return Message.tool(self.content, tool_call_id=self.call_id, name=self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one model call, or of many; None is "not reported", never zero.

    Where all are known, input = uncached + cache read + cache write. Thinking is part of the
    output.

    Examples:
        >>> Usage(input_tokens=100, cached_tokens=80, cache_write_tokens=0).uncached_tokens
        20
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    """Part of the input read from the provider's cache."""
    cache_write_tokens: int | None = None
    """Part of the input written to the provider's cache; some bill it higher."""
    reasoning_tokens: int | None = None
    """Part of the output spent on thinking."""
    estimated: bool = False
    """Counted by us, not reported by the provider."""

    @property
    def uncached_tokens(self) -> int | None:
        """Input neither read from the cache nor written to it; None if a part is not known."""
        if self.input_tokens is None or self.cached_tokens is None:
            return None
        if self.cache_write_tokens is None:
            return None
        rest = self.input_tokens - self.cached_tokens - self.cache_write_tokens
        return rest if rest >= 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """What a model is told about a tool."""

    name: str
    description: str = ""
    parameters: Mapping[str, Json] = field(default_factory=lambda: {"type": "object"})
    """JSON Schema of the arguments."""

    def to_dict(self) -> dict[str, Json]:
        """The chat-completions form."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": dict(self.parameters),
            },
        }
