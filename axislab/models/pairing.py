"""Makes a history one that strict providers take: every call has one result, right after it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from axislab.messages import Message, Role

NO_RESULT: Final = "[no result: the call was not run]"
"""What the model reads of a call whose result is not in the history."""


def paired(messages: Iterable[Message]) -> list[Message]:
    """The messages with one result for every call, and none without its call.

    A result keeps its place among those of its turn; one for several calls ("a,b") is given to
    each; what is missing is said. Markers are left out.
    """
    out: list[Message] = []
    open_ids: list[str] = []
    for message in messages:
        if message.role is Role.RUNTIME:
            continue
        if message.role is Role.TOOL:
            for own in _answered(message.tool_call_id or "", open_ids):
                open_ids.remove(own)
                same = message.tool_call_id == own
                out.append(message if same else replace(message, tool_call_id=own))
            continue
        if open_ids:
            out += _missing(open_ids)
        open_ids = [call.id for call in message.tool_calls]
        out.append(message)
    return out + _missing(open_ids)


def _answered(told: str, open_ids: list[str]) -> list[str]:
    if told in open_ids:
        return [told]
    parts = told.split(",")
    return parts if len(parts) > 1 and all(part in open_ids for part in parts) else []


def _missing(open_ids: list[str]) -> list[Message]:
    return [Message.tool(NO_RESULT, tool_call_id=own) for own in open_ids]
