"""Which message answers which tool call, in any of the ways a history may be written.

Results may be tool messages, or user messages for models that know no such role; calls may then
stand in the text of the assistant message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from axislab.messages import Message, Role, ToolCall
from axislab.models.sim_prompts import is_reprompt

_TEXT_CALL = re.compile(
    r'<tool_call>\s*\{\s*"name":\s*"([^"]*)",\s*"arguments":\s*(.*?)\}\s*</tool_call>', re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Paired:
    """A call and the place of its result; None where no result is visible."""

    call: ToolCall
    place: int | None


@dataclass(frozen=True, slots=True)
class Pairing:
    """All calls by the place of their message, and the places of all results."""

    calls: Mapping[int, Sequence[Paired]]
    results: frozenset[int]


def pair(messages: Sequence[Message]) -> Pairing:
    """Match calls and results."""
    calls: dict[int, list[Paired]] = {}
    results: set[int] = set()
    for index, message in enumerate(messages):
        made = message.tool_calls or _written(message)
        if not made:
            continue
        places = _tool_messages(messages, index) or _user_messages(messages, index, len(made))
        if message.tool_calls or places:
            calls[index] = _match(made, places, messages)
            results.update(places)
    return Pairing(calls, frozenset(results))


def _written(message: Message) -> tuple[ToolCall, ...]:
    if message.role is not Role.ASSISTANT or "<tool_call>" not in message.text:
        return ()
    return tuple(
        ToolCall(id="", name=match[1], arguments=match[2].strip())
        for match in _TEXT_CALL.finditer(message.text)
    )


def _tool_messages(messages: Sequence[Message], index: int) -> list[int]:
    places = []
    for place in range(index + 1, len(messages)):
        if messages[place].role is not Role.TOOL:
            break
        places.append(place)
    return places


def _user_messages(messages: Sequence[Message], index: int, count: int) -> list[int]:
    """User messages right after the call; one that asks to call again is no result."""
    places = []
    for place in range(index + 1, min(index + 1 + count, len(messages))):
        message = messages[place]
        if message.role is not Role.USER or is_reprompt(message.text):
            break
        places.append(place)
    return places


def _match(
    made: Sequence[ToolCall], places: Sequence[int], messages: Sequence[Message]
) -> list[Paired]:
    """By id where there is one; what has no known id goes by its place."""
    known = {name for call in made for name in (call.id, call.provider_id) if name}
    by_id = {messages[p].tool_call_id: p for p in places if messages[p].tool_call_id in known}
    rest = iter([p for p in places if p not in by_id.values()])
    out = []
    for call in made:
        place = by_id.get(call.provider_id or call.id, by_id.get(call.id))
        out.append(Paired(call, next(rest, None) if place is None else place))
    return out
