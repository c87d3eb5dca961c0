"""Telling what a model thought from what it said, where it writes both into one text."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

_TAG = re.compile(r"</?think>")


@dataclass(frozen=True, slots=True)
class Spoken:
    """A text without its thinking, and the way back to the places in the whole text."""

    text: str
    thoughts: tuple[str, ...]
    """What stood in the think blocks, in order."""
    places: tuple[int, ...]
    """For each kept piece, where it begins in `text`."""
    origins: tuple[int, ...]
    """For each kept piece, where it begins in the whole text."""

    def origin(self, place: int) -> int:
        """Where a character of `text` stands in the whole text."""
        piece = bisect_right(self.places, place) - 1
        return self.origins[piece] + place - self.places[piece]


def without_thinking(text: str) -> Spoken:
    """Take the <think> blocks out.

    A block that is not closed hides the rest. A closing tag without its opening one ends a block
    whose beginning was in the prompt: what stands before it is thinking, unless nothing follows.
    """
    kept: list[slice] = []
    thoughts: list[str] = []
    begin, thinking, orphaned = 0, False, 0
    for tag in _TAG.finditer(text):
        opening = tag[0] == "<think>"
        if thinking and opening:
            continue
        if thinking:
            thoughts.append(text[begin : tag.start()])
        else:
            kept.append(slice(begin, tag.start()))
            orphaned = orphaned if opening else len(kept)
        thinking = opening
        begin = tag.end()
    if thinking:
        thoughts.append(text[begin:])
    else:
        kept.append(slice(begin, len(text)))
    if any(text[piece].strip() for piece in kept[orphaned:]):
        thoughts = [*(text[piece] for piece in kept[:orphaned]), *thoughts]
        kept = kept[orphaned:]
    return _joined(text, kept, thoughts)


def _joined(text: str, kept: list[slice], thoughts: list[str]) -> Spoken:
    places, length = [], 0
    for piece in kept:
        places.append(length)
        length += piece.stop - piece.start
    return Spoken(
        text="".join(text[piece] for piece in kept),
        thoughts=tuple(thoughts),
        places=tuple(places),
        origins=tuple(piece.start for piece in kept),
    )


def first_tag_opens(text: str) -> int | None:
    """Where the first think block begins, if its opening tag is there; else None."""
    tag = _TAG.search(text)
    return tag.start() if tag and tag[0] == "<think>" else None
