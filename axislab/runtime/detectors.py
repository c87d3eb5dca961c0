"""Finding refusals and tool calls written as text.

Two detectors answer the same two questions. `SubstringDetector` looks for configured keywords
(AxisAgentic). `StructuredDetector` parses: it skips quotations, evens out apostrophes and case,
knows English and Chinese refusals, and reads a textual call only where one really stands.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Protocol

from axislab.config import ConversationConfig
from axislab.runtime.quotations import Quotations, Span, outermost
from axislab.runtime.refusals import even, find_refusals, gives_answer
from axislab.runtime.textual_calls import TAGS, find_calls

_SHOWN = 240
"""Characters of a match that are kept as its text."""


@dataclass(frozen=True, slots=True)
class Match:
    """Something found in a text."""

    text: str
    """The keyword, or the beginning of the words that gave it away."""
    start: int
    end: int


class Detector(Protocol):
    """Looks at the text of a reply."""

    def refusals(self, text: str) -> tuple[Match, ...]:
        """Where the text refuses."""

    def textual_calls(self, text: str) -> tuple[Match, ...]:
        """Where the text holds a tool call that is not a structured one."""


def make_detector(config: ConversationConfig, *, tool_names: Collection[str] = ()) -> Detector:
    """The detector a config asks for."""
    refusals = config.assistant_rollback.refusal_keywords
    formats = config.format_error.format_keywords
    if config.detector == "structured":
        return StructuredDetector(refusals, formats, tool_names=tool_names)
    return SubstringDetector(refusals, formats, fold_case=config.fold_case)


class SubstringDetector:
    """Keywords anywhere in the text, each reported once, in the order they are configured."""

    def __init__(
        self, refusals: Collection[str], formats: Collection[str], *, fold_case: bool = False
    ) -> None:
        flags = re.IGNORECASE if fold_case else re.NOFLAG
        self._refusals = [(k, re.compile(re.escape(k), flags)) for k in refusals if k]
        self._formats = [(k, re.compile(re.escape(k), flags)) for k in formats if k]

    def refusals(self, text: str) -> tuple[Match, ...]:
        """Where the text refuses."""
        return _keywords(self._refusals, text)

    def textual_calls(self, text: str) -> tuple[Match, ...]:
        """Where the text holds a tool call that is not a structured one."""
        return _keywords(self._formats, text)


def _keywords(keywords: Iterable[tuple[str, re.Pattern[str]]], text: str) -> tuple[Match, ...]:
    searched = ((keyword, pattern.search(text)) for keyword, pattern in keywords)
    return tuple(Match(k, found.start(), found.end()) for k, found in searched if found)


class StructuredDetector:
    """Parses instead of searching; says where it found something.

    Args:
        refusals: Further texts that make a reply a refusal, wherever they stand.
        formats: Further tags that stand around a call, such as `<my_call>`.
        tool_names: Tools there are; an expression that calls none of them is no call.
    """

    def __init__(
        self,
        refusals: Collection[str] = (),
        formats: Collection[str] = (),
        *,
        tool_names: Collection[str] = (),
    ) -> None:
        self._keywords = tuple(even(k) for k in refusals if k)
        given = (re.fullmatch(r"</?([\w.-]+)>", k) for k in formats)
        self._tags = TAGS | {m[1] for m in given if m}
        self._tool_names = frozenset(tool_names)

    def refusals(self, text: str) -> tuple[Match, ...]:
        """Where the text refuses; a text that gives an answer refuses nothing."""
        evened = even(text)
        found = [*find_refusals(evened), *self._keyword_spans(evened)]
        if not found or gives_answer(evened):
            return ()
        quoted = Quotations(text)
        return _matches(text, [s for s in found if not quoted.covers(*s)])

    def _keyword_spans(self, evened: str) -> list[Span]:
        return [
            found.span()
            for keyword in self._keywords
            for found in re.finditer(re.escape(keyword), evened)
        ]

    def textual_calls(self, text: str) -> tuple[Match, ...]:
        """Where the text holds a tool call that is not a structured one."""
        quoted = Quotations(text)
        found = find_calls(text, quoted, tags=self._tags, tool_names=self._tool_names)
        return _matches(text, list(found))


def _matches(text: str, spans: list[Span]) -> tuple[Match, ...]:
    return tuple(Match(text[a : min(b, a + _SHOWN)], a, b) for a, b in outermost(spans))
