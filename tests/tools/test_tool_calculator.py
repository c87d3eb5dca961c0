from __future__ import annotations

import contextlib
import math
import re
import time
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axislab.errors import ToolError
from axislab.tools.calculator import calculate, format_number


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3", "7"),
        ("12 * (7 + 5)", "144"),
        ("3/4*120", "90"),
        ("0.1 + 0.2", "0.3"),
        ("1 - 0.9", "0.1"),
        ("2 ** 10", "1024"),
        ("2 ^ 10", "1024"),
        ("2 ** 3 ** 2", "512"),
        ("-2 ** 2", "-4"),
        ("(-2) ** 2", "4"),
        ("2 ** -1", "0.5"),
        ("4 ** 0.5", "2"),
        ("8 ** (1/3)", "2"),
        ("2 ** 100.5", "1.79272867119316e+30"),
        ("0 ** 0", "1"),
        ("1 ** 99999999999", "1"),
        ("(-1) ** 99999999999", "-1"),
        ("--3", "3"),
        ("+5", "5"),
        ("10 / 4", "2.5"),
        ("1 / 3", "0.333333333333333"),
        ("2 / 3", "0.666666666666667"),
        ("10 // 3", "3"),
        ("-7 // 2", "-4"),
        ("7 % 3", "1"),
        ("-7 % 3", "2"),
        ("7.5 % 2", "1.5"),
        ("1.5e3", "1500"),
        ("2E-3", "0.002"),
        (".5 + 5.", "5.5"),
        ("1e-30", "1e-30"),
        ("1/3 * 10**-20", "3.33333333333333e-21"),
        ("10 ** 25 / 3", "3.33333333333333e+24"),
        ("2 ** 100", "1267650600228229401496703205376"),
        ("sqrt(16)", "4"),
        ("sqrt(2)", "1.4142135623731"),
        ("sqrt(2) ** 2", "2"),
        ("sqrt(0.25)", "0.5"),
        ("SQRT(9)", "3"),
        ("abs(-3.50)", "3.5"),
        ("min(3, 1, 2)", "1"),
        ("max(1, 2 * 3)", "6"),
        ("max(4)", "4"),
        ("round(2.5)", "3"),
        ("round(-2.5)", "-3"),
        ("round(2.4)", "2"),
        ("round(2.675, 2)", "2.68"),
        ("round(1234, -2)", "1200"),
        ("12 * (7 + 5) =", "144"),
        ("２＋３", "5"),
        ("（1＋2）×3", "9"),
        ("3 × 4 ÷ 2 − 1", "5"),
        ("٣ + 1", "4"),
    ],
)
def test_it_calculates(expression, value):
    assert calculate(expression) == value


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("", "nothing to calculate"),
        ("   ", "nothing to calculate"),
        ("1 +", "ends too early"),
        ("* 2", "stands where a number should"),
        ("1 2", "An operator is missing before '2'"),
        ("2(3)", "An operator is missing before '('"),
        ("(1 + 2", "is not closed"),
        ("max(1, 2", "is not closed"),
        ("1 + 2)", "')' at character 6"),
        ("()", "stands where a number should"),
        ("min()", "stands where a number should"),
        ("1 / 0", "Division by zero"),
        ("1 // 0", "Division by zero"),
        ("1 % 0", "Division by zero"),
        ("0 ** -1", "no value"),
        ("sqrt(-1)", "negative number"),
        ("(-8) ** (1/3)", "no real number"),
        ("1,234 + 1", "write 1234, not 1,234"),
        ("(1,234)", "A comma only stands"),
        ("sqrt(1,234)", "takes one value, got 2"),
        ("round(1, 2, 3)", "got 3 values"),
        ("round(1, 0.5)", "whole number of digits"),
        ("20%", "for per cent write"),
        ("20% * 50", "for per cent write"),
        ("(20%)", "for per cent write"),
        ("5 apples", "An operator is missing before 'apples'"),
        ("pi * 2", "'pi' is no number"),
        ("sqrt", "'sqrt' is no number"),
        ("sin(1)", "only the functions sqrt, abs, min, max, round"),
        ("2²", "'²' at character 2 is not arithmetic"),
        ("1½", "is not arithmetic"),
        ("x = 3", "'=' at character 3 is not arithmetic"),
        ("x + 3", "'x' is no number"),
        ("3 == 3", "is not arithmetic"),
        ("__import__('os').system('x')", "is not arithmetic"),
        ("open(1)", "'open' is no number"),
        ("(1).real", "is not arithmetic"),
        ("[1][0]", "is not arithmetic"),
        ("lambda: 1", "is not arithmetic"),
        ("1_000", "An operator is missing before '_000'"),
        ("0x10", "An operator is missing before 'x10'"),
        ("9 ** 9 ** 9", "too large"),
        ("10 ** 2000", "too large"),
        ("0.5 ** 99999", "too large"),
        ("1e2000", "too large"),
        ("1e99999999999", "too large"),
        ("(2 ** 3000) * (2 ** 3000)", "too large"),
        ("1" * 1001, "at most 1000"),
        ("(" * 60 + "1" + ")" * 60, "nested deeper"),
        ("-" * 60 + "1", "nested deeper"),
        ("2" + "**2" * 60, "nested deeper"),
    ],
)
def test_it_refuses_what_it_cannot_calculate_and_says_why(expression, said):
    with pytest.raises(ToolError) as refused:
        calculate(expression)
    assert said in str(refused.value)


@settings(deadline=None, max_examples=150)
@given(st.text(alphabet="0123456789.+-*/%^()e, sqrtabminxound", max_size=40) | st.text(max_size=20))
def test_any_text_gives_a_number_or_a_clear_refusal_and_soon(text):
    started = time.perf_counter()
    with contextlib.suppress(ToolError):
        assert re.fullmatch(r"-?\d+(\.\d+)?(e[+-]\d+)?", calculate(text))
    assert time.perf_counter() - started < 2


operands = st.integers(0, 99).map(str) | st.sampled_from(["0.5", "2.25", "1e2"])
sums = st.recursive(
    operands,
    lambda inner: (
        st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})")
        | inner.map(lambda text: f"-{text}")
    ),
    max_leaves=8,
)


@given(sums)
def test_sums_agree_with_python(text):
    exact = eval(re.sub(r"[\d.]+(e\d+)?", lambda m: f"Fraction('{m[0]}')", text))
    assert Fraction(calculate(text)) == exact


@given(st.fractions(min_value=-(10**9), max_value=10**9, max_denominator=10**6))
def test_a_shown_number_is_right_to_fifteen_digits(value):
    shown = float(format_number(value))
    assert math.isclose(shown, value, rel_tol=1e-14, abs_tol=0)
