"""Reading traces back: leniently to look at them, strictly to go on from them."""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from axislab.errors import TraceCorrupt, TraceError
from axislab.events import SCHEMA_VERSION, MessageAppended, RunStarted
from axislab.paths import user_path
from axislab.trace.lines import (
    BadLine,
    RawLines,
    decode_line,
    read_bytes,
    split_lines,
    unreadable,
)
from axislab.trace.run import Run
from axislab.trace.trace import Body, Record, Trace

PathLike: TypeAlias = str | os.PathLike[str]

_TAIL_BYTES = 64 * 1024
_MOST_NOTES = 20


def read_trace(path: PathLike, *, strict: bool = False) -> Trace:
    """Read one trace.

    Args:
        path: A `.jsonl` file; a run that is still being written elsewhere may be read too.
        strict: Refuse a trace with any fault (to resume, fork or export it). Otherwise lines
            that cannot be read are left out, and `trace.notes` says so.

    Raises:
        TraceError: There is no such file, or it holds no trace.
        TraceCorrupt: Strict, and a line is at fault; the message names it.

    Examples:
        >>> trace = read_trace("traces/demo/osk.jsonl")
        >>> trace.notes
        ()
    """
    place = user_path(path, error=TraceError)
    with gc_paused():
        body = _parse(read_bytes(place), place, strict=strict)
    return Trace(body.records, path=place, notes=body.notes)


def load_run(path: PathLike, *, strict: bool = False) -> Run:
    """Read one trace as a run.

    Raises:
        TraceError: There is no such file, or it holds no trace.
        TraceCorrupt: Strict, and a line is at fault; the message names it.
    """
    return Run(read_trace(path, strict=strict))


def load_runs(source: PathLike | Iterable[PathLike], *, strict: bool = False) -> list[Run]:
    """Read many runs, in the order they were started.

    Of each trace only the first and the last line are read at once; the rest follows when
    something asks for it, as the file stood when it was opened.

    Args:
        source: A folder (every `.jsonl` below it), a file, or several of them.
        strict: Read everything, and raise at the first fault. Otherwise a file that holds no
            trace is left out with a warning.

    Raises:
        TraceError: No trace was found.
        TraceCorrupt: Strict, and a line is at fault; the message names it.

    Examples:
        >>> runs = load_runs("traces/demo")
        >>> sum(run.correct is True for run in runs)
        1
    """
    given: Iterable[object] = [source]
    if isinstance(source, Iterable) and not isinstance(source, str | os.PathLike):
        given = source
    sources = [user_path(one, error=TraceError) for one in given]
    paths = list(dict.fromkeys(p for place in sources for p in _trace_files(place)))
    if not paths:
        raise TraceError(f"no trace (*.jsonl) in {_listed(sources)}; is it the right folder?")
    runs: dict[str, Run] = {}
    skipped: list[str] = []
    with gc_paused():
        for path in paths:
            try:
                run = Run(read_trace(path, strict=True) if strict else open_trace(path))
            except TraceError as problem:
                if strict:
                    raise
                skipped.append(str(problem))
                continue
            runs[run.id] = _one_of(runs[run.id], run) if run.id in runs else run
    if not runs:
        raise TraceError(f"no trace in {_listed(sources)}: {skipped[0]}")
    for note in skipped:
        warnings.warn(f"left out: {note}", UserWarning, stacklevel=2)
    return sorted(runs.values(), key=lambda run: (run.started, run.id))


def open_trace(path: PathLike) -> Trace:
    """Read the first and the last line of a trace now, the rest when it is asked for.

    Raises:
        TraceError: There is no such file, or it holds no trace.
    """
    place = user_path(path, error=TraceError)
    try:
        with place.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            head = file.readline()
            file.seek(max(0, size - _TAIL_BYTES))
            tail = file.read(_TAIL_BYTES)
    except (OSError, ValueError) as problem:
        raise unreadable(place, problem) from problem
    start = tail.rfind(b"\n", 0, -1) + 1
    if not tail.endswith(b"\n") or (start == 0 and size > len(tail)):
        return read_trace(place)  # torn, or a last line longer than we looked back
    try:
        first, last = decode_line(head), decode_line(tail[start:])
    except BadLine:
        return read_trace(place)
    if first.kind != RunStarted.kind:
        raise _no_header(place, f"line 1 is of kind {first.kind!r}")
    return Trace.lazy(first, last, _Rest(place, size), path=place)


@dataclass(frozen=True, slots=True)
class _Rest:
    """Reads a file as it stood when it was opened: traces only ever grow."""

    path: Path
    size: int

    def __call__(self) -> Body:
        try:
            with self.path.open("rb") as file:
                data = file.read(self.size)
        except OSError as problem:
            raise unreadable(self.path, problem) from problem
        if len(data) < self.size:
            raise TraceError(f"{str(self.path)!r} became shorter since it was opened; load it anew")
        with gc_paused():
            return _parse(data, self.path, strict=False)


@contextmanager
def gc_paused() -> Iterator[None]:
    """No garbage collection meanwhile: it would walk all that was read, again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _trace_files(place: Path) -> list[Path]:
    if not os.path.isdir(place):  # unlike is_dir, it raises nothing
        return [place]
    found: list[Path] = []
    # Unlike rglob, it goes on where a folder vanishes meanwhile.
    for folder, folders, files in os.walk(place):
        folders[:] = [name for name in folders if not name.startswith(".")]
        named = [name for name in (*files, *folders) if name.endswith(".jsonl")]
        found += [Path(folder, name) for name in named if not name.startswith(".")]
    return sorted(found)


def _one_of(kept: Run, other: Run) -> Run:
    """The longer of two files of one run: a copy must not count as a second run."""
    kept, other = sorted((kept, other), key=lambda run: _size(run.path), reverse=True)
    message = f"left out: {str(other.path)!r} holds the run {kept.id!r} of {str(kept.path)!r} too"
    warnings.warn(message, UserWarning, stacklevel=3)
    return kept


def _size(path: Path | None) -> int:
    try:
        return path.stat().st_size if path else 0
    except OSError:  # it vanished after it was opened
        return 0


def _listed(sources: Iterable[object]) -> str:
    return ", ".join(repr(str(source)) for source in sources) or "nothing"


def _no_header(path: Path, why: str) -> TraceError:
    return TraceError(f"{str(path)!r} is no trace: it must start with run.started, but {why}")


@dataclass(slots=True)
class _Notes:
    """What was skipped; like lines in a row share one note."""

    path: Path
    strict: bool
    found: list[list[object]] = field(default_factory=list)

    def add(self, line: int, code: str, message: str, *, advice: str = "") -> None:
        if self.strict:
            where = f"{str(self.path)!r}, line {line} {message}"
            raise TraceCorrupt(where + (advice or "; fsck lists all that is wrong with it"))
        last = self.found[-1] if self.found else None
        if last is not None and last[1] == code and last[3] == line - 1:
            last[3] = line
        else:
            self.found.append([line, code, message, line])

    def texts(self) -> tuple[str, ...]:
        texts = [
            f"line {first} {message}" if first == last else f"lines {first}-{last}: {message}"
            for first, _, message, last in self.found[:_MOST_NOTES]
        ]
        if (more := len(self.found) - _MOST_NOTES) > 0:
            texts.append(f"and {more} more; fsck lists them")
        return tuple(texts)


def _parse(data: bytes, path: Path, *, strict: bool) -> Body:
    lines = split_lines(data)
    _check_is_trace(lines, path)
    notes = _Notes(path, strict)
    records: list[Record] = []
    messages = 0
    for number, line in enumerate(lines.whole, 1):
        try:
            record = decode_line(line)
        except BadLine as problem:
            notes.add(number, problem.code, str(problem))
            continue
        if not _in_order(record, records, number, notes):
            continue
        records.append(record)
        if record.kind == MessageAppended.kind:
            index = record.data["index"]
            if index != messages:
                what = f"is message {index}, expected {messages}: what the model saw is uncertain"
                notes.add(number, "message_index", what)
            messages = index + 1
    if lines.tail:
        torn = f"is cut off after {len(lines.tail)} bytes: the writer was killed"
        notes.add(len(lines.whole) + 1, "torn", torn, advice="; repair(path) cuts it off")
    schema = records[0].data["schema"]
    if schema > SCHEMA_VERSION:
        newer = f"has schema {schema}, this axislab knows up to {SCHEMA_VERSION}"
        notes.add(1, "schema", newer, advice="; update axislab")
    return Body(records, notes.texts())


def _check_is_trace(lines: RawLines, path: Path) -> None:
    if not lines.whole:
        cut = f"its only line is cut off after {len(lines.tail)} bytes"
        raise _no_header(path, cut if lines.tail else "the file is empty")
    try:
        first = decode_line(lines.whole[0])
    except BadLine as problem:
        raise _no_header(path, f"line 1 {problem}") from problem
    if first.kind != RunStarted.kind:
        raise _no_header(path, f"line 1 is of kind {first.kind!r}")


def _in_order(record: Record, records: list[Record], number: int, notes: _Notes) -> bool:
    """Say what is wrong with the place of a record; False if it must be left out."""
    expected = records[-1].seq + 1 if records else 0
    if record.seq < expected:
        notes.add(number, "seq_back", f"has seq {record.seq} again, expected {expected}")
        return False
    if record.kind == RunStarted.kind and records:
        notes.add(number, "second_header", "is a second run.started")
        return False
    if record.seq > expected:
        notes.add(
            number, "seq_gap", f"has seq {record.seq}, expected {expected}: lines are missing"
        )
    return True
