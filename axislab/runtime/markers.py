"""Markers: messages that hide or replace what the model sees, and never delete anything.

The only place that writes or reads them. A message of role ConversationRuntime that is not one
of the three kinds, or whose payload is malformed, stays in the full list and has no effect.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from axislab.messages import Message, Role


@dataclass(frozen=True, slots=True)
class Rollback:
    """Hide the newest `count` visible messages, never a system message."""

    name: ClassVar[str] = "rollback"

    count: int
    reason: str

    def payload(self) -> dict[str, object]:
        """The JSON the marker carries."""
        return {"rollback_message_count": self.count, "reason": self.reason}

    def to_message(self) -> Message:
        """The marker as a message of the full list."""
        return _message(self.name, self.payload())


@dataclass(frozen=True, slots=True)
class Compaction:
    """Replace a range of visible messages by one assistant message that sums it up."""

    name: ClassVar[str] = "compaction"

    summary: str
    prefix_len: int
    compressed_count: int

    def payload(self) -> dict[str, object]:
        """The JSON the marker carries."""
        return {
            "summary": self.summary,
            "prefix_len": self.prefix_len,
            "compressed_count": self.compressed_count,
        }

    def to_message(self) -> Message:
        """The marker as a message of the full list."""
        return _message(self.name, self.payload())


@dataclass(frozen=True, slots=True)
class DiscardAll:
    """Keep the first `prefix_len` visible messages, hide the rest."""

    name: ClassVar[str] = "discard_all"

    prefix_len: int

    def payload(self) -> dict[str, object]:
        """The JSON the marker carries."""
        return {"prefix_len": self.prefix_len}

    def to_message(self) -> Message:
        """The marker as a message of the full list."""
        return _message(self.name, self.payload())


Marker: TypeAlias = Rollback | Compaction | DiscardAll


def parse_marker(message: Message) -> Marker | None:
    """The marker a message carries; None for any other message and for malformed payloads."""
    if message.role is not Role.RUNTIME:
        return None
    try:
        payload = json.loads(message.text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(payload, Mapping):
        return None
    if message.name == Rollback.name:
        return _rollback(payload)
    if message.name == Compaction.name:
        return _compaction(payload)
    if message.name == DiscardAll.name:
        prefix = _count(payload.get("prefix_len"))
        return None if prefix is None else DiscardAll(prefix)
    return None


def _rollback(payload: Mapping[str, object]) -> Rollback | None:
    count, reason = _count(payload.get("rollback_message_count")), payload.get("reason")
    if count is None:
        return None
    return Rollback(count, reason if isinstance(reason, str) else "")


def _compaction(payload: Mapping[str, object]) -> Compaction | None:
    prefix, count = _count(payload.get("prefix_len")), _count(payload.get("compressed_count"))
    summary = payload.get("summary")
    if prefix is None or not count or not isinstance(summary, str):
        return None
    return Compaction(summary, prefix, count)


def _count(value: object) -> int | None:
    """A number of messages; booleans are none (D9)."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _message(name: str, payload: Mapping[str, object]) -> Message:
    return Message(role=Role.RUNTIME, name=name, content=json.dumps(payload, ensure_ascii=False))
