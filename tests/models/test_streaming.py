"""A streamed reply is the reply: for every answer of a server, plain and streamed are compared."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from fake_server import BODIES, FakeServer
from fake_streams import VARIANTS

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
WORKING = sorted(name for name in BODIES if name not in ("no-choices", "no-message"))
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
        return "".join(delta.text for delta in self.deltas if delta.kind is kind)


async def asked(
    server: FakeServer,
    name: str,
    *,
    stream: bool,
    provider: str = "openai",
    retry: RetryPolicy = ONCE,
) -> Asked:
    model = LiteLLMModel(f"{provider}/{name}", api_base=server.url, api_key=KEY)
    out = Asked()
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
    "json-error": ErrorKind.MALFORMED_REPLY,
    "empty": ErrorKind.MALFORMED_REPLY,
    "only-done": ErrorKind.MALFORMED_REPLY,
    "only-comments": ErrorKind.MALFORMED_REPLY,
}
OTHERWISE = {
    # openai's client takes a body without a byte for a whole one
    ("break-first", "openai"): ErrorKind.MALFORMED_REPLY,
    # and skips what is no event
    ("json-error", "hosted_vllm"): ErrorKind.SERVER,
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
