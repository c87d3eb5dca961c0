"""Worker threads for tools that block: one pool a process, and none of them keeps it alive."""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True, eq=False, kw_only=True)
class Job(Generic[T]):
    """One function on its way through a thread."""

    function: Callable[[], T]
    future: Future[T] = field(default_factory=Future)
    finished: bool = False
    given_up: bool = False
    """Nobody waits for it any more, and its thread is not counted on."""


class WorkerThreads:
    """Daemon threads that run blocking functions.

    The standard pool is no match for tools: it waits for every thread when the process ends, so a
    tool that hangs would keep a script from ending, and each one that hangs takes a place for good.

    Args:
        limit: Threads that work at a time; a call that was given up does not count.
    """

    def __init__(self, limit: int = 256) -> None:
        self._limit = limit
        self.reset()

    def reset(self) -> None:
        """Start anew without any thread: a forked process has none of them."""
        self._lock = threading.Lock()
        self._jobs: SimpleQueue[Job[Any]] = SimpleQueue()
        self._threads = 0
        self._idle = 0
        self._waiting = 0
        self._started = 0

    @property
    def started(self) -> int:
        """Threads started so far."""
        return self._started

    def submit(self, function: Callable[[], T]) -> Job[T]:
        """Run a function in a thread, in a copy of the caller's context variables."""
        context = contextvars.copy_context()
        job: Job[T] = Job(function=lambda: context.run(function))
        with self._lock:
            self._waiting += 1
            self._jobs.put(job)
            self._serve()
        return job

    def give_up(self, job: Job[Any]) -> None:
        """Stop waiting for a job: if it has not begun it never will, else its thread is let go."""
        if job.future.cancel():
            return
        with self._lock:
            if not job.finished and not job.given_up:
                job.given_up = True
                self._threads -= 1
                self._serve()

    def _serve(self) -> None:
        """See that every waiting job has a thread coming for it; called with the lock held."""
        while self._waiting:
            if self._idle:
                self._idle -= 1
            elif self._threads < self._limit:
                self._threads += 1
                self._started += 1
                name = f"axislab-tool-{self._started}"
                threading.Thread(target=self._work, name=name, daemon=True).start()
            else:
                return
            self._waiting -= 1

    def _work(self) -> None:
        jobs = self._jobs
        while True:
            job = jobs.get()
            error: BaseException | None = None
            value = None
            began = job.future.set_running_or_notify_cancel()
            if began:
                try:
                    value = job.function()
                except BaseException as problem:  # whoever waits for it gets it
                    error = problem
            with self._lock:
                job.finished = True
                if not job.given_up:
                    self._idle += 1
                    self._serve()
            if began and error is not None:
                job.future.set_exception(error)
            elif began:
                job.future.set_result(value)
            if job.given_up:
                return
            del job, value, error  # an idle thread holds nobody's result


THREADS = WorkerThreads()
"""The pool of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=THREADS.reset)
