"""The local models behind litellm: `axislab-local/…` like any provider, errors and streams too."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from axislab.models.base import ModelReply, ModelRequest
from axislab.models.custom_llm import CustomProvider, Params, WireMessages, request_from
from axislab.models.local import PROVIDER, local_model


class LocalProvider(CustomProvider):
    """Answers litellm's calls with the local models."""

    name = PROVIDER

    def check(self, model: str) -> None:
        """Find a model that cannot run here.

        Raises:
            ModelError: NOT_FOUND, saying what to do.
        """
        local_model(model).check()

    def info(self, model: str) -> Mapping[str, Any]:
        """What identifies the weights."""
        return local_model(model).info

    def reply(self, model: str, messages: WireMessages, params: Params) -> ModelReply:
        """What the model says."""
        return local_model(model).complete_sync(local_request(messages, params))

    async def areply(self, model: str, messages: WireMessages, params: Params) -> ModelReply:
        """The same, awaited; cancelling stops the computation."""
        return await local_model(model).complete(local_request(messages, params))

    def pieces(
        self, model: str, messages: WireMessages, params: Params
    ) -> Generator[str | ModelReply, None, None]:
        """What the model says, while it says it; closing the iterator stops it."""
        return local_model(model).pieces_sync(local_request(messages, params))

    async def apieces(
        self, model: str, messages: WireMessages, params: Params
    ) -> AsyncGenerator[str | ModelReply, None]:
        """The same, awaited."""
        request = local_request(messages, params)
        async with aclosing(local_model(model).pieces(request)) as pieces:
            async for piece in pieces:
                yield piece


def local_request(messages: WireMessages, params: Params) -> ModelRequest:
    """The request in a call as litellm passes it on, with what forces a tool."""
    request = request_from(messages, params)
    if (choice := params.get("tool_choice")) is None:
        return request
    sampling = request.sampling
    extra = {**sampling.extra, "tool_choice": choice}
    return replace(request, sampling=sampling.model_copy(update={"extra": extra}))
