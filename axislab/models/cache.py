"""The reply cache: a request that was answered once is not sent, and not paid, again.

What is kept: good and complete replies only. An error never is. A reply without a finish reason,
or with one that says something broke in (a filter, an abort), never is, because it may be cut;
a reply cut at the token limit is, if the provider reported "length", because the limit is part of
the request. An empty reply that claims to be complete is not, nor one in which a key stands.

What a hit says: `cached` is true, `cost_usd` is 0 because nothing was spent, `saved_usd` and
`saved_seconds` are what the original took, and usage, request id and finish reason are the
original's, so that a run decides as it did before. Totals of tokens leave hits out.

The file holds digests of requests and whole replies, nothing of the prompts and no keys. One
equal request at a time is sent in a process; of two processes both may send it.
"""

from __future__ import annotations

import os
import threading
import weakref
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Self

from axislab.errors import ConfigError
from axislab.models.base import ModelReply
from axislab.models.flights import Flights
from axislab.models.reply_json import reply_from_json, reply_to_json
from axislab.models.reply_store import ReplyStore

FILE: Final = "replies.sqlite3"
"""Name of the file, where a folder is given."""

WHOLE: Final = frozenset(
    {
        "stop", "end_turn", "stop_sequence", "complete", "completed", "eos", "eos_token",
        "tool_calls", "tool_use", "function_call",
    }
)  # fmt: skip
"""Finish reasons, in lower case, of a reply that says all it wanted to say."""

CUT: Final = frozenset({"length", "max_tokens"})
"""Finish reasons of a reply that came to the limit of the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheInfo:
    """What a reply cache holds, and how it was used by this process."""

    path: Path
    entries: int
    bytes: int
    hits: int
    misses: int
    saved_usd: float
    """What the hits had cost, as far as it was known."""
    notes: tuple[str, ...] = ()
    """What went wrong with the file."""


class ReplyCache:
    """Replies by the key of their request, in one file; processes and threads may share it.

    A file that cannot be read or written never breaks a run: a damaged one is set aside, and
    what went wrong is logged once and stands in `info().notes`.

    Args:
        path: The file, or a folder for it; made when the first reply is kept.

    Raises:
        ConfigError: There is a file of something else.

    Examples:
        >>> cache = ReplyCache("replies.sqlite3")
        >>> cache.info().entries
        0
    """

    def __init__(self, path: str | Path) -> None:
        self.path = _file(path)
        self.flights = Flights()
        self._store = ReplyStore(self.path)
        self._tally = _Tally()
        weakref.finalize(self, self._store.close)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path,)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def get(self, key: str) -> ModelReply | None:
        """The reply of a key as a hit shows it, or None; either is counted."""
        text = self._store.read(key)
        try:
            reply = None if text is None else reply_from_json(text)
        except ValueError:
            self._store.forget(key)
            reply = None
        if reply is None:
            self._tally.missed()
            return None
        return self.hit(key, reply)

    def holds(self, key: str) -> bool:
        """Whether `get` would find a reply; counted as neither hit nor miss."""
        return self._store.read(key) is not None

    def hit(self, key: str, original: ModelReply) -> ModelReply:
        """A reply that was got before, as a hit shows it; it is counted as one."""
        self._tally.hit(original.cost_usd)
        return replace(
            original,
            cached=True,
            cache_key=key,
            cost_usd=0.0,
            cost_missing=None,
            latency=0.0,
            saved_usd=original.cost_usd,
            saved_seconds=original.latency,
        )

    def put(self, key: str, reply: ModelReply, *, model: str) -> bool:
        """Keep a reply, unless there is one or it is not whole; whether it is kept.

        Args:
            key: Of its request.
            reply: The original.
            model: Name of the model, for `clear`.
        """
        if why_not_kept(reply) is not None:
            return False
        try:
            text = reply_to_json(reply)
        except (TypeError, RecursionError):
            return False  # a user's own model may put anything into a reply
        return self._store.write(key, text, model=model)

    def info(self) -> CacheInfo:
        """What it holds; hits and misses are those of this process."""
        size = self._store.size()
        return CacheInfo(
            path=self.path,
            entries=size.entries,
            bytes=size.bytes,
            hits=self._tally.hits,
            misses=self._tally.misses,
            saved_usd=self._tally.saved_usd,
            notes=tuple(self._store.notes),
        )

    def clear(
        self, model: str | None = None, older_than: timedelta | datetime | None = None
    ) -> int:
        """Drop replies: all, those of a model, those older than an age or a moment; how many.

        Args:
            model: Its name, as the Lab was given it.
            older_than: For example timedelta(days=30), or a datetime with a time zone.

        Raises:
            ConfigError: `older_than` is neither.
            DataError: The file could not be changed.
        """
        return self._store.clear(model=model, before=_moment(older_than))

    def close(self) -> None:
        """Let go of the file; the next use opens it again."""
        self._store.close()


class _Tally:
    """Hits and misses, counted by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.hits = 0
        self.misses = 0
        self.saved_usd = 0.0

    def hit(self, usd: float | None) -> None:
        with self._lock:
            self.hits += 1
            self.saved_usd += usd or 0.0

    def missed(self) -> None:
        with self._lock:
            self.misses += 1


def why_not_kept(reply: ModelReply) -> str | None:
    """Why a reply is not one to keep; None if it is."""
    if reply.finish_reason is None:
        return "no finish reason was reported: it may be cut"
    reason = reply.finish_reason.lower()
    if reason in CUT:
        return None
    if reply.possibly_truncated:
        return "it may be cut, though it does not say so"
    if reason not in WHOLE:
        return f"it ended with {reply.finish_reason!r}"
    if not ((reply.text or "").strip() or reply.tool_calls):
        return "it is empty"
    return None


def open_cache(spec: ReplyCache | str | Path | bool | None) -> ReplyCache | None:
    """The cache that `Lab(cache=…)` means; one for each file in a process.

    Args:
        spec: None or False for none; True for the user's own; a path; a cache.

    Raises:
        ConfigError: None of these.
    """
    if spec is None or spec is False:
        return None
    if isinstance(spec, ReplyCache):
        return spec
    if spec is not True and not isinstance(spec, str | Path):
        raise ConfigError(f"cache={spec!r}: None, True, a path or a ReplyCache is wanted")
    path = _file(default_path() if spec is True else spec)
    with _LOCK:
        if (known := _CACHES.get(path)) is None:
            known = _CACHES[path] = ReplyCache(path)
    return known


def default_path() -> Path:
    """The user's own file: $AXISLAB_REPLIES, else in the user's cache folder.

    Not beside the traces: those are copied and published, and replies would go with them.
    """
    if chosen := os.environ.get("AXISLAB_REPLIES"):
        return Path(chosen)
    import platformdirs

    return platformdirs.user_cache_path("axislab") / FILE


_LOCK: Final = threading.Lock()
_CACHES: Final[weakref.WeakValueDictionary[Path, ReplyCache]] = weakref.WeakValueDictionary()


def _file(path: str | Path) -> Path:
    if not isinstance(path, str | Path) or not str(path).strip():
        raise ConfigError(f"cache={path!r}: the path of a file or folder is wanted")
    whole = Path(path).expanduser()
    return whole / FILE if whole.is_dir() else whole


def _moment(older_than: timedelta | datetime | None) -> datetime | None:
    if older_than is None:
        return None
    if isinstance(older_than, timedelta):
        return datetime.now(UTC) - older_than
    if isinstance(older_than, datetime) and older_than.tzinfo is not None:
        return older_than
    raise ConfigError(
        f"older_than={older_than!r}: a timedelta, or a datetime with a time zone, is wanted"
    )
