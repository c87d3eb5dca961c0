"""The local models behind litellm: `axislab-local/…` like any provider, errors and streams too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from axislab.errors import ErrorKind, ModelError
from axislab.models._litellm import load_litellm
from axislab.models.base import ModelReply, ModelRequest
from axislab.models.deltas import Delta, DeltaKind
from axislab.models.local import PROVIDER, local_model
from axislab.models.provider import (
    chunk_of,
    chunks_of,
    end_of,
    pieces_of,
    request_from,
    response_of,
)


class LocalProvider:
    """What litellm's handler for local models is made of."""

    def check(self, model: str) -> None:
        """Find a model that cannot run here.

        Raises:
            ModelError: NOT_FOUND, saying what to do.
        """
        local_model(model).check()

    def info(self, model: str) -> Mapping[str, Any]:
        """What identifies the weights."""
        return local_model(model).info

    def answer(self, model: str, messages: list[Any], params: Mapping[str, Any]) -> ModelReply:
        """The reply to a call as litellm passes it on.

        Raises:
            Exception: litellm's own, made from our ModelError.
        """
        try:
            return local_model(model).complete_sync(local_request(messages, params))
        except ModelError as problem:
            raise as_litellm(problem, model) from problem

    async def aanswer(
        self, model: str, messages: list[Any], params: Mapping[str, Any]
    ) -> ModelReply:
        """The same, awaited; cancelling stops the computation."""
        try:
            return await local_model(model).complete(local_request(messages, params))
        except ModelError as problem:
            raise as_litellm(problem, model) from problem

    async def apieces(
        self, model: str, messages: list[Any], params: Mapping[str, Any]
    ) -> AsyncIterator[dict[str, Any]]:
        """The reply in the pieces of a stream; giving up the iterator stops the computation."""
        pieces: asyncio.Queue[Delta | None] = asyncio.Queue()
        request = local_request(messages, params)
        work = asyncio.create_task(local_model(model).stream(request, pieces.put_nowait))
        work.add_done_callback(lambda _: pieces.put_nowait(None))
        told = False
        try:
            while (piece := await pieces.get()) is not None:
                if piece.kind is DeltaKind.TEXT and not request.tools:
                    told = True
                    yield chunk_of(piece.text)
            reply = await work
        except ModelError as problem:
            raise as_litellm(problem, model) from problem
        finally:
            work.cancel()
            await asyncio.wait([work])
        if not told:
            for chunk in pieces_of(reply):
                yield chunk
        yield end_of(reply)


def handler() -> object:
    """A `litellm.CustomLLM` for the local models."""
    return _handler_class()()


def local_request(messages: list[Any], params: Mapping[str, Any]) -> ModelRequest:
    """The request in a call as litellm passes it on, with what forces a tool."""
    choice = params.get("tool_choice")
    request = request_from(messages, {k: v for k, v in params.items() if k != "tool_choice"})
    if choice is None:
        return request
    sampling = request.sampling
    extra = {**sampling.extra, "tool_choice": choice}
    return replace(request, sampling=sampling.model_copy(update={"extra": extra}))


def as_litellm(problem: ModelError, model: str) -> Exception:
    """The exception litellm raises for such an error of any provider."""
    errors = load_litellm().exceptions
    kinds = {
        ErrorKind.CONTEXT_LIMIT: errors.ContextWindowExceededError,
        ErrorKind.NOT_FOUND: errors.NotFoundError,
    }
    made: Exception = kinds.get(problem.kind, errors.BadRequestError)(
        message=str(problem), model=model, llm_provider=PROVIDER
    )
    return made


@lru_cache(maxsize=1)
def _handler_class() -> Callable[[], object]:
    """The class litellm wants; it can be made only once litellm is loaded."""
    litellm = load_litellm()

    class Handler(LocalProvider, litellm.CustomLLM):  # type: ignore[misc,name-defined]
        """What litellm calls."""

        def __init__(self) -> None:
            litellm.CustomLLM.__init__(self)

        def completion(
            self, model: str, messages: list[Any], optional_params: dict[str, Any], **_: Any
        ) -> Any:
            """A whole reply."""
            reply = self.answer(model, messages, optional_params)
            return litellm.ModelResponse(**response_of(reply))

        async def acompletion(
            self, model: str, messages: list[Any], optional_params: dict[str, Any], **_: Any
        ) -> Any:
            """A whole reply, awaited."""
            reply = await self.aanswer(model, messages, optional_params)
            return litellm.ModelResponse(**response_of(reply))

        def streaming(
            self, model: str, messages: list[Any], optional_params: dict[str, Any], **_: Any
        ) -> Iterator[dict[str, Any]]:
            """A reply in pieces, once it is whole."""
            yield from chunks_of(self.answer(model, messages, optional_params))

        async def astreaming(
            self, model: str, messages: list[Any], optional_params: dict[str, Any], **_: Any
        ) -> AsyncIterator[dict[str, Any]]:
            """A reply in pieces while it is made; closing stops the computation."""
            async for chunk in self.apieces(model, messages, optional_params):
                yield chunk

    return Handler
