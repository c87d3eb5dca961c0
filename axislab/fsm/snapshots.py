"""Snapshots: every state a machine was in, as an append-only log of differences.

A line holds what a transition changed; now and then one holds the whole state. Any state is
restored from the nearest whole one before it and the differences since.
"""

from __future__ import annotations

import base64
import json
import re
import time as time_module
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic

from axislab.errors import TraceError
from axislab.fsm.delta import diff, patch
from axislab.fsm.exact import ExactJson, Tree
from axislab.fsm.log import LogEntry, Outcome
from axislab.fsm.table import C, S

Sink = Callable[[bytes], None]
"""Takes one whole line, newline included, and keeps it before it returns."""

KIND = "event"
MOST_OVER_STATE = 1.5
"""A whole state that nothing forces is only written while all snapshots stay within this many
times the size of the state."""
LONGEST_WAY = 4
"""Differences of this many times the size of the state force a whole one."""
_PACKED_FROM = 1000
_STATE = re.compile(rb',"(?:delta|full|packed)":')
"""Where the state begins in a line; inside a JSON text its quotes would be escaped."""


@dataclass(frozen=True, slots=True)
class Transition:
    """One line of the log: an event, where it led, and whether the whole state stands there."""

    seq: int
    time: str
    event: str
    source: str
    target: str
    """States as "outer/inner"; after a refused event the same as `source`."""
    outcome: str
    note: str
    full: bool
    size: int
    """Bytes of the line."""
    state_size: int
    """Bytes of it that hold the state, or what changed in it."""


@dataclass(frozen=True, slots=True)
class Moment(Generic[C]):
    """A machine as it was after one line of the log."""

    seq: int
    event: str
    path: tuple[str, ...]
    """Names of the states, outermost first."""
    context: C


class Snapshots(Generic[C]):
    """The history of one machine; give `journal` to a StateMachine and it writes itself.

    Args:
        every: A whole state is due after so many lines.
        key_states: Names of states; on entering one a whole state is due, too.
        types: Enums and dataclasses that lines written elsewhere may hold.
        sink: Where lines go as well, such as a file; they are always kept in memory.
        lines: Lines of an earlier life, to go on from.
        clock: Seconds since 1970.

    Raises:
        TraceError: The lines are out of order, or not of this kind.

    Examples:
        >>> history = Snapshots(every=10)
        >>> history.start({"done": []}, path=["IDLE"])
        >>> history.recover().context
        {'done': []}
    """

    def __init__(
        self,
        *,
        every: int = 50,
        key_states: Collection[str] = (),
        types: Iterable[type] = (),
        sink: Sink | None = None,
        lines: Sequence[bytes] = (),
        clock: Callable[[], float] = time_module.time,
    ) -> None:
        if every < 1:
            raise TraceError(f"every={every!r}: a whole state is due after 1 line or more")
        self.every = every
        self.key_states = frozenset(key_states)
        self._exact = ExactJson(types)
        self._sink = sink
        self._clock = clock
        self._lines: list[bytes] = []
        self._index: list[Transition] = []
        self._tree: Tree = None
        self._bytes = 0
        self._log_bytes = 0
        self._state_size = 0
        self._since_full = 0
        self._tried_at = 0
        self._take_up(lines)

    # Writing -------------------------------------------------------------------------------------

    def start(self, context: C, *, path: Sequence[str]) -> None:
        """Write the first line: where a machine begins.

        Raises:
            TraceError: There is one, or the context holds what JSON cannot carry exactly.
        """
        if self._lines:
            raise TraceError(f"this history has begun: it has {len(self._lines)} lines")
        place = "/".join(path)
        self._append({"event": "", "to": place}, context, force=True)

    def journal(self, entry: LogEntry[S], context: C) -> None:
        """Write what an event did; a StateMachine calls this before anything changes in it.

        Raises:
            TraceError: The context holds what JSON cannot carry exactly, or writing failed.
        """
        if not self._lines:
            raise TraceError("this history has not begun: call start(context, path=…) first")
        before, after = (
            "/".join(state.name for state in path) for path in (entry.before, entry.after)
        )
        row: dict[str, Tree] = {"event": str(entry.event), "to": after}
        if before != self._index[-1].target:
            raise TraceError(f"{entry.event!r} left {before}, but this history is elsewhere")
        if entry.outcome is not Outcome.FIRED:
            row["outcome"] = str(entry.outcome)
        if entry.note:
            row["note"] = entry.note
        entered = before != after and bool(self.key_states & set(after.split("/")))
        self._append(row, context, due=entered)

    def _append(
        self, row: dict[str, Tree], context: C, *, due: bool = False, force: bool = False
    ) -> None:
        tree = self._exact.encode(context)
        head = {"seq": len(self._lines), "time": self._now(), "kind": KIND, **row}
        delta = None if force else diff(self._tree, tree)
        line = _line(head if delta is None else {**head, "delta": delta})
        due = due or len(self._lines) - self._tried_at >= self.every
        overdue = self._since_full > LONGEST_WAY * max(self._state_size, _PACKED_FROM)
        if force or (delta is not None and (due or overdue)):
            line = self._with_full(head, tree, line, force=force)
            self._tried_at = len(self._lines)
        if self._sink is not None:
            self._sink(line)
        self._accept(line, tree)

    def _with_full(self, head: dict[str, Tree], tree: Tree, line: bytes, *, force: bool) -> bytes:
        """The line with the whole state, if that is worth its size; else the line."""
        text = _text(tree)
        size = self._state_size = len(text.encode())
        packed = {"full": tree} if size < _PACKED_FROM else {"packed": _packed(text)}
        whole = _line({**head, **packed})
        affordable = self._bytes + len(whole) <= MOST_OVER_STATE * size
        overdue = self._since_full > LONGEST_WAY * size
        return whole if force or overdue or affordable else line

    def _accept(self, line: bytes, tree: Tree) -> None:
        found = self._transition(line)
        self._tree = tree
        self._count(line, found)

    def _count(self, line: bytes, found: Transition) -> None:
        self._lines.append(line)
        self._index.append(found)
        self._bytes += found.state_size
        self._log_bytes += len(line) - found.state_size
        self._since_full = 0 if found.full else self._since_full + found.state_size
        self._tried_at = found.seq if found.full else self._tried_at

    def _now(self) -> str:
        moment = datetime.fromtimestamp(self._clock(), UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    # Reading -------------------------------------------------------------------------------------

    def recover(self, at: int | None = None) -> Moment[C]:
        """The machine as it was after a line; a value of its own, so it may be changed.

        Args:
            at: Number of the line; the newest by default, and -1 is that, too.

        Raises:
            TraceError: There is no such line, or a class in it is not known here.
        """
        seq = self._number(at)
        found = self._index[seq]
        path = tuple(found.target.split("/"))
        return Moment(seq, found.event, path, self._exact.decode(self._tree_at(seq)))

    def changes(self, at: int) -> Tree:
        """What a line changed, as it stands in the log; None if nothing."""
        return json.loads(self._lines[self._number(at)]).get("delta")

    @property
    def transitions(self) -> tuple[Transition, ...]:
        """The log; `pandas.DataFrame(history.transitions)` is a frame of it."""
        return tuple(self._index)

    @property
    def size(self) -> int:
        """Bytes of all snapshots: what the lines hold of states, whole ones and differences."""
        return self._bytes

    @property
    def log_size(self) -> int:
        """Bytes of the rest of the lines: what happened when."""
        return self._log_bytes

    @property
    def state_size(self) -> int:
        """Bytes of the newest state as JSON."""
        return len(_text(self._tree).encode())

    def __len__(self) -> int:
        return len(self._lines)

    def __iter__(self) -> Iterator[Moment[C]]:
        return (self.recover(seq) for seq in range(len(self)))

    def __repr__(self) -> str:
        full = sum(t.full for t in self._index)
        return f"<Snapshots {len(self)} lines, {full} of them whole, {self.size:,} bytes>"

    def _number(self, at: int | None) -> int:
        seq = -1 if at is None else at
        seq += len(self) if seq < 0 else 0
        if not 0 <= seq < len(self):
            raise TraceError(f"at={at!r}: this history has the lines 0 to {len(self) - 1}")
        return seq

    def _tree_at(self, seq: int) -> Tree:
        first = next(t.seq for t in reversed(self._index[: seq + 1]) if t.full)
        tree = _whole(json.loads(self._lines[first]))
        for line in self._lines[first + 1 : seq + 1]:
            if b'"delta":' in line:
                tree = patch(tree, json.loads(line).get("delta"))
        return tree

    def _take_up(self, lines: Sequence[bytes]) -> None:
        for number, line in enumerate(lines):
            found = self._transition(line)
            if found.seq != number or (number == 0 and not found.full):
                raise TraceError(f"line {number + 1} has seq {found.seq}: lines are missing")
            self._count(line, found)
        if lines:
            self._tree = self._tree_at(len(self) - 1)

    def _transition(self, line: bytes) -> Transition:
        try:
            row = json.loads(line)
            if row["kind"] != KIND:
                raise TraceError(f"a line of kind {row['kind']!r} is none of a history")
            return Transition(
                seq=row["seq"],
                time=row["time"],
                event=row["event"],
                source=self._index[-1].target if self._index else row["to"],
                target=row["to"],
                outcome=row.get("outcome", str(Outcome.FIRED)),
                note=row.get("note", ""),
                full="full" in row or "packed" in row,
                size=len(line),
                state_size=len(line) - found.start() if (found := _STATE.search(line)) else 0,
            )
        except (ValueError, TypeError, KeyError) as problem:
            raise TraceError(f"{line[:80]!r} is no line of a history: {problem!r}") from problem


def _text(tree: Tree) -> str:
    return json.dumps(tree, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _line(row: dict[str, Tree]) -> bytes:
    return _text(row).encode("utf-8", "replace") + b"\n"


def _packed(text: str) -> str:
    return base64.b85encode(zlib.compress(text.encode(), 9)).decode("ascii")


def _whole(row: dict[str, Tree]) -> Tree:
    if "packed" not in row:
        return row["full"]
    try:
        return json.loads(zlib.decompress(base64.b85decode(row["packed"])))
    except (ValueError, zlib.error) as problem:
        raise TraceError(f"line {row['seq'] + 1}: its state cannot be read: {problem}") from problem
