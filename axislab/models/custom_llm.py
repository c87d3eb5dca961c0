"""Our own providers behind litellm's interface for custom ones: one handler class for them all.

They are reached like any paid provider, so errors, streams and usage go the same ways.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from functools import lru_cache
from typing import Any, ClassVar, Final

from axislab.config import Sampling
from axislab.errors import AxislabError, ConfigError, ErrorKind, ModelError
from axislab.messages import Json, Message, ToolSpec
from axislab.models._litellm import load_litellm, register_provider
from axislab.models.assembly import NATIVE
from axislab.models.base import ModelReply, ModelRequest

WireMessages = Sequence[Mapping[str, Json]]
"""Messages as litellm passes them on."""
Params = Mapping[str, Any]
"""Parameters as litellm passes them on."""
_KNOWN: Final = frozenset(
    {
        "tools", "tool_choice", "max_tokens", "max_completion_tokens", "temperature", "top_p",
        "reasoning_effort", "stream", "stream_options", "max_retries",
    }
)  # fmt: skip


class CustomProvider(ABC):
    """What litellm's handler for a provider of ours is made of.

    A subclass says how a call is answered; errors, streams and the shapes of litellm are the same
    for all of them.
    """

    name: ClassVar[str]
    """The part of its model strings before the slash."""

    @abstractmethod
    def check(self, model: str) -> None:
        """Find a model that cannot answer as things stand.

        Raises:
            ModelError: Saying what to do.
        """

    @abstractmethod
    def info(self, model: str) -> Mapping[str, Any]:
        """What identifies the model, for the trace header."""

    @abstractmethod
    def reply(self, model: str, messages: WireMessages, params: Params) -> ModelReply:
        """The reply to a call.

        Raises:
            AxislabError: A ModelError, or a ConfigError for a model that does not exist.
        """

    async def areply(self, model: str, messages: WireMessages, params: Params) -> ModelReply:
        """The same, awaited; whoever computes for long does it elsewhere."""
        return self.reply(model, messages, params)

    def pieces(
        self, model: str, messages: WireMessages, params: Params
    ) -> Generator[str | ModelReply, None, None]:
        """The text of the reply as it comes, then the whole reply."""
        reply = self.reply(model, messages, params)
        yield from pieces_of(reply.text or "")
        yield reply

    async def apieces(
        self, model: str, messages: WireMessages, params: Params
    ) -> AsyncGenerator[str | ModelReply, None]:
        """The same, awaited."""
        reply = await self.areply(model, messages, params)
        for piece in pieces_of(reply.text or ""):
            await asyncio.sleep(0)
            yield piece
        yield reply

    def answer(self, model: str, messages: WireMessages, params: Params) -> ModelReply:
        """The reply.

        Raises:
            Exception: litellm's own, as a paid provider's errors are.
        """
        try:
            return self.reply(model, messages, params)
        except (ModelError, ConfigError) as problem:
            failed = problem
        # Raised out here it carries no trace of ours, so it is judged like anyone's.
        raise as_litellm(failed, model=model, provider=self.name)

    async def aanswer(self, model: str, messages: WireMessages, params: Params) -> ModelReply:
        """The same, awaited."""
        try:
            return await self.areply(model, messages, params)
        except (ModelError, ConfigError) as problem:
            failed = problem
        raise as_litellm(failed, model=model, provider=self.name)

    def stream(
        self, model: str, messages: WireMessages, params: Params
    ) -> Iterator[dict[str, Any]]:
        """The reply in litellm's chunks."""
        try:
            chunks = Chunks()
            with closing(self.pieces(model, messages, params)) as pieces:
                for piece in pieces:
                    yield from chunks.of(piece)
            return
        except (ModelError, ConfigError) as problem:
            failed = problem
        raise as_litellm(failed, model=model, provider=self.name)

    async def astream(
        self, model: str, messages: WireMessages, params: Params
    ) -> AsyncGenerator[dict[str, Any], None]:
        """The same, awaited."""
        try:
            chunks = Chunks()
            async with aclosing(self.apieces(model, messages, params)) as pieces:
                async for piece in pieces:
                    for chunk in chunks.of(piece):
                        yield chunk
            return
        except (ModelError, ConfigError) as problem:
            failed = problem
        raise as_litellm(failed, model=model, provider=self.name)


def register_custom(provider: type[CustomProvider]) -> None:
    """Make a provider of ours known to litellm; other custom providers stay as they are."""
    register_provider(provider.name, _handler_class(provider)())


@lru_cache(maxsize=8)
def _handler_class(provider: type[CustomProvider]) -> Any:
    """The class litellm wants; it can be made only once litellm is loaded."""
    litellm = load_litellm()

    class Handler(provider, litellm.CustomLLM):  # type: ignore[misc,valid-type,name-defined]
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
            """A reply in pieces."""
            yield from self.stream(model, messages, optional_params)

        async def astreaming(
            self, model: str, messages: list[Any], optional_params: dict[str, Any], **_: Any
        ) -> AsyncGenerator[dict[str, Any], None]:
            """A reply in pieces, awaited."""
            async with aclosing(self.astream(model, messages, optional_params)) as chunks:
                async for chunk in chunks:
                    yield chunk

    return Handler


def request_from(
    messages: WireMessages, params: Params, *, draw: str = "", used: Sequence[str] = ()
) -> ModelRequest:
    """The request in a call as litellm passes it on.

    Args:
        messages: The conversation.
        params: All other parameters; those that are no knobs go into `sampling.extra`.
        draw: The draw key.
        used: Parameters that the provider has read itself.
    """
    choice = params.get("tool_choice")
    offered = () if choice == "none" else params.get("tools") or ()
    limit = params.get("max_completion_tokens") or params.get("max_tokens")
    known = {"max_output_tokens": limit} if limit else {}
    for key in ("temperature", "top_p", "reasoning_effort"):
        if params.get(key) is not None:
            known[key] = params[key]
    extra = {k: v for k, v in params.items() if k not in _KNOWN and k not in used and v is not None}
    return ModelRequest(
        messages=tuple(Message.from_dict(message) for message in messages),
        tools=tuple(_spec(tool.get("function", tool)) for tool in offered),
        sampling=Sampling(**known, extra=extra),
        draw=draw,
    )


def _spec(function: Mapping[str, Json]) -> ToolSpec:
    return ToolSpec(
        name=str(function["name"]),
        description=str(function.get("description") or ""),
        parameters=function.get("parameters") or {"type": "object"},
    )


def as_litellm(problem: AxislabError, *, model: str, provider: str) -> Exception:
    """The exception litellm raises for the same failure of a paid provider."""
    errors = load_litellm().exceptions
    kinds = {
        ErrorKind.RATE_LIMIT: errors.RateLimitError,
        ErrorKind.TIMEOUT: errors.Timeout,
        ErrorKind.CONTEXT_LIMIT: errors.ContextWindowExceededError,
        ErrorKind.NOT_FOUND: errors.NotFoundError,
    }
    kind = problem.kind if isinstance(problem, ModelError) else ErrorKind.NOT_FOUND
    cls = kinds.get(kind, errors.BadRequestError)
    made: Exception = cls(message=str(problem), model=model, llm_provider=provider)
    if isinstance(problem, ModelError) and kind is ErrorKind.RATE_LIMIT:
        wait = f"{problem.retry_after or 0.0:g}"
        made.litellm_response_headers = {"retry-after": wait}  # type: ignore[attr-defined]
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


def pieces_of(text: str) -> Iterator[str]:
    """A finished text as if it came in pieces of a few words."""
    cut = [i for i, char in enumerate(text) if char == " "][7::8]
    for start, end in zip([0, *cut], [*cut, len(text)], strict=True):
        if text[start:end]:
            yield text[start:end]


class Chunks:
    """Turns pieces of text, and the reply at their end, into litellm's chunks."""

    def __init__(self) -> None:
        self._said = ""

    def of(self, piece: str | ModelReply) -> Iterator[dict[str, Any]]:
        """A chunk of text; for the reply what is left of its text, its calls, and the end."""
        if isinstance(piece, str):
            self._said += piece
            yield _chunk(text=piece)
            return
        text = piece.text or ""
        if text.startswith(self._said) and (rest := text[len(self._said) :]):
            yield _chunk(text=rest)
        for number in range(len(piece.tool_calls)):
            yield _chunk(tool={"index": number, **_call(piece, number)})
        yield _end_of(piece)


def _end_of(reply: ModelReply) -> dict[str, Any]:
    """Why the reply ends, its usage, and what has no place in litellm's chunks."""
    native = {"id": reply.request_id, "model": reply.model, "content": reply.text}
    last = _chunk(finish=reply.finish_reason or "stop", usage=usage_of(reply))
    return {**last, "provider_specific_fields": {NATIVE: native}}


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
