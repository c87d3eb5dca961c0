"""fsck: whether a trace keeps its rules, and mending the one fault that a kill leaves."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from axislab.errors import TraceError
from axislab.events import RunStarted
from axislab.paths import user_path
from axislab.trace.check_counts import AccountCheck, ToolCheck
from axislab.trace.check_history import HistoryCheck
from axislab.trace.check_life import FrameCheck, LifeCheck
from axislab.trace.files import lock_file, mend_tail, open_file, unwritable
from axislab.trace.findings import Findings, FsckReport, Problem
from axislab.trace.lines import BadLine, decode_line, read_bytes, split_lines
from axislab.trace.lock import unlock
from axislab.trace.reader import PathLike, gc_paused
from axislab.trace.run import Run
from axislab.trace.shape import shape_problem
from axislab.trace.trace import Record, Trace

__all__ = ["FsckReport", "Problem", "fsck", "repair"]


def fsck(source: PathLike | Trace | Run) -> FsckReport:
    """Check a trace against every rule of a trace.

    Never raises for what the trace holds; a run that was killed is ok, with notes.

    Args:
        source: A file, or a trace or run that was read already.

    Raises:
        TraceError: There is no such file, or it cannot be read.

    Examples:
        >>> print(fsck("traces/demo/osk.jsonl"))
        ok, 4 steps
    """
    findings = Findings()
    if isinstance(source, Run):
        source = source.trace
    with gc_paused():
        if isinstance(source, Trace):
            for note in source.notes:
                findings.note(0, "reader", note)
            return _check(_sound(source.records, findings), findings)
        return _check(_records(read_bytes(user_path(source, error=TraceError)), findings), findings)


def _records(data: bytes, findings: Findings) -> Iterator[tuple[int, Record]]:
    lines = split_lines(data)
    for number, line in enumerate(lines.whole, 1):
        try:
            yield number, decode_line(line)
        except BadLine as problem:
            findings.problem(number, problem.code, f"the line {problem}")
    if lines.tail:
        message = f"the last line is cut off after {len(lines.tail)} bytes; repair(path) removes it"
        findings.note(len(lines.whole) + 1, "torn", message)


def _sound(records: Iterable[Record], findings: Findings) -> Iterator[tuple[int, Record]]:
    for number, record in enumerate(records, 1):
        if (wrong := shape_problem(record.kind, record.data)) is None:
            yield number, record
        else:
            findings.problem(number, "bad_field", wrong)


def _check(records: Iterable[tuple[int, Record]], findings: Findings) -> FsckReport:
    frame, life, history = FrameCheck(findings), LifeCheck(findings), HistoryCheck(findings)
    tools = ToolCheck(findings, history, life)
    accounts = AccountCheck(findings, history, life)
    for line, record in records:
        frame.see(line, record)
        life.see(line, record)
        tools.see(line, record)
        accounts.see(line, record)
        history.see(line, record)
    frame.close()
    history.close()
    tools.close()
    return findings.report(steps=history.steps)


def repair(path: PathLike) -> str | None:
    """Cut a torn last line off a trace; nothing else is ever changed.

    Args:
        path: The file. What is cut off is kept beside it as `<name>.torn`.

    Returns:
        What was done, or None if nothing had to be.

    Raises:
        TraceError: It is no trace, or cannot be written.
        TraceLocked: It is being written.
    """
    place = user_path(path, error=TraceError)
    lines = split_lines(read_bytes(place))
    try:
        is_trace = bool(lines.whole) and decode_line(lines.whole[0]).kind == RunStarted.kind
    except BadLine:
        is_trace = False
    if not is_trace:
        raise TraceError(f"{str(place)!r} does not start with run.started: nothing was changed")
    fd = open_file(place)
    try:
        lock_file(fd, place)
        try:
            return mend_tail(fd, place, split_lines(read_bytes(place))).note()
        except OSError as problem:
            raise unwritable(place, problem) from problem
        finally:
            unlock(fd)
    finally:
        os.close(fd)
