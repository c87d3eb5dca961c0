"""A streamed reply is the reply: for every answer of a server, plain and streamed are compared."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_server import BODIES, FakeServer
from fake_streams import VARIANTS

import axislab as al
from axislab.config import RetryPolicy
from axislab.errors import ErrorKind, ModelError
from axislab.messages import Message, ToolSpec
from axislab.models.base import ModelReply, ModelRequest
from axislab.models.call import call_model
from axislab.models.deltas import Delta, DeltaKind
from axislab.models.litellm_model import LiteLLMModel

KEY = "sk-test-4f8a2b7c9d1e"
HELLO = ModelRequest(messages=[Message.user("hello")], tools=(ToolSpec(name="search"),))
ONCE = RetryPolicy(attempts=1, request_timeout=10)
WORKING = sorted(
    name
    for name, body in BODIES.items()
    if any(choice.get("message") for choice in body.get("choices", ()))
)
CALLING = ("tool", "tools", "tools-null-ids", "tools-no-ids", "tools-empty-ids")
PROVIDERS = ("openai", "hosted_vllm")


@pytest.fixture
def ask(server: FakeServer, run: Any) -> Any:
    return lambda name, **options: run(asked(server, name, **options))


class Asked:
    """What a call came to, and what was told of it."""

    def __init__(self) -> None:
        self.deltas: list[Delta] = []
        self.events: list[Any] = []
        self.reply: ModelReply | None = None
        self.error: ModelError | None = None

    @property
    def outcome(self) -> object:
        """The reply without what differs between any two calls, or the kind of error."""
        if self.error is not None:
            return self.error.kind
        assert self.reply is not None
        return replace(self.reply, latency=0.0)

    def told(self, kind: DeltaKind) -> str:
        """What was told, without what was misread."""
        kinds = [delta.kind for delta in self.deltas]
        last = len(kinds) - kinds[::-1].index(DeltaKind.AGAIN) if DeltaKind.AGAIN in kinds else 0
        return "".join(delta.text for delta in self.deltas[last:] if delta.kind is kind)


async def asked(
    server: FakeServer,
    name: str,
    *,
    stream: bool,
    provider: str = "openai",
    retry: RetryPolicy = ONCE,
    out: Asked | None = None,
) -> Asked:
    model = LiteLLMModel(f"{provider}/{name}", api_base=server.url, api_key=KEY)
    out = out or Asked()
    try:
        out.reply = await call_model(
            model,
            HELLO,
            retry=retry,
            emit=out.events.append,
            call=0,
            step=0,
            on_delta=out.deltas.append if stream else None,
        )
    except ModelError as error:
        out.error = error
    return out


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", WORKING)
def test_a_streamed_reply_equals_the_plain_one(ask: Any, name: str, provider: str) -> None:
    plain = ask(name, stream=False, provider=provider)
    streamed = ask(name, stream=True, provider=provider)
    assert streamed.outcome == plain.outcome


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("variant", sorted(VARIANTS))
@pytest.mark.parametrize("name", CALLING)
def test_tool_calls_are_put_together_however_a_server_cuts_them(
    ask: Any, name: str, variant: str, provider: str
) -> None:
    plain = ask(f"{name}~{variant}", stream=False, provider=provider)
    streamed = ask(f"{name}~{variant}", stream=True, provider=provider)
    assert streamed.outcome == plain.outcome


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("variant", ["one", "two", "comments", "crlf", "usage", "nullusage"])
@pytest.mark.parametrize("name", ["ok", "reasoning", "think", "long", "refusal", "details"])
def test_texts_are_put_together_however_a_server_cuts_them(
    ask: Any, name: str, variant: str, provider: str
) -> None:
    plain = ask(f"{name}~{variant}", stream=False, provider=provider)
    streamed = ask(f"{name}~{variant}", stream=True, provider=provider)
    assert streamed.outcome == plain.outcome


BROKEN = {
    "break": ErrorKind.CONNECTION,
    "break-first": ErrorKind.CONNECTION,
    "early": ErrorKind.CONNECTION,
    "early-done": ErrorKind.CONNECTION,
    "stall": ErrorKind.TIMEOUT,
    "silent": ErrorKind.TIMEOUT,
    "trickle": ErrorKind.TIMEOUT,
    "chunk": ErrorKind.MALFORMED_REPLY,
    "shape": ErrorKind.MALFORMED_REPLY,
    "error": ErrorKind.SERVER,
    "error-first": ErrorKind.SERVER,
    "error-429": ErrorKind.RATE_LIMIT,
    "error-overloaded": ErrorKind.OVERLOADED,
    "html": ErrorKind.MALFORMED_REPLY,
    "json": ErrorKind.MALFORMED_REPLY,
    "json-error": ErrorKind.SERVER,
    "empty": ErrorKind.MALFORMED_REPLY,
    "only-done": ErrorKind.MALFORMED_REPLY,
    "only-comments": ErrorKind.MALFORMED_REPLY,
}
OTHERWISE = {
    # openai's client takes a body without a byte for a whole one
    ("break-first", "openai"): ErrorKind.MALFORMED_REPLY,
}


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("how", BROKEN)
def test_a_stream_that_breaks_or_lies_is_an_error_of_its_kind(
    ask: Any, how: str, provider: str
) -> None:
    brief = RetryPolicy(attempts=1, request_timeout=1.0)
    out = ask(f"bad~{how}", stream=True, provider=provider, retry=brief)
    kind = OTHERWISE.get((how, provider), BROKEN[how])
    assert out.error is not None, out.reply
    assert out.error.kind is kind, out.error
    assert [event.outcome for event in out.events] == [str(kind)]
    assert str(out.error).startswith(f"{provider}/bad~{how}: ")
    if out.deltas:
        assert out.deltas[-1] == Delta(kind=DeltaKind.DISCARDED, text=str(kind))


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("how", ["late-break", "late-stall"])
def test_what_goes_wrong_after_the_end_of_a_reply_does_it_no_harm(
    ask: Any, how: str, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("axislab.models.streamed._LAST_WORDS", 0.3)
    out = ask(f"bad~{how}", stream=True, provider=provider)
    plain = ask("ok", stream=False, provider=provider)
    assert out.reply is not None, out.error
    assert (out.reply.text, out.reply.usage) == (plain.reply.text, plain.reply.usage)
    assert out.deltas[-1].kind is DeltaKind.END


@pytest.mark.parametrize("name", [n for n in WORKING if n not in ("surrogate", "tool-object")])
def test_what_is_told_adds_up_to_the_reply(ask: Any, name: str) -> None:
    out = ask(name, stream=True)
    assert out.told(DeltaKind.TEXT) == (out.reply.text or "")
    assert out.told(DeltaKind.REASONING) == (out.reply.reasoning or "")
    assert out.told(DeltaKind.CALL) == "".join(call.name for call in out.reply.tool_calls)
    for number, call in enumerate(out.reply.tool_calls):
        told = [d.text for d in out.deltas if d.kind is DeltaKind.ARGUMENTS and d.number == number]
        assert "".join(told) == call.arguments
    if out.deltas:
        assert [d.kind for d in out.deltas].index(DeltaKind.END) == len(out.deltas) - 1


def test_a_reply_is_told_piece_by_piece_while_it_comes(ask: Any) -> None:
    texts = [d.text for d in ask("long", stream=True).deltas if d.kind is DeltaKind.TEXT]
    assert len(texts) > 150
    assert max(map(len, texts)) <= 3


def test_a_broken_stream_is_asked_again_and_what_was_shown_is_discarded(ask: Any) -> None:
    again = RetryPolicy(attempts=3, request_timeout=10, backoff=0, max_backoff=0)
    out = ask("bad-then-ok~break", stream=True, retry=again)
    assert out.reply is not None
    assert out.reply.text == "Hello."
    assert [event.outcome for event in out.events] == ["connection", "connection", "ok"]
    ends = [d for d in out.deltas if d.kind in (DeltaKind.END, DeltaKind.DISCARDED)]
    assert [d.text for d in ends] == ["connection", "connection", ""]
    assert out.told(DeltaKind.TEXT) == "Hel" + "Hel" + "Hello."


def test_the_wire_asks_for_the_usage_once_and_only_of_a_stream(
    ask: Any, server: FakeServer
) -> None:
    ask("ok", stream=True)
    assert server.requests[-1]["stream_options"] == {"include_usage": True}
    ask("ok", stream=False)
    assert "stream_options" not in server.requests[-1]


def test_the_key_is_in_no_message_of_a_broken_stream(ask: Any) -> None:
    out = ask("bad~error-key", stream=True)
    assert out.error is not None
    assert KEY not in json.dumps([str(out.error), *[d.text for d in out.deltas]])


def test_the_cost_of_a_listed_model_is_the_same_streamed(ask: Any) -> None:
    plain, streamed = ask("gpt-4o", stream=False), ask("gpt-4o", stream=True)
    assert plain.reply.cost_usd > 0
    assert streamed.reply.cost_usd == plain.reply.cost_usd


def test_what_fails_before_the_stream_fails_as_it_does_plain(ask: Any) -> None:
    for name in ("status-503", "status-429", "quota", "context-openai", "echo-key", "close"):
        plain, streamed = ask(name, stream=False), ask(name, stream=True)
        assert plain.error is not None
        assert streamed.outcome == plain.outcome
        assert streamed.deltas == []


@pytest.mark.parametrize("provider", PROVIDERS)
def test_cancelling_ends_a_stream_at_once_and_closes_it(
    server: FakeServer, run: Any, provider: str
) -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        await asked(server, "ok", stream=True, provider=provider)
        before = {task for task in asyncio.all_tasks() if not task.done()}
        out = Asked()
        task = asyncio.create_task(asked(server, "bad~stall", stream=True, out=out))
        while not out.told(DeltaKind.TEXT):
            await asyncio.sleep(0.01)
        began = loop.time()
        task.cancel()
        await asyncio.wait([task])
        took = loop.time() - began
        assert task.cancelled()
        assert [event.outcome for event in out.events] == ["cancelled"]
        assert out.deltas[-1] == Delta(kind=DeltaKind.DISCARDED, text="stopped")
        await asyncio.sleep(0.1)
        left = {t for t in asyncio.all_tasks() if not t.done()} - before - {task}
        assert not left, left
        return took

    assert run(main()) < 0.5


def test_the_deadline_of_the_call_holds_against_a_trickling_stream(ask: Any) -> None:
    brief = RetryPolicy(attempts=3, request_timeout=5, call_deadline=1.0, backoff=0)
    began = time.monotonic()
    out = ask("bad~trickle", stream=True, retry=brief)
    assert time.monotonic() - began < 2.5
    assert out.error.kind is ErrorKind.TIMEOUT
    assert len(out.told(DeltaKind.TEXT)) > 10


LEAKS = """
import asyncio, gc, os, sys
from axislab.config import RetryPolicy
from axislab.errors import ModelError
from axislab.messages import Message
from axislab.models._litellm import load_litellm, quiet
from axislab.models.base import ModelRequest
from axislab.models.call import call_model
from axislab.models.litellm_model import LiteLLMModel

async def one(name, provider):
    model = LiteLLMModel(f"{provider}/{name}", api_base=sys.argv[1], api_key="k")
    request = ModelRequest(messages=[Message.user("hello")])
    retry = RetryPolicy(attempts=1, request_timeout=0.3)
    try:
        await call_model(model, request, retry=retry, emit=lambda _: None, call=0, step=0,
                         on_delta=lambda _: None)
    except ModelError:
        pass

def open_files():
    return len(os.listdir("/proc/self/fd"))

async def given_up(name, provider, seconds):
    task = asyncio.create_task(one(name, provider))
    await asyncio.sleep(seconds)
    task.cancel()
    await asyncio.wait([task])

async def main():
    names = ("ok", "bad~break", "bad~early", "bad~stall", "bad~chunk", "bad~html", "bad~error")
    files, tasks = open_files(), len(asyncio.all_tasks())
    for _ in range(8):
        for provider in ("openai", "hosted_vllm"):
            await asyncio.gather(*(one(name, provider) for name in names))
            await asyncio.gather(
                *(given_up("bad~trickle", provider, n / 500) for n in range(12))
            )
    await asyncio.sleep(0.3)
    gc.collect()
    # litellm keeps connections for later: no more than there were requests at once.
    left = open_files() - files - 1  # the loop's own selector is opened late
    print(left <= 2 * 12, len(asyncio.all_tasks()) - tasks, flush=True)
    with quiet:
        await load_litellm().close_litellm_async_clients()

asyncio.run(main())
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc on this system")
def test_hundreds_of_streams_good_bad_and_given_up_leave_no_socket_task_or_word(
    server: FakeServer,
) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LEAKS, server.url],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("True 0\n", "", 0)


def test_a_lab_streams_from_a_server_and_its_trace_is_the_plain_one(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    def made(**how: Any) -> al.Run:
        lab = al.Lab("openai/reasoning", api_base=server.url, api_key=KEY)
        return lab.run(al.recipes.boxed_math(max_turns=1), "What is 6 * 7?", **how)

    plain, streamed = made(), made(stream=True)
    shown = capsys.readouterr().out
    assert shown.startswith("[thinking] 6 * 7\n42\n")
    assert streamed.trace.full == plain.trace.full
    assert [r.kind for r in streamed.trace.records] == [r.kind for r in plain.trace.records]
    (row, *_), (other, *_) = (run.trace.of("model.request") for run in (plain, streamed))
    same = ("outcome", "input_tokens", "output_tokens", "request_id", "finish_reason")
    assert [row.data.get(n) for n in same] == [other.data.get(n) for n in same]
