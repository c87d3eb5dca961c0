"""Streamed replies in the reply cache and in the accounts: kept, told and paid like plain ones."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_server import FakeServer

import axislab as al
from axislab.errors import ErrorKind, ModelError
from axislab.messages import Message
from axislab.models.base import ModelReply, ModelRequest
from axislab.models.cache import ReplyCache
from axislab.models.cached_model import CachedModel
from axislab.models.deltas import Delta, DeltaKind, OnDelta
from axislab.models.litellm_model import LiteLLMModel
from axislab.models.scripted import ScriptedModel

HELLO = ModelRequest(messages=[Message.user("hello")], draw="f00:main_loop:1")
PLAIN = al.Recipe(name="plain").with_(attempts=1, max_turns=1)
WORDS = ["one two three"]


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[ReplyCache]:
    with ReplyCache(tmp_path / "replies.sqlite3") as made:
        yield made


def kinds(deltas: list[Delta]) -> list[tuple[DeltaKind, str]]:
    return [(delta.kind, delta.text) for delta in deltas]


def test_a_streamed_reply_is_kept_and_given_again_plain_and_streamed(cache: ReplyCache) -> None:
    inner = ScriptedModel(WORDS)
    model = CachedModel(inner, cache)
    told: list[Delta] = []
    again: list[Delta] = []

    async def main() -> list[ModelReply]:
        first = await model.stream(HELLO, told.append)
        return [first, await model.complete(HELLO), await model.stream(HELLO, again.append)]

    first, plain, streamed = asyncio.run(main())
    assert len(inner.requests) == 1
    assert [d.text for d in told] == ["one", " two", " three"]
    assert kinds(again) == [(DeltaKind.TEXT, "one two three")]
    assert (first.cached, plain.cached, streamed.cached) == (False, True, True)
    assert first.cache_key == plain.cache_key == streamed.cache_key
    assert streamed == plain
    same = {"cached": False, "saved_usd": None, "saved_seconds": None, "cost_missing": None}
    bare = [replace(reply, latency=0.0, cost_usd=None, **same) for reply in (first, plain)]
    assert bare[0] == bare[1]


def test_a_plain_reply_is_told_at_once_when_it_is_asked_for_again(cache: ReplyCache) -> None:
    call = ScriptedModel.call("search", query="osk")
    model = CachedModel(ScriptedModel([call]), cache)
    told: list[Delta] = []
    asyncio.run(model.complete(HELLO))
    reply = asyncio.run(model.stream(HELLO, told.append))
    assert reply.cached
    assert kinds(told) == [
        (DeltaKind.CALL, "search"),
        (DeltaKind.ARGUMENTS, '{"query": "osk"}'),
    ]


def test_of_two_streams_at_one_time_one_is_sent_and_both_are_told(cache: ReplyCache) -> None:
    inner = ScriptedModel(WORDS, delay=0.1)
    model = CachedModel(inner, cache)
    model.check()
    heard: list[list[Delta]] = [[], []]

    async def main() -> list[ModelReply]:
        return await asyncio.gather(*(model.stream(HELLO, each.append) for each in heard))

    replies = asyncio.run(main())
    assert len(inner.requests) == 1
    assert {reply.text for reply in replies} == {"one two three"}
    assert ["".join(d.text for d in each) for each in heard] == WORDS * 2
    assert sorted(len(each) for each in heard) == [1, 3]


class Breaking(ScriptedModel):
    """Its first stream breaks in the middle."""

    async def stream(self, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        if self.requests:
            return await super().stream(request, on_delta)
        self.requests.append(request)
        on_delta(Delta(kind=DeltaKind.TEXT, text="one"))
        await asyncio.sleep(0.05)
        raise ModelError("the line is dead", kind=ErrorKind.CONNECTION)


def test_a_broken_stream_is_not_kept_and_who_waits_asks(cache: ReplyCache) -> None:
    inner = Breaking(["lost", "one two three"])
    model = CachedModel(inner, cache)
    model.check()
    heard: list[list[Delta]] = [[], []]

    async def main() -> list[ModelReply | BaseException]:
        asked = (model.stream(HELLO, each.append) for each in heard)
        return await asyncio.gather(*asked, return_exceptions=True)

    broken, reply = asyncio.run(main())
    assert isinstance(broken, ModelError)
    assert isinstance(reply, ModelReply)
    assert not reply.cached
    assert reply.text == "".join(d.text for d in heard[1]) == "one two three"


class Lying(ScriptedModel):
    """Tells other words than its reply has."""

    async def stream(self, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        on_delta(Delta(kind=DeltaKind.TEXT, text="something else"))
        return await self.complete(request)


def test_what_a_model_tells_wrongly_is_told_again(capsys: pytest.CaptureFixture[str]) -> None:
    heard: list[Delta] = []
    lab = al.Lab(Lying(WORDS))
    handle = lab.start(PLAIN, "What?", stream=True)
    handle.on_delta(heard.append)
    assert handle.result(10).output == "one two three"
    assert capsys.readouterr().out.endswith(
        "something else [misread; again:]\n[simulated] one two three\n"
    )
    if heard:  # it may have been over before we listened
        assert heard[-1].kind is DeltaKind.END


def test_a_lab_streams_once_and_pays_once(server: FakeServer, tmp_path: Path) -> None:
    def made(**how: Any) -> al.Run:
        base = {"api_base": server.url, "api_key": "k", "cache": tmp_path / "replies.sqlite3"}
        return al.Lab("openai/gpt-4o", **base).run(PLAIN, "What?", **how)

    before = server.count("gpt-4o")
    runs = [made(stream=True), made(), made(stream=True)]
    assert server.count("gpt-4o") == before + 1
    rows = al.budgets_df(runs)
    assert rows.cached.tolist() == [False, True, True]
    assert rows.cache_key.nunique() == 1
    assert rows.saved_usd.tolist()[1:] == rows.cost_usd.tolist()[:1] * 2
    assert {run.output for run in runs} == {"Hello."}


COUNTS = ("input_tokens", "output_tokens", "assumed_tokens", "usd", "requests", "unpriced")


def test_a_streamed_run_costs_what_the_plain_one_costs(server: FakeServer) -> None:
    spent = []
    for stream in (False, True):
        lab = al.Lab("openai/gpt-4o-mini", api_base=server.url, api_key="k")
        lab.budget(usd=1.0)
        lab.run(PLAIN, "What?", stream=stream)
        spent.append([getattr(lab.spent, name) for name in COUNTS if hasattr(lab.spent, name)])
    assert spent[0] == spent[1]
    assert spent[0][0] == 1000


def test_a_stream_without_usage_says_so(server: FakeServer) -> None:
    lab = al.Lab("openai/no-usage", api_base=server.url, api_key="k")
    rows = al.budgets_df([lab.run(PLAIN, "What?", stream=stream) for stream in (False, True)])
    assert rows.outcome.tolist() == ["ok", "ok"]
    for column in ("input_tokens", "output_tokens", "cost_usd"):
        assert rows[column].isna().all()
    assert rows.cost_missing.tolist() == ["the provider did not report the tokens"] * 2


@pytest.mark.parametrize("provider", ["openai", "hosted_vllm"])
@pytest.mark.parametrize("how", ["break-usage", "error-usage"])
def test_what_a_broken_stream_has_used_so_far_is_booked_as_an_estimate(
    server: FakeServer, run: Any, provider: str, how: str
) -> None:
    model = LiteLLMModel(f"{provider}/bad~{how}", api_base=server.url, api_key="k")
    with pytest.raises(ModelError) as raised:
        run(model.stream(HELLO, lambda _: None))
    usage = raised.value.usage
    assert usage is not None
    assert usage.estimated
    assert usage.input_tokens == 11
    assert 1 <= usage.output_tokens <= 7


@pytest.mark.parametrize("how", ["early", "error-429", "stall", "break-usage"])
def test_a_ceiling_holds_against_broken_streams(server: FakeServer, how: str) -> None:
    lab = al.Lab(f"openai/bad~{how}", api_base=server.url, api_key="k")
    lab.budget(tokens=100_000)
    lab.run(PLAIN.with_(request_timeout=1.0), "What?", stream=True)
    assert lab.spent.requests == 1
    assert lab.spent.assumed_tokens == lab.spent.tokens > 10


def test_the_ceiling_stops_a_streamed_run_before_its_request(server: FakeServer) -> None:
    lab = al.Lab("openai/ok", api_base=server.url, api_key="k")
    lab.budget(tokens=5)
    before = len(server.requests)
    run = lab.run(PLAIN, "What?", stream=True)
    assert run.done_reason == "budget_exhausted"
    assert len(server.requests) == before
