"""Where a study is kept: a folder with a manifest and one trace a run, or memory."""

from __future__ import annotations

import os
import secrets
import socket
import threading
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from axislab.errors import DataError, TraceError, TraceLocked
from axislab.models.prefix import FILE as PREFIX_FILE
from axislab.models.prefix import Tape
from axislab.study.manifest import Manifest
from axislab.trace.files import unwritable
from axislab.trace.lock import LocksUnsupported, try_lock, unlock
from axislab.trace.reader import open_trace
from axislab.trace.run import Run

MANIFEST = "study.json"
LOCK = "study.lock"


class Shelf(Protocol):
    """Keeps one study."""

    @property
    def label(self) -> str:
        """The study's own name."""

    @property
    def folder(self) -> Path | None:
        """Where traces go; None keeps them in memory."""

    def read(self) -> Manifest | None:
        """The manifest, if there is one."""

    def save(self, manifest: Manifest) -> None:
        """Put a manifest in the place of the one there is."""

    def run_ids(self) -> set[str]:
        """Ids of all runs, broken-off ones included."""

    def run(self, run_id: str) -> Run | None:
        """A run; None if its process was killed before it wrote its first line."""

    def keep(self, run: Run) -> None:
        """Take in a run that is over."""

    @property
    def tape(self) -> Tape:
        """Where main loops that arms share are kept."""

    def lock(self) -> AbstractContextManager[None]:
        """A context in which nobody else runs the study."""


class FolderShelf:
    """A study in a folder of its own.

    Args:
        folder: `study.json`, `study.lock` and a trace for each run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tape = Tape(folder / PREFIX_FILE)

    @property
    def label(self) -> str:
        """The name of the folder."""
        return self.folder.name

    def read(self) -> Manifest | None:
        """The manifest, if there is one.

        Raises:
            DataError: It cannot be read.
        """
        path = self.folder / MANIFEST
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise DataError(f"cannot read {str(path)!r}: {problem.strerror or problem}") from None
        try:
            return Manifest.from_json(text)
        except DataError as problem:
            raise DataError(f"{str(path)!r}: {problem}") from problem

    def save(self, manifest: Manifest) -> None:
        """Put a manifest in the place of the one there is: whoever reads sees one of the two.

        Raises:
            TraceError: The folder cannot be written.
        """
        path = self.folder / MANIFEST
        draft = path.with_name(f"{MANIFEST}.{secrets.token_hex(4)}.tmp")
        try:
            with draft.open("w", encoding="utf-8") as file:
                file.write(manifest.to_json())
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, path)
        except OSError as problem:
            draft.unlink(missing_ok=True)
            raise unwritable(path, problem) from problem

    def run_ids(self) -> set[str]:
        """Ids of all runs, broken-off ones included."""
        return {path.stem for path in self.folder.glob("*.jsonl")}

    def run(self, run_id: str) -> Run | None:
        """A run, of which only the first and last line are read as yet."""
        try:
            return Run(open_trace(self.folder / f"{run_id}.jsonl"))
        except TraceError:  # killed before its first line was whole: there is nothing of it
            return None

    def keep(self, run: Run) -> None:
        """Nothing to do: its trace is here."""

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep others from running the study; the lock ends with the process, however it ends.

        Raises:
            TraceLocked: Somebody else does; the message says who.
        """
        path = self.folder / LOCK
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            fd = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
        except OSError as problem:
            raise unwritable(path, problem) from problem
        try:
            self._take(fd)
            yield
            unlock(fd)
        finally:
            os.close(fd)

    def _take(self, fd: int) -> None:
        try:
            locked = try_lock(fd)
        except LocksUnsupported:
            warnings.warn(
                f"{str(self.folder)!r}: no file locks here; make sure that only one process runs "
                "this study",
                UserWarning,
                stacklevel=4,
            )
            return
        if not locked:
            os.lseek(fd, 0, os.SEEK_SET)
            raise _taken(str(self.folder), os.read(fd, 300).decode("utf-8", "replace").strip())
        os.ftruncate(fd, 0)
        os.lseek(fd, 0, os.SEEK_SET)
        os.write(fd, _who().encode("utf-8"))


class MemoryShelf:
    """A study that ends with the process.

    Args:
        label: The study's own name.
    """

    folder = None

    def __init__(self, label: str) -> None:
        self.label = label
        self.tape = Tape()
        self._manifest: Manifest | None = None
        self._runs: dict[str, Run] = {}
        self._lock = threading.Lock()
        self._owner = ""

    def read(self) -> Manifest | None:
        """The manifest, if there is one."""
        return self._manifest

    def save(self, manifest: Manifest) -> None:
        """Put a manifest in the place of the one there is."""
        self._manifest = manifest

    def run_ids(self) -> set[str]:
        """Ids of all runs."""
        return set(self._runs)

    def run(self, run_id: str) -> Run | None:
        """A run that was kept."""
        return self._runs.get(run_id)

    def keep(self, run: Run) -> None:
        """Take in a run that is over."""
        self._runs[run.id] = run

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep others from running the study.

        Raises:
            TraceLocked: Somebody else does.
        """
        if not self._lock.acquire(blocking=False):
            raise _taken("memory", self._owner)
        self._owner = _who()
        try:
            yield
        finally:
            self._lock.release()


def labels(name: str) -> Iterator[str]:
    """What studies of a name are called: the name, then with -2, -3 and so on."""
    yield name
    number = 2
    while True:
        yield f"{name}-{number}"
        number += 1


def _taken(where: str, who: str) -> TraceLocked:
    return TraceLocked(
        f"the study in {where!r} is being run by {who or 'another process'}: wait until it is done "
        "or stop it there; al.load_study(folder) shows what it has so far"
    )


def _who() -> str:
    now = datetime.now(UTC)
    return f"process {os.getpid()} on {socket.gethostname()} since {now:%Y-%m-%d %H:%M:%S} UTC"
