"""Where a text quotes: inline code, code blocks, quotation marks and block quotes."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

Span: TypeAlias = tuple[int, int]
"""Start and end in a text, in characters."""

_INLINE = re.compile(
    r"`[^`\n]{1,300}`"
    r'|"[^"\n]{1,300}"'
    "|\u201c[^\u201d\n]{1,300}\u201d"
    "|\u00ab[^\u00bb\n]{1,300}\u00bb"
    "|\u300c[^\u300d\n]{1,300}\u300d"
    "|\u300e[^\u300f\n]{1,300}\u300f"
)
"""Bounded, so that an unpaired mark costs the same however long the text is."""

_FENCE = re.compile(r"[ \t]{0,3}(`{3,}|~{3,})([^`\n]*)$")


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A fenced block of code."""

    language: str
    start: int
    body: int
    """Where the code begins."""
    body_end: int
    end: int


class Quotations:
    """The quoted spans of one text, in order and apart from each other."""

    def __init__(self, text: str) -> None:
        self.blocks = tuple(code_blocks(text))
        spans = [(block.start, block.end) for block in self.blocks]
        spans += _block_quotes(text)
        spans += [m.span() for m in _INLINE.finditer(text)]
        self._spans = outermost(spans)
        self._starts = [start for start, _ in self._spans]

    def covers(self, start: int, end: int) -> bool:
        """True if all of start to end is quoted."""
        at = bisect_right(self._starts, start) - 1
        return at >= 0 and end <= self._spans[at][1]


def code_blocks(text: str) -> Iterator[CodeBlock]:
    """The closed fenced blocks of a text."""
    fence, language, start, body = "", "", 0, 0
    for begin, end in _lines(text):
        found = _FENCE.match(text, begin, end)
        if found is None:
            continue
        if not fence:
            fence, language = found[1], found[2].strip().lower()
            start, body = begin, end + 1
        elif found[1].startswith(fence) and not found[2].strip():
            yield CodeBlock(language, start, body, begin, end)
            fence = ""


def _block_quotes(text: str) -> Iterator[Span]:
    for begin, end in _lines(text):
        if text.startswith(">", begin):
            yield begin, end


def _lines(text: str) -> Iterator[Span]:
    begin = 0
    while begin < len(text):
        end = text.find("\n", begin)
        end = len(text) if end < 0 else end
        yield begin, end
        begin = end + 1


def outermost(spans: Iterable[Span]) -> list[Span]:
    """The spans in order, without those that start inside an earlier one."""
    kept: list[Span] = []
    for start, end in sorted(set(spans), key=lambda s: (s[0], -s[1])):
        if not kept or start >= kept[-1][1]:
            kept.append((start, end))
    return kept
