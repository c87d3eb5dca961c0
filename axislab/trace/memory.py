"""MemoryRecorder: numbers and dates events like a recorder, but keeps no file."""

from __future__ import annotations

import threading
import time as time_module
from collections.abc import Callable
from datetime import UTC, datetime

from axislab.events import Event
from axislab.trace.trace import Record


class MemoryRecorder:
    """For runs without a folder: nothing of them outlives the process.

    Args:
        clock: Seconds since 1970, as `time.time`.
    """

    path = None

    def __init__(self, *, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock or time_module.time
        self._lock = threading.Lock()
        self._seq = 0

    def record(self, event: Event) -> Record:
        """The event as a record, with the next number and the time."""
        with self._lock:
            seq, self._seq = self._seq, self._seq + 1
        now = datetime.fromtimestamp(self._clock(), UTC)
        stamp = now.isoformat(timespec="microseconds").replace("+00:00", "Z")
        return Record(seq=seq, time=stamp, kind=event.kind, data=event.payload())

    def close(self) -> None:
        """Nothing is open."""
