"""Waits for a litellm call so that giving it up leaves nothing open behind."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Coroutine
from typing import Any, Final

_TICK: Final = 0.005
_CLOSING: Final = 5.0


_closing: Final[set[asyncio.Task[None]]] = set()
"""Kept, because a loop alone does not keep its tasks."""


async def opened(call: Coroutine[Any, Any, Any]) -> Any:
    """What a call of `litellm.acompletion` returns.

    litellm makes the request in a thread, which hands back a coroutine. Cancelled there, nobody
    would await that one; cancelled a moment later, a stream may be open that nobody closes.

    Raises:
        asyncio.CancelledError: We were cancelled; what the call opened meanwhile is closed.
    """
    opening = asyncio.ensure_future(call)
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        # Whoever cancels us twice does not stop the closing, which goes on by itself.
        closing = asyncio.ensure_future(_give_up(opening))
        _closing.add(closing)
        closing.add_done_callback(_closing.discard)
        await asyncio.shield(closing)
        raise


async def _give_up(opening: asyncio.Task[Any]) -> None:
    while not opening.done() and _in_a_thread(opening):
        await asyncio.sleep(_TICK)
    opening.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):  # it was given up
        await close_stream(await opening)


def _in_a_thread(task: asyncio.Task[Any]) -> bool:
    """Is it litellm's own outermost coroutine that waits, and no request yet?"""
    waiting: object = task.get_coro()
    inner = waiting
    while inspect.iscoroutine(inner):
        waiting, inner = inner, inner.cr_await
    return inspect.iscoroutine(waiting) and waiting.cr_code.co_name == "acompletion"


async def close_stream(response: Any) -> None:
    """Close a stream of litellm's and the connection beneath it; what is whole stays as it is."""
    stream = getattr(response, "completion_stream", None)
    beneath = [getattr(stream, name, None) for name in ("response", "http_response")]
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_CLOSING):
            for item in (response, *beneath):
                close = getattr(item, "aclose", None)
                if callable(close) and isinstance(closing := close(), Awaitable):
                    await closing
