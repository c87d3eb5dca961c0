"""Usage of every shape: it adds up, what is not reported is unknown, and what it costs is right."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fake_server import FakeServer
from hypothesis import given
from hypothesis import strategies as st

from axislab.config import RetryPolicy
from axislab.errors import ConfigError, ErrorKind, ModelError
from axislab.messages import Message, Usage
from axislab.models.base import ModelRequest
from axislab.models.call import call_model
from axislab.models.litellm_model import LiteLLMModel
from axislab.models.price import Price, listed_price, price_of
from axislab.models.scripted import ScriptedModel
from axislab.models.usage import read_usage, reported_usage

TOKENS = st.integers(0, 10_000)
MAYBE = st.none() | TOKENS
HELLO = ModelRequest(messages=[Message.user("hello")])


@pytest.fixture
def ask(server: FakeServer, run: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "DEEPSEEK_API_KEY"):
        monkeypatch.delenv(name, raising=False)

    def asking(name: str, **options: Any) -> Any:
        base = server.url.removesuffix("/v1") if name.startswith("anthropic/") else server.url
        model = LiteLLMModel(name, api_key="sk-x", api_base=base, **options)
        return run(model.complete(HELLO))

    return asking


def adds_up(usage: Usage) -> bool:
    """Where a part is known all are, they make the whole, and thinking is part of the reply."""
    parts = (usage.uncached_tokens, usage.cached_tokens, usage.cache_write_tokens)
    whole = usage.input_tokens
    good = None in (*parts, whole) or sum(parts) == whole
    if usage.reasoning_tokens is not None and usage.output_tokens is not None:
        good = good and usage.reasoning_tokens <= usage.output_tokens
    return good and all(n is None or n >= 0 for n in (*parts, whole, usage.output_tokens))


# -- through litellm, from a server's own words ------------------------------------------------


def test_openais_prompt_includes_what_was_cached(ask: Any) -> None:
    usage = ask("openai/gpt-4o-mini").usage
    assert usage == Usage(
        input_tokens=1000,
        output_tokens=50,
        cached_tokens=800,
        cache_write_tokens=0,
        reasoning_tokens=10,
    )
    assert usage.uncached_tokens == 200


def test_anthropics_input_excludes_what_was_read_and_written(ask: Any) -> None:
    usage = ask("anthropic/claude-sonnet-4-5").usage
    assert usage == Usage(
        input_tokens=1320, output_tokens=7, cached_tokens=1000, cache_write_tokens=300
    )
    assert usage.uncached_tokens == 20


def test_deepseeks_hits_are_cache_reads(ask: Any) -> None:
    usage = ask("deepseek/deepseek-chat").usage
    assert (usage.uncached_tokens, usage.cached_tokens) == (300, 700)


@pytest.mark.parametrize("name", ["anthropic/claude-haiku-4-5", "openai/ok"])
def test_a_cache_that_is_not_reported_is_unknown_and_not_zero(ask: Any, name: str) -> None:
    usage = ask(name).usage
    assert usage.input_tokens in (20, 11)
    assert usage.cached_tokens is None
    assert usage.cache_write_tokens is None
    assert usage.uncached_tokens is None
    assert usage.reasoning_tokens is None


@pytest.mark.parametrize(
    ("name", "usd"),
    [
        ("openai/gpt-4o-mini", 200 * 0.15 + 800 * 0.075 + 50 * 0.6),
        ("anthropic/claude-sonnet-4-5", 20 * 3.0 + 1000 * 0.3 + 300 * 3.75 + 7 * 15.0),
        ("deepseek/deepseek-chat", 300 * 0.28 + 700 * 0.028 + 50 * 0.42),
    ],
)
def test_cached_tokens_cost_what_the_list_says_and_ours_agrees(
    ask: Any, name: str, usd: float
) -> None:
    reply = ask(name)
    assert reply.cost_usd == pytest.approx(usd / 1e6)
    ours = LiteLLMModel(name, api_key="sk-x").list_price()
    assert ours is not None
    assert ours.of(reply.usage) == pytest.approx(usd / 1e6)
    assert reply.cost_missing is None


def test_a_price_of_ones_own_knows_reads_writes_and_thinking(ask: Any) -> None:
    price = Price(input=1, output=10, cached=0.1, cache_write=2, reasoning=20)
    told = ask("anthropic/claude-sonnet-4-5", price=price)
    assert told.cost_usd == pytest.approx((20 * 1 + 1000 * 0.1 + 300 * 2 + 7 * 10) / 1e6)
    told = ask("openai/gpt-4o-mini", price=price)
    assert told.cost_usd == pytest.approx((200 * 1 + 800 * 0.1 + 40 * 10 + 10 * 20) / 1e6)


# -- requests that failed and were billed -------------------------------------------------------


@pytest.mark.parametrize("name", ["no-choices", "null-message"])
def test_what_a_failed_request_was_billed_is_recorded(
    server: FakeServer, run: Any, name: str
) -> None:
    model = LiteLLMModel(
        f"openai/{name}", api_key="sk-x", api_base=server.url, price=Price(input=1, output=2)
    )
    events: list[Any] = []
    once = RetryPolicy(attempts=1)

    async def main() -> None:
        with pytest.raises(ModelError) as caught:
            await call_model(model, HELLO, retry=once, emit=events.append, call=0, step=0)
        assert caught.value.usage == Usage(input_tokens=11, output_tokens=7)

    run(main())
    (event,) = events
    assert event.outcome != "ok"
    assert (event.input_tokens, event.output_tokens) == (11, 7)
    assert event.cost_usd == pytest.approx((11 * 1 + 7 * 2) / 1e6)


def test_a_failed_request_without_a_price_says_why_it_has_no_cost() -> None:
    error = ModelError("cut off", kind=ErrorKind.SERVER, usage=Usage(input_tokens=5))
    events: list[Any] = []

    async def main() -> None:
        with pytest.raises(ModelError):
            await call_model(
                ScriptedModel([error]),
                HELLO,
                retry=RetryPolicy(attempts=1),
                emit=events.append,
                call=0,
                step=0,
            )

    asyncio.run(main())
    assert (events[0].input_tokens, events[0].cost_usd) == (5, None)
    assert "failed request" in events[0].cost_missing


def test_a_failed_request_that_reports_nothing_has_no_tokens() -> None:
    events: list[Any] = []

    async def main() -> None:
        with pytest.raises(ModelError):
            await call_model(
                ScriptedModel([ModelError("no", kind=ErrorKind.AUTH)]),
                HELLO,
                retry=RetryPolicy(attempts=1),
                emit=events.append,
                call=0,
                step=0,
            )

    asyncio.run(main())
    assert {"input_tokens", "cost_usd", "cost_missing"}.isdisjoint(events[0].payload())


# -- adding up, whatever is reported ------------------------------------------------------------


@given(TOKENS, TOKENS, MAYBE, MAYBE, MAYBE)
def test_openai_shaped_usage_adds_up(
    given_: int, made: int, read: int | None, written: int | None, thought: int | None
) -> None:
    raw = {
        "prompt_tokens": given_,
        "completion_tokens": made,
        "total_tokens": given_ + made,
        "prompt_tokens_details": {"cached_tokens": read, "cache_write_tokens": written},
        "completion_tokens_details": {"reasoning_tokens": thought},
    }
    for usage in (reported_usage(raw), read_usage(raw, raw=raw)):
        if usage is not None:
            assert adds_up(usage)
            assert usage.input_tokens in (None, given_)


@given(TOKENS, TOKENS, MAYBE, MAYBE)
def test_anthropic_shaped_usage_adds_up(
    fresh: int, made: int, read: int | None, written: int | None
) -> None:
    raw = {
        "input_tokens": fresh,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "output_tokens": made,
    }
    usage = reported_usage(raw)
    if usage is None:
        return
    assert adds_up(usage)
    whole = fresh + (read or 0) + (written or 0)
    assert usage.input_tokens in (None, whole)
    if read is not None and whole:
        assert usage.uncached_tokens == fresh


@given(fresh=TOKENS, read=TOKENS, written=TOKENS, made=st.integers(1, 10_000))
def test_what_litellm_makes_of_anthropics_usage_reads_the_same_as_the_report(
    fresh: int, read: int, written: int, made: int
) -> None:
    from axislab.models._litellm import load_litellm, quiet

    litellm = load_litellm()
    raw = {
        "input_tokens": fresh,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "output_tokens": made,
    }
    with quiet:
        config = litellm.AnthropicConfig()
        made_of_it = config.calculate_usage(usage_object=raw, reasoning_content=None)
    assert read_usage(made_of_it, raw=raw) == reported_usage(raw)


def test_parts_larger_than_their_whole_are_unknown() -> None:
    usage = reported_usage(
        {
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": 11},
            "completion_tokens_details": {"reasoning_tokens": 6},
        }
    )
    assert usage == Usage(input_tokens=10, output_tokens=5)


def test_thinking_counted_beside_the_output_is_found_by_the_total() -> None:
    usage = reported_usage(
        {
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "total_tokens": 115,
            "completion_tokens_details": {"reasoning_tokens": 100},
        }
    )
    assert usage is not None
    assert (usage.output_tokens, usage.reasoning_tokens) == (105, 100)


@pytest.mark.parametrize(
    "raw", [None, {}, {"prompt_tokens": 0, "completion_tokens": 0}, {"prompt_tokens": "many"}]
)
def test_a_report_that_says_nothing_is_none(raw: Any) -> None:
    assert reported_usage(raw) is None


# -- prices -------------------------------------------------------------------------------------


@given(
    read=TOKENS,
    written=TOKENS,
    fresh=TOKENS,
    made=TOKENS,
    share=st.floats(0, 1),
    cheap=st.floats(0, 3),
)
def test_no_split_of_a_request_costs_more_than_the_most_it_can(
    read: int, written: int, fresh: int, made: int, share: float, cheap: float
) -> None:
    price = Price(input=1, output=2, cached=cheap, cache_write=1.25, reasoning=cheap)
    usage = Usage(
        input_tokens=fresh + read + written,
        output_tokens=made,
        cached_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=int(made * share),
    )
    most = price.at_most(input_tokens=fresh + read + written, output_tokens=made)
    cost = price.of(usage)
    assert cost is not None
    assert cost <= most * (1 + 1e-9)


def test_a_list_with_steps_is_read_at_the_length_of_the_prompt() -> None:
    entry = {
        "input_cost_per_token": 1e-6,
        "input_cost_per_token_above_200k_tokens": 2e-6,
        "input_cost_per_token_above_200k_tokens_priority": 9e-6,
        "output_cost_per_token": 4e-6,
        "cache_creation_input_token_cost": 0.0,
    }
    assert listed_price(entry) == Price(input=1, output=4)
    assert listed_price(entry, prompt=200_000) == Price(input=1, output=4)
    above = listed_price(entry, prompt=200_001)
    assert above is not None
    assert above.input == 2


def test_a_model_that_says_no_price_has_none() -> None:
    assert price_of(ScriptedModel(["x"])) is None
    assert listed_price({"input_cost_per_token": None}) is None


@pytest.mark.parametrize("name", ["cache_write", "reasoning"])
def test_a_price_below_zero_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        Price(input=1, output=1, **{name: -1.0})
