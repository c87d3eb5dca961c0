"""Running one tool: in place, as a coroutine or in a thread; whatever happens becomes a value."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from axislab.messages import ToolStatus
from axislab.tools.base import Tool, ToolFailure
from axislab.tools.limits import ToolReason
from axislab.tools.results import clean_text, render_result
from axislab.tools.threads import THREADS


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What became of one run of a tool."""

    content: str
    status: ToolStatus = ToolStatus.SUCCESS
    reason: str | None = None
    latency: float = 0.0
    """Seconds."""


@dataclass(frozen=True, slots=True)
class _Raised:
    """An exception on its way out of a thread; as an exception StopIteration would be lost."""

    error: BaseException


async def run_tool(tool: Tool, arguments: Mapping[str, Any], *, timeout: float | None) -> Output:
    """Run a tool; an exception or a timeout is an output that says so.

    Only a cancellation from outside and KeyboardInterrupt get through. A timeout cancels a
    coroutine; a thread cannot be ended, so it is left behind and its result dropped.
    """
    started = time.perf_counter()
    output = await _outcome(tool, arguments, timeout=timeout)
    return Output(
        content=output.content,
        status=output.status,
        reason=output.reason,
        latency=time.perf_counter() - started,
    )


async def _outcome(tool: Tool, arguments: Mapping[str, Any], *, timeout: float | None) -> Output:
    if tool.is_async or _blocks(tool):
        return await _limited(tool, _start(tool, arguments), timeout=timeout)
    try:
        value = tool.function(**arguments)
    except (Exception, SystemExit, asyncio.CancelledError) as problem:
        return _raised(problem)
    if inspect.isawaitable(value):
        return await _limited(tool, value, timeout=timeout)
    return _returned(value)


async def _limited(tool: Tool, value: Awaitable[Any], *, timeout: float | None) -> Output:
    try:
        async with asyncio.timeout(timeout) as limit:
            result = await value
    except TimeoutError as problem:
        return _too_late(tool, timeout) if limit.expired() else _raised(problem)
    except asyncio.CancelledError as problem:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return _raised(problem)  # something inside the tool was cancelled, not this run
    except (Exception, SystemExit) as problem:
        return _raised(problem)
    return _returned(result)


async def _start(tool: Tool, arguments: Mapping[str, Any]) -> Any:
    value = await (
        tool.function(**arguments) if tool.is_async else _in_thread(tool.function, arguments)
    )
    return await value if inspect.isawaitable(value) else value


async def _in_thread(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    def call() -> Any:
        try:
            return function(**arguments)
        except BaseException as problem:
            return _Raised(problem)

    job = THREADS.submit(call)
    try:
        value = await asyncio.wrap_future(job.future)
    except asyncio.CancelledError:
        THREADS.give_up(job)
        raise
    if isinstance(value, _Raised) and isinstance(value.error, KeyboardInterrupt):
        raise value.error
    return value


def _blocks(tool: Tool) -> bool:
    return tool.blocking() if callable(tool.blocking) else tool.blocking


def _returned(value: object) -> Output:
    if isinstance(value, _Raised):
        return _raised(value.error)
    if isinstance(value, ToolFailure):
        return Output(
            content=clean_text(value.message), status=ToolStatus.FAILED, reason=value.reason
        )
    try:
        return Output(content=render_result(value))
    except (TypeError, ValueError, RecursionError) as problem:
        return _failed(f"The tool returned something that is neither text nor JSON: {problem}")


def _raised(problem: BaseException) -> Output:
    name = type(problem).__name__
    text = str(problem)
    # Alone, the text of these says nothing: 'x', or 1.
    if not text or isinstance(problem, KeyError | SystemExit | asyncio.CancelledError):
        text = f"{name}: {text}" if text else name
    return _failed(clean_text(text))


def _failed(message: str) -> Output:
    return Output(content=message, status=ToolStatus.FAILED, reason=ToolReason.EXECUTION_ERROR)


def _too_late(tool: Tool, timeout: float | None) -> Output:
    left = "" if tool.is_async else " It may still be running; its result is dropped."
    return Output(
        content=f"{tool.name} took longer than {timeout:g} seconds and was given up.{left}",
        status=ToolStatus.FAILED,
        reason=ToolReason.TIMEOUT,
    )
