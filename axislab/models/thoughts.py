"""Takes the thinking out of a text whose server left it there: at once, or piece by piece."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

_TAGS: Final = {
    f"<{name}>": f"</{name}>" for name in ("think", "thinking", "budget:thinking")
}  # those litellm knows
_OPENING: Final = "<think>"
_CLOSING: Final = "</think>"
_ALONE: Final = rf"[ \t]*{_CLOSING}[ \t\r]*"
_LINE: Final = re.compile(rf"\n{_ALONE}\n")
_FIRST_LINE: Final = re.compile(rf"{_ALONE}\n")
_LAST_LINE: Final = re.compile(rf"\n{_ALONE}\Z")
_ONLY_LINE: Final = re.compile(rf"{_ALONE}\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a text."""

    text: str
    thought: bool
    turned: bool = False
    """All that came as text before this was thinking, too."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """A reply in two parts."""

    said: str
    thought: str | None
    """None if there was no block of thinking; empty if there was nothing in it."""


def split_thinking(text: str) -> Spoken:
    """What a reply says, and what it thought before.

    Only blocks at the beginning are thinking: a tag further on may be a quotation. One that is
    never closed hides the rest. A closing tag alone on its line, with no opening one before it,
    ends a block whose beginning was in the prompt.
    """
    splitter = ThoughtSplitter()
    said = thought = ""
    for piece in (*splitter.feed(text), *splitter.flush()):
        if piece.turned:
            said, thought = "", said
        if piece.thought:
            thought += piece.text
        else:
            said += piece.text
    return Spoken(said, thought if splitter.found else None)


class _Where(Enum):
    HEAD = 0
    """Nothing but space so far, and maybe half a tag."""
    THOUGHT = 1
    FIRST_TEXT = 2
    """No block came; a closing tag alone on its line would end one that began in the prompt."""
    SPACE = 3
    """Between the thinking and the text."""
    TEXT = 4


class ThoughtSplitter:
    """Tells thinking from text by the rule of `split_thinking`, however the text is cut."""

    def __init__(self) -> None:
        self.found = False
        """There was a block."""
        self._where = _Where.HEAD
        self._held = ""
        """What is not certain yet."""
        self._closing = ""
        self._before = ""
        """The end of what was released of the first text."""
        self._blank = ""
        """Space at the beginning of a block, which may be all there is in it."""
        self._blocks = 0
        """Blocks with something in them; the last one may still be open."""
        self._inside = False
        """Something of the open block was released."""

    def feed(self, text: str) -> Iterator[Piece]:
        """The parts that are certain by now; one that is empty turns those before it."""
        self._held += text
        again = True
        while again and self._held:
            where = self._where
            if where is _Where.HEAD:
                again = self._leave_head()
            elif where is _Where.THOUGHT:
                again = self._where_thought_ends()
                yield from self._thought()
            elif where is _Where.FIRST_TEXT:
                yield from self._first_text()
                again = self._where is not where
            elif where is _Where.SPACE:
                self._held = self._held.lstrip()
                self._where = _Where.TEXT if self._held else where
            else:
                yield from self._text(len(self._held))

    def flush(self) -> Iterator[Piece]:
        """What was held back; the text is over."""
        if self._where is _Where.THOUGHT:
            self._ready, self._held = self._held, ""
            yield from self._thought()
            return
        if self._where is _Where.FIRST_TEXT:
            yield from self._first_text(ended=True)
        if self.found and self._where is not _Where.TEXT:
            self._held = self._held.lstrip()
        yield from self._text(len(self._held))

    _ready = ""
    """Of a block: what can be released."""

    def _leave_head(self) -> bool:
        """Is it certain by now what comes first?"""
        word = self._held.lstrip()
        for opening, closing in _TAGS.items():
            if word.startswith(opening):
                self._held, self._closing = word[len(opening) :], closing
                self._where, self.found, self._inside = _Where.THOUGHT, True, False
                return True
        if any(opening.startswith(word) for opening in _TAGS):
            return False
        self._where = _Where.SPACE if self.found else _Where.FIRST_TEXT
        return True

    def _where_thought_ends(self) -> bool:
        """Take what is certainly of the block; is it closed?"""
        self._ready, closing, rest = self._held.partition(self._closing)
        if closing:
            self._held, self._where = rest, _Where.HEAD
            return True
        half = _half(self._held, self._closing)
        self._held = self._ready[len(self._ready) - half :]
        self._ready = self._ready[: len(self._ready) - half]
        return False

    def _thought(self) -> Iterator[Piece]:
        text, self._ready = self._blank + self._ready, ""
        self._blank = ""
        if not self._inside and not text.strip():
            self._blank = "" if self._where is _Where.HEAD else text
            return
        if not self._inside:
            text = "\n" + text if self._blocks else text
            self._blocks += 1
            self._inside = True
        if text:
            yield Piece(text=text, thought=True)

    def _first_text(self, *, ended: bool = False) -> Iterator[Piece]:
        first = not self._before
        alone = self._closing_line(*((_ONLY_LINE, _LAST_LINE) if ended else (_FIRST_LINE, _LINE)))
        end = alone.start() if alone else len(self._held)
        if _OPENING in self._before + self._held[:end]:
            self._where = _Where.TEXT
        elif alone:
            text, self._held = self._held[:end], self._held[alone.end() :]
            self._where, self.found = _Where.SPACE, True
            if not first or text.strip():
                yield Piece(text=text, thought=True, turned=True)
        else:
            sure = len(self._held) - _half_line(self._held, first=first)
            if not first or self._held[:sure].strip():
                yield from self._text(sure)

    def _closing_line(self, first: re.Pattern[str], later: re.Pattern[str]) -> re.Match[str] | None:
        begins = None if self._before else first.match(self._held)
        return begins or later.search(self._held)

    def _text(self, length: int) -> Iterator[Piece]:
        text, self._held = self._held[:length], self._held[length:]
        if text:
            self._before = (self._before + text)[-len(_OPENING) :]
            yield Piece(text=text, thought=False)


def _half(text: str, tag: str) -> int:
    """How many characters at the end may be the beginning of the tag."""
    lengths = range(min(len(tag) - 1, len(text)), 0, -1)
    return next((length for length in lengths if tag.startswith(text[-length:])), 0)


def _half_line(text: str, *, first: bool) -> int:
    """How many characters at the end may be the beginning of a line with the closing tag alone."""
    at = text.rfind("\n")
    if at < 0 and not first:
        return 0
    word = text[at + 1 :].lstrip(" \t")
    tag, after = word[: len(_CLOSING)], word[len(_CLOSING) :]
    return len(text) - max(at, 0) if _CLOSING.startswith(tag) and not after.strip(" \t\r") else 0
