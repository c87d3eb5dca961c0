"""The file under a trace: opened for append, locked, and rid of a torn end."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

from axislab.errors import TraceError, TraceLocked
from axislab.trace.lines import RawLines
from axislab.trace.lock import LocksUnsupported, try_lock

_LINE_START = b'{"seq":'


@dataclass(frozen=True, slots=True)
class Cut:
    """What was done to the end of a file."""

    removed: int = 0
    """Bytes cut off."""
    kept_in: Path | None = None
    """Where they are kept."""
    ended: bool = False
    """The last line was whole and only lacked its newline, which it got."""

    def note(self) -> str | None:
        """One sentence, or None if nothing had to be done."""
        if self.removed:
            return (
                f"the last line was cut off in the middle; its {self.removed} bytes are kept in "
                f"{str(self.kept_in)!r}"
            )
        return "the last line lacked its newline" if self.ended else None


def open_file(path: Path) -> int:
    """A descriptor that appends; the file and its folder are made if there are none.

    Raises:
        TraceError: It cannot be made or written.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
    flags |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    try:
        if path.exists() and not path.is_file():
            what = "a folder" if path.is_dir() else "no regular file"
            raise TraceError(f"{str(path)!r} is {what}; a trace is a file, <folder>/<run id>.jsonl")
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, flags, 0o666)
    except OSError as problem:
        raise unwritable(path, problem) from problem
    except ValueError as problem:  # a null byte, or text that the file system cannot spell
        raise TraceError(f"{str(path)!r} cannot be a path: {problem}; choose another") from problem


def is_deleted(fd: int) -> bool:
    """True if an open file is in no folder any more."""
    return os.fstat(fd).st_nlink == 0


def lock_file(fd: int, path: Path) -> None:
    """Make sure that nobody else writes the file; warn where that cannot be made sure of.

    Raises:
        TraceLocked: Somebody else does.
        TraceError: Locking failed.
    """
    try:
        locked = try_lock(fd)
    except LocksUnsupported:
        message = f"{str(path)!r}: no file locks here; make sure that only one process writes it"
        warnings.warn(message, UserWarning, stacklevel=4)
        return
    except OSError as problem:
        raise unwritable(path, problem) from problem
    if not locked:
        raise TraceLocked(
            f"{str(path)!r} is being written by another recorder, in this or another process; "
            f"close that one first, or record under another run id"
        )


def looks_like_a_line(tail: bytes) -> bool:
    """True if these bytes may be the start of a line of ours, or are none at all."""
    return tail.startswith(_LINE_START) or _LINE_START.startswith(tail)


def torn_path(path: Path) -> Path:
    """Where the bytes cut off a trace are kept: `<name>.torn` beside it."""
    return path.with_name(path.name + ".torn")


def mend_tail(fd: int, path: Path, lines: RawLines) -> Cut:
    """Cut off what stands after the last whole line, and keep it beside the file.

    Args:
        fd: The file, open for appending and locked.
        path: Its path.
        lines: What it holds.
    """
    if lines.tail:
        kept_in = torn_path(path)
        with kept_in.open("ab") as file:
            file.write(lines.tail + b"\n")
        os.ftruncate(fd, os.fstat(fd).st_size - len(lines.tail))
        return Cut(removed=len(lines.tail), kept_in=kept_in)
    if lines.unended:
        os.write(fd, b"\n")
        return Cut(ended=True)
    return Cut()


def sync_folder(folder: Path) -> None:
    """Make sure that a file just made is still in its folder after a power cut."""
    if sys.platform != "win32":
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def deleted(path: Path) -> TraceError:
    """The error for a file that went away under the recorder."""
    return TraceError(
        f"{str(path)!r} was deleted while it was being written: what comes now would be lost with "
        f"it. The events so far are in memory only, in the run's own trace"
    )


def unwritable(path: Path, problem: OSError) -> TraceError:
    """The error for a file that cannot be written, with what to do."""
    todo = "Free space or make the folder writable, or choose another folder"
    if problem.errno in (errno.EMFILE, errno.ENFILE):
        todo = "Run fewer at once (concurrency=), or let more files be open (ulimit -n)"
    elif isinstance(problem, FileExistsError | NotADirectoryError):
        todo = "What should be a folder is a file: choose another folder"
    return TraceError(
        f"cannot write {str(path)!r}: {problem.strerror or problem}; all earlier lines are intact. "
        f"{todo}"
    )
