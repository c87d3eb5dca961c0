"""Takes the thinking out of a whole reply whose server left it in the text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_OPEN: Final = re.compile(r"\s*<think>")
_CLOSING_LINE: Final = re.compile(r"(?:^|\n)[ \t]*</think>[ \t]*(?:\n|$)")


@dataclass(frozen=True, slots=True)
class Spoken:
    """A reply in two parts."""

    said: str
    thought: str | None
    """None if there was no thinking in it."""


def split_thinking(text: str) -> Spoken:
    """What a reply says, and what it thought before.

    Only blocks at the beginning are thinking: a tag further on may be a quotation. One that is
    never closed hides the rest. A closing tag alone on its line, without an opening one, ends a
    block whose beginning was in the prompt.
    """
    thoughts: list[str] = []
    rest = text
    while opening := _OPEN.match(rest):
        thought, closing, rest = rest[opening.end() :].partition("</think>")
        thoughts.append(thought)
        if not closing:
            break
    if not thoughts and "<think>" not in text and (alone := _CLOSING_LINE.search(text)):
        thoughts, rest = [text[: alone.start()]], text[alone.end() :]
    if not thoughts:
        return Spoken(text, None)
    return Spoken(rest.lstrip(), "\n".join(thoughts))
