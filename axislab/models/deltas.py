"""What is shown of a reply while it comes: pieces for the eye, which no trace keeps."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeAlias, TypeGuard, runtime_checkable

from axislab.models.base import ChatModel, ModelReply, ModelRequest
from axislab.models.shape import what_is_wrong

_logger = logging.getLogger("axislab")


class DeltaKind(StrEnum):
    """What a piece is part of, or what became of the pieces before it."""

    TEXT = "text"
    REASONING = "reasoning"
    CALL = "call"
    """The name of a tool that is being called."""
    ARGUMENTS = "arguments"
    AGAIN = "again"
    """What came of this reply so far was misread, and is told anew: text that was thinking."""
    END = "end"
    """The reply is whole: the pieces since its beginning, or the last AGAIN, are all of it."""
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
            on_delta: Hears the pieces: TEXT, REASONING, CALL and ARGUMENTS. What the reply has
                beyond them is told for the model; if they differ, the reply is told again.

        Raises:
            ModelError: No whole reply; its kind says why.
        """


class Audience:
    """Passes pieces on, and says what became of them; a fault of the hearer ends no call."""

    def __init__(self, on_delta: OnDelta) -> None:
        self._on_delta: OnDelta | None = on_delta
        self._heard = False
        self._turn = 0

    def listen(self) -> OnDelta:
        """What hears the pieces of one request; after its end it is deaf."""
        self._turn += 1
        turn = self._turn

        def hear(delta: Delta) -> None:
            if turn == self._turn:
                self._hear(delta)

        return hear

    def end(self) -> None:
        """The reply is whole."""
        self._close(DeltaKind.END, "")

    def discard(self, why: str) -> None:
        """There is no reply; nothing is said if nothing was shown of it."""
        self._close(DeltaKind.DISCARDED, why)

    def _hear(self, delta: Delta) -> None:
        if delta.text or delta.kind in (DeltaKind.CALL, DeltaKind.AGAIN):  # else it is none
            self._heard = True
            self._tell(delta)

    def _close(self, kind: DeltaKind, text: str) -> None:
        self._turn += 1
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


class Told:
    """Passes pieces on, and knows whether they add up to the reply."""

    def __init__(self, on_delta: OnDelta) -> None:
        self._on_delta = on_delta
        self._parts: dict[tuple[DeltaKind, int], list[str]] = {}

    def hear(self, delta: Delta) -> None:
        """Pass one piece on."""
        if delta.kind is DeltaKind.AGAIN:
            self._parts.clear()
        elif delta.text or delta.kind is DeltaKind.CALL:
            self._parts.setdefault((delta.kind, delta.number), []).append(delta.text)
        self._on_delta(delta)

    @property
    def whole(self) -> dict[tuple[DeltaKind, int], str]:
        """The parts, joined."""
        return {part: "".join(texts) for part, texts in self._parts.items()}

    def settle(self, reply: ModelReply) -> ModelReply:
        """Tell the reply unless it was told; again, if something else was."""
        if what_is_wrong(reply) is not None:
            return reply  # the caller says so
        wanted = Told(lambda _: None)
        tell_reply(reply, wanted.hear)
        if self.whole == wanted.whole:
            return reply
        if self._parts:
            self.hear(Delta(kind=DeltaKind.AGAIN))
        tell_reply(reply, self.hear)
        return reply


async def ask(model: ChatModel, request: ModelRequest, on_delta: OnDelta | None) -> ModelReply:
    """The reply of a model, told in pieces where it can, else as a whole.

    Args:
        model: Whom to ask.
        request: What.
        on_delta: Hears the pieces; None asks for the whole reply only.
    """
    if on_delta is None:
        return await model.complete(request)
    told = Told(on_delta)
    if streams(model):
        return told.settle(await model.stream(request, told.hear))
    return told.settle(await model.complete(request))


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
