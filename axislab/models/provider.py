"""The simulated agent behind litellm: `axislab/simulated`, and one name for each preset.

It is reached like any paid provider, so errors, streams and usage go the same ways. The draw key
comes as the call parameter `axislab_draw`, a profile may come as `axislab_profile`; nothing else
but messages, tools and sampling is looked at.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from axislab.config import Sampling
from axislab.errors import ConfigError, ErrorKind, ModelError
from axislab.messages import Json, Message, ToolSpec
from axislab.models._litellm import load_litellm, register_provider
from axislab.models.assembly import NATIVE
from axislab.models.base import ModelReply, ModelRequest
from axislab.models.faults import FailureProfile
from axislab.models.simulated import PROVIDER, SimulatedModel, simulated_model

DRAW: Final = "axislab_draw"
"""Call parameter: the opaque draw key."""
PROFILE: Final = "axislab_profile"
"""Call parameter: a preset's name, or a mapping of rates."""
WINDOW: Final = "axislab_window"
"""Call parameter: tokens the context holds."""
_USED: Final = frozenset(
    {
        "tools", "tool_choice", "max_tokens", "max_completion_tokens", "temperature", "top_p",
        "reasoning_effort", "stream", "stream_options", "max_retries", DRAW, PROFILE, WINDOW,
    }
)  # fmt: skip


def register() -> None:
    """Make the simulated agent known to litellm; other custom providers stay as they are."""
    load_litellm()
    register_provider(PROVIDER, _handler_class()())


class SimulatedProvider:
    """Turns what litellm passes to a custom provider into a request, and the reply back."""

    def check(self, model: str) -> None:
        """Find a misspelt name.

        Raises:
            ModelError: NOT_FOUND, with the names there are.
        """
        try:
            model_for(model)
        except ConfigError as problem:
            raise ModelError(str(problem), kind=ErrorKind.NOT_FOUND) from None

    def info(self, model: str) -> Mapping[str, Any]:
        """Profile and rates, for the trace header."""
        return model_for(model).info

    def answer(
        self, model: str, messages: Sequence[Mapping[str, Json]], params: Mapping[str, Any]
    ) -> ModelReply:
        """The reply to a call as litellm passes it on.

        Raises:
            Exception: litellm's own, as a paid provider's errors are.
        """
        try:
            simulated = model_for(model, profile=params.get(PROFILE), window=params.get(WINDOW))
        except ConfigError as problem:
            litellm = load_litellm()
            raise litellm.exceptions.NotFoundError(
                message=str(problem), model=model, llm_provider=PROVIDER
            ) from None
        try:
            return simulated.reply(request_from(messages, params))
        except ModelError as problem:
            failed = problem
        # Raised out here it carries no trace of ours, so it is judged like anyone's.
        raise as_litellm(failed, model)


def model_for(
    model: str, *, profile: str | Mapping[str, Any] | None = None, window: int | None = None
) -> SimulatedModel:
    """The simulated model of a litellm name, with or without the provider before the slash.

    Raises:
        ConfigError: No such model or profile.
    """
    name = model if model.startswith(f"{PROVIDER}/") else f"{PROVIDER}/{model}"
    if profile is None:
        return _named(name, window)
    simulated_model(name)
    own = FailureProfile.model_validate(profile) if isinstance(profile, Mapping) else profile
    return SimulatedModel(own, name=name, window=window)


@lru_cache(maxsize=64)
def _named(name: str, window: int | None) -> SimulatedModel:
    return simulated_model(name, window=window)


def request_from(messages: Sequence[Mapping[str, Json]], params: Mapping[str, Any]) -> ModelRequest:
    """What the simulated agent sees of a litellm call."""
    choice = params.get("tool_choice")
    offered = () if choice == "none" else params.get("tools") or ()
    limit = params.get("max_completion_tokens") or params.get("max_tokens")
    known = {"max_output_tokens": limit} if limit else {}
    for key in ("temperature", "top_p", "reasoning_effort"):
        if params.get(key) is not None:
            known[key] = params[key]
    extra = {k: v for k, v in params.items() if k not in _USED and v is not None}
    return ModelRequest(
        messages=tuple(Message.from_dict(message) for message in messages),
        tools=tuple(_spec(tool.get("function", tool)) for tool in offered),
        sampling=Sampling(**known, extra=extra),
        draw=str(params.get(DRAW) or ""),
    )


def _spec(function: Mapping[str, Json]) -> ToolSpec:
    return ToolSpec(
        name=str(function["name"]),
        description=str(function.get("description") or ""),
        parameters=function.get("parameters") or {"type": "object"},
    )


def as_litellm(problem: ModelError, model: str) -> Exception:
    """The exception litellm raises for the same failure of a paid provider."""
    errors = load_litellm().exceptions
    where = {"model": model, "llm_provider": PROVIDER}
    if problem.kind is ErrorKind.RATE_LIMIT:
        error = errors.RateLimitError(message=str(problem), **where)
        error.litellm_response_headers = {"retry-after": f"{problem.retry_after or 0.0:g}"}
    elif problem.kind is ErrorKind.TIMEOUT:
        error = errors.Timeout(message=str(problem), **where)
    elif problem.kind is ErrorKind.CONTEXT_LIMIT:
        error = errors.ContextWindowExceededError(message=str(problem), **where)
    else:
        error = errors.BadRequestError(message=str(problem), **where)
    made: Exception = error
    return made


def response_of(reply: ModelReply) -> dict[str, Json]:
    """The reply as a chat completion."""
    message: dict[str, Json] = {"role": "assistant", "content": reply.text}
    if reply.tool_calls:
        message["tool_calls"] = [_call(reply, number) for number in range(len(reply.tool_calls))]
    return {
        "id": reply.request_id,
        "created": int(time.time()),
        "model": reply.model,
        "object": "chat.completion",
        "usage": usage_of(reply),
        "choices": [{"index": 0, "finish_reason": reply.finish_reason, "message": message}],
    }


def usage_of(reply: ModelReply) -> dict[str, int]:
    """The tokens as providers report them."""
    usage = reply.usage
    given, made = (usage.input_tokens or 0, usage.output_tokens or 0) if usage else (0, 0)
    return {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}


def _call(reply: ModelReply, number: int) -> dict[str, Json]:
    call = reply.tool_calls[number]
    return {
        "id": call.provider_id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


def chunks_of(reply: ModelReply) -> Iterator[dict[str, Any]]:
    """The reply in the pieces of a stream: words, then calls, then the end with the usage."""
    yield from pieces_of(reply)
    yield end_of(reply)


def pieces_of(reply: ModelReply) -> Iterator[dict[str, Any]]:
    """The pieces before the end."""
    text = reply.text or ""
    cut = [i for i, char in enumerate(text) if char == " "][7::8]
    for start, end in zip([0, *cut], [*cut, len(text)], strict=True):
        if text[start:end]:
            yield _chunk(text=text[start:end])
    for number in range(len(reply.tool_calls)):
        yield _chunk(tool={"index": number, **_call(reply, number)})


def end_of(reply: ModelReply) -> dict[str, Any]:
    """The last piece: why the reply ends, its usage, and what has no place in litellm's chunks."""
    native = {"id": reply.request_id, "model": reply.model, "content": reply.text}
    last = _chunk(finish=reply.finish_reason or "stop", usage=usage_of(reply))
    return {**last, "provider_specific_fields": {NATIVE: native}}


def chunk_of(text: str) -> dict[str, Any]:
    """A piece of text as a chunk of litellm's own shape."""
    return _chunk(text=text)


def _chunk(
    *,
    text: str = "",
    tool: dict[str, Json] | None = None,
    finish: str | None = None,
    usage: dict[str, int] | None = None,
) -> dict[str, Any]:
    return {
        "text": text,
        "tool_use": tool,
        "is_finished": finish is not None,
        "finish_reason": finish or "",
        "usage": usage,
        "index": 0,
    }


@lru_cache(maxsize=1)
def _handler_class() -> Callable[[], object]:
    """The class litellm wants; it can be made only once litellm is loaded."""
    litellm = load_litellm()

    class Handler(SimulatedProvider, litellm.CustomLLM):  # type: ignore[misc,name-defined]
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
            return self.completion(model, messages, optional_params)

        def streaming(
            self, model: str, messages: list[Any], optional_params: dict[str, Any], **_: Any
        ) -> Iterator[dict[str, Any]]:
            """A reply in pieces."""
            yield from chunks_of(self.answer(model, messages, optional_params))

        async def astreaming(
            self, model: str, messages: list[Any], optional_params: dict[str, Any], **_: Any
        ) -> AsyncIterator[dict[str, Any]]:
            """A reply in pieces, awaited."""
            for chunk in chunks_of(self.answer(model, messages, optional_params)):
                await asyncio.sleep(0)
                yield chunk

    return Handler
