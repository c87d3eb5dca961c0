"""CachedModel: hits, single flight, retries, and what is never kept."""

from __future__ import annotations

import asyncio
import json
import statistics
import threading
import time
from dataclasses import replace

import pytest

from axislab.config import RetryPolicy
from axislab.errors import ConfigError, ErrorKind, ModelError
from axislab.messages import Message, ToolCall, Usage
from axislab.models.base import ChatModel, ModelReply, ModelRequest
from axislab.models.cache import ReplyCache
from axislab.models.cached_model import CachedModel, with_cache
from axislab.models.call import call_model
from axislab.models.litellm_model import LiteLLMModel
from axislab.models.request_key import request_key
from axislab.models.scripted import ScriptedModel

HELLO = ModelRequest(messages=[Message.user("hello")], draw="f00:main_loop:1")
PRICED = ModelReply(
    text="Hi.",
    finish_reason="stop",
    cost_usd=0.5,
    request_id="req-1",
    usage=Usage(input_tokens=11, output_tokens=7),
)


@pytest.fixture
def cache(tmp_path):
    with ReplyCache(tmp_path / "replies.sqlite3") as made:
        yield made


def other(draw):
    return replace(HELLO, draw=draw)


class Slow(ScriptedModel):
    """Counts who is being answered at one time."""

    def __init__(self, *lines, delay=0.05):
        super().__init__(list(lines) or [f"reply {n}" for n in range(100)], delay=delay)


def ask(model, *requests):
    model.check()  # as a Lab does, so that nobody waits for it

    async def all_of_them():
        return await asyncio.gather(*(model.complete(r) for r in requests), return_exceptions=True)

    return asyncio.run(all_of_them())


def test_a_cached_model_is_a_chat_model_that_looks_like_the_one_inside(cache):
    inner = ScriptedModel(["a"], name="mine")
    model = CachedModel(inner, cache)
    assert isinstance(model, ChatModel)
    assert (model.name, model.simulated) == ("mine", True)
    assert model.info == {**inner.info, "reply_cache": True}
    assert "ScriptedModel('mine'" in repr(model)
    with pytest.raises(ConfigError, match="cached already"):
        CachedModel(model, cache)


def test_the_same_request_is_sent_once_and_the_second_reply_says_so(cache):
    inner = ScriptedModel([PRICED])
    model = CachedModel(inner, cache)
    (first,), (second,) = ask(model, HELLO), ask(model, HELLO)
    assert len(inner.requests) == 1
    assert (first.cached, second.cached) == (False, True)
    assert first.cache_key == second.cache_key == request_key(inner, HELLO)
    assert (first.cost_usd, first.saved_usd) == (0.5, None)
    assert (second.cost_usd, second.saved_usd) == (0.0, 0.5)
    assert second.saved_seconds > 0
    assert (second.text, second.usage, second.request_id) == ("Hi.", PRICED.usage, "req-1")


def test_it_outlives_the_model_and_the_cache_object(tmp_path):
    for number in range(3):
        inner = ScriptedModel([PRICED])
        with ReplyCache(tmp_path / "r.sqlite3") as cache:
            (reply,) = ask(CachedModel(inner, cache), HELLO)
        assert reply.cached == (number > 0)
        assert len(inner.requests) == (number == 0)


@pytest.mark.parametrize("draw", ["f01:main_loop:1", "f00:main_loop:2", ""])
def test_another_draw_is_another_reply(cache, draw):
    model = CachedModel(ScriptedModel(["a", "b"]), cache)
    assert [r.text for r in ask(model, HELLO)] == ["a"]
    assert [r.text for r in ask(model, other(draw))] == ["b"]


def test_in_a_run_an_equal_request_is_another_draw_and_in_the_next_run_the_same_ones(cache):
    inner = ScriptedModel(["a", "b", "c"])
    model = CachedModel(inner, cache)
    for number in range(2):
        run = model.for_run()
        replies = [ask(run, HELLO)[0] for _ in range(3)]
        assert [reply.text for reply in replies] == ["a", "b", "c"]
        assert {reply.cached for reply in replies} == {number > 0}
        assert len({reply.cache_key for reply in replies}) == 3
    assert len(inner.requests) == 3


def test_the_key_can_be_seen_before_it_is_used(cache):
    run = CachedModel(ScriptedModel(["a", "b"]), cache).for_run()
    for _ in range(2):
        before = run.request_key(HELLO)
        assert before == run.request_key(HELLO)
        assert ask(run, HELLO)[0].cache_key == before


@pytest.mark.parametrize(
    "line",
    [
        ModelError("no", kind=ErrorKind.SERVER),
        replace(PRICED, finish_reason=None),
        replace(PRICED, finish_reason="content_filter"),
        replace(PRICED, text=""),
    ],
    ids=["error", "no finish reason", "filtered", "empty"],
)
def test_what_is_not_whole_is_asked_for_again(cache, line):
    inner = ScriptedModel([line, PRICED])
    model = CachedModel(inner, cache)
    ask(model, HELLO)
    assert ask(model, HELLO)[0].text == "Hi."
    assert len(inner.requests) == 2
    assert cache.info().entries == 1


def test_a_reply_that_was_cut_at_the_limit_is_kept(cache):
    inner = ScriptedModel([replace(PRICED, text="It is", finish_reason="length")])
    model = CachedModel(inner, cache)
    assert [ask(model, HELLO)[0].finish_reason for _ in range(2)] == ["length", "length"]


def test_a_retry_is_found_by_the_first_try_of_the_next_run(cache):
    inner = ScriptedModel([ModelError("no", kind=ErrorKind.SERVER), PRICED])
    events = []

    async def call():
        return await call_model(
            CachedModel(inner, cache).for_run(),
            HELLO,
            retry=RetryPolicy(backoff=0.0),
            emit=events.append,
            call=0,
            step=1,
        )

    for _ in range(2):
        assert asyncio.run(call()).text == "Hi."
    assert len(inner.requests) == 2
    assert [(e.attempt, e.outcome, e.cached) for e in events] == [
        (1, "server", None),
        (2, "ok", False),
        (1, "ok", True),
    ]
    assert events[1].cache_key == events[2].cache_key
    assert (events[1].cost_usd, events[1].saved_usd) == (0.5, None)
    assert (events[2].cost_usd, events[2].saved_usd) == (0.0, 0.5)
    assert events[2].input_tokens == 11
    assert events[2].latency < events[2].saved_seconds + 1


def test_without_a_cache_events_say_nothing_of_one():
    events = []

    async def call():
        await call_model(
            ScriptedModel(["a"]), HELLO, retry=RetryPolicy(), emit=events.append, call=0, step=1
        )

    asyncio.run(call())
    assert not {"cached", "cache_key", "saved_usd", "saved_seconds"} & events[0].payload().keys()


def test_a_model_that_returns_no_reply_is_not_hidden(cache):
    class Wrong(ScriptedModel):
        async def complete(self, request):
            return "text"

    assert ask(CachedModel(Wrong(["a"]), cache), HELLO) == ["text"]


# Single flight --------------------------------------------------------------------------------


def test_of_equal_requests_at_one_time_one_is_sent(cache):
    inner = Slow()
    replies = ask(CachedModel(inner, cache), *[HELLO] * 20)
    assert len(inner.requests) == 1
    assert {reply.text for reply in replies} == {"reply 0"}
    assert sum(not reply.cached for reply in replies) == 1
    info = cache.info()
    assert (info.hits, info.misses) == (19, 1)


def test_runs_of_one_identity_share_a_flight(cache):
    inner = Slow()

    async def runs():
        models = [CachedModel(inner, cache).for_run() for _ in range(5)]
        return await asyncio.gather(*(model.complete(HELLO) for model in models))

    assert len({reply.cache_key for reply in asyncio.run(runs())}) == 1
    assert len(inner.requests) == 1


def test_requests_of_other_draws_are_all_sent(cache):
    inner = Slow()
    started = time.monotonic()
    replies = ask(CachedModel(inner, cache), *[other(f"f{n}:main_loop:1") for n in range(20)])
    assert time.monotonic() - started < 1.0
    assert len(inner.requests) == 20
    assert len({reply.text for reply in replies}) == 20


def test_an_error_is_its_own_and_the_next_in_line_asks(cache):
    inner = Slow(ModelError("no", kind=ErrorKind.SERVER), "fine", "never")
    replies = ask(CachedModel(inner, cache), *[HELLO] * 4)
    assert isinstance(replies[0], ModelError)
    assert [reply.text for reply in replies[1:]] == ["fine"] * 3
    assert len(inner.requests) == 2


def test_a_reply_that_is_not_to_keep_is_not_shared(cache):
    inner = Slow(replace(PRICED, finish_reason=None), replace(PRICED, text="whole"))
    first, second = ask(CachedModel(inner, cache), HELLO, HELLO)
    assert (first.text, second.text, second.cached) == ("Hi.", "whole", False)


def test_one_that_is_stopped_does_not_stop_those_who_wait(cache):
    inner = Slow()
    model = CachedModel(inner, cache)
    model.check()

    async def scene():
        leader = asyncio.create_task(model.complete(HELLO))
        waiters = [asyncio.create_task(model.complete(HELLO)) for _ in range(3)]
        await asyncio.sleep(0.01)
        waiters[0].cancel()
        leader.cancel()
        return await asyncio.gather(leader, *waiters, return_exceptions=True)

    leader, stopped, *others = asyncio.run(scene())
    assert isinstance(leader, asyncio.CancelledError)
    assert isinstance(stopped, asyncio.CancelledError)
    assert {reply.text for reply in others} == {"reply 1"}
    assert len(inner.requests) == 2
    assert not cache.flights._under_way


def test_a_stopped_waiter_leaves_the_request_under_way_alone(cache):
    inner = Slow()
    model = CachedModel(inner, cache)
    model.check()

    async def scene():
        leader = asyncio.create_task(model.complete(HELLO))
        waiter = asyncio.create_task(model.complete(HELLO))
        await asyncio.sleep(0.01)
        waiter.cancel()
        return await leader

    assert asyncio.run(scene()).text == "reply 0"
    assert len(inner.requests) == 1


def test_loops_on_several_threads_share_a_flight(cache):
    inner = Slow(delay=0.3)
    model = CachedModel(inner, cache)
    found = []
    threads = [threading.Thread(target=lambda: found.extend(ask(model, HELLO))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {reply.text for reply in found} == {"reply 0"}
    assert len(found) == 6
    assert len(inner.requests) == 1


def test_who_waits_for_a_hit_gets_what_the_hit_says(tmp_path):
    class Tardy(ReplyCache):
        def get(self, key):
            time.sleep(0.2)
            return super().get(key)

    with Tardy(tmp_path / "r.sqlite3") as cache:
        model = CachedModel(ScriptedModel([PRICED]), cache)
        ask(model, HELLO)
        found = []
        threads = [threading.Thread(target=lambda: found.extend(ask(model, HELLO))) for _ in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [(r.cached, r.cost_usd, r.saved_usd) for r in found] == [(True, 0.0, 0.5)] * 2
        assert found[0].saved_seconds == found[1].saved_seconds > 0
        assert (cache.info().hits, cache.info().misses) == (2, 1)


def test_on_a_full_disk_those_who_wait_still_get_the_reply(cache):
    ask(CachedModel(ScriptedModel(["x"]), cache), other("first"))
    db = cache._store._writer._db
    db.execute(f"PRAGMA max_page_count = {db.execute('PRAGMA page_count').fetchall()[0][0]}")
    inner = Slow("y" * 50_000, "z")
    replies = ask(CachedModel(inner, cache), HELLO, HELLO)
    assert [len(reply.text) for reply in replies] == [50_000, 50_000]
    assert ask(CachedModel(inner, cache), HELLO)[0].text == "z"  # it was not kept, and is asked for
    assert len(cache.info().notes) == 1


# Secrets --------------------------------------------------------------------------------------


def grep(cache, secret):
    files = [p for p in cache.path.parent.iterdir() if p.is_file()]
    assert files
    return [p.name for p in files if secret.encode() in p.read_bytes()]


def test_no_key_gets_into_the_file(cache, monkeypatch):
    class Leaky(LiteLLMModel):
        """Answers with what it must not tell."""

        said = "nothing"

        def check(self):
            pass

        async def complete(self, request):
            return replace(PRICED, text=self.said)

    planted = "plant-3c9f51"
    monkeypatch.setenv("PLANTED_API_KEY", "envplant-77aa01")
    model = Leaky(
        "hosted_vllm/x",
        api_key=planted,
        api_base=f"http://me:{planted}@localhost:1/v1?sig={planted}",
        extra_headers={"Authorization": f"Bearer {planted}"},
    )
    cached = CachedModel(model, cache)
    ask(cached, HELLO)
    for number, said in enumerate((f"Your key is {planted}!", "It is envplant-77aa01.")):
        model.said = said
        (reply,) = ask(cached, other(f"d{number}"))
        assert reply.text == said  # what the model says is not changed
    assert cache.info().entries == 1
    assert grep(cache, "Hi.") or grep(cache, "nothing")
    for secret in (planted, "envplant-77aa01"):
        assert grep(cache, secret) == []
        assert secret not in repr(cached)
        assert secret not in repr(cache.info())


def test_nothing_of_the_prompt_gets_into_the_file(cache):
    request = replace(HELLO, messages=[Message.user("a private question")])
    ask(CachedModel(ScriptedModel(["an answer"]), cache), request)
    assert grep(cache, "an answer")
    assert grep(cache, "private") == []


# Which models ---------------------------------------------------------------------------------


def test_only_real_models_are_cached_unless_they_were_wrapped(cache):
    scripted = ScriptedModel(["a"])
    real = LiteLLMModel("hosted_vllm/x", api_base="http://localhost:1/v1")
    assert with_cache(scripted, cache) is scripted
    assert with_cache(real, None) is real
    assert isinstance(with_cache(real, cache), CachedModel)
    forced = CachedModel(scripted, cache)
    for given in (None, cache):
        assert with_cache(forced, given).cache is cache
        assert with_cache(forced, given) is not forced


# Speed ----------------------------------------------------------------------------------------


def test_a_hit_costs_little_more_than_writing_its_messages_as_json(cache):
    call = ToolCall(id="call_1", name="search", arguments='{"query": "axis"}')
    talk = [
        Message.user("A question of some length. " * 10),
        Message.assistant("Looking. " * 10, [call]),
        Message.tool("A result. " * 40, tool_call_id="call_1"),
        Message.assistant("Thinking about it. " * 20),
        Message.user("Go on. " * 10),
    ]
    request = replace(HELLO, messages=talk * 10)
    model = CachedModel(ScriptedModel([PRICED]), cache)

    async def rounds():
        await model.complete(request)
        dumps, hits = [], []
        for _ in range(200):
            started = time.perf_counter()
            json.dumps([message.to_dict() for message in request.messages])
            dumps.append(time.perf_counter() - started)
            started = time.perf_counter()
            reply = await model.complete(request)
            hits.append(time.perf_counter() - started)
            assert reply.cached
        return statistics.median(hits), statistics.median(dumps)

    hit, dump = asyncio.run(rounds())
    assert len(request.messages) == 50
    assert hit < 5 * dump, f"a hit takes {hit * 1e6:.0f} us, its messages as JSON {dump * 1e6:.0f}"
