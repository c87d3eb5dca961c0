"""Running one tool: in place, as a coroutine or in a thread; whatever happens becomes a value."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from axislab.borders import Overdue, ends_us, text_of, within
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
class _Interrupted:
    """A KeyboardInterrupt on its way out of a thread."""

    error: KeyboardInterrupt


async def run_tool(tool: Tool, arguments: Mapping[str, Any], *, timeout: float | None) -> Output:
    """Run a tool; an exception or a timeout is an output that says so.

    Only what ends this run or the process gets through. A timeout cancels a coroutine; a thread
    cannot be ended, nor can a coroutine that will not: they are left behind, their results dropped.
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
    try:
        if tool.is_async or _blocks(tool):
            value = await within(_start(tool, arguments), timeout)
        else:
            value = tool.function(**arguments)
            if inspect.isawaitable(value):
                value = await within(value, timeout)
    except Overdue:
        return _too_late(tool, timeout)
    except BaseException as problem:
        # A tool that calls sys.exit() ends itself, not the process it happens to run in.
        if ends_us(problem) and not isinstance(problem, SystemExit):
            raise
        return _raised(problem)
    return value if isinstance(value, Output) else _returned(value)


async def _start(tool: Tool, arguments: Mapping[str, Any]) -> Any:
    value = await (
        tool.function(**arguments) if tool.is_async else _in_thread(tool.function, arguments)
    )
    return await value if inspect.isawaitable(value) else value


async def _in_thread(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """An Output, made in the thread too, or what has to be awaited here."""

    def call() -> Any:
        try:
            value = function(**arguments)
        except KeyboardInterrupt as problem:
            return _Interrupted(problem)
        except BaseException as problem:  # as a value: of an exception StopIteration would be lost
            return _raised(problem)
        return value if inspect.isawaitable(value) else _returned(value)

    job = THREADS.submit(call)
    try:
        value = await asyncio.wrap_future(job.future)
    except asyncio.CancelledError:
        THREADS.give_up(job)
        raise
    if isinstance(value, _Interrupted):
        raise value.error
    return value


def _blocks(tool: Tool) -> bool:
    return tool.blocking() if callable(tool.blocking) else tool.blocking


def _returned(value: object) -> Output:
    """A value as text; it may be lazy, so code of its own may run here."""
    if isinstance(value, ToolFailure):
        reason = None if value.reason is None else str(value.reason)
        return Output(
            content=clean_text(str(value.message)), status=ToolStatus.FAILED, reason=reason
        )
    try:
        return Output(content=render_result(value))
    except Exception as problem:
        return _failed(
            f"The tool returned something that is neither text nor JSON: {text_of(problem)}"
        )


def _raised(problem: BaseException) -> Output:
    name = type(problem).__name__
    text = text_of(problem)
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
