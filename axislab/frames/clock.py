"""Seconds into a run."""

from __future__ import annotations

from datetime import datetime

from axislab.trace.run import Run
from axislab.trace.trace import Record


class Clock:
    """Tells how far into its run a record was written."""

    def __init__(self, run: Run) -> None:
        first = run.trace.first
        self._start = None if first is None else _moment(first.time)

    def seconds(self, record: Record) -> float | None:
        """Seconds since the first line of the trace; None where a time cannot be read."""
        now = _moment(record.time)
        if now is None or self._start is None:
            return None
        return (now - self._start).total_seconds()


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
