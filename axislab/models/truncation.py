"""Sees that a reply may have been cut, where its finish reason does not say so."""

from __future__ import annotations

import json
from dataclasses import replace

from axislab.models.base import ModelReply


def marked(reply: ModelReply, *, limit: int) -> ModelReply:
    """The reply, marked if the limit may have cut it.

    Args:
        reply: As the provider gave it.
        limit: Tokens it was allowed.
    """
    if not (reply.possibly_truncated or used_up(reply, limit=limit) or cut_in_a_call(reply)):
        return reply
    return replace(reply, possibly_truncated=True)


def used_up(reply: ModelReply, *, limit: int) -> bool:
    """True if the provider counted as many tokens as the limit allows."""
    usage = reply.usage
    if usage is None or usage.estimated or usage.output_tokens is None:
        return False
    return usage.output_tokens >= limit


def cut_in_a_call(reply: ModelReply) -> bool:
    """True if it was cut by length, and the arguments of a call are no JSON object."""
    return reply.finish_reason == "length" and not all(
        _is_object(call.arguments) for call in reply.tool_calls
    )


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
