"""Arithmetic in words: a sum, or a short story about one, as an expression of signs."""

from __future__ import annotations

import re
from collections.abc import Callable

SUM = re.compile(
    r"\b(?:compute|calculate|evaluate|work out|what is|what's|how much is|find)\s+"
    r"(?:the value of )?"
    r"((?:[\d\s+\-*/×÷·−^().,%]|\bof\b|\bplus\b|\bminus\b|\btimes\b|\bdivided by\b){0,200}[\d)%])"
    r"\s*[.?=!]?(?=\s|$)",
    re.IGNORECASE,
)
CHANGE = re.compile(
    r"\b(?:what is|how much is)\s+([\d.,]+)\s+(increased|raised|decreased|reduced|lowered) by "
    r"([\d.]+)\s*%\s*\?",
    re.IGNORECASE,
)
_WORDS = {
    "divided by": "/", "times": "*", "plus": "+", "minus": "-", "of": "*",
    "×": "*", "·": "*", "÷": "/", "−": "-", "^": "**",
}  # fmt: skip
_WORD = re.compile(
    "|".join(rf"\b{w}\b" if w[0].isalpha() else re.escape(w) for w in _WORDS), re.IGNORECASE
)
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%")
_N = r"(\d{1,12})"
_GAP = r"[^?\d]{0,80}?\b"
_ASKED = r"[^?]{0,160}?\bhow (?:many|much|far)\b[^?]{0,120}\?"


def to_expression(text: str) -> str:
    """Arithmetic in words and signs, as a calculator reads it.

    Examples:
        >>> to_expression("3/4 of 120")
        '3/4 * 120'
    """
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)
    text = _PERCENT.sub(r"(\1 / 100)", text)
    text = _WORD.sub(lambda m: f" {_WORDS[m[0].lower()]} ", text)
    return " ".join(text.split()).rstrip(".=? ")


def _sum(match: re.Match[str]) -> str:
    return to_expression(match[1])


def _change(match: re.Match[str]) -> str:
    sign = "+" if match[2].lower() in ("increased", "raised") else "-"
    return f"{to_expression(match[1])} * (1 {sign} {match[3]} / 100)"


def _story(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern + _ASKED, re.IGNORECASE)


# A story is read by its verbs: what is packed, lost, sold, run or shared, and nothing else.
_LOST = r"(?:break|broke|are lost|get lost|spoil|are sold|are eaten)\b"
_PACKED = _story(rf"\b{_N} \w+ (?:with|of|that hold) {_N} {_GAP}each\b{_GAP}{_N} {_GAP}{_LOST}")
_SOLD = _story(rf"\b{_N} {_GAP}at {_N} {_GAP}and {_N} {_GAP}at {_N}\b")
_RUN = _story(rf"\bfor {_N} {_GAP}at {_N} {_GAP}for {_N} {_GAP}at {_N}\b")
_SHARED = _story(rf"\b{_N} {_GAP}keeps {_N} {_GAP}{_N} {_GAP}share\b")

Writer = Callable[[re.Match[str]], str]

READERS: tuple[tuple[re.Pattern[str], Writer], ...] = (
    (_PACKED, lambda m: f"{m[1]} * {m[2]} - {m[3]}"),
    (_SOLD, lambda m: f"{m[1]} * {m[2]} + {m[3]} * {m[4]}"),
    (_RUN, lambda m: f"{m[1]} * {m[2]} + {m[3]} * {m[4]}"),
    (_SHARED, lambda m: f"({m[1]} - {m[2]}) / {m[3]}"),
    (CHANGE, _change),
    (SUM, _sum),
)
"""Every form of a calculation, and how it is written as an expression."""
