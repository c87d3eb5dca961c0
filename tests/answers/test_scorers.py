"""Judging answers."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axislab.answers.normalize import normalize
from axislab.answers.scorers import (
    Score,
    exact_match,
    normalized_match,
    resolve_scorer,
    score,
    set_f1,
)
from axislab.errors import ConfigError, DataError


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Osk", "osk"),
        ("  Port \n Osk ", "port osk"),
        ('"Paris".', "Paris"),
        ("Paris!", "Paris"),
        ("**Paris**", "Paris"),
        ("`Paris`", "Paris"),
        ("O’Brien", "O'Brien"),
        ("cafe\u0301", "café"),
        ("Straße", "STRASSE"),
        ("1990–1995", "1990-1995"),
        ("1,234", "1234"),
        ("1234.0", "1,234"),
        ("1\u202f234", "1234"),
        ("1{,}234", "1234"),
        (r"1\,234\,567", "1234567"),
        ("-5", "−5"),
        ("+5", "5"),
        (".5", "0.5"),
        ("42.", "42"),
        ("1e3", "1000"),
        (r"1.5 \times 10^{3}", "1500"),
        ("3×10^8", "300000000"),
        ("50%", "50 %"),
        (r"50\%", "50.0%"),
        ("50 percent", "50%"),
        ("12km", "12 km"),
        ("12.0 KM", "12 km"),
        (r"12\,\text{km}", "12 km"),
        ("$1,234", "$1234.00"),
        (r"\$5", "$5"),
        ("$5$", "5"),
        (r"$$\frac{1}{2}$$", "0.5"),
        (r"\(\dfrac12\)", "1/2"),
        (r"1\frac{1}{2}", "1.5"),
        (r"-\frac{1}{2}", "-0.5"),
        (r"\frac{a}{b}", r"\dfrac{A}{B}"),
        (r"\text{Paris}", "Paris"),
        (r"\mathrm{\text{Paris}}", "paris"),
        (r"\boxed{\text{Paris}}", "paris"),
        (r"90^\circ", "90°"),
        (r"90^{\circ}", "90 degrees"),
        ("１２３４", "1234"),
        ("５０％", "50%"),
        ("长江。", "长江"),
        ("「长江」", "长江"),
        ("《红楼 梦》", "红楼梦"),
        ("2,000 元", "2000元"),
        ("苹果、梨", "苹果, 梨"),
        ("a ,b;c", "A, B; C"),
        ("1,2,3", "1, 2, 3"),
        ("...", "..."),
        ("U.S.", "u.s"),
    ],
)
def test_answers_that_say_the_same_match(answer, expected):
    assert normalized_match(answer, expected)
    assert normalized_match(expected, answer)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Osk", "Port Osk"),
        ("The Osk", "Osk"),
        ("cafe", "café"),
        ("50%", "50"),
        ("50%", "0.5"),
        ("$5", "5"),
        ("5 km", "5 m"),
        ("5!", "5"),
        ("007", "7"),
        ("00", "0"),
        ("1, 234", "1234"),
        ("1,2345", "12345"),
        ("-5", "5"),
        ("1/0", "0"),
        ("12:30", "12"),
        ("2020-05-01", "2020"),
        ("1.2.3", "1.2"),
        ("10²", "102"),
        ("1/2/2020", "1/2"),
        ("?", "."),
        ("", "Osk"),
        ("5" * 300, "5" * 299),
        (r"\frac{1}{2}", r"\frac{2}{1}"),
        ("$5 and $6", "5 and 6"),
    ],
)
def test_answers_that_differ_in_a_fact_do_not(answer, expected):
    assert not normalized_match(answer, expected)
    assert not normalized_match(expected, answer)


def test_wrappers_nested_beyond_reason_are_left():
    assert normalized_match("\\text{" * 8 + "a" + "}" * 8, "a")
    assert not normalized_match("\\text{" * 20 + "a" + "}" * 20, "a")


def test_any_of_several_accepted_answers_will_do():
    assert normalized_match("USA", ["United States", "usa"])
    assert exact_match("USA", ("United States", "USA"))
    assert not exact_match("usa", ["USA"])
    assert not exact_match("S", "USA")
    assert not normalized_match("USA", [])


@pytest.mark.parametrize("scorer", ["exact", "normalized"])
def test_no_answer_is_never_right(scorer):
    assert score(None, "", scorer) == Score(0.0, False)


def test_a_scorer_is_a_name_or_any_function():
    assert resolve_scorer("exact") is exact_match
    assert resolve_scorer(len) is len
    assert score("abcd", "ab", lambda answer, expected: len(expected) / len(answer)) == Score(
        0.5, False
    )
    assert score("a", "a") == Score(1.0, True)
    with pytest.raises(ConfigError, match="did you mean 'normalized'"):
        resolve_scorer("normalised")


@pytest.mark.parametrize("given_back", [None, "much", float("nan"), float("inf")])
def test_a_scorer_that_gives_no_number_is_named(given_back):
    def odd(answer, expected):
        return given_back

    with pytest.raises(DataError, match=r"scorer odd gave .*True, False or a number"):
        score("a", "a", odd)


@given(st.integers(-(10**12), 10**12), st.sampled_from(["", "%", " km"]))
def test_a_number_is_the_same_however_it_is_written(number, unit):
    forms = [f"{number}{unit}", f"{number:,}{unit}", f"{number}.0{unit}", f"${number}${unit}"[:99]]
    wanted = normalize(f"{number}{unit}")
    assert all(normalize(form) == wanted for form in forms[:3])
    assert wanted.number == number


@given(st.text())
def test_normalizing_never_raises_and_leaves_case_and_spaces_out(text):
    once = normalize(text)
    assert normalize(f"  {text}\n") == once


@settings(deadline=None)
@given(st.lists(st.sampled_from([*"0123456789.,/ -+e%$!?'\"*\\{}", "\\frac", "\\text"])))
def test_normalizing_number_like_texts_never_raises(pieces):
    text = "".join(pieces)
    assert normalize(text) == normalize(text + " ")


@pytest.mark.parametrize(
    "unit", ["'\"", "\\text{", "\\frac{1}", " ", ".!", "1,", "\\,1", "{", "** "]
)
def test_long_answers_are_normalized_in_time_in_proportion(unit):
    def seconds(text):
        best = 9.0
        for _ in range(3):
            start = time.process_time()
            normalize(f"a{text}a")
            best = min(best, time.process_time() - start)
        return best

    # Eight times the text: a quadratic reading would take sixty-four times as long.
    short, long = unit * (10_000 // len(unit)), unit * (80_000 // len(unit))
    assert seconds(long) < 30 * max(seconds(short), 0.001)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("三十五", "35"),
        ("二〇二三", "2023"),
        ("十", "10"),
        ("一百零五", "105"),
        ("两千", "2000"),
        ("三万五千", "35000"),
        ("一亿二千万", "120000000"),
        ("3万", "30,000"),
        ("1.2亿", "120000000"),
        ("负一点五", "-1.5"),
        ("壹佰", "100"),
        ("１２３", "123"),
        ("４５％", "45%"),
    ],
)
def test_chinese_and_full_width_numbers_are_numbers(answer, expected):
    assert normalized_match(answer, expected)


@pytest.mark.parametrize("name", ["三星", "百度", "九寨沟", "十百", "一二十", "千千千"])
def test_a_name_or_a_jumble_of_numerals_is_no_number(name):
    assert normalize(name).number is None


@settings(deadline=None)
@given(st.integers(0, 10**12))
def test_every_whole_number_is_read_from_its_chinese_numeral(number):
    assert normalize(_in_chinese(number)).number == number


def _in_chinese(number: int) -> str:
    digits = "零一二三四五六七八九"
    for size, word in ((10**8, "亿"), (10**4, "万")):
        if number >= size:
            above, below = divmod(number, size)
            gap = "零" if below and below < size // 10 else ""
            return _in_chinese(above) + word + gap + (_in_chinese(below) if below else "")
    for size, word in ((1000, "千"), (100, "百"), (10, "十")):
        if number >= size:
            above, below = divmod(number, size)
            gap = "零" if below and below < size // 10 else ""
            return digits[above] + word + gap + (_in_chinese(below) if below else "")
    return digits[number]


@pytest.mark.parametrize(
    ("answer", "expected", "value"),
    [
        ("a, b, c", "c; b; a", 1.0),
        ("A and b", "a,b", 1.0),
        ("a, b, and c", "a, b, c", 1.0),
        ("甲、乙和丙", "甲，乙", 0.5),
        ("1,234, 5", "1234; 5", 1.0),
        ("a", "b", 0.0),
        ("a, a, a", "a", 1.0),
        ("[a, b]", "b\na", 1.0),
        ("a, b", "a, b, c, d", 2 / 3),
        (None, "a", 0.0),
    ],
)
def test_set_f1_counts_items_whatever_their_order(answer, expected, value):
    assert set_f1(answer, expected) == pytest.approx(value)
    assert score(answer, expected, "set_f1").correct is (value == 1.0)


def test_of_several_lists_that_will_do_the_best_counts():
    assert set_f1("a, b", ["c, d", "a, b"]) == 1.0
