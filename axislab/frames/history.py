"""Which message of a run was hidden, by which marker: the full list replayed with bookkeeping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from axislab.events import MessageAppended, StepTaken
from axislab.messages import Message, Role
from axislab.runtime.markers import Marker, Rollback, parse_marker
from axislab.runtime.transcript import Transcript
from axislab.trace.run import Run
from axislab.trace.trace import Record, Trace

PREVIEW = 240
"""Characters of a preview."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One message of the full list."""

    record: Record
    index: int
    step: int | None
    message: Message
    visible: bool
    """At the end of the run."""
    hidden_by: str | None = None
    """Reason of the marker that hid it."""
    hidden_at: int | None = None
    """Index of that marker."""
    hidden_at_step: int | None = None


@dataclass(frozen=True, slots=True)
class Hiding:
    """One marker, and what it did."""

    record: Record
    index: int
    step: int | None
    kind: str
    """rollback, compaction, discard_all; malformed, if it is none of them and has no effect."""
    reason: str | None
    hidden: tuple[Message, ...]
    """Messages it took out of the visible list; none if it is malformed or out of range."""
    at: Mapping[str, Any] = field(default_factory=dict)
    """The payload of the step that appended it."""


@dataclass(frozen=True, slots=True)
class History:
    """All messages of a run and all its markers."""

    entries: tuple[Entry, ...]
    hidings: tuple[Hiding, ...]

    def hidden_before(self, counts: Sequence[int | None]) -> list[int | None]:
        """How many messages were hidden when the full list had each of these lengths."""
        so_far = [0] * (len(self.entries) + 1)
        for entry in self.entries:
            if entry.hidden_at is not None:
                so_far[entry.hidden_at + 1] += 1
        for i in range(1, len(so_far)):
            so_far[i] += so_far[i - 1]
        return [None if n is None else so_far[min(n, len(so_far) - 1)] for n in counts]


def history_of(run: Run) -> History:
    """Replay a run's messages and note what each marker hides."""
    return _History(run.trace).read()


class _History:
    """The replay under way."""

    def __init__(self, trace: Trace) -> None:
        messages = trace.full
        self.records = list(trace.of(MessageAppended.kind))[: len(messages)]
        self.messages = messages
        self.steps = {r.data.get("step"): r.data for r in list(trace.of(StepTaken.kind))}
        self.entries: list[Entry] = []
        self.hidings: list[Hiding] = []
        self.place: dict[int, int] = {}
        """Identity of a message object to its index; equal messages are different objects."""

    def read(self) -> History:
        transcript = Transcript()
        for index, message in enumerate(self.messages):
            record, before = self.records[index], transcript
            transcript = before.append_raw(message)
            shown = message.role is not Role.RUNTIME
            step = record.data.get("step")
            self.entries.append(Entry(record, index, step, message, visible=shown))
            if shown:
                self.place[id(message)] = index
            else:
                self._mark(self.entries[-1], before, transcript)
        return History(tuple(self.entries), tuple(self.hidings))

    def _mark(self, entry: Entry, before: Transcript, after: Transcript) -> None:
        left = {id(m) for m in after.visible}
        hidden = tuple(m for m in before.visible if id(m) not in left)
        marker = parse_marker(entry.message)
        reason = reason_of(marker)
        at = self.steps.get(entry.step, {})
        kind = "malformed" if marker is None else marker.name
        self.hidings.append(Hiding(entry.record, entry.index, entry.step, kind, reason, hidden, at))
        for message in hidden:
            index = self.place.get(id(message))
            if index is not None:  # a summary put in by a compaction is in no full list
                self.entries[index] = replace(
                    self.entries[index],
                    visible=False,
                    hidden_by=reason or kind,
                    hidden_at=entry.index,
                    hidden_at_step=entry.step,
                )


def reason_of(marker: Marker | None) -> str | None:
    """The reason a rollback gives; other markers have none."""
    return marker.reason or None if isinstance(marker, Rollback) else None


def preview(messages: Sequence[Message]) -> str | None:
    """The start of what the assistant said in these messages, on one line."""
    said = next((m for m in messages if m.role is Role.ASSISTANT), None)
    if said is None:
        return None
    parts = [said.text, *(f"{call.name}({call.arguments})" for call in said.tool_calls)]
    text = " ".join(" ".join(parts).split())
    return text if len(text) <= PREVIEW else f"{text[: PREVIEW - 1]}…"


def tool_names(messages: Sequence[Message]) -> str | None:
    """The tools called or answering in these messages, each once, in their order."""
    names: dict[str, None] = {}
    for message in messages:
        names |= {call.name: None for call in message.tool_calls}
        if message.role is Role.TOOL and message.name:
            names[message.name] = None
    return ", ".join(names) or None
