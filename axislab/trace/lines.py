"""One line of a trace: an event as JSON text, and back."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from axislab.errors import TraceCorrupt, TraceError
from axislab.events import Event
from axislab.trace.shape import RESERVED, shape_problem
from axislab.trace.trace import Record

_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_DECODER = json.JSONDecoder(parse_constant=lambda _: None)  # NaN is no number: unknown
_BOM = b"\xef\xbb\xbf"
_LONGEST_INT = 10**4000
"""Python refuses to spell longer integers."""


class BadLine(TraceCorrupt):
    """A line that is no record; `code` is a word for fsck."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def encode_line(seq: int, time: str, kind: str, payload: Mapping[str, Any]) -> bytes:
    """The bytes of one line, newline included; always valid UTF-8 and JSON.

    Raises:
        TraceError: The payload holds something JSON cannot; the message says where.
    """
    row = {"seq": seq, "time": time, "kind": kind, **payload}
    if len(row) != len(payload) + len(RESERVED):
        taken = sorted(set(RESERVED) & set(payload))
        raise TraceError(f"event {kind!r} has a field {taken[0]!r}, which names the line's own")
    try:
        text = _ENCODER.encode(row)
    except (TypeError, ValueError, RecursionError):
        text = _encode_carefully(row, kind)
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        return clean_text(text).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class Line:
    """An event as its bytes, and as the record a reader makes of them."""

    data: bytes
    record: Record


def to_line(seq: int, time: str, event: Event) -> Line:
    """The line of an event, sure to be read back.

    Raises:
        TraceError: JSON cannot hold it, or no reader would take it.
    """
    data = encode_line(seq, time, event.kind, event.payload())
    try:
        return Line(data, decode_line(data))
    except BadLine as problem:
        raise TraceError(f"cannot record this event: {problem}") from problem


def time_stamp(seconds: float) -> str:
    """Seconds since 1970 as UTC, ISO 8601."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _encode_carefully(row: Mapping[str, Any], kind: str) -> str:
    try:
        return _ENCODER.encode(_as_json(row, kind))
    except RecursionError:
        raise TraceError(
            f"event {kind!r} is nested too deeply, or holds itself; record a flat copy"
        ) from None


def _as_json(value: object, place: str) -> object:
    """A copy that JSON can hold; numbers that are none become null."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int) and -_LONGEST_INT < value < _LONGEST_INT:
        return value
    if isinstance(value, Mapping):
        return {_key(k, place): _as_json(v, f"{place}.{k}") for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [_as_json(v, f"{place}[{i}]") for i, v in enumerate(value)]
    raise TraceError(
        f"{place} is {_brief(value)}, a {type(value).__name__}: JSON holds text, numbers, true, "
        f"false, null, lists and mappings; convert it before it is recorded"
    )


def _key(key: object, place: str) -> str:
    if not isinstance(key, str):
        raise TraceError(f"{place} has the key {_brief(key)}: keys must be text; use str(key)")
    return key


def _brief(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:
        return "a number of more than 4000 digits"
    return text if len(text) <= 60 else text[:59] + "…"


def clean_text(text: str) -> str:
    """The text with surrogate pairs joined and lone surrogates replaced: it can be encoded."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def decode_line(line: bytes) -> Record:
    """The record a line holds.

    Raises:
        BadLine: It holds none; the message says why.
    """
    try:
        row = _DECODER.decode(line.decode())
    except UnicodeDecodeError as problem:
        raise BadLine("not_utf8", f"is not UTF-8 text (byte {problem.start + 1})") from None
    except json.JSONDecodeError as problem:
        raise BadLine("not_json", f"is not JSON ({problem.msg}, column {problem.colno})") from None
    except (ValueError, RecursionError) as problem:
        raise BadLine("not_json", f"is not JSON we can read ({problem})") from None
    if not isinstance(row, dict):
        raise BadLine("not_an_event", f"holds {_brief(row)}, not an object")
    seq, time, kind = row.pop("seq", None), row.pop("time", None), row.pop("kind", None)
    if type(seq) is not int or seq < 0 or not isinstance(time, str) or not isinstance(kind, str):
        raise BadLine("not_an_event", "lacks a whole number seq >= 0, or the texts time and kind")
    if (problem_text := shape_problem(kind, row)) is not None:
        raise BadLine("bad_field", problem_text)
    return Record(seq, time, kind, row)


@dataclass(frozen=True, slots=True)
class RawLines:
    """The lines of a file before they are read."""

    whole: list[bytes]
    """Lines that count, without their newlines."""
    tail: bytes
    """What stands after the last newline and is no whole line: the writer was killed."""
    unended: bool = False
    """The last whole line lacks only its newline."""


def split_lines(data: bytes) -> RawLines:
    """Split the bytes of a trace at newlines; a last line cut off in the middle is set apart."""
    whole = data.removeprefix(_BOM).split(b"\n")
    tail = whole.pop()
    if not tail:
        return RawLines(whole, b"")
    try:
        decode_line(tail)
    except BadLine:
        return RawLines(whole, tail)
    return RawLines([*whole, tail], b"", unended=True)


def read_bytes(path: Path) -> bytes:
    """The bytes of a trace file.

    Raises:
        TraceError: There is no such file, or it cannot be read.
    """
    try:
        return path.read_bytes()
    except (OSError, ValueError) as problem:
        raise unreadable(path, problem) from problem


def unreadable(path: Path, problem: OSError | ValueError) -> TraceError:
    """The error for a file that cannot be read, with what to do."""
    if isinstance(problem, ValueError):  # a null byte, or text that the file system cannot spell
        return TraceError(f"{str(path)!r} cannot be a path: {problem}; choose another")
    if os.path.isdir(path):  # a Path's own is_dir raises what we are about to tell
        return TraceError(f"{str(path)!r} is a folder, not a trace; use load_runs to read a folder")
    if isinstance(problem, FileNotFoundError | NotADirectoryError):
        where = path.parent if path.parent.is_dir() else None
        names = sorted(p.name for p in where.glob("*.jsonl"))[:5] if where else []
        have = f"traces there: {', '.join(names)}" if names else "no trace is there"
        return TraceError(f"no file {str(path)!r}; {have}")
    return TraceError(f"cannot read {str(path)!r}: {problem.strerror}; check its permissions")
