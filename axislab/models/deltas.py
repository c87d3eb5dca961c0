"""What is shown of a reply while it comes: pieces for the eye, which no trace keeps."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeAlias, TypeGuard, runtime_checkable

from axislab.models.base import ChatModel, ModelReply, ModelRequest

_logger = logging.getLogger("axislab")


class DeltaKind(StrEnum):
    """What a piece is part of, or what became of the pieces before it."""

    TEXT = "text"
    REASONING = "reasoning"
    CALL = "call"
    """The name of a tool that is being called."""
    ARGUMENTS = "arguments"
    END = "end"
    """The reply is whole."""
    DISCARDED = "discarded"
    """What came since the last end is no reply and is thrown away; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """One piece of a reply."""

    kind: DeltaKind
    text: str = ""
    number: int = 0
    """For CALL and ARGUMENTS: which call of the reply, from 0."""


OnDelta: TypeAlias = Callable[[Delta], None]
"""Hears the pieces of replies, in order, on the run's own thread."""


@runtime_checkable
class StreamingModel(ChatModel, Protocol):
    """A model that tells its reply in pieces while it comes."""

    async def stream(self, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        """Answer one request; the reply is the one `complete` would give.

        Args:
            request: What is asked.
            on_delta: Hears the pieces: TEXT, REASONING, CALL and ARGUMENTS.

        Raises:
            ModelError: No whole reply; its kind says why.
        """


class Audience:
    """Passes pieces on, and says what became of them; a fault of the hearer ends no call."""

    def __init__(self, on_delta: OnDelta) -> None:
        self._on_delta: OnDelta | None = on_delta
        self._heard = False

    def hear(self, delta: Delta) -> None:
        """Pass one piece on; an empty one is none."""
        if delta.text or delta.kind is DeltaKind.CALL:
            self._heard = True
            self._tell(delta)

    def end(self) -> None:
        """The reply is whole."""
        self._close(DeltaKind.END, "")

    def discard(self, why: str) -> None:
        """There is no reply; nothing is said if nothing was shown of it."""
        self._close(DeltaKind.DISCARDED, why)

    def _close(self, kind: DeltaKind, text: str) -> None:
        if self._heard:
            self._heard = False
            self._tell(Delta(kind=kind, text=text))

    def _tell(self, delta: Delta) -> None:
        if self._on_delta is None:
            return
        try:
            self._on_delta(delta)
        except Exception:  # a view's fault must not end the run it shows
            self._on_delta = None
            _logger.exception("a view of a streamed reply raised and was taken off")


async def ask(model: ChatModel, request: ModelRequest, audience: Audience | None) -> ModelReply:
    """The reply of a model, told in pieces where it can, else as a whole.

    Args:
        model: Whom to ask.
        request: What.
        audience: Hears the pieces; None asks for the whole reply only.
    """
    if audience is None:
        return await model.complete(request)
    if streams(model):
        return await model.stream(request, audience.hear)
    reply = await model.complete(request)
    if isinstance(reply, ModelReply):
        tell_reply(reply, audience.hear)
    return reply


def streams(model: ChatModel) -> TypeGuard[StreamingModel]:
    """Does the model tell its replies in pieces?"""
    return inspect.iscoroutinefunction(getattr(model, "stream", None))


def tell_reply(reply: ModelReply, on_delta: OnDelta) -> None:
    """Tell a whole reply at once: one piece for each of its parts."""
    if reply.reasoning:
        on_delta(Delta(kind=DeltaKind.REASONING, text=reply.reasoning))
    if reply.text:
        on_delta(Delta(kind=DeltaKind.TEXT, text=reply.text))
    for number, call in enumerate(reply.tool_calls):
        on_delta(Delta(kind=DeltaKind.CALL, text=call.name, number=number))
        on_delta(Delta(kind=DeltaKind.ARGUMENTS, text=call.arguments, number=number))
