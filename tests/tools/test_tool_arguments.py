from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axislab.tools.arguments import BadArguments, ReadArguments, read_arguments
from axislab.tools.calls import dump_arguments


@pytest.mark.parametrize(
    ("text", "value", "repairs"),
    [
        ('{"a": 1}', {"a": 1}, ()),
        (' \n{"a": 1}\t', {"a": 1}, ()),
        ('\ufeff{"a": 1}', {"a": 1}, ()),
        ("{}", {}, ()),
        ('{"键": "值"}', {"键": "值"}, ()),
        ('{"a": 1, "a": 1}', {"a": 1}, ()),
        ('```json\n{"a": 1}\n```', {"a": 1}, ("unwrap_code_fence",)),
        ('```\n{"a": "`x`"}```', {"a": "`x`"}, ("unwrap_code_fence",)),
        (json.dumps('{"a": 1}'), {"a": 1}, ("unwrap_json_string",)),
        (json.dumps(' {"a": "b"} '), {"a": "b"}, ("unwrap_json_string",)),
        (
            "```json\n" + json.dumps('{"a": 1}') + "\n```",
            {"a": 1},
            ("unwrap_code_fence", "unwrap_json_string"),
        ),
    ],
)
def test_arguments_that_can_mean_one_thing_are_read(text, value, repairs):
    assert read_arguments(text) == ReadArguments(value=value, repairs=repairs)


@pytest.mark.parametrize("text", ["", "  ", "null", " null\n"])
def test_nothing_and_null_stand_for_no_arguments_only_where_none_is_required(text):
    assert read_arguments(text, empty_ok=True) == ReadArguments(
        value={}, repairs=("empty_arguments",)
    )
    assert isinstance(read_arguments(text), BadArguments)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "are a list"),
        ('[{"a": 1}]', "are a list"),
        ("5", "are a number"),
        ("true", "are true or false"),
        ('"tides"', "are a string"),
        (json.dumps('["a"]'), "are a string"),
        ("tides", "not valid JSON"),
        ("{'a': 1}", "not valid JSON"),
        ('{"a": 1}{"a": 1}', "not valid JSON"),
        ('{"a": 1,}', "not valid JSON"),
        ('{"a": "tid', "cut off"),
        ('{"a": 1', "cut off"),
        ('{"a": ', "cut off"),
        ('{"a": NaN}', "NaN is no JSON number"),
        ('{"a": -Infinity}', "-Infinity is no JSON number"),
        ('{"a": 1, "a": 2}', "'a' is given twice"),
        ("[" * 5000, "nested"),
        ('{"a":' * 200 + "1" + "}" * 200, "nested"),
        ('{"a": ' + "9" * 5000 + "}", "cannot be read"),
        ('```json\n{"a": 1}\n``` and ```json\n{"a": 2}\n```', "not valid JSON"),
        ('Here: ```json\n{"a": 1}\n```', "not valid JSON"),
        (json.dumps(json.dumps('{"a": 1}')), "are a string"),
        (json.dumps('{"a": 1'), "cut off"),
    ],
)
def test_anything_else_is_refused_with_a_message_for_the_model(text, said):
    bad = read_arguments(text, empty_ok=True)
    assert isinstance(bad, BadArguments)
    assert said in bad.message


def test_brackets_in_strings_are_no_nesting():
    text = json.dumps({"a": "[" * 500})
    assert read_arguments(text) == ReadArguments(value={"a": "[" * 500})


@given(st.text(max_size=60) | st.text(alphabet='{}[]":,\\`an1 ', max_size=30))
def test_reading_never_raises(text):
    assert isinstance(read_arguments(text), ReadArguments | BadArguments)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), json_values, max_size=4))
def test_any_object_is_read_back_as_it_was(value):
    assert read_arguments(json.dumps(value)) == ReadArguments(value=value)
    assert read_arguments(json.dumps(json.dumps(value))).value == value


def test_a_lone_surrogate_survives_as_an_escape():
    read = read_arguments('{"a": "\\ud800"}')
    text = dump_arguments(read.value)
    text.encode()
    assert json.loads(text) == {"a": "\ud800"}
    assert dump_arguments({"a": "é"}) == '{"a": "é"}'
