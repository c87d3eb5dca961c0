"""Bringing answers that say the same into the same form, without losing a fact."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction

from axislab.answers.numerals import chinese_number

_WIDE: dict[int, int | str] = {0xFF01 + i: 0x21 + i for i in range(94)}
_SIGNS: dict[int, int | str] = {
    0x3000: " ",
    ord("。"): ".",
    ord("、"): ",",
    ord("﹣"): "-",
    ord("−"): "-",
    ord("–"): "-",
    ord("—"): "-",
    ord("‐"): "-",
    ord("‑"): "-",
    ord("’"): "'",
    ord("‘"): "'",
    ord("“"): '"',
    ord("”"): '"',
    ord("「"): '"',
    ord("」"): '"',
    ord("『"): '"',
    ord("』"): '"',
    ord("⁄"): "/",
    ord("∕"): "/",
    0x200B: "",
    0xFEFF: "",
}
_TABLE = {**_WIDE, **_SIGNS}

_MATH_PAIRS: tuple[tuple[str, str], ...] = (
    ("$$", "$$"),
    ("$", "$"),
    (r"\(", r"\)"),
    (r"\[", r"\]"),
)
_WRAPPER = re.compile(
    r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathit|mathsf|operatorname|mbox|boxed)"
    r"\s*\{([^{}]*)\}"
)
_FRACTION = re.compile(r"(\d?)\s*\\[dt]?frac\s*(?:\{([^{}]*)\}\s*\{([^{}]*)\}|(\d)\s*(\d))")
_THOUSANDS = re.compile(r"(?<=\d)(?:\\,|\{,\})(?=\d{3}(?!\d))")
_SPACING = re.compile(r"\\[,;:! ]|\\q?quad\b|~|\\(?:left|right)\b")
_ESCAPED = re.compile(r"\\([%$&#_{}])")
_DEGREE = re.compile(r"\^\s*(?:\\circ|\{\s*\\circ\s*\})|\\degree\b")
_PASSES = 8
"""How deeply nested wrappers may be and still be taken off."""

_THIN = "[\u00a0\u2009\u202f]"
_GROUPED = re.compile(rf"(?<=\d){_THIN}(?=\d{{3}}(?!\d))")
_HAN = "[\u3400-\u9fff]"
_HAN_GAP = re.compile(rf"(?<={_HAN})\s+(?={_HAN})")
_AT_THE_END = ".,;:? "
_AT_THE_START = ",;:?! "
_PAIRS: tuple[tuple[str, str], ...] = (
    ('"', '"'),
    ("'", "'"),
    ("`", "`"),
    ("**", "**"),
    ("*", "*"),
    ("《", "》"),
)

_DIGITS = r"(?:0|[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d*)"
_NUMBER = re.compile(
    rf"(?P<sign>[+-]?)\s*(?P<money>[$€£¥₹]?)\s*"
    rf"(?:(?P<whole>\d{{1,15}})\s+(?P<above>\d{{1,15}})/(?P<below>\d{{1,15}})"
    rf"|(?P<over>{_DIGITS})\s*/\s*(?P<under>{_DIGITS})"
    rf"|(?P<plain>{_DIGITS}(?:\.\d*)?|\.\d+)(?P<power>e[+-]?\d{{1,3}})?)"
    r"(?![\d.,/]\d|/)\s*(?P<unit>(?:[^\W\d_]|[%°‰$€£¥₹\"'×\\*²³]).*)?",
    re.DOTALL,
)
_TIMES_TEN = re.compile(r"^(?:×|\\times|\\cdot|x|\*)\s*10\s*\^\s*\{?\s*([+-]?\d{1,3})\s*\}?")
_LONGEST_NUMBER = 200
"""Characters of an answer that may still be read as a number."""
_LONGEST_NUMERAL = 30
_UNIT_NAMES = {"percent": "%", "per cent": "%", "degrees": "°", "degree": "°"}


@dataclass(frozen=True, slots=True)
class Normalized:
    """An answer in the form that is compared: a number with its unit, or a text."""

    number: Fraction | None
    rest: str
    """The unit of the number, money included; without a number, the text."""


def normalize(answer: str) -> Normalized:
    r"""The form of an answer that leaves out case, spacing, wrapping and ways to write a number.

    Accents, inner punctuation, articles, units and leading zeros are facts and stay.

    Examples:
        >>> normalize("1,234.0 km.") == normalize(r"$1234\,\text{km}$")
        True
        >>> normalize("50%") == normalize("50")
        False
    """
    text = _plain(answer)
    spelled = chinese_number(text) if len(text) <= _LONGEST_NUMERAL else None
    if spelled is not None:
        return Normalized(spelled, "")
    number = _number(text) if len(text) <= _LONGEST_NUMBER else None
    return number or Normalized(None, re.sub(r"\s*([,;])\s*", r"\1 ", text))


def _plain(answer: str) -> str:
    text = unicodedata.normalize("NFC", answer.translate(_TABLE))
    text = " ".join(_GROUPED.sub("", text).split())
    text = _HAN_GAP.sub("", " ".join(_without_latex(text).casefold().split()))
    bare, before = text, None
    while bare != before:
        before = bare
        bare = _stripped(bare)
        for left, right in _PAIRS:
            bare = _unpaired(bare, left, right)
    return bare or text


def _stripped(text: str) -> str:
    """The text without the punctuation around it; "5!" and ".5" are numbers and keep theirs."""
    text = text.rstrip(_AT_THE_END)
    shorter = text.rstrip("!" + _AT_THE_END)
    if not shorter[-1:].isdigit():
        text = shorter
    shorter = text.lstrip("." + _AT_THE_START)
    return text.lstrip(_AT_THE_START) if shorter[:1].isdigit() else shorter


def _unpaired(text: str, left: str, right: str) -> str:
    """The text without a pair of marks that encloses all of it."""
    inner = text[len(left) : -len(right)]
    whole = text.startswith(left) and text.endswith(right) and len(text) > len(left + right)
    return inner.strip() if whole and left not in inner and right not in inner else text


def _without_latex(text: str) -> str:
    if "$" not in text and "\\" not in text and "{" not in text:
        return text
    for left, right in _MATH_PAIRS:
        text = _unpaired(text, left, right)
    text = _DEGREE.sub("°", _THOUSANDS.sub("", text))
    for _ in range(_PASSES):
        before = text
        text = _FRACTION.sub(_as_division, _WRAPPER.sub(r"\1", text))
        if text == before:
            break
    return _ESCAPED.sub(r"\1", _SPACING.sub(" ", text)).strip()


def _as_division(fraction: re.Match[str]) -> str:
    above = (fraction[2] or fraction[4] or "").strip()
    below = (fraction[3] or fraction[5] or "").strip()
    if above.isdecimal() and below.isdecimal():
        return f"{fraction[1]} {above}/{below}"
    return f"{fraction[1]}({above})/({below})"


def _number(text: str) -> Normalized | None:
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    value = _value(found)
    if value is None:
        return None
    unit = found["unit"] or ""
    if power := _TIMES_TEN.match(unit):
        value *= Fraction(10) ** int(power[1])
        unit = unit[power.end() :].strip()
    if found["sign"] == "-":
        value = -value
    return Normalized(value, found["money"] + _UNIT_NAMES.get(unit, unit))


def _value(found: re.Match[str]) -> Fraction | None:
    if found["plain"]:
        return Fraction(_digits(found["plain"]) + (found["power"] or ""))
    if found["whole"]:
        whole, above, below = (int(found[name]) for name in ("whole", "above", "below"))
    else:
        whole, above, below = 0, int(_digits(found["over"])), int(_digits(found["under"]))
    return None if below == 0 else whole + Fraction(above, below)


def _digits(written: str) -> str:
    return written.replace(",", "")
