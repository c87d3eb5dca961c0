"""A call that is given up leaves nothing open, however often it is cancelled."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

from axislab.models.opening import opened


class Stream:
    """What a call opened."""

    def __init__(self) -> None:
        self.closed = False
        self.completion_stream = None

    async def aclose(self) -> None:
        self.closed = True


def test_a_second_cancel_does_not_stop_the_closing() -> None:
    opening, made = threading.Event(), Stream()

    def slow() -> Any:
        opening.set()
        time.sleep(0.2)

        async def send() -> Stream:
            return made

        return send()

    async def acompletion() -> Stream:  # litellm makes its request in a thread, likewise
        return await (await asyncio.get_running_loop().run_in_executor(None, slow))

    async def main() -> None:
        task = asyncio.create_task(opened(acompletion()))
        while not opening.is_set():
            await asyncio.sleep(0.005)
        task.cancel()
        await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert others, "the closing goes on"
        await asyncio.wait(others, timeout=2)
        assert all(other.done() for other in others)
        assert made.closed, "what it opened meanwhile"

    asyncio.run(main(), debug=True)
