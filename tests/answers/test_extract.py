"""Finding answers: boxes, patterns, JSON, whole texts."""

import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axislab.answers.extract import (
    AnswerForm,
    AnswerStatus,
    extract,
    extract_boxed,
    extract_json,
    extract_regex,
    extract_text,
)
from axislab.answers.json_objects import last_object_with
from axislab.answers.thinking import without_thinking
from axislab.config import AnswerPolicy
from axislab.errors import ConfigError
from tests.conformance import boxed

BOXED_FILE = Path(__file__).parents[1] / "cases" / "boxed_cases.json"
CASES = json.loads(BOXED_FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("check", [pytest.param(c, id=name) for name, c in boxed.cases(CASES)])
def test_the_boxed_file_holds(check):
    assert check() is None


def test_the_boxed_file_is_known_by_its_content():
    assert boxed.accepts(CASES)
    assert not boxed.accepts({})
    assert not boxed.accepts({"cases": [{"name": "x", "ops": []}]})


def test_the_adapter_reports_what_differs():
    summaries = [{"name": "s", "text": "a", "expect": "b"}]
    boxes = [
        {"name": "x", "text": "\\boxed{1}", "expect": "2"},
        {"name": "y", "text": "\\boxed{1}", "expect": "1", "format_error": True},
    ]
    told = [c() for _, c in boxed.cases({"cases": boxes, "failure_summary_cases": summaries})]
    assert told == [
        "answer: '1' instead of '2'",
        "format_error: False instead of True",
        "summary: 'a' instead of 'b'",
    ]


@pytest.mark.parametrize(
    ("text", "answer", "form"),
    [
        (r"\boxed{1}", "1", "complete"),
        (r"\boxed{a \boxed{5} b}", r"a \boxed{5} b", "complete"),
        (r"\boxed{ \boxed{ \boxed{5} } }", "5", "complete"),
        (r"\boxed{\boxed{5} }x", "5", "complete"),
        (r"\boxed{\boxed{5}\boxed{6}}", r"\boxed{5}\boxed{6}", "complete"),
        (r"\boxed{\boxed{5}.}", r"\boxed{5}.", "complete"),
        (r"\boxed{\boxed{?}}", None, "placeholder"),
        (r"\\boxed{\\boxed{5}}", "5", "complete"),
        (r"\boxed{a\}b}", r"a\}b", "complete"),
        (r"\boxed{a\\}b}", r"a\\", "complete"),
        (r"\boxed{a\\\}b}", r"a\\\}b", "complete"),
        (r"} {\boxed{5}", "5", "complete"),
        (r"\boxed{1} \boxed{a {b}", "1", "complete"),
        (r"\boxed{one \boxed{two {3", "two {3", "unclosed"),
        (r"\boxed{\boxed{5", "5", "unclosed"),
        (r"\boxed{1", "1", "unclosed"),
        (r"\boxed{1} {", "1", "complete"),
        ("\\boxed{5\\", "5\\", "unclosed"),
        (r"\boxed{x \boxed{5}", "5", "complete"),
        (r"\boxed{", None, "placeholder"),
        (r"\boxed{1} \boxed{", "1", "complete"),
        (r"\boxed{ ？ }", None, "placeholder"),
        (r"boxed{5}", None, "none"),
        (r"\BOXED{5}", None, "none"),
    ],
)
def test_the_box_that_decides(text, answer, form):
    got = extract_boxed(text)
    assert (got.answer, got.form) == (answer, form)
    assert got.status is (AnswerStatus.FORMAT_ERROR if answer is None else AnswerStatus.OK)
    assert (got.span is None) == (got.form is AnswerForm.NONE)
    if answer is not None:
        assert text[slice(*got.span)] == answer


OPENING = re.compile(r"\\+boxed\s*\{")


def slow_close(text, start):
    """Where the brace closes that was opened just before `start`; None if it does not."""
    depth, i = 1, start
    while i < len(text):
        if text[i] == "\\":
            i += 1
        elif text[i] in "{}":
            depth += 1 if text[i] == "{" else -1
            if depth == 0:
                return i
        i += 1
    return None


def slow_box(text):
    """The rule of the specification, read literally, however long it takes."""
    complete, unclosed, place = None, None, 0
    while opening := OPENING.search(text, place):
        close = slow_close(text, opening.end())
        if close is None:
            unclosed, place = text[opening.end() :].strip(), opening.end()
        else:
            complete, place = text[opening.end() : close].strip(), close + 1
    if complete is None:
        return unclosed
    while inner := OPENING.match(complete):
        close = slow_close(complete, inner.end())
        if close != len(complete) - 1:
            break
        complete = complete[inner.end() : close].strip()
    return complete


PIECES = st.sampled_from(["\\boxed{", "\\boxed {", "{", "}", "}", "\\", "\\\\", "a", " ", "5"])
box_text = st.lists(PIECES, max_size=25).map("".join)


@given(box_text)
def test_one_pass_finds_what_slow_reading_finds(text):
    got = extract_boxed(text)
    assert (got.answer or "") == (slow_box(text) or "")


@given(st.text(st.characters(codec="utf-8", exclude_characters="\\{}")))
def test_a_box_round_an_answer_gives_the_answer_back(answer):
    plain = answer.strip()
    got = extract_boxed(f"So \\boxed{{{answer}}}.")
    if got.form is AnswerForm.PLACEHOLDER:
        assert plain.casefold() in {"", "?", "??", "???", "？", "……", "…", "...", "unknown"}
    else:
        assert got.answer == plain
        assert extract_boxed(f"\\boxed{{{got.answer}}}").answer == plain


@given(st.text() | box_text, st.sampled_from(["boxed", "json", "text", "regex"]))
def test_nothing_that_is_text_makes_extraction_raise(text, answer_format):
    policy = AnswerPolicy(answer_format=answer_format, answer_pattern=r"(\w+)")
    got = extract(text, policy)
    assert (got.answer is not None) == (got.status is AnswerStatus.OK)
    if got.span is not None:
        start, end = got.span
        assert 0 <= start <= end <= len(text)


HARD = [
    "\\boxed{",
    "\\boxed{}",
    "\\boxed   ",
    "\\",
    "{",
    "\\boxed{\\boxed{1}}",
    "<think>",
    "</think>",
    "<think>a</think>",
]


def seconds(function, text):
    best = 9.0
    for _ in range(3):
        start = time.process_time()
        function(text)
        best = min(best, time.process_time() - start)
    return best


@pytest.mark.parametrize("unit", HARD)
def test_long_texts_take_time_in_proportion(unit):
    policy = AnswerPolicy()

    def read(text):
        return extract(text, policy)

    short, long = unit * (10_000 // len(unit)), unit * (80_000 // len(unit))
    # Eight times the text: a quadratic reading would take sixty-four times as long.
    assert seconds(read, long) < 30 * max(seconds(read, short), 0.001)


HARD_JSON = [
    "{",
    '{"',
    '{"a":',
    '{"a":[',
    '{"a":"',
    '{"answer":1,',
    '{"answer":',
    '{"a": "b", ',
    '"',
    '{"\\"',
    "{   ",
    "{}",
]


@pytest.mark.parametrize("unit", HARD_JSON)
def test_json_is_found_in_time_in_proportion(unit):
    short, long = unit * (10_000 // len(unit)), unit * (80_000 // len(unit))
    assert seconds(extract_json, long) < 30 * max(seconds(extract_json, short), 0.001)


# ------------------------------------------------------------------------- thinking


@pytest.mark.parametrize(
    ("text", "said", "thoughts"),
    [
        ("plain", "plain", ()),
        ("<think>a</think>b", "b", ("a",)),
        ("x<think>a</think>y<think>b</think>z", "xyz", ("a", "b")),
        ("x<think>a", "x", ("a",)),
        ("<think>a<think>b</think>c", "c", ("a<think>b",)),
        ("began in the prompt</think>said", "said", ("began in the prompt",)),
        ("<think>a<think>b</think>c</think>d", "d", ("", "c", "a<think>b")),
        ("all is said</think>", "all is said", ()),
        ("all is said</think> \n", "all is said \n", ()),
    ],
)
def test_thinking_is_told_from_what_is_said(text, said, thoughts):
    spoken = without_thinking(text)
    assert (spoken.text, spoken.thoughts) == (said, thoughts)
    for place, character in enumerate(said):
        assert text[spoken.origin(place)] == character


def test_an_answer_in_the_thinking_is_none():
    policy = AnswerPolicy()
    text = r"<think>maybe \boxed{1}</think> It is \boxed{2}. <think>or \boxed{3}"
    got = extract(text, policy)
    assert got.answer == "2"
    assert text[slice(*got.span)] == "2"
    assert extract(r"<think>maybe \boxed{1}", policy).status is AnswerStatus.NO_ANSWER


def test_a_box_torn_by_thinking_is_read_over_the_tear():
    text = r"\boxed{4<think>hm</think>2}"
    got = extract(text, AnswerPolicy())
    assert got.answer == "42"
    assert text[slice(*got.span)] == "4<think>hm</think>2"


@pytest.mark.parametrize("text", [None, "", "  \n", "<think>a</think> "])
@pytest.mark.parametrize("answer_format", ["boxed", "json", "text", "regex"])
def test_a_reply_that_says_nothing_is_no_answer(text, answer_format):
    got = extract(text, AnswerPolicy(answer_format=answer_format, answer_pattern="(a)"))
    assert (got.answer, got.status, got.span) == (None, AnswerStatus.NO_ANSWER, None)


def test_an_empty_box_has_a_place():
    assert extract("<think>a</think>\\boxed{}", AnswerPolicy()).span == (23, 23)


# ------------------------------------------------------------------------- other formats


@pytest.mark.parametrize(
    ("text", "pattern", "answer", "form"),
    [
        ("Answer: 4\nAnswer:  5 ", r"Answer:(.*)", "5", "complete"),
        ("a1 b2", r"[a-z]\d", "b2", "complete"),
        ("xyz", r"(.*)", "xyz", "complete"),
        ("Answer: ?", r"Answer:(.*)", None, "placeholder"),
        ("Answer:", r"Answer:(.*)", None, "placeholder"),
        ("Answer: 4\nAnswer:", r"Answer:(.*)", "4", "complete"),
        ("no", r"Answer:(.*)", None, "none"),
        ("b", r"(a)|b", None, "none"),
    ],
)
def test_a_pattern_gives_its_last_group(text, pattern, answer, form):
    got = extract(text, AnswerPolicy(answer_format="regex", answer_pattern=pattern))
    assert (got.answer, got.form) == (answer, form)
    if answer is not None:
        assert text[slice(*got.span)] == answer


def test_a_policy_without_a_usable_pattern_says_so():
    with pytest.raises(ConfigError, match="needs answer_pattern"):
        extract("a", AnswerPolicy(answer_format="regex"))
    with pytest.raises(ConfigError, match=r"answer_pattern='\(' is no regular expression"):
        extract_regex("a", "(")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('{"answer": "Osk"}', "Osk"),
        ('```json\n{"answer": " Osk ", "sure": true}\n```', "Osk"),
        ('{"answer": 1} then {"answer": 2}', "2"),
        ('{"answer": 1} then {"other": 2}', "1"),
        ('{"answer": 1} then {"answer": 2', "1"),
        ('{"answer": {"answer": 2}}', '{"answer": 2}'),
        ('{"result": {"answer": 7}}', "7"),
        ('{"result": [{"answer": 7}, {"answer": [1, "é"]}]}', '[1, "é"]'),
        ('{"steps": [{"answer": 7}], "cut": "off', "7"),
        ('a 5" pipe: {"answer": 3}', "3"),
        ('{"note: {"answer": 3}', "3"),
        ('{x} {"answer": true} \\frac{1}{2}', "true"),
        ('{"answer": "two\nlines"}', "two\nlines"),
        ('{"\\u0061nswer": -1.5e3}', "-1500.0"),
        ('{"question": "what", "answer": []}', "[]"),
        ('{"answer": NaN, "x": {}}', "NaN"),
        ("{'answer': 1}", None),
        ('{"answer": 1,}', None),
        ('{"answer": null}', None),
        ('{"answer": "unknown"}', None),
        ('["answer", 1]', None),
        ('{"a": "{\\"answer\\": 1}"}', None),
        ("", None),
    ],
)
def test_the_last_json_object_that_holds_the_key_counts(text, answer):
    got = extract_json(text)
    assert got.answer == answer
    if answer is not None:
        assert text[got.span[0]] + text[got.span[1] - 1] == "{}"


def test_the_policy_names_the_key():
    policy = AnswerPolicy(answer_format="json", answer_pattern="final")
    assert extract('{"answer": 1, "final": 2}', policy).answer == "2"


@pytest.mark.parametrize(
    "text",
    ['{"answer":' * 200_000 + "1" + "}" * 200_000, '{"answer": ' + "9" * 5000 + "}"],
    ids=["deep", "long number"],
)
def test_json_that_python_cannot_read_is_no_answer(text):
    assert extract_json(text).status is AnswerStatus.FORMAT_ERROR


json_value = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["answer", "a", 'q"']) | st.text(), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(json_value, st.booleans(), st.sampled_from([None, 2]))
def test_objects_are_found_wherever_python_can_read_them(value, ascii_only, indent):
    written = json.dumps({"answer": value}, ensure_ascii=ascii_only, indent=indent)
    before = 'He said "{" and {"x": [1, {'
    place = last_object_with(f"{before} {written} }}", "answer")
    assert (place.start, place.end) == (len(before) + 1, len(before) + 1 + len(written))


def test_a_whole_text_is_its_own_answer():
    got = extract_text("\n Osk \n")
    assert (got.answer, got.span, got.status) == ("Osk", (2, 5), AnswerStatus.OK)
    assert extract_text(" ").status is AnswerStatus.NO_ANSWER
    assert extract(" <think>a</think> Osk", AnswerPolicy(answer_format="text")).span == (18, 21)
