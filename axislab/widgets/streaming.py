"""Streamed replies for the eye: printed in a terminal, as a growing row in a live view."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TextIO

from axislab.models.deltas import Delta, DeltaKind
from axislab.trace.card import esc

MOST_SHOWN: Final = 600
"""Characters of a growing part that a live view shows, the newest."""
_MOST_PARTS: Final = 6
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""What could move the cursor, or worse; a reply is text and nothing else."""
_ENDS: Final = {
    DeltaKind.END: "",
    DeltaKind.DISCARDED: " [discarded: {}]",
    DeltaKind.AGAIN: " [misread; again:]",
}
_HEADS: Final = {DeltaKind.REASONING: "[thinking] ", DeltaKind.CALL: "[calls] "}


class StreamPrinter:
    """Prints replies as they come: plain text, one newline at the end of each.

    Thinking and tool calls stand on lines of their own; a part that was thrown away says so.

    Args:
        file: Where to; by default what standard output is by then.
        label: Stands before each reply.

    Examples:
        >>> printer = StreamPrinter(label="simulated")
        >>> for delta in (Delta(kind=DeltaKind.TEXT, text="Hello."), Delta(kind=DeltaKind.END)):
        ...     printer(delta)
        [simulated] Hello.
    """

    def __init__(self, *, file: TextIO | None = None, label: str = "") -> None:
        self._file = file
        self._label = f"[{label}] " if label else ""
        self._part: tuple[DeltaKind, int] | None = None
        self._named = False
        """The name of a tool stands there, and no argument yet."""
        self._column = 0
        """Where the line stands; 0 is its beginning."""

    def __call__(self, delta: Delta) -> None:
        """Print one piece."""
        if delta.kind in _ENDS:
            self._part = None
            self._write(_ENDS[delta.kind].format(delta.text))
            self._new_line()
            return
        self._enter(delta)
        if delta.kind is DeltaKind.ARGUMENTS and self._named and delta.text:
            self._write(" ")
        self._named = delta.kind is DeltaKind.CALL or (self._named and not delta.text)
        self._write(delta.text)

    def _enter(self, delta: Delta) -> None:
        """Begin another part, if the piece is of one."""
        kind = DeltaKind.CALL if delta.kind is DeltaKind.ARGUMENTS else delta.kind
        part = (kind, delta.number)
        if part == self._part:
            return
        if self._part is None:
            self._write(self._label)
        else:
            self._new_line()
        self._part, self._named = part, False
        self._write(_HEADS.get(kind, ""))

    def _new_line(self) -> None:
        if self._column:
            self._write("\n")

    def _write(self, text: str) -> None:
        text = _CONTROL.sub("", text)
        if not text:
            return
        file = self._file or sys.stdout
        encoding = getattr(file, "encoding", None) or "utf-8"
        file.write(text.encode(encoding, "replace").decode(encoding))
        file.flush()
        line = text.rpartition("\n")
        self._column = len(line[2]) + (0 if line[1] else self._column)


@dataclass(slots=True)
class _Part:
    """A growing part of a reply: its newest characters, and how many there are."""

    kind: DeltaKind
    number: int
    name: str = ""
    tail: str = ""
    length: int = 0

    def add(self, text: str) -> None:
        self.length += len(text)
        self.tail = (self.tail + text)[-MOST_SHOWN:]


class GrowingReply:
    """The reply that is coming, as a row of a live view."""

    def __init__(self) -> None:
        self._parts: list[_Part] = []
        self._discarded = ""

    def hear(self, delta: Delta) -> None:
        """Take one piece."""
        if delta.kind in (DeltaKind.END, DeltaKind.AGAIN):
            self._parts.clear()  # of a reply that has ended the trace has it
            return
        if delta.kind is DeltaKind.DISCARDED:
            self._discarded = delta.text
            return
        if self._discarded:
            self._discarded = ""
            self._parts.clear()
        kind = DeltaKind.CALL if delta.kind is DeltaKind.ARGUMENTS else delta.kind
        last = self._parts[-1] if self._parts else None
        if last is None or (last.kind, last.number) != (kind, delta.number):
            last = _Part(kind, delta.number)
            self._parts = [*self._parts[1 - _MOST_PARTS :], last]
        if delta.kind is DeltaKind.CALL:
            last.name = delta.text
        else:
            last.add(delta.text)

    def html(self) -> str:
        """What has come, escaped; empty between two replies."""
        rows = [_part_html(part) for part in list(self._parts)]
        if rows and self._discarded:
            rows.append(f'<span class="chip bad">discarded: {esc(self._discarded)}</span>')
        return "<br>".join(rows)


def _part_html(part: _Part) -> str:
    name = {DeltaKind.REASONING: "thinking", DeltaKind.CALL: f"calls {part.name}"}.get(part.kind)
    head = f'<span class="dim">{esc(name)}</span> ' if name else ""
    cut = f'<span class="dim">({part.length:,} characters) …</span> '
    return (
        f"{head}{cut if part.length > MOST_SHOWN else ''}"
        f'<span class="t" dir="auto">{esc(part.tail)}</span>'
    )


def in_notebook() -> bool:
    """Does a kernel run this, so that there is a page to show something on?"""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


@contextmanager
def shown_live(thing: Any, *, wanted: bool) -> Iterator[None]:
    """Show something live above what a cell gives back, in a notebook; at the end it is static.

    Args:
        thing: What has a live representation, a RunHandle for example.
        wanted: False shows nothing.
    """
    if not (wanted and in_notebook()):
        yield
        return
    from IPython import display as page

    show: Any = page.display
    shown = show(thing, display_id=True)
    try:
        yield
    finally:
        if shown is not None:
            shown.update(thing)
