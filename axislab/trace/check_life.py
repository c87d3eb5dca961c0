"""Checks of a trace's frame: numbers, times, header, status, phase and end."""

from __future__ import annotations

from datetime import UTC, datetime

from axislab.events import (
    SCHEMA_VERSION,
    PhaseChanged,
    RunFinished,
    RunStarted,
    StatusChanged,
)
from axislab.fsm.status_tables import PHASE_TABLE, RUN_TABLE, RunStatus, StepPhase
from axislab.trace.findings import Findings
from axislab.trace.shape import CORE_KINDS
from axislab.trace.trace import Record

_STATUS_MOVES = frozenset(
    (str(rule.source), rule.event, str(rule.target))
    for status in RunStatus
    for rule in RUN_TABLE.leaving(status)
)
_PHASE_MOVES = frozenset(
    (str(rule.source), str(rule.target))
    for phase in StepPhase
    for rule in PHASE_TABLE.leaving(phase)
)
_ALIVE = (RunStatus.READY, RunStatus.RUNNING, RunStatus.WAITING_APPROVAL)
_STOPPED = RunStatus.INTERRUPTED


class FrameCheck:
    """Numbers without gaps, times that go on, one header at the top, one end at the bottom."""

    def __init__(self, findings: Findings) -> None:
        self._found = findings
        self._next = 0
        self._time: datetime | None = None
        self._strange: set[str] = set()
        self._ended_as: str | None = None
        self._last_line = 0

    def see(self, line: int, record: Record) -> None:
        """Take the next line."""
        if record.seq != self._next:
            code = "seq_gap" if record.seq > self._next else "seq_repeat"
            self._found.problem(line, code, f"seq {record.seq}, expected {self._next}")
        self._check_header(line, record)
        self._check_time(line, record)
        self._check_end(line, record)
        self._next = record.seq + 1
        self._last_line = line

    def _check_header(self, line: int, record: Record) -> None:
        first = self._last_line == 0
        if first and record.kind != RunStarted.kind:
            self._found.problem(line, "no_header", f"starts with {record.kind!r}, not run.started")
        elif not first and record.kind == RunStarted.kind:
            self._found.problem(line, "second_header", "a second run.started")
        elif first and record.data["schema"] > SCHEMA_VERSION:
            newer = f"schema {record.data['schema']} is newer than ours, {SCHEMA_VERSION}"
            self._found.note(line, "newer_schema", newer)
        if record.kind not in CORE_KINDS and record.kind not in self._strange:
            self._strange.add(record.kind)
            self._found.note(line, "other_kind", f"events of kind {record.kind!r} are not checked")

    def _check_time(self, line: int, record: Record) -> None:
        try:
            time = datetime.fromisoformat(record.time)
        except ValueError:
            self._found.problem(line, "bad_time", f"time {record.time!r} is not ISO 8601")
            return
        if time.tzinfo is None:
            self._found.problem(
                line, "bad_time", f"time {record.time!r} does not say that it is UTC"
            )
            time = time.replace(tzinfo=UTC)
        if self._time is not None and time < self._time:
            back = (self._time - time).total_seconds()
            self._found.note(line, "time_back", f"the clock went back by {back:.6f} s")
        self._time = time

    def _check_end(self, line: int, record: Record) -> None:
        if record.kind not in CORE_KINDS:
            return
        if self._ended_as is not None and not _goes_on(self._ended_as, record):
            message = f"{record.kind!r} after the run had ended with status {self._ended_as}"
            self._found.problem(line, "after_end", message)
        if record.kind == RunFinished.kind:
            self._ended_as = str(record.data["status"])
        elif self._ended_as == _STOPPED:
            self._ended_as = None

    def close(self) -> None:
        """Say what the end of the trace lacks."""
        if not self._last_line:
            self._found.problem(0, "no_header", "there is no line at all")
        elif self._ended_as is None:
            message = "the run has no end: it was stopped or killed, or is still going on"
            self._found.note(self._last_line, "unfinished", message)


def _goes_on(ended_as: str, record: Record) -> bool:
    """An interrupted run may be taken up again, which says so first."""
    return (
        ended_as == _STOPPED
        and record.kind == StatusChanged.kind
        and record.data["source"] == _STOPPED
    )


class LifeCheck:
    """The status of the run and the phase of its step follow their tables."""

    def __init__(self, findings: Findings) -> None:
        self._found = findings
        self.status: str = RunStatus.READY
        self.phase: str | None = None
        self.resumed = 0
        """How often the run was taken up again."""

    def see(self, line: int, record: Record) -> None:
        """Take the next line."""
        if record.kind == StatusChanged.kind:
            self._check_status(line, record)
        elif record.kind == PhaseChanged.kind:
            self._check_phase(line, record)
        elif record.kind == RunFinished.kind and record.data["status"] != self.status:
            ends = f"run.finished says {record.data['status']}, the run was {self.status}"
            self._found.problem(line, "end_status", ends)

    def _check_status(self, line: int, record: Record) -> None:
        source, target, event = (record.data[key] for key in ("source", "target", "event"))
        killed = source == _STOPPED and self.status in _ALIVE  # nobody was left to write it
        if source != self.status and not killed:
            wrong = f"status leaves {source}, but the run was {self.status}"
            self._found.problem(line, "status_source", wrong)
        if (source, event, target) not in _STATUS_MOVES:
            self._found.problem(line, "status_move", f"no move {source} --{event}--> {target}")
        if source == _STOPPED:
            self.phase = None
            self.resumed += 1
        self.status = target

    def _check_phase(self, line: int, record: Record) -> None:
        source, target = record.data.get("source"), record.data.get("target")
        if source != self.phase:
            wrong = f"phase leaves {source}, but the step was in {self.phase}"
            self._found.problem(line, "phase_source", wrong)
        if source is not None and target is not None and (source, target) not in _PHASE_MOVES:
            self._found.problem(line, "phase_move", f"no move {source} -> {target}")
        if target is not None and target not in set(StepPhase):
            self._found.problem(line, "phase_move", f"{target!r} is no phase")
        self.phase = target
