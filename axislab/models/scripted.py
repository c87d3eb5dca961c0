"""A model that says what it was told to: the double for tests, examples and talks."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from axislab.errors import ConfigError, ModelError
from axislab.messages import ToolCall, Usage
from axislab.models.base import ModelReply, ModelRequest
from axislab.models.deltas import Delta, DeltaKind, OnDelta, tell_reply
from axislab.models.tokens import estimate_message, estimate_text

Said: TypeAlias = str | ToolCall | Iterable[ToolCall] | ModelReply | BaseException
"""One thing a scripted model does: a text, one or more calls, a whole reply, an error to raise."""

Line: TypeAlias = Said | Callable[[ModelRequest], Said]
"""One item of a script: what is said, or a function of the request that says it."""


class ScriptedModel:
    r"""Answers with the lines of a script, one for each request.

    Args:
        replies: The lines, or one function that answers every request.
        name: The model's name in traces.
        after: What follows the last line: an error, or that line again.
        usage: Tokens of each reply: None reports none; "estimate" counts request and reply by
            characters, marked as estimated; a Usage is reported as it is.
        delay: Seconds each answer takes.

    Raises:
        ConfigError: An empty script.

    Examples:
        >>> call = ScriptedModel.call("search", query="the capital of Osk")
        >>> model = ScriptedModel([call, "It is \boxed{Tal Moor}."])
        >>> model
        ScriptedModel('scripted', simulated, 2 lines, 0 requests)
    """

    def __init__(
        self,
        replies: Iterable[Line] | Callable[[ModelRequest], Said],
        *,
        name: str = "scripted",
        after: Literal["error", "repeat"] = "error",
        usage: Usage | Literal["estimate"] | None = None,
        delay: float = 0.0,
    ) -> None:
        if callable(replies):
            replies, after = [replies], "repeat"
        if isinstance(replies, str):
            raise ConfigError(f"replies={replies!r}: a list of lines is wanted, [{replies!r}]")
        self.lines: tuple[Line, ...] = tuple(replies)
        if not self.lines:
            raise ConfigError("replies=[]: a script needs at least one line")
        if after not in ("error", "repeat"):
            raise ConfigError(f"after={after!r}: 'error' or 'repeat' is wanted")
        self.after = after
        self.requests: list[ModelRequest] = []
        self._name = name
        self._usage = usage
        self._delay = delay

    def __repr__(self) -> str:
        lines = "1 line" if len(self.lines) == 1 else f"{len(self.lines)} lines"
        return (
            f"{type(self).__name__}({self._name!r}, simulated, {lines}, "
            f"{len(self.requests)} requests)"
        )

    @staticmethod
    def call(tool: str, /, **arguments: Any) -> ToolCall:
        """A tool call to put into a script; a list of them is one reply with several calls.

        Examples:
            >>> ScriptedModel.call("search", query="x").arguments
            '{"query": "x"}'
        """
        return ToolCall(id="", name=tool, arguments=json.dumps(arguments, ensure_ascii=False))

    @property
    def name(self) -> str:
        """As given."""
        return self._name

    @property
    def simulated(self) -> bool:
        """Always true."""
        return True

    @property
    def info(self) -> Mapping[str, Any]:
        """The length of the script, and what tells it from another of that length."""
        words = "\n".join(map(_words, self.lines)).encode("utf-8", "surrogatepass")
        digest = hashlib.sha256(words).hexdigest()
        return {"scripted": len(self.lines), "after": self.after, "script": digest[:12]}

    def check(self) -> None:
        """Nothing can be wrong before the first request."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The next line as a reply.

        Raises:
            ModelError: The script is used up, or the line is one.
        """
        line = self._next(request)
        if self._delay:
            await asyncio.sleep(self._delay)
        return self._said(line, request, number=len(self.requests))

    async def stream(self, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        """The same, told word by word; the words are spread over the delay.

        Raises:
            ModelError: As `complete`.
        """
        line = self._next(request)
        reply = self._said(line, request, number=len(self.requests))
        words = re.findall(r"\s*\S+|\s+", reply.text or "")
        for word in words:
            await asyncio.sleep(self._delay / len(words))
            on_delta(Delta(kind=DeltaKind.TEXT, text=word))
        if not words:
            await asyncio.sleep(self._delay)
        tell_reply(replace(reply, text=None), on_delta)
        return reply

    def _next(self, request: ModelRequest) -> Line:
        index = len(self.requests)
        self.requests.append(request)
        if index >= len(self.lines):
            if self.after == "error":
                raise ModelError(
                    f"{self._name}: request {index + 1}, but the script has {len(self.lines)}; "
                    "add lines, or pass after='repeat'"
                )
            index = len(self.lines) - 1
        return self.lines[index]

    def _said(self, line: Line, request: ModelRequest, *, number: int) -> ModelReply:
        said = line(request) if callable(line) else line
        if isinstance(said, BaseException):
            raise said
        return self._counted(_reply(said), request, number=number)

    def _counted(self, reply: ModelReply, request: ModelRequest, *, number: int) -> ModelReply:
        reply = replace(
            reply,
            tool_calls=tuple(
                call
                if call.provider_id is not None
                else replace(call, id="", provider_id=call.id or f"call_{number}_{place}")
                for place, call in enumerate(reply.tool_calls, start=1)
            ),
            model=reply.model or self._name,
            request_id=reply.request_id or f"{self._name}-{number}",
            cost_missing=reply.cost_missing or "no language model was asked",
        )
        if reply.usage is not None or self._usage is None:
            return reply
        if isinstance(self._usage, Usage):
            return replace(reply, usage=self._usage)
        usage = Usage(
            input_tokens=sum(estimate_message(message) for message in request.messages),
            output_tokens=estimate_text(reply.text or "")
            + sum(estimate_text(call.name + call.arguments) for call in reply.tool_calls),
            estimated=True,
        )
        return replace(reply, usage=usage)


def _words(line: Line) -> str:
    """A line as text without an address in it."""
    named = getattr(line, "__qualname__", type(line).__qualname__)
    return named if callable(line) else repr(line)


def _reply(said: Said) -> ModelReply:
    if isinstance(said, ModelReply):
        return said
    if isinstance(said, str):
        return ModelReply(text=said, finish_reason="stop")
    calls = (said,) if isinstance(said, ToolCall) else said
    if isinstance(calls, Iterable):
        calls = tuple(calls)
        if calls and all(isinstance(call, ToolCall) for call in calls):
            return ModelReply(tool_calls=calls, finish_reason="tool_calls")
    raise ConfigError(
        f"{said!r} is no line of a script: a text, ScriptedModel.call(…) or a list of them, "
        "a ModelReply, an exception, or a function of the request is wanted"
    )
