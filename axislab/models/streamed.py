"""Reads a litellm stream to its end, and finds out whether that was the end of a reply.

litellm hands out a stream that always ends well: it fills gaps, drops lines it cannot read, and
makes an empty answer of a page in HTML. So the provider's own chunks are read, beneath it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from axislab.errors import ErrorKind, ModelError
from axislab.messages import Json
from axislab.models._litellm import load_litellm
from axislab.models.assembly import Assembler, newer_usage
from axislab.models.classify import classify
from axislab.models.deltas import OnDelta
from axislab.models.incoming import RawReply
from axislab.models.opening import close_stream
from axislab.models.redact import redact

_LAST_WORDS: Final = 5.0
"""Seconds a stream may go on after the end of the reply, for the usage."""
_DONE: Final = "[DONE]"
_BEGINNING: Final = 10_000
"""Bytes of a body that may be an error instead of a stream."""
_END: Final = object()


async def read_stream(response: Any, *, raw: RawReply, model: str, on_delta: OnDelta) -> Any:
    """The whole reply of a stream; the stream is closed, whatever happens.

    Args:
        response: What litellm returned.
        raw: Takes what the provider sent, also of a stream that breaks.
        model: The litellm name of the model, for errors and the cost.
        on_delta: Hears the pieces.

    Returns:
        A litellm ModelResponse.

    Raises:
        ModelError: The stream holds no reply, or only a part of one.
        Exception: Whatever broke the stream; `stream_error` says what it means.
    """
    if not hasattr(response, "completion_stream"):  # it does not stream; it is whole
        return response
    parts = Assembler(on_delta)
    lines: _Lines | None = None
    try:
        stream = response.completion_stream or await response.fetch_stream()
        lines, beginning = _watch_lines(stream), _watch_beginning(stream)
        await _read(stream, parts, response, lines)
        beginning.check()
        if not (parts.finished and parts.heard):
            raise _incomplete(model, parts, stream)
    except Exception:
        raw.usage = parts.usage_so_far(lines.usage if lines is not None else {})
        raise
    finally:
        await close_stream(response)
    parts.close()
    body = parts.body()
    raw.data, raw.usage = body, body.get("usage") or {}
    if lines is not None:
        lines.put_into(body)
        raw.usage = lines.usage or raw.usage
    whole = _as_response(body)
    _put_cost(whole, model)
    return whole


def stream_error(problem: Exception, *, model: str, secrets: Iterable[str] = ()) -> ModelError:
    """The ModelError for what broke a stream off.

    Args:
        problem: The exception.
        model: Named in the message.
        secrets: Texts that must not be in the message.
    """
    error = classify(problem, model=model, secrets=secrets)
    told = _told_status(problem)
    vague = error.kind is ErrorKind.UNKNOWN or (told is not None and error.kind in _BY_STATUS)
    if error is problem or not vague:
        return error
    detail = redact(" ".join(str(problem).split())[:300], secrets)
    if told is None and not _is_error_event(problem):
        # What litellm's reader of chunks stumbles over is not shaped as a chunk should be.
        return ModelError(
            f"{model}: the answer is no chat reply: a chunk of the stream cannot be read: {detail}",
            kind=ErrorKind.MALFORMED_REPLY,
            original=problem,
        )
    return ModelError(
        f"{model}: the provider broke the stream off: {detail}",
        kind=_STATUS_KIND.get(told or 0, ErrorKind.SERVER),
        status=told,
        original=problem,
    )


_STATUS_KIND: Final[Mapping[int, ErrorKind]] = {
    429: ErrorKind.RATE_LIMIT,
    503: ErrorKind.OVERLOADED,
    529: ErrorKind.OVERLOADED,
}


_BY_STATUS: Final = frozenset({ErrorKind.BAD_REQUEST, ErrorKind.SERVER})


class ErrorEvent(Exception):
    """The provider sent an error in the middle of a stream.

    Args:
        body: The error, as it came.
    """

    def __init__(self, body: object) -> None:
        self.body = body if isinstance(body, Mapping) else {"message": str(body)}
        super().__init__(str(self.body.get("message") or self.body))


def _is_error_event(problem: Exception) -> bool:
    names = {cls.__name__ for cls in type(problem).__mro__}
    return isinstance(problem, ErrorEvent) or bool(names & {"APIError", "BaseLLMException"})


def _told_status(problem: Exception) -> int | None:
    """The HTTP status an error event names."""
    body = getattr(problem, "body", None)
    code = body.get("code") if isinstance(body, Mapping) else None
    for value in (code, getattr(problem, "status_code", None)):
        if isinstance(value, int | str) and str(value).isdecimal() and 400 <= int(value) < 600:
            return int(value)
    return None


@dataclass(slots=True)
class _Lines:
    """What the provider itself sent, where litellm's reader has it otherwise."""

    strict: bool
    """Its reader drops what it cannot read, so that ends the stream here."""
    done: bool = False
    shaped: bool = False
    """Its chunks are OpenAI's."""
    id: str | None = None
    finish: str | None = None
    usage: dict[str, Json] = field(default_factory=dict)
    """In the words of a protocol other than OpenAI's."""

    def see_text(self, data: str) -> None:
        """Look at one chunk as it came.

        Raises:
            ValueError: It cannot be read, or is no part of a stream.
        """
        try:
            chunk = json.loads(data)
        except ValueError:
            if self.strict:
                raise
            return
        self.see(chunk)

    def see(self, chunk: object) -> None:
        """Look at one chunk.

        Raises:
            ErrorEvent: It is an error.
            ValueError: It is a whole reply, of which litellm would make an empty one.
        """
        if not isinstance(chunk, Mapping):
            return
        if chunk.get("error"):
            raise ErrorEvent(chunk["error"])
        choices = chunk.get("choices")
        if not isinstance(choices, list):
            for holder in (chunk.get("message"), chunk):
                if isinstance(holder, Mapping) and isinstance(holder.get("usage"), Mapping):
                    self.usage = newer_usage(self.usage, holder["usage"])
            return
        self.shaped = True
        self.id = chunk.get("id") or self.id
        for choice in choices:
            if isinstance(choice, Mapping) and not choice.get("index"):
                if choice.get("message") and not choice.get("delta"):
                    raise ValueError("a whole reply came where a stream was asked for")
                self.finish = choice.get("finish_reason") or self.finish

    def put_into(self, body: dict[str, Any]) -> None:
        """Say it in the whole reply."""
        if self.shaped:
            body["id"] = self.id
            body["choices"][0]["finish_reason"] = self.finish


def _watch_lines(stream: Any) -> _Lines | None:
    """Look at the lines beneath the readers of litellm that take them one by one."""
    from litellm.llms.base_llm.base_model_iterator import BaseModelResponseIterator

    source: Any = getattr(stream, "streaming_response", None)
    if not hasattr(stream, "response_iterator") or not hasattr(source, "__aiter__"):
        return None
    seen = _Lines(strict=isinstance(stream, BaseModelResponseIterator))
    stream.streaming_response = stream.response_iterator = _checked(source, seen)
    return seen


@dataclass(slots=True)
class _Beginning:
    """The first bytes of a stream that openai's client reads: it skips what is no event."""

    data: bytes = b""

    def see(self, data: bytes) -> None:
        """Look at some bytes."""
        if len(self.data) < _BEGINNING:
            self.data += data[: _BEGINNING - len(self.data)]

    def check(self) -> None:
        """Find an error that came instead of a stream.

        Raises:
            ErrorEvent: It is one.
        """
        if not self.data.lstrip().startswith(b"{"):
            return
        try:
            told = json.loads(self.data)
        except (ValueError, RecursionError):
            return
        if told.get("error"):
            raise ErrorEvent(told["error"])


def _watch_beginning(stream: Any) -> _Beginning:
    seen = _Beginning()
    source = getattr(getattr(stream, "response", None), "aiter_bytes", None)
    if source is not None:

        async def watched(*args: Any, **options: Any) -> AsyncIterator[bytes]:
            async for data in source(*args, **options):
                seen.see(data)
                yield data

        stream.response.aiter_bytes = watched
    return seen


async def _checked(source: AsyncIterable[Any], seen: _Lines) -> AsyncIterator[Any]:
    async for line in source:
        text = line.decode("utf-8", "replace") if isinstance(line, bytes) else line
        if isinstance(text, str) and text.startswith(("data:", "{")):
            data = text.removeprefix("data:").strip()
            if data == _DONE:
                seen.done = True
            elif data:
                seen.see_text(data)
        yield line


async def _read(stream: Any, parts: Assembler, response: Any, lines: _Lines | None) -> None:
    """Take all chunks; what goes wrong after the end of the reply does no harm to it."""
    items = aiter(stream) if hasattr(stream, "__aiter__") else _from_thread(stream)
    while True:
        try:
            async with asyncio.timeout(_LAST_WORDS if parts.finished else None):
                item = await anext(items, _END)
        except Exception:
            if parts.finished:
                return
            raise
        if item is _END:
            return
        if lines is not None and lines.done:
            continue  # after that only litellm's own words come
        if not _take(item, parts) and (made := _known_to_wrapper(item, stream, response)):
            parts.take(made)


async def _from_thread(stream: Iterable[Any]) -> AsyncIterator[Any]:
    iterator = iter(stream)
    while (item := await asyncio.to_thread(next, iterator, _END)) is not _END:
        yield item


def _take(item: Any, parts: Assembler) -> bool:
    """Is it a chunk of a known shape?"""
    if isinstance(item, Mapping) and "is_finished" in item:
        parts.take_generic(item)
    elif isinstance(item, Mapping) or hasattr(item, "choices"):
        parts.take(item)
    else:
        return item is None
    return True


def _known_to_wrapper(item: Any, stream: Any, response: Any) -> Any:
    """What litellm's wrapper makes of a shape that only it knows."""
    if type(stream).__module__.partition(".")[0] == "openai":
        raise ValueError(f"a chunk is no object but {str(item)[:80]!r}")
    return response.chunk_creator(chunk=item)


def _incomplete(name: str, parts: Assembler, stream: Any) -> ModelError:
    if parts.heard:
        return ModelError(
            f"{name}: the connection broke off: the stream ended after "
            f"{parts.characters:,} characters, before the reply was complete",
            kind=ErrorKind.CONNECTION,
        )
    http = getattr(stream, "response", None) or getattr(stream, "http_response", None)
    kind = getattr(http, "headers", {}).get("content-type")
    return ModelError(
        f"{name}: the answer is no chat reply: no piece of one came"
        + (f" (content type {kind})" if kind else ""),
        kind=ErrorKind.MALFORMED_REPLY,
    )


def _as_response(body: Mapping[str, Any]) -> Any:
    """The reply as litellm gives it where nothing is streamed."""
    from litellm.litellm_core_utils.llm_response_utils.convert_dict_to_response import (
        convert_to_model_response_object,
    )

    return convert_to_model_response_object(
        response_object=json.loads(json.dumps(body)),  # it changes what it is given
        model_response_object=load_litellm().ModelResponse(),
    )


def _put_cost(response: Any, model: str) -> None:
    """What litellm adds to a reply that is not streamed."""
    with contextlib.suppress(Exception):  # a bare Exception for a model that is not listed
        cost = load_litellm().completion_cost(completion_response=response, model=model)
        response.hidden_params["response_cost"] = cost
