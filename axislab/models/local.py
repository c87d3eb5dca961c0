"""A small real language model in this process: slow and weak, but no simulation."""

from __future__ import annotations

import asyncio
import queue
import threading
import uuid
from collections.abc import AsyncGenerator, Generator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from axislab.errors import ConfigError, ErrorKind, ModelError, did_you_mean
from axislab.messages import Json
from axislab.models.base import ModelReply, ModelRequest
from axislab.models.constrained import Say, Speaking, plain_messages, read_constrained, schema_for
from axislab.models.deltas import Delta, DeltaKind, OnDelta
from axislab.models.outgoing import clean
from axislab.models.turns import Turns, closing
from axislab.models.usage import reported_usage
from axislab.models.weights import FETCH, KNOWN, checksum, find_weights

PROVIDER: Final = "axislab-local"
INSTALL: Final = "pip install 'axislab[local]'"
_DEFAULT_CONTEXT: Final = 4096
_PASSED_ON: Final = frozenset(
    {
        "seed", "stop", "top_k", "min_p", "repeat_penalty", "frequency_penalty",
        "presence_penalty", "logit_bias", "response_format",
    }
)  # fmt: skip
"""Parameters beyond temperature, top_p and length that the engine takes."""
_POLL: Final = 0.1
_BATCH: Final = 128
"""Tokens of a prompt read at once: between two batches a reply can be given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Generated:
    """What the engine made."""

    text: str
    finish: str | None
    usage: Mapping[str, Json] | None
    id: str | None


class LocalModel:
    """A GGUF file run by llama.cpp inside this process; it is loaded when first asked.

    Tools are offered by holding the reply to a JSON schema while it is made, so every call that
    was not cut fits its tool. One thread is the default: more of them wait for each other on a
    busy machine. Requests are answered one after the other, in the order they were made.

    Args:
        name: Its name behind "axislab-local/".
        gguf: The file; else the weights fetched for that name.
        n_ctx: Tokens of context.
        n_threads: Threads that compute.

    Examples:
        >>> LocalModel("smollm2-135m")
        LocalModel('axislab-local/smollm2-135m')
    """

    def __init__(
        self,
        name: str = "smollm2-135m",
        *,
        gguf: str | Path | None = None,
        n_ctx: int = _DEFAULT_CONTEXT,
        n_threads: int = 1,
    ) -> None:
        if gguf is None and name not in KNOWN:
            raise ConfigError(
                f"no local model {name!r}: give gguf=, or take one of {', '.join(sorted(KNOWN))}"
            )
        self._short = name
        self._gguf = None if gguf is None else Path(gguf)
        self._n_ctx = n_ctx
        self._n_threads = n_threads
        self._server: Any = None
        self._sha256: str | None = None
        self._lock = threading.Lock()
        self._turns = Turns(PROVIDER)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def name(self) -> str:
        """With the provider before the slash."""
        return f"{PROVIDER}/{self._short}"

    @property
    def simulated(self) -> bool:
        """False: a language model answers."""
        return False

    @property
    def info(self) -> Mapping[str, Any]:
        """Name and checksum of the weights, size of the context; no path of this machine."""
        path = self._path()
        if path is None:
            return {"weights": None, "n_ctx": self._n_ctx}
        return {"weights": path.name, "sha256": self._checked(path), "n_ctx": self._n_ctx}

    def check(self) -> None:
        """Find what is not installed or not fetched.

        Raises:
            ModelError: NOT_FOUND, with the command that helps.
        """
        path = self._path()
        lacks = []
        try:
            import xllamacpp  # noqa: F401
        except ImportError as problem:
            lacks.append(f"needs xllamacpp ({problem}): {INSTALL}")
        if path is None and self._gguf is not None:
            lacks.append(f"no such file: {self._gguf.name}")
        elif path is None:
            lacks.append(f"its weights are not here: {FETCH}")
        elif self._gguf is None and self._checked(path) != KNOWN[self._short].sha256:
            lacks.append(f"its weights are damaged: {FETCH} --force")
        if lacks:
            raise ModelError(f"{self.name}: {'; '.join(lacks)}", kind=ErrorKind.NOT_FOUND)

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one request; cancelling stops the computation within a token.

        Raises:
            ModelError: CONTEXT_LIMIT, BAD_REQUEST, or NOT_FOUND as by `check`.
        """
        stop = threading.Event()
        try:
            made = await asyncio.wrap_future(self._start(request, stop))
        finally:
            stop.set()
        return self._reply(request, made)

    def complete_sync(self, request: ModelRequest) -> ModelReply:
        """The same for plain code; an interrupt gets through at once."""
        stop = threading.Event()
        future = self._start(request, stop)
        try:
            while True:
                with suppress(NotYet):
                    return self._reply(request, future.result(timeout=_POLL))
        finally:
            stop.set()
            future.cancel()

    async def pieces(self, request: ModelRequest) -> AsyncGenerator[str | ModelReply, None]:
        """The text while it is made, piece by piece, then the whole reply.

        Closing it early stops the computation. Where tools are offered there is text only of a
        reply that turns out to be an answer.

        Raises:
            ModelError: As by `complete`.
        """
        loop = asyncio.get_running_loop()
        pieces: asyncio.Queue[str | None] = asyncio.Queue()
        stop = threading.Event()

        def say(piece: str | None) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody listens any more
                loop.call_soon_threadsafe(pieces.put_nowait, piece)

        future = self._start(request, stop, say)
        future.add_done_callback(lambda _: say(None))
        try:
            while (piece := await pieces.get()) is not None:
                yield piece
            yield self._reply(request, future.result())
        finally:
            stop.set()
            future.cancel()

    async def stream(self, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        """The reply of `complete`, told in the pieces of `pieces`.

        Raises:
            ModelError: As by `complete`.
        """
        async with aclosing(self.pieces(request)) as pieces:
            async for piece in pieces:
                if isinstance(piece, ModelReply):
                    return piece
                on_delta(Delta(kind=DeltaKind.TEXT, text=piece))
        raise AssertionError("unreachable: the reply is the last piece")

    def pieces_sync(self, request: ModelRequest) -> Generator[str | ModelReply, None, None]:
        """The same for plain code; an interrupt gets through at once."""
        pieces: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        stop = threading.Event()
        future = self._start(request, stop, pieces.put)
        future.add_done_callback(lambda _: pieces.put(None))
        try:
            while True:
                with suppress(queue.Empty):
                    if (piece := pieces.get(timeout=_POLL)) is None:
                        break
                    yield piece
            yield self._reply(request, future.result())
        finally:
            stop.set()
            future.cancel()

    def _start(
        self, request: ModelRequest, stop: threading.Event, say: Say | None = None
    ) -> Future[_Generated]:
        body = self._body(request)
        if say is not None and "response_format" in body and self._offers(request):
            say = Speaking(say)
        return self._turns.take(lambda: self._generate(body, stop, say))

    def _body(self, request: ModelRequest) -> dict[str, Json]:
        extra = dict(request.sampling.extra)
        choice = extra.pop("tool_choice", None)
        if unknown := extra.keys() - _PASSED_ON:
            raise ModelError(
                f"{self.name}: it takes no {', '.join(sorted(unknown))}; besides the knobs it "
                f"takes {', '.join(sorted(_PASSED_ON))} and tool_choice",
                kind=ErrorKind.BAD_REQUEST,
            )
        tools = request.tools if self._offers(request) else ()
        body: dict[str, Json] = {
            **extra,
            "messages": [
                {"role": m["role"], "content": clean(m["content"])}
                for m in plain_messages(request.messages, tools=tools)
            ],
            "max_tokens": request.sampling.max_output_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,  # so that a long prompt can be given up as well
        }
        for name in ("temperature", "top_p"):
            if (value := getattr(request.sampling, name)) is not None:
                body[name] = value
        if tools:
            schema = schema_for(tools, _choice_name(choice))
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "step", "schema": schema},
            }
        return body

    def _offers(self, request: ModelRequest) -> bool:
        return bool(request.tools) and request.sampling.extra.get("tool_choice") != "none"

    def _generate(
        self, body: dict[str, Json], stop: threading.Event, say: Say | None
    ) -> _Generated:
        parts: list[str] = []
        last: dict[str, Json] = {"finish": None, "usage": None, "id": None}

        def take(chunk: Any) -> bool:
            for item in chunk if isinstance(chunk, list) else [chunk]:
                last["error"] = item.get("error") or last.get("error")
                last["usage"] = item.get("usage") or last["usage"]
                last["id"] = item.get("id") or last["id"]
                for choice in item.get("choices") or ():
                    if text := choice["delta"].get("content"):
                        parts.append(text)
                        if say is not None:
                            say(text)
                    last["finish"] = choice.get("finish_reason") or last["finish"]
            return stop.is_set() or closing.is_set()

        self._load().handle_chat_completions(body, take)
        if last.get("error"):
            raise self._failed(last["error"])
        return _Generated(
            text="".join(parts), finish=last["finish"], usage=last["usage"], id=last["id"]
        )

    def _load(self) -> Any:
        with self._lock:
            if self._server is None:
                self.check()
                import xllamacpp

                params = xllamacpp.CommonParams()
                params.model.path = str(self._path())
                params.model_alias = {self._short}
                params.n_ctx, params.n_parallel = self._n_ctx, 1
                params.n_batch = params.n_ubatch = _BATCH
                params.warmup, params.verbosity = False, 0
                # It also listens on a free loopback port: nobody knows this key.
                params.api_keys = [uuid.uuid4().hex]
                for cpu in (params.cpuparams, params.cpuparams_batch):
                    cpu.n_threads, cpu.poll = self._n_threads, 0
                self._server = xllamacpp.Server(params)
            return self._server

    def _reply(self, request: ModelRequest, made: _Generated) -> ModelReply:
        reply = ModelReply(
            text=made.text,
            finish_reason=made.finish,
            usage=reported_usage(made.usage),
            cost_missing="it ran on this machine",
            request_id=made.id,
            model=self._short,
        )
        if not self._offers(request):
            return reply
        said = read_constrained(made.text, cut=made.finish != "stop")
        finish = "tool_calls" if said.calls and made.finish == "stop" else made.finish
        return replace(reply, text=said.text, tool_calls=said.calls, finish_reason=finish)

    def _path(self) -> Path | None:
        if self._gguf is not None:
            return self._gguf if self._gguf.is_file() else None
        return find_weights(self._short)

    def _checked(self, path: Path) -> str:
        if self._sha256 is None:
            self._sha256 = checksum(path)
        return self._sha256

    def _failed(self, error: Mapping[str, Json]) -> ModelError:
        full = error.get("type") == "exceed_context_size_error"
        return ModelError(
            f"{self.name}: {error.get('message', error)}",
            kind=ErrorKind.CONTEXT_LIMIT if full else ErrorKind.BAD_REQUEST,
            window=error.get("n_ctx"),
            requested=error.get("n_prompt_tokens"),
        )


def _choice_name(choice: Json) -> str | None:
    """What a reply is forced to be: a call ("required"), a tool by name, or nothing (None)."""
    if isinstance(choice, Mapping):
        function = choice.get("function")
        return str(function.get("name")) if isinstance(function, Mapping) else None
    return None if choice in (None, "auto", "none") else str(choice)


_models: dict[str, LocalModel] = {}
_models_lock = threading.Lock()


def add_local_model(model: LocalModel) -> None:
    """Make a local model reachable by its name, `axislab-local/…`, as any litellm model.

    Examples:
        >>> add_local_model(LocalModel("mine", gguf="mine.gguf"))
    """
    with _models_lock:
        _models[model.name.partition("/")[2]] = model


def local_model(name: str) -> LocalModel:
    """The local model of a name, with or without the provider before the slash.

    Raises:
        ModelError: NOT_FOUND: nothing is known by that name.
    """
    short = name.removeprefix(f"{PROVIDER}/")
    with _models_lock:
        if short not in _models:
            if short not in KNOWN:
                raise ModelError(
                    f"no local model {name!r}: {did_you_mean(short, {*KNOWN, *_models})}; a GGUF "
                    "file of your own: add_local_model(LocalModel(NAME, gguf=FILE))",
                    kind=ErrorKind.NOT_FOUND,
                )
            _models[short] = LocalModel(short)
        return _models[short]


def register() -> None:
    """Make the local models known to litellm; other custom providers stay as they are."""
    from axislab.models.custom_llm import register_custom
    from axislab.models.local_provider import LocalProvider

    register_custom(LocalProvider)
