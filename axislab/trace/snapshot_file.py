"""A history of snapshots on disk: JSON lines, a whole one at a time, safe from a killed process."""

from __future__ import annotations

import os
import weakref
from collections.abc import Collection, Iterable
from pathlib import Path
from types import TracebackType
from typing import Generic, Self

from axislab.errors import TraceError
from axislab.fsm.snapshots import Snapshots
from axislab.fsm.table import C
from axislab.paths import user_path
from axislab.trace.files import lock_file, mend_tail, open_file, unwritable
from axislab.trace.lines import split_lines
from axislab.trace.lock import unlock

SUFFIX = ".dialog"
"""Not .jsonl, so that a folder of traces stays one of runs."""


class SnapshotFile(Generic[C]):
    """Keeps `history` in a file; a line is written before the machine it tells of has changed.

    Args:
        path: The file; made if there is none, gone on with if there is. A torn last line is cut
            off first, see `repaired`.
        every: As for `Snapshots`.
        key_states: As for `Snapshots`.
        types: Enums and dataclasses that the file may hold.
        sync: Wait for the disk after each line: survives a power cut, too.

    Raises:
        TraceError: The file cannot be written, or is none of this kind.
        TraceLocked: Another process has it open.

    Examples:
        >>> with SnapshotFile("traces/new/session.dialog") as file:
        ...     file.history.start({"n": 0}, path=["IDLE"])
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        every: int = 50,
        key_states: Collection[str] = (),
        types: Iterable[type] = (),
        sync: bool = False,
    ) -> None:
        self.path: Path = user_path(path, error=TraceError)
        self._sync = sync
        self._fd = open_file(self.path)
        self._close = weakref.finalize(self, _release, self._fd)
        try:
            lock_file(self._fd, self.path)
            lines = split_lines(_read_all(self._fd))
            self.history: Snapshots[C] = Snapshots(
                every=every,
                key_states=key_states,
                types=types,
                sink=self._write,
                lines=[line + b"\n" for line in lines.whole],
            )
            self.repaired = mend_tail(self._fd, self.path, lines).note()
            """What was done to the end of an existing file; None if nothing."""
            self._size = os.fstat(self._fd).st_size
        except OSError as problem:
            self._close()
            raise unwritable(self.path, problem) from problem
        except BaseException:
            self._close()
            raise

    def _write(self, line: bytes) -> None:
        if not self._close.alive:
            raise TraceError(f"{str(self.path)!r} is closed: open it again to go on")
        try:
            # What an interrupt or a full disk left of an earlier line goes first.
            if os.fstat(self._fd).st_size != self._size:
                os.ftruncate(self._fd, self._size)
            done = 0
            while done < len(line):
                done += os.write(self._fd, line[done:])
            if self._sync:
                os.fsync(self._fd)
        except OSError as problem:
            raise unwritable(self.path, problem) from problem
        self._size += len(line)

    def close(self) -> None:
        """Give the file back; closing twice is fine."""
        self._close()

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
        return f"SnapshotFile({str(self.path)!r}, {len(self.history)} lines)"


def read_snapshots(
    path: str | os.PathLike[str], *, types: Iterable[type] = ()
) -> Snapshots[object]:
    """The history in a file, to look at; a torn last line is left out, and nothing is written.

    Raises:
        TraceError: There is no such file, or it is none of this kind.
    """
    place = user_path(path, error=TraceError)
    try:
        lines = split_lines(place.read_bytes())
    except OSError as problem:
        raise TraceError(f"{str(place)!r} cannot be read: {problem.strerror}") from problem
    return Snapshots(types=types, lines=[line + b"\n" for line in lines.whole])


def _release(fd: int) -> None:
    try:
        unlock(fd)
    except OSError:
        pass  # the file system has no locks
    finally:
        os.close(fd)


def _read_all(fd: int) -> bytes:
    os.lseek(fd, 0, os.SEEK_SET)
    with os.fdopen(os.dup(fd), "rb") as file:
        return file.read()
