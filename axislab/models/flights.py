"""Single flight: of several equal requests at one time, one is sent and the others wait for it."""

from __future__ import annotations

import asyncio
import os
import threading
from dataclasses import dataclass

from axislab.models.base import ModelReply


@dataclass(frozen=True, slots=True)
class _Waiter:
    """Somebody waiting, perhaps on another loop."""

    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[ModelReply | None]

    def tell(self, reply: ModelReply | None) -> None:
        try:
            self.loop.call_soon_threadsafe(self._set, reply)
        except RuntimeError:  # its loop is closed: nobody waits any more
            return

    def _set(self, reply: ModelReply | None) -> None:
        if not self.future.done():
            self.future.set_result(reply)


class Flights:
    """The requests under way in this process, by key; threads and loops may share it."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._under_way: dict[str, list[_Waiter]] = {}

    def claim(self, key: str) -> asyncio.Future[ModelReply | None] | None:
        """Take a key.

        Returns:
            None if it is the caller's now, who must `settle` it whatever happens. Otherwise a
            future with the reply that another got, or None if that one got none.
        """
        if self._pid != os.getpid():  # a fork: those under way are the parent's
            self._reset()
        with self._lock:
            waiting = self._under_way.get(key)
            if waiting is None:
                self._under_way[key] = []
                return None
            loop = asyncio.get_running_loop()
            waiter = _Waiter(loop, loop.create_future())
            waiting.append(waiter)
            return waiter.future

    def settle(self, key: str, reply: ModelReply | None) -> None:
        """Give a key back, and tell those who wait."""
        with self._lock:
            waiting = self._under_way.pop(key, [])
        for waiter in waiting:
            waiter.tell(reply)
