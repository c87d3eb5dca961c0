"""Running coroutines from anywhere: one background loop, and a handle for each thing it runs.

A cell, a script and nbclient all get the same: work is done on a loop of our own in a daemon
thread, so it goes on when the cell returns, and a Stop button or Ctrl-C ends it cleanly.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import contextvars
import os
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Iterator
from types import FrameType
from typing import Any, ClassVar, Generic, TypeVar

T = TypeVar("T")

GRACE = 5.0
"""Seconds a stopped run has to write its last line."""
TICK = 0.1
"""Seconds between two looks at the clock while a cell awaits: some kernels' interrupt handlers
only queue a callback, which an idle loop does not notice."""


class LoopThread:
    """The one event loop of this process that runs agents."""

    _guard: ClassVar[threading.Lock] = threading.Lock()
    _current: ClassVar[LoopThread | None] = None

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.pid = os.getpid()
        self._thread = threading.Thread(target=self._run, name="axislab-loop", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        while True:
            try:
                return self.loop.run_forever()
            except (SystemExit, KeyboardInterrupt):
                # asyncio gives these to the task that raised them, and throws them out of the
                # loop as well: everything else that runs here goes on.
                continue

    @property
    def alive(self) -> bool:
        """False after a fork, where only the thread that forked lives on."""
        return self.pid == os.getpid() and self._thread.is_alive()

    @property
    def is_this_thread(self) -> bool:
        """True for code that the loop itself runs."""
        return threading.current_thread() is self._thread

    @classmethod
    def current(cls) -> LoopThread:
        """The loop; made when first needed, and anew after a fork."""
        with cls._guard:
            if cls._current is None or not cls._current.alive:
                cls._current = cls()
                atexit.register(cls._current.close)
            return cls._current

    @classmethod
    def forget(cls) -> None:
        """Start anew in a forked process: the loop is not here, and its lock may have been held."""
        cls._guard = threading.Lock()
        cls._current = None

    def close(self) -> None:
        """Cancel what still runs, and wait a little for its last words."""
        if not self.alive:
            return
        with contextlib.suppress(concurrent.futures.TimeoutError):
            asyncio.run_coroutine_threadsafe(_cancel_all(), self.loop).result(3)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=LoopThread.forget)


async def _cancel_all() -> None:
    tasks = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=2.5) if tasks else None


class _Foreground:
    """While the main thread awaits handles, Ctrl-C and Stop also stop what they run."""

    waiting: ClassVar[list[Handle[Any]]] = []
    former: ClassVar[Any] = None

    @classmethod
    def on_sigint(cls, number: int, frame: FrameType | None) -> None:
        for handle in list(cls.waiting):
            handle.stop()
        former, cls.former = cls.former, None  # should it call us in turn, once is enough
        try:
            if callable(former):
                former(number, frame)
        finally:
            cls.former = former

    @classmethod
    @contextlib.contextmanager
    def awaiting(cls, handle: Handle[Any]) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        if signal.getsignal(signal.SIGINT) != cls.on_sigint:
            # Also where something waits already: a kernel sets its own handler for each cell.
            cls.former = signal.signal(signal.SIGINT, cls.on_sigint)
        cls.waiting.append(handle)
        try:
            yield
        finally:
            cls.waiting.remove(handle)
            if not cls.waiting and signal.getsignal(signal.SIGINT) == cls.on_sigint:
                signal.signal(signal.SIGINT, cls.former or signal.SIG_DFL)
                cls.former = None


class _HeldBack(Exception):
    """What would end the loop, with all that runs on it, on its way to the one who waits."""

    def __init__(self, problem: BaseException) -> None:
        super().__init__(problem)
        self.problem = problem


async def _held_back(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    try:
        return await work()
    except (KeyboardInterrupt, SystemExit) as problem:  # asyncio lets these through to the loop
        raise _HeldBack(problem) from problem


def _look_at(future: asyncio.Future[Any]) -> None:
    """Else asyncio complains of an error nobody saw, where who awaited it was cancelled."""
    if not future.cancelled():
        future.exception()


class Handle(Generic[T]):
    """Something that runs in the background.

    Args:
        work: Makes the coroutine; called on the background loop.
    """

    def __init__(self, work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._future: concurrent.futures.Future[T] = concurrent.futures.Future()
        self._home = LoopThread.current()
        self._loop = self._home.loop
        self._task: asyncio.Task[T] | None = None
        self._stopped = False
        context = contextvars.copy_context()
        self._loop.call_soon_threadsafe(lambda: context.run(self._begin, work))

    def _begin(self, work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._task = self._loop.create_task(_held_back(work))
        self._task.add_done_callback(self._end)
        if self._stopped:
            self._cancel()

    def _end(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self._future.cancel()
            self._future.set_running_or_notify_cancel()
        elif (problem := task.exception()) is not None:
            told = problem.problem if isinstance(problem, _HeldBack) else problem
            self._future.set_exception(told)
        else:
            self._future.set_result(task.result())

    @property
    def done(self) -> bool:
        """Nothing more will happen."""
        return self._future.done()

    def stop(self) -> None:
        """Ask it to stop; from any thread, as often as you like."""
        self._stopped = True
        self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        # One turn of the loop later, so that work which has just been made can begin and say so.
        if self._task is not None and not self._task.done():
            self._loop.call_soon(self._task.cancel)

    def _check_can_end(self) -> None:
        if not self.done and not self._home.alive:
            raise RuntimeError(
                f"this belongs to the process {self._home.pid}, and its loop does not run here: "
                "wait for it there, and start what this process is to run in this process"
            )

    def when_done(self, call: Callable[[], None]) -> None:
        """Call a function when it is done, on whatever thread that happens."""
        self._future.add_done_callback(lambda _: call())

    def wait(self, timeout: float | None = None) -> bool:
        """Block until it is done, or for `timeout` seconds; True if it is done.

        Raises:
            KeyboardInterrupt: Ctrl-C or the Stop button; it was stopped.
            RuntimeError: Called on the loop that would have to do the work, or in a process forked
                from the one that does it.
        """
        return self.watch(lambda: None, timeout=timeout)

    def watch(self, tell: Callable[[], None], *, timeout: float | None = None) -> bool:
        """The same, calling a function ten times a second; if that raises, the work is stopped.

        Raises:
            KeyboardInterrupt: Ctrl-C or the Stop button, wherever it struck; it was stopped.
            RuntimeError: Called on the loop that would have to do the work, or in a process forked
                from the one that does it.
        """
        self._check_can_end()
        if LoopThread.current().is_this_thread:
            raise RuntimeError(
                "a blocking call inside axislab's own loop would wait for itself: "
                "use `await lab.arun(...)` here"
            )
        end = None if timeout is None else time.monotonic() + timeout
        try:
            # In ticks, since on some systems Ctrl-C is only noticed between two waits.
            while not self._future.done():
                left = TICK if end is None else min(TICK, end - time.monotonic())
                if left <= 0:
                    break
                concurrent.futures.wait([self._future], left)
                tell()
        except BaseException:
            self.stop()
            concurrent.futures.wait([self._future], GRACE)
            raise
        return self._future.done()

    def value(self) -> T:
        """What came of it, once it is done.

        Raises:
            concurrent.futures.CancelledError: It was stopped.
        """
        return self._future.result(0)

    def __await__(self) -> Generator[Any, None, T]:
        return self._wait().__await__()

    async def _wait(self) -> T:
        self._check_can_end()
        waiter = asyncio.ensure_future(asyncio.wrap_future(self._future))
        waiter.add_done_callback(_look_at)
        try:
            with _Foreground.awaiting(self):
                while not (await asyncio.wait({waiter}, timeout=TICK))[0]:
                    pass
        except asyncio.CancelledError:
            self.stop()
            await asyncio.wait({waiter}, timeout=GRACE)
            raise
        return waiter.result()
