"""The file of the reply cache: sqlite3 in WAL mode, for several processes and threads.

Nothing that is wrong with the file reaches a run. A damaged file is set aside under another name
and a new one begun; a full disk, a lock that is held too long or a folder that cannot be written
is said once, and then there is no cache until it works again.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from weakref import WeakSet

from axislab.errors import ConfigError, DataError

_APPLICATION: Final = 0x41584C43
"""Marks the file as a reply cache, at bytes 68 to 71 of it."""
_LAYOUT: Final = 1
_MAGIC: Final = b"SQLite format 3\x00"
_SUFFIXES: Final = frozenset({".sqlite3", ".sqlite", ".db"})
_READ_WAIT: Final = 1.0
_WRITE_WAIT: Final = 5.0
"""Seconds to wait for another process; writers wait on a thread of their own."""

_TABLE: Final = """
CREATE TABLE IF NOT EXISTS replies (
    key TEXT PRIMARY KEY, model TEXT NOT NULL, created REAL NOT NULL,
    reply TEXT NOT NULL, checksum TEXT NOT NULL
) WITHOUT ROWID
"""
_DAMAGE: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR})
"""A plain ERROR is a table that is missing or of another shape: the statements are fixed."""

_logger = logging.getLogger("axislab")


@dataclass(frozen=True, slots=True)
class StoreSize:
    """How much is kept."""

    entries: int
    bytes: int


class ReplyStore:
    """Texts by key, in one file.

    Args:
        path: The file; it and its folder are made when the first text is kept.

    Raises:
        ConfigError: There is a file of something else.
    """

    def __init__(self, path: Path) -> None:
        _check_is_ours(path)
        self.path = path
        self.notes: list[str] = []
        """What went wrong, each thing once."""
        self._begun_anew = 0
        self._reset()
        _OPEN.add(self)

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._reader = _Line(self.path, wait=_READ_WAIT)
        self._writer = _Line(self.path, wait=_WRITE_WAIT)

    def read(self, key: str) -> str | None:
        """The text of a key, or None."""
        rows: list[Any] = []
        with self._trouble(), self._line(write=False) as db:
            if db is not None:
                found = db.execute("SELECT reply, checksum FROM replies WHERE key = ?", (key,))
                rows = found.fetchall()  # all of it, else the read goes on
        for text, checksum in rows:
            if checksum == _checksum(key, text):
                return str(text)
            self.forget(key)  # a flipped bit must not become data
        return None

    def write(self, key: str, text: str, *, model: str) -> bool:
        """Keep a text, unless the key has one; whether it is on the disk."""
        row = (key, model, time.time(), text, _checksum(key, text))
        for _ in range(2):  # again, after a damaged file was set aside
            before = self._begun_anew
            with self._trouble(), self._line(write=True) as db:
                if db is not None:
                    db.execute("INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?, ?)", row)
                    return True
            if self._begun_anew == before:
                break
        return False

    def forget(self, key: str) -> None:
        """Drop one key."""
        with self._trouble(), self._line(write=True) as db:
            if db is not None:
                db.execute("DELETE FROM replies WHERE key = ?", (key,))

    def clear(self, *, model: str | None = None, before: datetime | None = None) -> int:
        """Drop what was kept of a model, before a time, or all; how many.

        Raises:
            DataError: It did not work; whoever clears wants to know.
        """
        if not self.path.exists():
            return 0
        where = "(?1 IS NULL OR model = ?1) AND (?2 IS NULL OR created < ?2)"
        which = (model, None if before is None else before.timestamp())
        gone = 0
        try:
            with self._line(write=True) as db:
                if db is not None:
                    gone = db.execute(f"DELETE FROM replies WHERE {where}", which).rowcount
                    with suppress(sqlite3.OperationalError):  # in use: the room is used later
                        db.execute("VACUUM")
                        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except (sqlite3.Error, OSError) as problem:
            if isinstance(problem, sqlite3.Error) and _is_damage(problem):
                self._set_aside(problem)
                return 0
            raise DataError(f"the reply cache {self.path} was not cleared: {problem}") from problem
        return gone

    def size(self) -> StoreSize:
        """Entries, and bytes on the disk."""
        entries = 0
        if self.path.exists():
            with self._trouble(), self._line(write=False) as db:
                if db is not None:
                    entries = db.execute("SELECT count(*) FROM replies").fetchall()[0][0]
        files = (self.path, *_companions(self.path))
        return StoreSize(entries, sum(f.stat().st_size for f in files if f.exists()))

    def close(self) -> None:
        """Let go of the file; the next use opens it again."""
        if self._pid == os.getpid():
            self._reader.close()
            self._writer.close()

    @contextmanager
    def _line(self, *, write: bool) -> Iterator[sqlite3.Connection | None]:
        """The connection to read or to write by, for one at a time; None if nothing is kept."""
        if self._pid != os.getpid():  # connections and locks do not survive a fork
            self._reset()
        line = self._writer if write else self._reader
        with line.lock:
            yield line.open(create=write)

    @contextmanager
    def _trouble(self) -> Iterator[None]:
        """Turn what can go wrong into a note."""
        try:
            yield
        except sqlite3.Error as problem:
            if _is_damage(problem):
                self._set_aside(problem)
            else:
                self._note(f"the reply cache {self.path} does not work now ({problem}): ")
        except OSError as problem:
            self._note(f"the reply cache {self.path} cannot be written ({problem}): ")

    def _note(self, what: str) -> None:
        text = what + "runs go on without it"
        if text not in self.notes:
            self.notes.append(text)
            _logger.warning("%s", text)

    def _set_aside(self, problem: sqlite3.Error) -> None:
        """Give a damaged file another name, unless another process has done so by now."""
        known = {self._reader.inode, self._writer.inode}
        self.close()
        self._begun_anew += 1
        if _inode(self.path) not in known:
            return
        aside = self.path.with_name(f"{self.path.name}.damaged-{time.time_ns()}")
        try:
            os.replace(self.path, aside)
            for file in _companions(self.path):
                if file.exists():
                    os.replace(file, aside.with_name(aside.name + file.name[-4:]))
        except OSError as failed:
            self._note(f"the damaged reply cache {self.path} cannot be moved ({failed}): ")
            return
        text = (
            f"the reply cache {self.path} was damaged ({problem}) and is now {aside.name}; "
            "a new one is begun, so replies are asked for, and paid, again"
        )
        self.notes.append(text)
        _logger.warning("%s", text)


class _Line:
    """One connection, opened when it is needed and again when the file has become another."""

    def __init__(self, path: Path, *, wait: float) -> None:
        self.lock = threading.RLock()
        self.inode: tuple[int, int] | None = None
        self._path = path
        self._wait = wait
        self._db: sqlite3.Connection | None = None

    def open(self, *, create: bool) -> sqlite3.Connection | None:
        """The connection; None if there is no file and none is to be made."""
        here = _inode(self._path)
        if self._db is not None and here == self.inode:
            return self._db
        self.close()  # the file was removed, or set aside by another process
        if here is None:
            if not create:
                return None
            _make(self._path)
            here = _inode(self._path)
        self.inode = here
        db = sqlite3.connect(
            self._path, timeout=self._wait, isolation_level=None, check_same_thread=False
        )
        try:
            _prepare(db)
        except BaseException:
            db.close()
            raise
        self._db = db
        return db

    def close(self) -> None:
        """Close it, if it is open."""
        with self.lock:
            if self._db is not None:
                self._db.close()
            self._db = None


def _is_damage(problem: sqlite3.Error) -> bool:
    return getattr(problem, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


def _prepare(db: sqlite3.Connection) -> None:
    """Make a new file ours, and set what a connection needs."""
    if _pragma(db, "application_id") != _APPLICATION:
        db.execute("BEGIN IMMEDIATE")  # two processes may come to a new file at once
        if _pragma(db, "application_id") != _APPLICATION and _pragma(db, "schema_version"):
            raise sqlite3.NotSupportedError("the file is now one of something else")
        db.execute(f"PRAGMA application_id = {_APPLICATION}")
        db.execute(f"PRAGMA user_version = {_LAYOUT}")
        db.execute(_TABLE)
        db.execute("COMMIT")
    if _pragma(db, "user_version") > _LAYOUT:
        raise sqlite3.NotSupportedError("a newer version of axislab made it")
    if _pragma(db, "journal_mode") != "wal":
        with suppress(sqlite3.OperationalError):  # not while another has it open; or no such disk
            db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")


def _pragma(db: sqlite3.Connection, name: str) -> Any:
    return db.execute(f"PRAGMA {name}").fetchall()[0][0]


def _make(path: Path) -> None:
    """An empty file that only its owner reads: replies may be private."""
    path.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


def _check_is_ours(path: Path) -> None:
    """Refuse a file that holds something else; a damaged cache is not refused."""
    if not path.is_file():
        return
    try:
        with path.open("rb") as file:
            head = file.read(72)
    except OSError:
        return  # said later, when it is used
    mark = int.from_bytes(head[68:72], "big")
    ours = head.startswith(_MAGIC) and mark == _APPLICATION
    damaged = not head.startswith(_MAGIC) and path.suffix in _SUFFIXES
    if head and not ours and not damaged:
        raise ConfigError(
            f"cache={str(path)!r} is a file of something else: give the path of a reply cache, "
            "of a file that is not there yet, or of a folder"
        )


def _companions(path: Path) -> list[Path]:
    """The files sqlite keeps beside it."""
    return [path.with_name(path.name + end) for end in ("-wal", "-shm")]


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _close_all() -> None:
    for store in list(_OPEN):
        store.close()


_OPEN: Final[WeakSet[ReplyStore]] = WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_close_all)  # a child must not inherit an open database


def _checksum(key: str, text: str) -> str:
    return hashlib.sha256(f"{key}{text}".encode()).hexdigest()[:16]
