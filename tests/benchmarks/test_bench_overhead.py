"""axislab costs little beside litellm, however long the conversation is."""

import asyncio

import pytest

from tests.benchmarks.bench_overhead import (
    CALLS,
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

FEW = 24
"""Calls a round, where the whole benchmark would take minutes."""


def measured(*, length: int, concurrency: int, calls: int = CALLS) -> Cost:
    from axislab.models._litellm import load_litellm

    async def work(url: str) -> Cost:
        try:
            return await measure(
                url, concurrency=concurrency, length=length, rounds=ROUNDS, calls=calls
            )
        finally:
            await load_litellm().close_litellm_async_clients()

    with serving() as url:
        return asyncio.run(work(url))


@pytest.mark.parametrize("concurrency", CONCURRENCIES)
def test_a_call_costs_at_most_a_tenth_more_than_litellm_alone(concurrency: int) -> None:
    found = measured(length=10, concurrency=concurrency, calls=max(FEW, concurrency))
    assert found.ratio <= 1.10, found
