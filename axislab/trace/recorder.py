"""The recorder: appends the events of one run to its file, a whole line at a time."""

from __future__ import annotations

import os
import re
import secrets
import threading
import time as time_module
import weakref
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, get_args

from axislab.errors import TraceCorrupt, TraceError
from axislab.events import SCHEMA_VERSION, Event, RunFinished, RunStarted
from axislab.paths import user_path
from axislab.trace.files import (
    deleted,
    is_deleted,
    lock_file,
    looks_like_a_line,
    mend_tail,
    open_file,
    sync_folder,
    unwritable,
)
from axislab.trace.lines import (
    BadLine,
    RawLines,
    decode_line,
    split_lines,
    time_stamp,
    to_line,
)
from axislab.trace.lock import unlock
from axislab.trace.trace import Record

Durability = Literal["process", "disk"]

RESUMABLE_STATUS = "INTERRUPTED"
"""The only status a finished run may go on from."""

_LIGHT_KINDS = frozenset({"message", "phase", "model.request"})
"""Lines that another line of the same step follows soon; only that one is synced to disk."""

_SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,179}")
_DEVICES = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")


def trace_path(folder: str | os.PathLike[str], run_id: str) -> Path:
    """The file of a run in a folder of traces.

    Raises:
        TraceError: The id is no safe file name.
    """
    return Path(folder) / f"{check_run_id(run_id)}.jsonl"


def check_run_id(run_id: str) -> str:
    """The id, if it can be a file name on every system.

    Raises:
        TraceError: It cannot.
    """
    safe = _SAFE_ID.fullmatch(run_id) and not _DEVICES.fullmatch(run_id)
    if not safe or run_id.endswith("."):
        raise TraceError(
            f"run id {run_id!r} is no safe file name; allowed: letters, digits, '.', '_' and '-', "
            f"starting with a letter or digit, at most 180 of them, no device name such as 'con'"
        )
    return run_id


def check_writable(folder: Path) -> None:
    """Find out now, not at the first event, whether traces can be written.

    Raises:
        TraceError: They cannot.
    """
    probe = trace_path(folder, f"probe-{secrets.token_hex(4)}")
    recorder = TraceRecorder(probe)
    recorder.close()
    probe.unlink(missing_ok=True)


class TraceRecorder:
    """Appends events to one trace, each as a line that is written before `record` returns.

    Args:
        path: The file; it is made, with its folder, if there is none. A torn last line of an
            existing one is cut off first, see `repaired`.
        durability: "process" survives the end of this process; "disk" also syncs steps, tool
            events and everything else that must not be lost, and survives a power cut.
        clock: Seconds since 1970, as `time.time`.
        resume: Go on with a run whose last line says that it was INTERRUPTED.

    Raises:
        TraceError: The file cannot be written, or the run in it has ended.
        TraceLocked: Another recorder has it open, in this or another process.
        TraceCorrupt: The existing lines are not in order.

    Examples:
        >>> with TraceRecorder("traces/new/r1.jsonl") as recorder:
        ...     recorder.record(header).seq
        0
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: Durability = "process",
        clock: Callable[[], float] | None = None,
        resume: bool = False,
    ) -> None:
        if durability not in get_args(Durability):
            allowed = " or ".join(map(repr, get_args(Durability)))
            raise TraceError(f"durability={durability!r}: allowed is {allowed}")
        self.path = user_path(path, error=TraceError)
        self.repaired: str | None = None
        """What was done to the end of an existing file; None if nothing."""
        self._sync = durability == "disk"
        self._clock = clock or time_module.time
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._seq = 0
        self._ended_as: str | None = None
        self._unsure = 0
        """Length of a line whose writing was broken off, 0 if all is well."""
        self._fd = open_file(self.path)
        self._counts_links = not is_deleted(self._fd)
        """Some file systems never count the folders a file is in."""
        self._close = weakref.finalize(self, _release, self._fd, self._pid)
        try:
            self._size = self._take_up(resume=resume)
        except BaseException:
            self._close()
            raise

    def _take_up(self, *, resume: bool) -> int:
        """Lock the file, find where its lines end, and cut off what stands behind them."""
        lock_file(self._fd, self.path)
        try:
            data = _read_all(self._fd)
            lines = split_lines(data)
            last = _check_lines(lines, self.path)
            if last is not None:
                self._seq = last.seq + 1
                self._check_goes_on(last, resume=resume)
            cut = mend_tail(self._fd, self.path, lines)
            if self._sync:
                sync_folder(self.path.parent)
        except OSError as problem:
            raise unwritable(self.path, problem) from problem
        self.repaired = cut.note()
        return len(data) - cut.removed + cut.ended

    def _check_goes_on(self, last: Record, *, resume: bool) -> None:
        if last.kind == RunFinished.kind:
            status = str(last.data["status"])
            if not (resume and status == RESUMABLE_STATUS):
                raise TraceError(self._is_over(status))

    def record(self, event: Event) -> Record:
        """Write one event as a whole line, and return it as it stands in the file.

        Raises:
            TraceError: It cannot be written, does not belong here, or holds what JSON cannot.
        """
        with self._lock:
            self._check(event)
            line = to_line(self._seq, time_stamp(self._clock()), event)
            self._write(line.data)
            if isinstance(event, RunFinished):
                self._ended_as = event.status
            if self._sync and event.kind not in _LIGHT_KINDS:
                self._fsync()
        return line.record

    def __call__(self, event: Event) -> None:
        """The same as an `Emit`: writes the event and returns nothing."""
        self.record(event)

    @property
    def seq(self) -> int:
        """The number the next line will get."""
        return self._seq

    def close(self) -> None:
        """Give the file back; closing twice is fine."""
        with self._lock:
            try:
                if self._close.alive and self._sync:
                    self._fsync()
            finally:
                self._close()

    def _check(self, event: Event) -> None:
        if not self._close.alive:
            raise TraceError(f"the recorder of {str(self.path)!r} is closed; open a new one")
        if os.getpid() != self._pid:
            raise TraceError(
                f"{str(self.path)!r} belongs to the process {self._pid}, which this one was forked "
                f"from; start the run in the process that is to record it"
            )
        if self._unsure:
            self._settle()
        if self._ended_as is not None:
            raise TraceError(self._is_over(self._ended_as))
        if isinstance(event, RunStarted):
            check_run_id(event.run_id)
        if isinstance(event, RunStarted) != (self._seq == 0):
            wrong = "is not empty" if self._seq else "is empty"
            raise TraceError(
                f"cannot record {event.kind!r}: {str(self.path)!r} {wrong}, and run.started is "
                f"the first event of a run and only that"
            )

    def _is_over(self, status: str) -> str:
        go_on = (
            "open it with resume=True to go on"
            if status == RESUMABLE_STATUS
            else "only an INTERRUPTED run goes on; fork it instead"
        )
        return f"the run in {str(self.path)!r} has ended with status {status}: {go_on}"

    def _write(self, line: bytes) -> None:
        """Write a line, all of it or nothing of it."""
        if self._counts_links and is_deleted(self._fd):
            raise deleted(self.path)
        self._unsure = len(line)
        try:
            done = os.write(self._fd, line)
            while done < len(line):
                done += os.write(self._fd, line[done:])
        except OSError as problem:
            self._cut_back()
            raise unwritable(self.path, problem) from problem
        self._accept(len(line))

    def _accept(self, length: int) -> None:
        self._size += length
        self._seq += 1
        self._unsure = 0

    def _cut_back(self) -> None:
        try:
            os.ftruncate(self._fd, self._size)
        except OSError:
            return  # still unsure: the next event tries again before it is written
        self._unsure = 0

    def _settle(self) -> None:
        """After an interrupt or a failed cut: the broken-off line stands whole or not at all."""
        try:
            if os.fstat(self._fd).st_size == self._size + self._unsure:
                self._accept(self._unsure)
                return
            os.ftruncate(self._fd, self._size)
        except OSError as problem:
            raise unwritable(self.path, problem) from problem
        self._unsure = 0

    def _fsync(self) -> None:
        try:
            os.fsync(self._fd)
        except OSError as problem:
            raise unwritable(self.path, problem) from problem

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "open" if self._close.alive else "closed"
        return f"TraceRecorder({str(self.path)!r}, {self._seq} lines, {state})"


def _release(fd: int, pid: int) -> None:
    """Close the file; a forked child leaves the lock to its parent."""
    try:
        if os.getpid() == pid:
            unlock(fd)
    except OSError:
        pass  # the file system has no locks
    finally:
        os.close(fd)


def _read_all(fd: int) -> bytes:
    os.lseek(fd, 0, os.SEEK_SET)
    with os.fdopen(os.dup(fd), "rb") as file:
        return file.read()


def _check_lines(lines: RawLines, path: Path) -> Record | None:
    """The last record, if this is a trace and all its lines are in order."""
    last = None
    if not lines.whole and not looks_like_a_line(lines.tail):
        raise _not_in_order(path, 1, f"is {lines.tail[:40]!r}, not the start of a trace")
    for number, line in enumerate(lines.whole, 1):
        try:
            last = decode_line(line)
        except BadLine as problem:
            raise _not_in_order(path, number, str(problem)) from problem
        if last.seq != number - 1:
            raise _not_in_order(path, number, f"has seq {last.seq}, expected {number - 1}")
        if (last.kind == RunStarted.kind) != (number == 1):
            raise _not_in_order(path, number, f"is of kind {last.kind!r}")
        if number == 1 and last.data["schema"] > SCHEMA_VERSION:
            raise _not_in_order(path, number, "has a newer schema; update axislab to go on")
    return last


def _not_in_order(path: Path, number: int, why: str) -> TraceCorrupt:
    return TraceCorrupt(
        f"cannot append to {str(path)!r}: line {number} {why}; fsck lists all that is wrong, and "
        f"a fork starts a new trace from the steps before"
    )
