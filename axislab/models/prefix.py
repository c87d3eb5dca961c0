"""One main loop for several arms: what the first that comes to a request is answered, all get.

Arms that differ only from the answer stage on would make the same main loop again and again. Here
each request of it is sent once for a task and repeat, under a draw that tells nothing of the arm;
whoever comes to the same request gets the same reply, whatever it is. From the first request for
anything else on, and in every further try, an arm is on its own.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

from axislab.messages import Message, Role
from axislab.models.around import Around
from axislab.models.base import ChatModel, ModelReply, ModelRequest
from axislab.models.flights import Flights
from axislab.models.reply_json import reply_from_json, reply_to_json
from axislab.models.reply_store import ReplyStore
from axislab.models.request_key import identity_of, key_of

FILE: Final = "prefix.sqlite3"
MARK: Final = "prefix:"
"""How the cache key of a shared request begins."""
SHARED: Final = frozenset({"main_loop", "compaction"})
"""Purposes of the requests of a main loop."""


class Tape:
    """Replies of the main loops that arms share.

    Args:
        path: A file that outlives the process; None keeps them in memory.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.flights = Flights()
        self._store = None if path is None else ReplyStore(path)
        self._replies: dict[str, str] = {}

    def get(self, key: str) -> ModelReply | None:
        """The reply to a request, if there was one."""
        text = self._replies.get(key) if self._store is None else self._store.read(key)
        return None if text is None else reply_from_json(text)

    def put(self, key: str, reply: ModelReply, *, model: str) -> None:
        """Keep a reply; one that JSON cannot hold is not kept."""
        try:
            text = reply_to_json(reply)
        except (TypeError, RecursionError):
            return  # a user's own model may put anything into a reply
        if self._store is None:
            self._replies[key] = text
        else:
            self._store.write(key, text, model=model)

    def close(self) -> None:
        """Let go of the file."""
        if self._store is not None:
            self._store.close()


class SharedPrefix(Around):
    """A model as one run of an arm is to ask it, where arms share their main loop.

    Args:
        model: Who is asked.
        tape: Of the study.
        group: Name of the arms that share.
        draw: Key of the draws of the main loop, in place of the arm's own.
    """

    def __init__(self, model: ChatModel, tape: Tape, *, group: str, draw: str) -> None:
        super().__init__(model)
        self._tape = tape
        self._group = group
        self._draw = draw
        self._identity: str | None = None
        self._head: Sequence[Message] | None = None
        self._left = False

    @property
    def info(self) -> Mapping[str, Any]:
        """The model's, and that main loops are shared."""
        return {**self.model.info, "shared_prefix": True}

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The reply that an arm of the group was given, or else the model's.

        Raises:
            ModelError: No reply; its kind says why.
        """
        if self._is_past(request):
            return await self.model.complete(request)
        shared = replace(request, draw=":".join([self._draw, *request.draw.split(":")[1:]]))
        if self._identity is None:
            self._identity = identity_of(self.model)
        text = f"{self._group}\x1f{key_of(self._identity, shared)}"
        key = MARK + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]
        while True:
            other = self._tape.flights.claim(key)
            if other is None:
                return await self._lead(key, shared)
            if (reply := await other) is not None:
                return _given(key, reply)

    def _is_past(self, request: ModelRequest) -> bool:
        """Whether the first main loop is over: another request, or another try, came after it."""
        if request.purpose == "main_loop":
            head = list(takewhile(lambda m: m.role is not Role.ASSISTANT, request.messages))
            self._head = head if self._head is None else self._head
            self._left = self._left or head[: len(self._head)] != self._head
        self._left = self._left or request.purpose not in SHARED
        return self._left

    async def _lead(self, key: str, request: ModelRequest) -> ModelReply:
        """Be the one who asks, unless it was asked before."""
        got: ModelReply | None = None
        try:
            if (got := self._tape.get(key)) is not None:
                return _given(key, got)
            started = time.monotonic()
            reply = await self.model.complete(request)
            if not isinstance(reply, ModelReply):
                return reply  # the caller says what is wrong with it
            got = _original(reply, time.monotonic() - started)
            await asyncio.to_thread(self._tape.put, key, got, model=self.name)
            return replace(reply, cache_key=key)
        finally:
            self._tape.flights.settle(key, got)


def _original(reply: ModelReply, took: float) -> ModelReply:
    """The reply as it was when it was paid for."""
    if not reply.cached:
        return replace(reply, latency=reply.latency or took)
    return replace(
        reply, cached=False, cost_usd=reply.saved_usd, latency=reply.saved_seconds or took
    )


def _given(key: str, original: ModelReply) -> ModelReply:
    """The reply as those get it who did not ask."""
    return replace(
        original,
        cached=True,
        cache_key=key,
        cost_usd=0.0,
        cost_missing=None,
        latency=0.0,
        saved_usd=original.cost_usd,
        saved_seconds=original.latency,
    )
