"""Chinese numerals as digits: 三十五, 二〇二三, 壹佰, 3万, 负一点五."""

from __future__ import annotations

import re
from fractions import Fraction

_DIGITS = {c: i for i, c in enumerate("零一二三四五六七八九")}
_DIGITS |= {c: i for i, c in enumerate("〇壹贰叁肆伍陆柒捌玖")} | {"两": 2, "兩": 2, "貳": 2}
_DIGITS |= {"參": 3, "陸": 6}
_PLACES = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000}
_MYRIADS = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
_D, _P, _M = ("".join(table) for table in (_DIGITS, _PLACES, _MYRIADS))
_WHOLE = re.compile(rf"(负|負)?([{_D}{_P}{_M}]+)(?:[点點]([{_D}]+))?")
_MIXED = re.compile(rf"([+-]?\d+(?:\.\d+)?)\s*([{_M}]+)")


def chinese_number(text: str) -> Fraction | None:
    """The number a text is, if it is nothing but a numeral.

    Examples:
        >>> chinese_number("三百零五"), chinese_number("1.2亿"), chinese_number("三星")
        (Fraction(305, 1), Fraction(120000000, 1), None)
    """
    if mixed := _MIXED.fullmatch(text):
        value = Fraction(mixed[1])
        for myriad in mixed[2]:
            value *= _MYRIADS[myriad]
        return value
    found = _WHOLE.fullmatch(text)
    if found is None:
        return None
    whole = _spelled(found[2])
    if whole is None:
        return None
    if found[3]:
        digits = "".join(str(_DIGITS[c]) for c in found[3])
        whole += Fraction(int(digits), 10 ** len(digits))
    return -whole if found[1] else whole


def _spelled(text: str) -> Fraction | None:
    """A whole number, digit by digit or with its places; None where the places do not fall."""
    if all(c in _DIGITS for c in text):
        return Fraction(int("".join(str(_DIGITS[c]) for c in text)))
    total, section, digit, place = 0, 0, None, 10**4
    for c in text:
        if c in _DIGITS:
            if digit:
                return None
            digit = _DIGITS[c]
        elif c in _PLACES:
            if _PLACES[c] >= place:
                return None
            place = _PLACES[c]
            section += (1 if digit is None else digit) * place
            digit = None
        else:
            whole = section + (digit or 0)
            if c in "亿億":
                total = (total + whole) * _MYRIADS[c]
            else:
                total += whole * _MYRIADS[c]
            section, digit, place = 0, None, 10**4
    return Fraction(total + section + (digit or 0))
