"""Exact arithmetic on text: a small parser of its own, no Python is evaluated.

Numbers are fractions, so 0.1 + 0.2 is 0.3. What has no exact value (a root, a broken power) is
taken to 40 digits. Everything is bounded in size, so that no expression takes long.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction

from axislab.errors import ToolError

_LONGEST = 1000
"""Characters of an expression."""
_DEEPEST = 50
"""Levels of brackets, signs and powers."""
_BITS = 4000
"""Bits of a numerator or denominator: about 1,200 digits."""
_DIGITS = 15
"""Digits shown of a number that does not end."""
_WORKING = 40
"""Digits kept of a number that has no exact value."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<mark>\*\*|//|[-+*/%^(),]))"
)
_SIGNS = {ord(a): b for a, b in zip("×·⋅÷−–∕\u3000", "***/--/ ", strict=True)}
# Full-width letters and digits by hand: a normal form would make 22 of 2².
_SIGNS |= {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    place: int
    kind: str = "mark"


def calculate(expression: str) -> str:
    """The value of an arithmetic expression, as text.

    Knows + - * / // % ** (or ^), brackets, and sqrt, abs, min, max, round. `round` rounds halves
    away from zero, as at school. A number that does not end is shown with 15 digits.

    Raises:
        ToolError: It is no such expression, has no value, or is too large; the message says what.

    Examples:
        >>> calculate("0.1 + 0.2"), calculate("2 ** 10"), calculate("1 / 3")
        ('0.3', '1024', '0.333333333333333')
    """
    return format_number(_Parser(_tokens(expression)).value())


def format_number(value: Fraction) -> str:
    """A number as text: whole and ending numbers in full, others with 15 digits."""
    if value.denominator == 1:
        return str(value.numerator)
    with localcontext(Context(prec=_WORKING)):
        shown = Decimal(value.numerator) / Decimal(value.denominator)
        # Exact if it ends within the digits kept.
        digits = _WORKING if Fraction(shown) == value and _short(shown) else _DIGITS
    with localcontext(Context(prec=digits)):
        shown = (Decimal(value.numerator) / Decimal(value.denominator)).normalize()
    if -7 <= shown.adjusted() < 21:
        return f"{shown:f}"
    return str(shown).replace("E", "e")


def _short(value: Decimal) -> bool:
    return len(value.normalize().as_tuple().digits) <= 2 * _DIGITS


def _tokens(expression: str) -> list[_Token]:
    text = expression.translate(_SIGNS).strip().rstrip("= ")
    if not text:
        raise ToolError("There is nothing to calculate: give an expression such as 12 * (7 + 5).")
    if len(text) > _LONGEST:
        raise ToolError(f"The expression has {len(text)} characters; at most {_LONGEST} are taken.")
    tokens: list[_Token] = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise ToolError(_strange(text, place))
        kind = match.lastgroup or "mark"
        tokens.append(_Token(match[kind], match.start(kind), kind))
        place = match.end()
        if not text[place:].strip():
            break
    return tokens


def _strange(text: str, place: int) -> str:
    rest = text[place:].lstrip()
    return (
        f"{rest[:1]!r} at character {len(text) - len(rest) + 1} is not arithmetic: use digits, "
        "+ - * / // % **, brackets, and sqrt, abs, min, max, round. No variables, units or text."
    )


class _Parser:
    """Reads tokens by precedence: sums, products, signs, powers, single values."""

    def __init__(self, tokens: Sequence[_Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def value(self) -> Fraction:
        """The value of the whole expression."""
        value = self._sum()
        if (left := self._peek()) is not None:
            raise ToolError(self._unexpected(left))
        return value

    def _sum(self) -> Fraction:
        value = self._product()
        while (mark := self._take("+", "-")) is not None:
            right = self._product()
            value = _bounded(value + right if mark == "+" else value - right)
        return value

    def _product(self) -> Fraction:
        value = self._signed()
        while (mark := self._take("*", "/", "//", "%")) is not None:
            if mark == "%" and self._at_end_of_operand():
                raise ToolError("% is the remainder of a division: for per cent write x / 100.")
            value = _bounded(_multiply(value, mark, self._signed()))
        return value

    def _signed(self) -> Fraction:
        self._enter()
        mark = self._take("+", "-")
        value = self._power() if mark is None else self._signed()
        self._depth -= 1
        return -value if mark == "-" else value

    def _power(self) -> Fraction:
        base = self._single()
        if self._take("**", "^") is None:
            return base
        return _bounded(raise_to(base, self._signed()))

    def _single(self) -> Fraction:
        token = self._next()
        if token.kind == "number":
            return _number(token.text)
        if token.kind == "name":
            return self._call(token)
        if token.text != "(":
            raise ToolError(self._unexpected(token))
        self._enter()
        value = self._sum()
        self._depth -= 1
        self._close("(")
        return value

    def _call(self, token: _Token) -> Fraction:
        name = token.text.lower()
        if name not in _FUNCTIONS or self._take("(") is None:
            known = ", ".join(_FUNCTIONS)
            raise ToolError(f"{token.text!r} is no number: there are only the functions {known}.")
        self._enter()
        values = [self._sum()]
        while self._take(",") is not None:
            values.append(self._sum())
        self._depth -= 1
        self._close(name + "(")
        return _bounded(_FUNCTIONS[name](values))

    def _close(self, opened: str) -> None:
        if self._take(")") is not None:
            return
        token = self._peek()
        if token is not None and token.text == ",":
            raise ToolError("A comma only stands between values of min, max or round: write 1234.")
        raise ToolError(f"The bracket {opened!r} is not closed.")

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ToolError(f"The expression is nested deeper than {_DEEPEST} levels.")

    def _at_end_of_operand(self) -> bool:
        token = self._peek()
        return token is None or token.text in {")", ",", "*", "/", "//", "%"}

    def _peek(self) -> _Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _next(self) -> _Token:
        token = self._peek()
        if token is None:
            raise ToolError("The expression ends too early: a number is missing.")
        self._at += 1
        return token

    def _take(self, *marks: str) -> str | None:
        token = self._peek()
        if token is None or token.kind != "mark" or token.text not in marks:
            return None
        self._at += 1
        return token.text

    def _unexpected(self, token: _Token) -> str:
        if token.text == ",":
            return f"The comma at character {token.place + 1} is in the way: write 1234, not 1,234."
        if token.kind in {"number", "name"} or token.text == "(":
            return f"An operator is missing before {token.text!r} at character {token.place + 1}."
        return f"{token.text!r} at character {token.place + 1} stands where a number should."


def _number(text: str) -> Fraction:
    mantissa, _, exponent = text.lower().partition("e")
    if len(exponent.lstrip("+-")) > 4:
        raise ToolError(f"{text} is too large or too small a number.")
    return _bounded(Fraction(mantissa.rstrip(".") or "0") * Fraction(10) ** int(exponent or 0))


def _bounded(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _BITS:
        raise ToolError(f"A number on the way has more than {_BITS * 3 // 10} digits: too large.")
    return value


def _multiply(left: Fraction, mark: str, right: Fraction) -> Fraction:
    if mark == "*":
        return left * right
    if right == 0:
        raise ToolError("Division by zero has no value.")
    if mark == "/":
        return left / right
    return Fraction(left // right) if mark == "//" else left % right


def raise_to(base: Fraction, exponent: Fraction) -> Fraction:
    """A power, refused where it has no real value or would be huge.

    Raises:
        ToolError: It cannot be given.
    """
    if base == 0:
        if exponent < 0:
            raise ToolError("0 to a negative power has no value.")
        return Fraction(0 if exponent else 1)
    size = max(base.numerator.bit_length(), base.denominator.bit_length()) - 1
    if abs(base) != 1 and abs(exponent) * max(size, 1) > _BITS:
        raise ToolError(f"A power like that has more than {_BITS * 3 // 10} digits: too large.")
    if exponent.denominator == 1:
        return Fraction(base ** (int(exponent) % 2 if abs(base) == 1 else int(exponent)))
    if base < 0:
        raise ToolError("A broken power of a negative number is no real number.")
    if exponent.denominator == 2 and (exact := _exact_root(base)) is not None:
        return raise_to(exact, Fraction(exponent.numerator))
    with localcontext(Context(prec=_WORKING)):
        return Fraction(_decimal(base) ** _decimal(exponent))


def root(value: Fraction) -> Fraction:
    """The square root: exact where there is an exact one.

    Raises:
        ToolError: The value is negative.
    """
    if value < 0:
        raise ToolError("The square root of a negative number is no real number.")
    if (exact := _exact_root(value)) is not None:
        return exact
    with localcontext(Context(prec=_WORKING)):
        return Fraction(_decimal(value).sqrt())


def _exact_root(value: Fraction) -> Fraction | None:
    top, bottom = math.isqrt(value.numerator), math.isqrt(value.denominator)
    exact = top * top == value.numerator and bottom * bottom == value.denominator
    return Fraction(top, bottom) if exact else None


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _only(values: Sequence[Fraction], name: str) -> Fraction:
    if len(values) != 1:
        raise ToolError(f"{name} takes one value, got {len(values)}: no commas in a number.")
    return values[0]


def _round(values: Sequence[Fraction]) -> Fraction:
    if len(values) > 2:
        raise ToolError(f"round takes a value and a number of digits, got {len(values)} values.")
    digits = values[1] if len(values) == 2 else Fraction(0)
    if digits.denominator != 1 or abs(digits) > 100:
        raise ToolError(f"round takes a whole number of digits up to 100, got {digits}.")
    scale = Fraction(10) ** int(digits)
    whole = math.floor(abs(values[0]) * scale + Fraction(1, 2))
    return whole / scale if values[0] >= 0 else -whole / scale


_FUNCTIONS: dict[str, Callable[[Sequence[Fraction]], Fraction]] = {
    "sqrt": lambda values: root(_only(values, "sqrt")),
    "abs": lambda values: abs(_only(values, "abs")),
    "min": min,
    "max": max,
    "round": _round,
}
