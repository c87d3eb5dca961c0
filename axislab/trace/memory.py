"""MemoryRecorder: takes what a recorder takes and gives the same records, but keeps no file."""

from __future__ import annotations

import threading
import time as time_module
from collections.abc import Callable

from axislab.events import Event
from axislab.trace.lines import time_stamp, to_line
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
        """The event as the record that a file would hold.

        Raises:
            TraceError: It holds something that JSON cannot.
        """
        with self._lock:
            record = to_line(self._seq, time_stamp(self._clock()), event).record
            self._seq += 1
        return record

    def close(self) -> None:
        """Nothing is open."""
