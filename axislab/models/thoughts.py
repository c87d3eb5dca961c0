"""Takes leading <think> blocks out of a text that comes in pieces, or as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

_OPENING: Final = ("<think>", "<thinking>", "<budget:thinking>")
_CLOSING: Final = ("</think>", "</thinking>", "</budget:thinking>")
"""Any of these ends a block, as litellm has it for whole replies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a text."""

    text: str
    thought: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A text, and what was thought before it."""

    text: str
    thought: str | None
    """None if there was no block."""


class _Where(Enum):
    HEAD = 0
    """Nothing but space so far, and maybe half a tag."""
    THOUGHT = 1
    TEXT = 2


class ThoughtSplitter:
    """Tells thought from text, however the two are cut into pieces.

    Blocks count only before the first word of the text; what is open is thought to its end.
    """

    def __init__(self) -> None:
        self._where = _Where.HEAD
        self._held = ""
        self.thought = False
        """A block was opened."""

    def feed(self, text: str) -> Iterator[Piece]:
        """The parts that are certain by now, never empty."""
        self._held += text
        while self._held:
            if self._where is _Where.TEXT:
                yield self._release(len(self._held), thought=False)
            elif self._where is _Where.THOUGHT:
                at, tag = _first(self._held, _CLOSING)
                sure = at if tag else len(self._held) - _half_tag(self._held)
                if sure:
                    yield self._release(sure, thought=True)
                if not tag:
                    return
                self._held = self._held[len(tag) :]
                self._where = _Where.HEAD
            elif not self._leave_head():
                return

    def flush(self) -> Iterator[Piece]:
        """What was held back; the text is over."""
        if self._held:
            yield self._release(len(self._held), thought=self._where is _Where.THOUGHT)

    def _release(self, length: int, *, thought: bool) -> Piece:
        text, self._held = self._held[:length], self._held[length:]
        return Piece(text=text, thought=thought)

    def _leave_head(self) -> bool:
        """Is it certain by now what comes first?"""
        word = self._held.lstrip()
        for tag in _OPENING:
            if word.startswith(tag):
                self._held = word[len(tag) :]
                self._where = _Where.THOUGHT
                self.thought = True
                return True
        if any(tag.startswith(word) for tag in _OPENING):
            return False
        self._where = _Where.TEXT
        return True


def split_thoughts(text: str) -> Split:
    """Take the leading blocks out of a whole text."""
    splitter = ThoughtSplitter()
    pieces = [*splitter.feed(text), *splitter.flush()]
    if not splitter.thought:
        return Split(text=text, thought=None)
    return Split(
        text="".join(piece.text for piece in pieces if not piece.thought),
        thought="".join(piece.text for piece in pieces if piece.thought),
    )


def _first(text: str, tags: tuple[str, ...]) -> tuple[int, str]:
    """Where the first of the tags stands, and which it is; "" if there is none."""
    found = [(at, tag) for tag in tags if (at := text.find(tag)) >= 0]
    return min(found, default=(len(text), ""))


def _half_tag(text: str) -> int:
    """How many characters at the end may be the beginning of a closing tag."""
    longest = max(map(len, _CLOSING)) - 1
    for length in range(min(longest, len(text)), 0, -1):
        if any(tag.startswith(text[-length:]) for tag in _CLOSING):
            return length
    return 0
