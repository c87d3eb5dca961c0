"""Where other people's code is called: what of it may stop us, how long it is waited for.

A tool, a model, a hook and a scorer may raise anything and may never end. Whoever calls one asks
here whether what it raised came from outside, and waits for it with a bound that holds.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

T = TypeVar("T")

GRACE = 1.0
"""Seconds that work which was cancelled has to clean up; then it is left to itself."""

_LONGEST = 300


class Overdue(Exception):
    """The time is up; the work was cancelled, or left behind if it would not be."""


def ends_us(problem: BaseException) -> bool:
    """Whether an exception came from outside the code that raised it, so that it must go on.

    The cancellation of this task does, Ctrl-C and an exit in the main thread (Python raises
    neither for real in another), and the closing of a coroutine that no task runs. The same
    exceptions raised by a tool or a model of its own accord are faults like any other.
    """
    if isinstance(problem, KeyboardInterrupt | SystemExit):
        return threading.current_thread() is threading.main_thread()
    task = _task()
    if isinstance(problem, asyncio.CancelledError):
        return task is None or task.cancelling() > 0
    return isinstance(problem, GeneratorExit) and task is None


def text_of(problem: BaseException) -> str:
    """The text of an exception, whatever its `__str__` does."""
    try:
        return str(problem)
    except Exception as second:
        return f"(its text cannot be told: {type(second).__name__})"


def shown(value: object) -> str:
    """The repr of a value for a message: short, whatever its `__repr__` does."""
    try:
        text = repr(value)
    except Exception as problem:
        return f"<a {type(value).__name__} whose repr raises {type(problem).__name__}>"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


async def within(work: Awaitable[T], seconds: float | None) -> T:
    """Wait for some work, at most so many seconds; whatever it raises is raised here.

    It runs in a task of its own: code that swallows its cancellation (a bare `except:` in a loop
    is enough) would hold whoever waits for it for ever. Such work is left behind after GRACE.

    Raises:
        Overdue: The time is up.
        asyncio.CancelledError: We were cancelled, and the work with us; or it raised that.
    """
    task = asyncio.ensure_future(_outcome(work))
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
        if not done:
            raise Overdue
        came = task.result()
    except BaseException:
        await _give_up(task)
        if inspect.iscoroutine(work) and inspect.getcoroutinestate(work) == inspect.CORO_CREATED:
            work.close()  # cancelled before it began: Python would warn that nobody awaited it
        raise
    try:
        return came.take()
    finally:
        del came, task  # an exception and the frame that raised it would hold each other


@dataclass(frozen=True, slots=True, kw_only=True)
class _Came(Generic[T]):
    value: T | None = None
    problem: BaseException | None = None

    def take(self) -> T:
        if self.problem is not None:
            raise self.problem
        return cast(T, self.value)


async def _outcome(work: Awaitable[T]) -> _Came[T]:
    """What came of it as a value: a task that raises KeyboardInterrupt would end the loop."""
    try:
        return _Came(value=await work)
    except BaseException as problem:
        if isinstance(problem, GeneratorExit) and ends_us(problem):
            raise
        return _Came(problem=problem)


async def _give_up(task: asyncio.Task[_Came[T]]) -> None:
    task.cancel()
    await asyncio.wait({task}, timeout=GRACE)


def _task() -> asyncio.Task[object] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs here
        return None
