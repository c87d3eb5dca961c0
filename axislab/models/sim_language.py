"""The questions the simulated agent can read: noun phrases and the four kinds of task.

It parses; it knows nothing. A question becomes a plan of facts to find, and that is all that is
ever taken from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TypeAlias

from axislab.models.sim_sums import READERS as SUMS
from axislab.models.sim_sums import Writer

_RELATION = r"[a-z][\w \-]*?"
_ATTRIBUTE = re.compile(rf"^the ({_RELATION}) of (.+)$", re.DOTALL)
_POSSESSIVE = re.compile(r"^([A-Z0-9].*?)['’]s? ([a-z][\w \-]*)$")
_LOOSE_NAME = re.compile(r"^(?!(?:an?|all|any|each|every|that|this|its|your|our|my)\b)[^?!,;:\n]+$")

_MORE = "larger|later|greater|higher|longer|bigger|newer|deeper|taller|heavier|wider|more"
_LESS = "smaller|earlier|lesser|lower|shorter|fewer|older|shallower|lighter|narrower|less"
_CHAIN = re.compile(
    r"\b(?:what|who|where|when|(?:in )?(?:which|what) [\w \-]{1,40}?)\s+(?:is|was|are|were)\s+"
    r"((?:the [^?\n]{1,60}? of [^?\n]{1,300}?)|"
    r"(?:[A-Z0-9][^?\n]{0,80}?['’]s? [a-z][\w \-]{0,40}?))\s*\?",
    re.IGNORECASE,
)
_COMPARISON = re.compile(
    rf"\bwhich (?:[\w \-]{{1,40}}? )?has the ({_MORE}|{_LESS}) ({_RELATION})\s*[:,]\s*"
    r"([^?\n]{1,300}?) or ([^?\n]{1,300}?)\s*\?",
    re.IGNORECASE,
)
_DIFFERENCE = re.compile(
    r"\bby how much do(?:es)? (the [^?\n]{1,300}?) and (the [^?\n]{1,300}?) differ\s*\?",
    re.IGNORECASE,
)


class QuestionKind(StrEnum):
    """The kinds of task the simulated agent can work on."""

    CHAIN = "chain"
    """The R1 of the R2 of … of an entity."""
    COMPARISON = "comparison"
    """Which of two has more, or less, of something."""
    DIFFERENCE = "difference"
    """How far two numbers are apart."""
    CALCULATION = "calculation"
    """An expression of arithmetic."""


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """An entity, and the relations to follow from it, innermost first."""

    entity: str
    relations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, as a plan of what has to be found."""

    kind: QuestionKind
    text: str
    """The sentence it was read from."""
    phrases: tuple[NounPhrase, ...] = ()
    relation: str = ""
    """For a comparison: what is compared."""
    larger: bool = True
    """For a comparison: the larger one is wanted."""
    expression: str = ""
    """For a calculation: digits, operators and parentheses only."""


Reader: TypeAlias = tuple[re.Pattern[str], Callable[[re.Match[str]], Question | None]]
"""A form of question, and what it means."""


def plain(text: str) -> str:
    """A name or relation in the form it is compared in."""
    return " ".join(text.replace("_", " ").split()).casefold()


def parse_phrase(text: str) -> NounPhrase | None:
    """A noun phrase, or None where the text is none."""
    relations: list[str] = []
    rest = " ".join(text.split())
    while match := _ATTRIBUTE.match(rest[:1].lower() + rest[1:]):
        relations.append(plain(match[1]))
        rest = rest[match.start(2) :]
    if match := _POSSESSIVE.match(rest):
        relations.append(plain(match[2]))
        rest = match[1]
    return NounPhrase(rest, tuple(reversed(relations))) if _is_name(rest) else None


def _is_name(text: str) -> bool:
    if not _LOOSE_NAME.match(text) or text.startswith("the "):
        return False
    # Written small it may still be a name ("water"); a clause of many words is not.
    return len(text.split()) <= (6 if text[0].isupper() or text[0].isdigit() else 2)


@lru_cache(maxsize=4096)
def parse_question(text: str) -> Question | None:
    """The first question of the text that is one of ours, or None."""
    found = [
        (match.start(), order, match)
        for order, (pattern, _) in enumerate(_READERS)
        for match in pattern.finditer(text)
    ]
    for _, order, match in sorted(found, key=lambda item: item[:2]):
        if question := _READERS[order][1](match):
            return question
    return None


def _comparison(match: re.Match[str]) -> Question | None:
    phrases = parse_phrase(match[3]), parse_phrase(match[4])
    if phrases[0] is None or phrases[1] is None:
        return None
    return Question(
        kind=QuestionKind.COMPARISON,
        text=match[0],
        phrases=(phrases[0], phrases[1]),
        relation=plain(match[2]),
        larger=match[1].lower() in _MORE.split("|"),
    )


def _difference(match: re.Match[str]) -> Question | None:
    phrases = parse_phrase(match[1]), parse_phrase(match[2])
    if phrases[0] is None or phrases[1] is None:
        return None
    return Question(kind=QuestionKind.DIFFERENCE, text=match[0], phrases=(phrases[0], phrases[1]))


def _chain(match: re.Match[str]) -> Question | None:
    phrase = parse_phrase(match[1])
    if phrase is None or not phrase.relations:
        return None
    return Question(kind=QuestionKind.CHAIN, text=match[0], phrases=(phrase,))


def _calculation(pattern: re.Pattern[str], write: Writer) -> Reader:
    def read(match: re.Match[str]) -> Question | None:
        expression = write(match)
        if not re.search(r"\d[^\d.]*[+\-*/]", expression):
            return None
        return Question(kind=QuestionKind.CALCULATION, text=match[0], expression=expression)

    return pattern, read


_READERS: tuple[Reader, ...] = (
    (_COMPARISON, _comparison),
    (_DIFFERENCE, _difference),
    *(_calculation(pattern, write) for pattern, write in SUMS),
    (_CHAIN, _chain),
)
