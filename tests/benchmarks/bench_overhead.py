"""`python -m tests.benchmarks.bench_overhead`: what axislab adds to `litellm.acompletion`.

The same requests go to the same server in a process of its own, once through `call_model` around
a `LiteLLMModel`, once through litellm alone. Both take turns many times in each round, and what
counts is the CPU time of this process, so that a busy machine slows both alike.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from axislab.config import RetryPolicy, Sampling
from axislab.events import Event
from axislab.messages import Message, ToolCall, ToolSpec
from axislab.models._litellm import load_litellm
from axislab.models.base import ModelRequest
from axislab.models.call import call_model
from axislab.models.litellm_model import LiteLLMModel

ROUNDS = 20
CALLS = 128
CONCURRENCIES = (1, 64)
MODEL = "openai/ok"
SLICES = 16
"""How often the ways take turns within a round where calls go one by one; with more at once a
slice is as many calls as there are at once."""
SETTLE = 0.004
"""Seconds litellm has for what it does behind a call; both ways are given them."""

SEARCH = ToolSpec(
    name="search",
    description="Search the documents.",
    parameters={
        "type": "object",
        "properties": {"query": {"type": "string"}, "k": {"type": "integer"}},
        "required": ["query"],
    },
)
RETRY = RetryPolicy()
Call = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Median CPU seconds of a call, and the median over the rounds of their ratio."""

    litellm: float
    axislab: float
    ratio: float


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """The address of a server in another process."""
    program = [sys.executable, "-m", "tests.benchmarks.plain_server"]
    with subprocess.Popen(
        program, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def conversation(length: int) -> list[Message]:
    """A prompt, then turns of a reply with a call and its result: so many messages."""
    out = [Message.system("You answer questions. Use the tools."), Message.user("How deep is it?")]
    while len(out) < length:
        call = ToolCall(
            id=f"call_{len(out)}", name="search", arguments='{"query": "the depth of the lake"}'
        )
        out.append(Message.assistant("Let me look that up.", (call,)))
        out.append(Message.tool("The lake is 407 metres deep. " * 8, tool_call_id=call.id))
    return out[:length]


def ways(url: str, length: int) -> tuple[Call, Call]:
    """One call through litellm alone, and the same through axislab."""
    model = LiteLLMModel(MODEL, api_base=url, api_key="none")
    model.check()
    request = ModelRequest(messages=conversation(length), tools=(SEARCH,), sampling=Sampling())
    # What axislab would send is put together once: litellm alone has it for nothing.
    sent: dict[str, Any] = model._arguments(request)
    events: list[Event] = []

    async def bare() -> object:
        return await load_litellm().acompletion(**sent)

    async def ours() -> object:
        events.clear()
        return await call_model(
            model, request, retry=RETRY, emit=events.append, call=0, step=1, estimated=100
        )

    return bare, ours


async def seconds(way: Call, *, calls: int, concurrency: int) -> float:
    """CPU seconds of so many calls, so many at once."""
    left = iter(range(calls))

    async def work() -> None:
        for _ in left:
            await way()

    start = time.process_time()
    await asyncio.gather(*(work() for _ in range(concurrency)))
    await asyncio.sleep(SETTLE)
    return time.process_time() - start


async def one_round(pair: tuple[Call, Call], *, calls: int, concurrency: int) -> list[float]:
    """CPU seconds of a call of either, who take turns so often that noise hits both alike."""
    size = max(concurrency, calls // SLICES)
    slices = max(2, calls // size)
    spent = [0.0, 0.0]
    gc.collect()
    for number in range(slices):
        for which in (0, 1) if number % 2 else (1, 0):
            spent[which] += await seconds(pair[which], calls=size, concurrency=concurrency)
    return [total / (slices * size) for total in spent]


async def measure(
    url: str, *, concurrency: int, length: int = 10, rounds: int = ROUNDS, calls: int = CALLS
) -> Cost:
    """What a call costs either way, in rounds in which both take turns."""
    pair = ways(url, length)
    await one_round(pair, calls=2 * concurrency + 8, concurrency=concurrency)
    gc.collect()
    gc.freeze()  # what litellm has imported is not looked through again in either's time
    try:
        found = [await one_round(pair, calls=calls, concurrency=concurrency) for _ in range(rounds)]
    finally:
        gc.unfreeze()
    return Cost(
        litellm=statistics.median(bare for bare, _ in found),
        axislab=statistics.median(ours for _, ours in found),
        ratio=statistics.median(ours / bare for bare, ours in found),
    )


async def main() -> None:
    """Print the cost of a call either way."""
    with serving() as url:
        for length in (10, 100):
            for concurrency in CONCURRENCIES:
                cost = await measure(url, concurrency=concurrency, length=length)
                print(
                    f"{length:4} messages, {concurrency:3} at once: litellm "
                    f"{1e3 * cost.litellm:6.2f} ms CPU a call, axislab {1e3 * cost.axislab:6.2f}; "
                    f"median ratio {cost.ratio:.3f}"
                )
        await load_litellm().close_litellm_async_clients()


if __name__ == "__main__":
    asyncio.run(main())
