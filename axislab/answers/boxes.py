r"""Finding the \boxed{…} that decides, in one pass over the text."""

from __future__ import annotations

import re
from dataclasses import dataclass

# A run of backslashes is one token, so that its length tells what it escapes. A box opens after
# any of them: "\\boxed{6}" is how a reply looks that was escaped once too often.
_TOKEN = re.compile(r"\\+(?P<box>boxed\s*\{)?|[{}]")


@dataclass(frozen=True, slots=True)
class Box:
    """Where the content of a box stands: `text[start:end]`, without surrounding whitespace."""

    start: int
    end: int
    closed: bool


@dataclass(slots=True)
class _Brace:
    """An opening brace, of a box or plain."""

    start: int
    """Where the box begins, backslashes included."""
    inner: int
    """Where its content begins."""
    boxed: bool
    close: int = -1
    """Where its closing brace is."""


def deciding_box(text: str) -> Box | None:
    r"""The last complete box; only if none is complete, the last unclosed one; else None.

    Of nested complete boxes the outermost counts, but a box that holds exactly one box and nothing
    else is unwrapped. A backslash escapes the character after it.
    """
    opened: list[_Brace] = []
    closed: dict[int, _Brace] = {}
    last: _Brace | None = None
    escaped = -1
    for token in _TOKEN.finditer(text):
        if token["box"]:
            opened.append(_Brace(token.start(), token.end(), boxed=True))
        elif token[0][0] == "\\":
            escaped = token.end() if len(token[0]) % 2 else -1
        elif token.start() == escaped:
            continue
        elif token[0] == "{":
            opened.append(_Brace(token.start(), token.end(), boxed=False))
        elif opened:
            brace = opened.pop()
            if brace.boxed:
                brace.close = token.start()
                closed[brace.start] = last = brace
    if last is not None:
        return _unwrapped(text, last, closed)
    # Only boxes are wanted: a plain brace left open is part of some content.
    unclosed = next((brace for brace in reversed(opened) if brace.boxed), None)
    return None if unclosed is None else _trimmed(text, unclosed.inner, len(text), closed=False)


def _unwrapped(text: str, brace: _Brace, closed: dict[int, _Brace]) -> Box:
    while True:
        box = _trimmed(text, brace.inner, brace.close, closed=True)
        inside = closed.get(box.start)
        if inside is None or inside.close != box.end - 1:
            return box
        brace = inside


def _trimmed(text: str, start: int, end: int, *, closed: bool) -> Box:
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return Box(start, end, closed)
