"""axislab costs little beside litellm, however long the conversation is."""

import asyncio

import pytest

from tests.benchmarks.bench_overhead import (
    CONCURRENCIES,
    MODEL,
    ROUNDS,
    SEARCH,
    Cost,
    conversation,
    measure,
    serving,
    ways,
)

FEW = 32
"""Calls a round, where the whole benchmark would take minutes."""


def measured(*, length: int, concurrency: int, calls: int, rounds: int = ROUNDS) -> Cost:
    from axislab.models._litellm import load_litellm

    async def work(url: str) -> Cost:
        try:
            return await measure(
                url, concurrency=concurrency, length=length, rounds=rounds, calls=calls
            )
        finally:
            await load_litellm().close_litellm_async_clients()

    with serving() as url:
        return asyncio.run(work(url))


def assert_within(bound: float, *, length: int, concurrency: int, calls: int) -> None:
    """One of three medians keeps to it: what else a machine does adds to some, not to all."""
    found = []
    for _ in range(3):
        found.append(measured(length=length, concurrency=concurrency, calls=calls))
        if found[-1].ratio <= bound:
            return
    pytest.fail(f"every median is above {bound}: {found}")


@pytest.mark.parametrize("concurrency", CONCURRENCIES)
def test_a_call_costs_at_most_a_tenth_more_than_litellm_alone(concurrency: int) -> None:
    assert_within(1.10, length=10, concurrency=concurrency, calls=max(FEW, 2 * concurrency))


def test_axislab_does_not_grow_faster_with_the_conversation_than_litellm_does() -> None:
    """The tenth at 10 messages, and of what more of them cost no larger share than a fifth."""
    assert_within(1.20, length=100, concurrency=1, calls=FEW)


def test_both_ways_send_the_same_request_and_nothing_else() -> None:
    from axislab.models._litellm import load_litellm
    from tests.models.fake_server import FakeServer

    server = FakeServer()

    async def work() -> None:
        for way in ways(server.url, 10):
            await way()
        await load_litellm().close_litellm_async_clients()

    try:
        asyncio.run(work())
    finally:
        server.stop()
    alone, through = server.requests
    assert alone == through
    assert len(alone["messages"]) == len(conversation(10)) == 10
    assert alone["tools"][0]["function"]["name"] == SEARCH.name
    assert alone["model"] == MODEL.partition("/")[2]
