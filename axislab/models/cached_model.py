"""A model behind the reply cache: what it answered once, it is not asked again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from axislab.errors import ConfigError
from axislab.models.around import Around
from axislab.models.base import ChatModel, ModelReply, ModelRequest
from axislab.models.cache import ReplyCache, why_not_kept
from axislab.models.deltas import OnDelta, Told, ask
from axislab.models.redact import redact
from axislab.models.reply_json import reply_to_json
from axislab.models.request_key import RETRY, identity_of, key_of


class CachedModel(Around):
    """A model whose replies are kept, and given again for the same request.

    Wrapping a model is asking for it: so a scripted or simulated one is cached too, which
    `Lab(cache=…)` never does by itself. A Lab counts, for each run, how often the run comes to
    the same request; without one, the same request with the same draw is always a hit.

    A model of your own is known by its class, name and `info`, which must then not change from
    request to request; with a `cache_identity`, a mapping, that is taken instead of `info`.

    Args:
        model: Who is asked on a miss.
        cache: Where replies are kept.

    Examples:
        >>> from axislab.models.scripted import ScriptedModel
        >>> CachedModel(ScriptedModel(["4"]), ReplyCache("replies.sqlite3"))
        CachedModel(ScriptedModel('scripted', simulated, 1 line, 0 requests), 'replies.sqlite3')
    """

    def __init__(self, model: ChatModel, cache: ReplyCache) -> None:
        if isinstance(model, CachedModel):
            raise ConfigError(f"model={model!r} is cached already: give the model inside")
        super().__init__(model)
        self.cache = cache
        self._checked = False
        self._run: _RunKeys | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, {str(self.cache.path)!r})"

    @property
    def info(self) -> Mapping[str, Any]:
        """The model's, and that a cache is asked."""
        return {**self.model.info, "reply_cache": True}

    def check(self) -> None:
        """Find what is wrong before the first request.

        Raises:
            ModelError: An unknown model, a missing key.
        """
        super().check()
        self._checked = True

    def for_run(self) -> CachedModel:
        """The same for one run: coming to an equal request again is another draw."""
        fresh = CachedModel(self.model, self.cache)
        fresh._checked = self._checked
        fresh._run = _RunKeys()
        return fresh

    def request_key(self, request: ModelRequest) -> str:
        """The key that the next `complete` of this request has."""
        return self._key(request, count=False)

    def holds(self, request: ModelRequest) -> bool:
        """Whether the next `complete` of this request has its reply here, so that none is sent.

        Raises:
            ModelError: As by `check`.
        """
        if not self._checked:  # what the key depends on may be known only then
            self.check()
        return self.cache.holds(self._key(request, count=False))

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The reply that was kept, or else the model's.

        Raises:
            ModelError: No reply; its kind says why.
        """
        return await self._answer(request, None)

    async def stream(self, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        """The same; one that was kept, or that another request waits for, is told at once.

        Raises:
            ModelError: No reply; its kind says why.
        """
        told = Told(on_delta)
        return told.settle(await self._answer(request, told.hear))

    async def _answer(self, request: ModelRequest, on_delta: OnDelta | None) -> ModelReply:
        if not self._checked:  # what it depends on may be known only then
            await asyncio.to_thread(self.check)
        key = self._key(request, count=True)
        while True:
            other = self.cache.flights.claim(key)
            if other is None:
                return await self._lead(key, request, on_delta)
            reply = await other
            if reply is not None:
                return self.cache.hit(key, reply)

    async def _lead(self, key: str, request: ModelRequest, on_delta: OnDelta | None) -> ModelReply:
        """Be the one who asks; those who wait get the reply if it is one to keep."""
        shared: ModelReply | None = None
        try:
            if (kept := self.cache.get(key)) is not None:
                shared = replace(kept, cost_usd=kept.saved_usd, latency=kept.saved_seconds or 0.0)
                return kept
            started = time.monotonic()
            reply = await ask(self.model, request, on_delta)
            if not isinstance(reply, ModelReply):
                return reply  # the caller says what is wrong with it
            took = reply.latency or time.monotonic() - started
            if why_not_kept(reply) is None:
                shared = replace(reply, latency=took)
                if not self._tells_secrets(shared):
                    await asyncio.to_thread(self.cache.put, key, shared, model=self.name)
            return replace(reply, cache_key=key)
        finally:
            self.cache.flights.settle(key, shared)

    def _key(self, request: ModelRequest, *, count: bool) -> str:
        if self._run is None:
            return key_of(identity_of(self.model), request)
        if self._run.identity is None:
            self._run.identity = identity_of(self.model)
        return self._run.key(request, count=count)

    def _tells_secrets(self, reply: ModelReply) -> bool:
        try:
            text = reply_to_json(reply)
        except (TypeError, RecursionError):
            return True
        if isinstance(self.model, _Guarded):
            return self.model.tells_secrets(text)
        return redact(text) != text


class _RunKeys:
    """The keys of one run, and how often it came to each request."""

    def __init__(self) -> None:
        self.identity: str | None = None
        self._sent: dict[str, int] = {}

    def key(self, request: ModelRequest, *, count: bool) -> str:
        """The key of a request; a retry is the same request still."""
        identity = self.identity or ""
        first = key_of(identity, request)
        again = RETRY.search(request.draw) is not None
        sent = self._sent.get(first, 0) + (not again)
        sent = max(sent, 1)
        if count:
            self._sent[first] = sent
        return first if sent == 1 else key_of(identity, request, sent=sent)


@runtime_checkable
class _Guarded(Protocol):
    """A model that knows its own keys."""

    def tells_secrets(self, text: str) -> bool: ...


def with_cache(model: ChatModel, cache: ReplyCache | None) -> ChatModel:
    """The model as one run is to ask it; a simulated one is cached only if it was wrapped."""
    if isinstance(model, CachedModel):
        return model.for_run()
    if cache is None or model.simulated:
        return model
    return CachedModel(model, cache).for_run()
