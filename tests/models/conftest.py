"""One server and one lasting event loop for all tests that go through litellm."""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import pytest
from fake_server import FakeServer

T = TypeVar("T")
Run = Callable[[Coroutine[Any, Any, T]], T]


@pytest.fixture(scope="session")
def server() -> Iterator[FakeServer]:
    fake = FakeServer()
    yield fake
    fake.stop()


@pytest.fixture(scope="session")
def run() -> Iterator[Run[Any]]:
    """Runs a coroutine on a loop that lasts, as axislab does: litellm keeps its connections."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def on_loop(work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, loop).result(30)

    yield on_loop
    on_loop(_close())
    loop.call_soon_threadsafe(loop.stop)
    thread.join(5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        loop.close()
        gc.collect()


async def _close() -> None:
    from axislab.models._litellm import load_litellm, quiet

    with quiet:
        await load_litellm().close_litellm_async_clients()
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
