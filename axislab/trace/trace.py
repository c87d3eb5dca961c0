"""A trace as a value: the events of one run in order, indexed as they come."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Any, TypeAlias

from axislab.errors import TraceCorrupt, TraceError
from axislab.events import MessageAppended, RunFinished, RunStarted, StepTaken
from axislab.messages import Message
from axislab.runtime.transcript import Transcript
from axislab.trace.shape import CORE_KINDS


@dataclass(frozen=True, slots=True)
class Record:
    """One line of a trace."""

    seq: int
    """Place in the trace, from 0."""
    time: str
    """UTC, ISO 8601."""
    kind: str
    data: Mapping[str, Any]
    """The payload of the event, without seq, time and kind."""


@dataclass(frozen=True, slots=True)
class Body:
    """What a lazily opened trace holds once it is read."""

    records: list[Record]
    notes: tuple[str, ...] = ()


Loader: TypeAlias = Callable[[], Body]


class Trace:
    """The events of one run, in order; it may grow while the run is live.

    Args:
        records: The lines, header first.
        path: The file they were read from.
        notes: What the reader skipped or wondered about.

    Examples:
        >>> trace = read_trace("traces/demo/osk.jsonl")
        >>> [step.data["operation"] for step in trace.of("step")]
        ['initialize', 'assistant', 'tools', 'assistant']
    """

    def __init__(
        self,
        records: Iterable[Record] = (),
        *,
        path: str | Path | None = None,
        notes: Iterable[str] = (),
    ) -> None:
        self.path = Path(path) if path is not None else None
        self._lock = RLock()  # a live run appends from its own thread while a cell reads
        self._notes = tuple(notes)
        self._load: Loader | None = None
        self._ends: tuple[Record, Record] | None = None
        self._records: list[Record] = []
        self._of: dict[str, list[Record]] = {}
        self._messages: list[Message] = []
        self._message_steps: list[int] = []
        self._transcripts: list[Transcript] = [Transcript()]
        self._fill(records)

    @classmethod
    def lazy(cls, first: Record, last: Record, load: Loader, *, path: Path) -> Trace:
        """A trace of which only the first and last line were read; the rest follows on demand."""
        trace = cls(path=path)
        trace._ends = (first, last)
        trace._load = load
        return trace

    def append(self, record: Record) -> None:
        """Take one more line, written by a recorder a moment ago."""
        self._read()
        self._fill((record,))
        self._ends = None

    def _fill(self, records: Iterable[Record]) -> None:
        for record in records:
            self._records.append(record)
            self._of.setdefault(record.kind, []).append(record)

    def _read(self) -> None:
        if self._load is None:
            return
        with self._lock:
            if self._load is not None:
                body = self._load()
                self._notes += body.notes
                self._fill(body.records)
                self._load = None

    @property
    def records(self) -> Sequence[Record]:
        """All lines; the same list grows while the run is live."""
        self._read()
        return self._records

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader skipped, and why, with line numbers."""
        self._read()
        return self._notes

    @property
    def header(self) -> Mapping[str, Any]:
        """The payload of run.started; empty for a trace that has none yet."""
        first = self.first
        return first.data if first is not None and first.kind == RunStarted.kind else {}

    @property
    def first(self) -> Record | None:
        """The first line."""
        if ends := self._ends:
            return ends[0]
        return self._records[0] if self._records else None

    @property
    def last(self) -> Record | None:
        """The newest line."""
        if ends := self._ends:
            return ends[1]
        return self._records[-1] if self._records else None

    @property
    def finished(self) -> Record | None:
        """The run.finished line, if the run has ended and was not taken up again."""
        last = self.last
        if last is None or last.kind == RunFinished.kind:
            return last
        if last.kind in CORE_KINDS:
            return None
        core = (r for r in reversed(self.records) if r.kind in CORE_KINDS)
        last = next(core, None)
        return last if last is not None and last.kind == RunFinished.kind else None

    def of(self, kind: str) -> Sequence[Record]:
        """The lines of one kind, at once however long the trace is; do not change the list."""
        self._read()
        return self._of.get(kind, ())

    @property
    def full(self) -> tuple[Message, ...]:
        """Every message ever appended, markers included.

        Raises:
            TraceCorrupt: A line holds something that is no message.
        """
        self._read_messages()
        return tuple(self._messages)

    def messages_at(self, step: int) -> tuple[Message, ...]:
        """The messages that one step appended, markers included.

        Raises:
            TraceError: There is no such step.
        """
        start, end = self._end_of(step - 1) if step else 0, self._end_of(step)
        return tuple(self._messages[start:end])

    def visible(self, step: int | None = None) -> tuple[Message, ...]:
        """What the model sees: the full list replayed through its markers.

        Args:
            step: After which step; None for the newest line.

        Raises:
            TraceError: There is no such step.
        """
        return tuple(self.transcript(step).visible)

    def transcript(self, step: int | None = None) -> Transcript:
        """Both lists as one value, after a step; None for the newest line.

        Raises:
            TraceError: There is no such step.
        """
        end = self._end_of(step)
        return self.transcripts[end]

    @property
    def transcripts(self) -> Sequence[Transcript]:
        """Both lists before the first message, after it, after the second, and so on."""
        self._read_messages()
        with self._lock:
            for message in self._messages[len(self._transcripts) - 1 :]:
                self._transcripts.append(self._transcripts[-1].append_raw(message))
        return self._transcripts

    def _end_of(self, step: int | None) -> int:
        """How many messages there were after a step."""
        self._read_messages()
        if step is None:
            return len(self._messages)
        known = self._message_steps[-1] + 1 if self._message_steps else 0
        count = max(known, len(self.of(StepTaken.kind)))
        if not 0 <= step < count:
            have = f"0 to {count - 1}" if count else "none yet"
            raise TraceError(f"no step {step!r} in {self.name}; steps: {have}")
        return bisect_right(self._message_steps, step)

    def _read_messages(self) -> None:
        records = self.of(MessageAppended.kind)
        if len(records) == len(self._messages):
            return
        with self._lock:
            newest = self._message_steps[-1] if self._message_steps else 0
            for record in records[len(self._messages) :]:
                message = self._message(record)
                newest = max(newest, record.data["step"])
                self._message_steps.append(newest)
                self._messages.append(message)

    def _message(self, record: Record) -> Message:
        try:
            return Message.from_dict(record.data["message"])
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            raise TraceCorrupt(f"{self.name}, seq {record.seq}: {problem}") from problem

    @property
    def name(self) -> str:
        """The run id, else the file name."""
        run_id = self.header.get("run_id")
        return str(run_id or (self.path.name if self.path else "a trace without a header"))

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (list(self.records), self.path, self.notes)

    def __repr__(self) -> str:
        state = "not read yet" if self._load else f"{len(self._records)} lines"
        return f"Trace({self.name!r}, {state})"


def _rebuilt(records: list[Record], path: Path | None, notes: tuple[str, ...]) -> Trace:
    return Trace(records, path=path, notes=notes)
