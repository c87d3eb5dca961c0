"""What a state machine writes down about every event that was fired."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any, Generic, cast

from axislab.fsm.table import S


class Outcome(StrEnum):
    """What became of an event."""

    FIRED = "fired"
    REFUSED = "refused"
    """No rule held; nothing changed."""
    FAILED = "failed"
    """The action raised; nothing changed."""


@dataclass(frozen=True, slots=True)
class LogEntry(Generic[S]):
    """One event that was fired, whatever became of it."""

    seq: int
    """From 0, without gaps."""
    event: str
    source: S
    target: S | None
    """None if the event was refused; for a failed one, where it would have led."""
    outcome: Outcome
    payload: str
    """The payload in short; long values are named by type and size."""
    note: str
    """Why it was refused or failed; the rule's description if it fired."""
    before: tuple[Enum, ...] = ()
    """Where the machine was, outermost state first; children of nested machines follow."""
    after: tuple[Enum, ...] = ()
    """Where it was then; the same unless the event fired."""


def short_error(problem: BaseException) -> str:
    """Type and message of an error, cut to a line."""
    return f"{type(problem).__name__}: {str(problem)[:200]}"


_SHOWN = 40


def payload_summary(payload: dict[str, Any]) -> str:
    """The payload in short, in bounded time and without calling a user's `__repr__`."""
    return ", ".join(f"{key}={_brief(value)}" for key, value in payload.items()) if payload else ""


def _brief(value: object) -> str:
    if type(value) is str:
        return repr(value) if len(value) <= _SHOWN else f"{value[:_SHOWN]!r}… ({len(value)})"
    if value is None or type(value) in (bool, float):
        return repr(value)
    if type(value) is int:
        return repr(value) if value.bit_length() <= 128 else "int"
    if type(value) in (list, tuple, dict, set, frozenset):
        return f"{type(value).__name__} of {len(cast('list[object]', value))}"
    return type(value).__name__
