"""Finding refusals and tool calls written as text.

Two detectors answer the same two questions. `SubstringDetector` looks for configured keywords
(AxisAgentic). `StructuredDetector` parses: it skips quotations, evens out apostrophes and case,
knows English and Chinese refusals, and reads a textual call only where one really stands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Protocol

from axislab.config import ConversationConfig


@dataclass(frozen=True, slots=True)
class Match:
    """Something found in a text."""

    text: str
    """The keyword, or the words that gave it away."""
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
        self._refusals = tuple(k for k in refusals if k)
        self._formats = tuple(k for k in formats if k)
        self._fold = fold_case

    def refusals(self, text: str) -> tuple[Match, ...]:
        """Where the text refuses."""
        return self._find(self._refusals, text)

    def textual_calls(self, text: str) -> tuple[Match, ...]:
        """Where the text holds a tool call that is not a structured one."""
        return self._find(self._formats, text)

    def _find(self, keywords: tuple[str, ...], text: str) -> tuple[Match, ...]:
        where = text.casefold() if self._fold else text
        found = []
        for keyword in keywords:
            start = where.find(keyword.casefold() if self._fold else keyword)
            if start >= 0:
                found.append(Match(keyword, start, start + len(keyword)))
        return tuple(found)


_APOSTROPHES = str.maketrans(
    {"\u2019": "'", "\u2018": "'", "\u02bc": "'", "\uff07": "'", "\u00b4": "'"}
)

_CANNOT = (
    r"(?:can(?:no|')t|can not|am unable to|'m unable to|am not able to|'m not able to|won't|"
    r"will not|must decline to|have to decline to|am not allowed to|'m not allowed to)"
)
_HELPING = (
    r"(?:help|assist|answer|comply|continue|do (?:that|this)|discuss|engage|fulfil+|give|"
    r"provide|complete|perform|process|respond|solve|support|participate|share|write|create)"
)
_REFUSALS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\bI(?:'m| am)(?: very| so| really)? sorry,?(?: but)? (?:I )?{_CANNOT}",
        rf"\b(?:sorry|apologies)\b[^.!?\n]{{0,40}}\bI {_CANNOT} (?:\w+ ){{0,2}}{_HELPING}",
        rf"\bI(?: |(?=')){_CANNOT} (?:\w+ ){{0,2}}{_HELPING}",
        rf"\bas an? (?:AI|artificial|language)[^.!?\n]{{0,40}}\bI {_CANNOT}",
        r"\bI (?:must|have to|need to) (?:decline|refuse)\b",
        r"\b(?:this|that|your) request (?:is|goes) against (?:my|our)\b",
        r"(?:很|非常|十分)?(?:抱歉|对不起|遗憾)[,，。！\s]{0,3}(?:但|不过)?(?:作为[^,，。]{0,12}[,，])?"
        r"我?(?:无法|不能|不可以|没有办法|没法)",
        r"我(?:无法|不能|没有办法|没法|拒绝)(?:为您|为你|向您|向你|对此|就此)?"
        r"(?:提供|回答|协助|帮助|完成|满足|处理|继续|参与|讨论|执行)",
        r"作为(?:一个|一名)?(?:AI|人工智能|语言模型)[^。！？\n]{0,20}(?:无法|不能)",
    )
)

_REFUSAL_REACH = 400
"""A refusal opens a reply: one that only starts later is part of an answer."""


class StructuredDetector:
    """Parses instead of searching; says where it found something."""

    def __init__(
        self,
        refusals: Collection[str] = (),
        formats: Collection[str] = (),
        *,
        tool_names: Collection[str] = (),
    ) -> None:
        self._keywords = tuple(_even(k) for k in refusals if k)
        tags = {m[1] for k in formats if (m := re.fullmatch(r"</?([\w.-]+)>", k))}
        self._tags = frozenset(tags | {"tool_call"})
        self._tool_names = frozenset(tool_names)

    def refusals(self, text: str) -> tuple[Match, ...]:
        """Where the text refuses; a text that gives an answer in a box refuses nothing."""
        if "\\boxed" in text:
            return ()
        even = _even(text)
        quoted = _quoted(text)
        found = []
        for pattern in _REFUSALS:
            found += [(m.start(), m.end()) for m in pattern.finditer(even, 0, _REFUSAL_REACH)]
        for keyword in self._keywords:
            start = even.find(keyword)
            while start >= 0:
                found.append((start, start + len(keyword)))
                start = even.find(keyword, start + 1)
        return tuple(
            Match(text[a:b], a, b) for a, b in _outermost(found) if not _inside(a, b, quoted)
        )

    def textual_calls(self, text: str) -> tuple[Match, ...]:
        """Where the text holds a tool call that is not a structured one."""
        found = [*self._tagged(text), *self._fenced(text), *self._bare(text)]
        spans = _outermost((m.start, m.end) for m in found)
        by_span = {(m.start, m.end): m for m in found}
        return tuple(by_span[s] for s in spans)

    def _tagged(self, text: str) -> Iterator[Match]:
        quoted = _quoted(text)
        for tag in sorted(self._tags):
            pattern = rf"<{re.escape(tag)}>\s*(.*?)\s*(?:</{re.escape(tag)}>|\Z)"
            for m in re.finditer(pattern, text, re.DOTALL):
                if not _inside(m.start(), m.start() + 1, quoted) and _call_like(m[1]):
                    yield Match(m[0], m.start(), m.end())

    def _fenced(self, text: str) -> Iterator[Match]:
        for m in re.finditer(r"```(?:json|tool_call|tool)?[ \t]*\n(.*?)```", text, re.DOTALL):
            if _names_tool(_load(m[1]), self._tool_names):
                yield Match(m[0], m.start(), m.end())

    def _bare(self, text: str) -> Iterator[Match]:
        stripped = text.strip()
        start = text.find(stripped) if stripped else 0
        if _names_tool(_load(stripped), self._tool_names):
            yield Match(stripped, start, start + len(stripped))
            return
        quoted = _quoted(text)
        for m in re.finditer(
            r"^[ \t]*([A-Za-z_][\w.]*)\((.*)\)[ \t]*;?[ \t]*$", text, re.MULTILINE
        ):
            alone = m[0].strip() == stripped
            known = m[1] in self._tool_names
            a, b = m.start(1), m.end()
            if _inside(a, b, quoted) or not (known or (alone and not self._tool_names)):
                continue
            if _arguments_like(m[2]):
                yield Match(text[a:b].rstrip(), a, b)


def _even(text: str) -> str:
    """Straight apostrophes and lower case; every character keeps its place."""
    low = text.translate(_APOSTROPHES)
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in low)


_QUOTES = re.compile(
    r"`[^`\n]+`"
    r"|\"[^\"\n]{1,300}\""
    r"|\u201c[^\u201d\n]{1,300}\u201d"
    r"|\u300c[^\u300d\n]{1,300}\u300d"
    r"|^>[^\n]*$"
    r"|```.*?```",
    re.MULTILINE | re.DOTALL,
)


def _quoted(text: str) -> list[tuple[int, int]]:
    """Spans of inline code, quotation marks, block quotes and code blocks."""
    return [(m.start(), m.end()) for m in _QUOTES.finditer(text)]


def _inside(start: int, end: int, spans: list[tuple[int, int]]) -> bool:
    return any(a <= start and end <= b for a, b in spans)


def _outermost(
    spans: Collection[tuple[int, int]] | Iterator[tuple[int, int]],
) -> list[tuple[int, int]]:
    kept: list[tuple[int, int]] = []
    for a, b in sorted(set(spans), key=lambda s: (s[0], -s[1])):
        if not kept or b > kept[-1][1]:
            kept.append((a, b))
    return kept


def _load(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _names_tool(value: object, tool_names: Collection[str]) -> bool:
    """A JSON object that names a tool and its arguments."""
    if isinstance(value, list):
        return bool(value) and all(_names_tool(item, tool_names) for item in value)
    if not isinstance(value, dict):
        return False
    inner = value.get("function")
    if isinstance(inner, dict):
        value = inner
    name = value.get("name") or value.get("tool") or value.get("tool_name")
    has_arguments = any(
        isinstance(value.get(k), dict | str) for k in ("arguments", "parameters", "args", "input")
    )
    return isinstance(name, str) and has_arguments and (not tool_names or name in tool_names)


def _call_like(body: str) -> bool:
    """Inside call tags: JSON, even broken or cut, a call expression, or nested tags."""
    return bool(re.match(r"[\[{]|[A-Za-z_][\w.]*\s*\(|<\w", body))


def _arguments_like(inside: str) -> bool:
    """What stands between the parentheses of a call: nothing, literals or keyword arguments."""
    inside = inside.strip()
    return not inside or bool(
        re.match(r"[\"'\u201c{\[]|-?\d|[A-Za-z_]\w*\s*=|(?:true|false|null|None)\b", inside)
    )
