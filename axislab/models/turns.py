"""One thing at a time, in the order it was asked for: how callers share what cannot be divided."""

from __future__ import annotations

import atexit
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from weakref import WeakSet

T = TypeVar("T")

_LAST_WAIT: Final = 3.0
_threads: Final[WeakSet[threading.Thread]] = WeakSet()
closing: Final = threading.Event()
"""Set when the interpreter ends: what still works should give up."""


@atexit.register
def _close() -> None:
    """An engine must not work in an interpreter that is gone."""
    closing.set()
    for thread in list(_threads):
        thread.join(_LAST_WAIT)


@dataclass(frozen=True, slots=True)
class _Job:
    future: Future[Any]
    work: Callable[[], Any]


class Turns:
    """Does what it is given one after the other, in a thread that is there while there is work.

    Who asks again stands behind all who wait already, so no caller gets two turns while another
    gets none.

    Args:
        name: Name of the thread.

    Examples:
        >>> Turns("adder").take(lambda: 1 + 1).result()
        2
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._waiting: deque[_Job] = deque()
        self._thread: threading.Thread | None = None

    def take(self, work: Callable[[], T]) -> Future[T]:
        """Queue up; the future can be cancelled for as long as its turn has not come."""
        future: Future[T] = Future()
        with self._lock:
            self._waiting.append(_Job(future, work))
            if self._thread is None or not self._thread.is_alive():
                # A daemon: the interpreter must not wait for a long job when it ends.
                self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                _threads.add(self._thread)
                self._thread.start()
        return future

    def _work(self) -> None:
        while (job := self._next()) is not None:
            if not job.future.set_running_or_notify_cancel():
                continue
            try:
                job.future.set_result(job.work())
            # Whatever it is, it belongs to the one who asked and not to this thread.
            except BaseException as problem:
                job.future.set_exception(problem)

    def _next(self) -> _Job | None:
        with self._lock:
            if self._waiting and not closing.is_set():
                return self._waiting.popleft()
            self._thread = None
            return None
