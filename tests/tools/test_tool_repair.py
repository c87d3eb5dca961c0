from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axislab.config import ToolPolicy
from axislab.tools.repair import Repaired, coerce_scalar, repair_arguments

POLICY = ToolPolicy(repair_arguments=True)


def schema(**properties):
    return {"type": "object", "properties": properties}


TEXT = schema(text={"type": "string"})
TWO = schema(text={"type": "string"}, n={"type": "integer"})


@pytest.mark.parametrize(
    ("arguments", "given_schema", "expected", "rules"),
    [
        ({"text": "a"}, TEXT, {"text": "a"}, ()),
        ({}, TEXT, {}, ()),
        # names
        ({" text ": "a"}, TEXT, {"text": "a"}, ("normalize_key_names",)),
        ({'"text"': "a"}, TEXT, {"text": "a"}, ("normalize_key_names",)),
        ({" 'text' ": "a"}, TEXT, {"text": "a"}, ("normalize_key_names",)),
        ({" text": "a", "text": "b"}, TEXT, {"text": "a"}, ("normalize_key_names",)),
        ({"text": "a", " text": "b"}, TEXT, {"text": "a"}, ("normalize_key_names",)),
        # aliases
        (
            {"body": "a"},
            schema(text={"x-agentic-aliases": ["msg", "body"]}),
            {"text": "a"},
            ("schema_aliases",),
        ),
        ({"m": "a"}, schema(text={"x-agentic-aliases": "m"}), {"text": "a"}, ("schema_aliases",)),
        (
            {"m": "a", "text": "b"},
            schema(text={"x-agentic-aliases": "m"}),
            {"m": "a", "text": "b"},
            (),
        ),
        (
            {"m": "a"},
            schema(one={"x-agentic-aliases": "m"}, two={"x-agentic-aliases": "m"}),
            {"one": "a"},
            ("schema_aliases",),
        ),
        ({"a": 1}, schema(text={"x-agentic-aliases": [5, ""]}, other=True), {"a": 1}, ()),
        # fuzzy
        ({"texts": "a"}, TEXT, {"text": "a"}, ("fuzzy_property_match",)),
        ({"texts": "a"}, TWO, {"texts": "a"}, ()),
        ({"texts": "a", "n": 1}, TWO, {"n": 1, "text": "a"}, ("fuzzy_property_match",)),
        ({"texts": "a", "tekst": "b"}, TEXT, {"texts": "a", "tekst": "b"}, ()),
        ({"other": "a"}, TEXT, {"other": "a"}, ()),
        # defaults
        ({}, schema(n={"type": "integer", "default": 3}), {"n": 3}, ("schema_defaults",)),
        ({}, schema(n={"type": "integer", "default": "3"}), {}, ()),
        ({}, schema(n={"type": "integer", "default": True}), {}, ()),
        ({}, schema(n={"type": "integer", "default": None}), {}, ()),
        (
            {},
            schema(n={"type": ["integer", "null"], "default": None}),
            {"n": None},
            ("schema_defaults",),
        ),
        ({}, schema(n={"default": [1]}), {"n": [1]}, ("schema_defaults",)),
        ({"n": 1}, schema(n={"type": "integer", "default": 3}), {"n": 1}, ()),
        # scalars
        ({"n": "5"}, schema(n={"type": "integer"}), {"n": 5}, ("scalar_type_coercion",)),
        ({"n": "--5"}, schema(n={"type": "integer"}), {"n": "--5"}, ()),
        ({"n": "²"}, schema(n={"type": "integer"}), {"n": "²"}, ()),
        # only objects
        ({" text": 5}, {"properties": {"text": {"type": "string"}}}, {" text": 5}, ()),
        ({" text": 5}, {"type": "object", "properties": []}, {" text": 5}, ()),
        # all in order
        (
            {" msg": 7},
            schema(
                text={"type": "string", "x-agentic-aliases": "msg"},
                n={"type": "integer", "default": 1},
            ),
            {"text": "7", "n": 1},
            ("normalize_key_names", "schema_aliases", "schema_defaults", "scalar_type_coercion"),
        ),
    ],
)
def test_the_rules_mend_what_they_say(arguments, given_schema, expected, rules):
    before = copy.deepcopy(arguments)
    got = repair_arguments(arguments, schema=given_schema, policy=POLICY)
    assert got == Repaired(arguments=expected, rules=rules)
    assert arguments == before


@pytest.mark.parametrize(
    ("option", "arguments", "given_schema"),
    [
        ("normalize_key_names", {" text": "a", "other": 1}, TEXT),
        ("apply_schema_aliases", {"m": "a"}, schema(text={"x-agentic-aliases": "m"})),
        ("fuzzy_match_single_missing_property", {"texts": "a"}, TEXT),
        ("apply_schema_defaults", {}, schema(n={"default": 3})),
        ("coerce_scalar_types", {"n": "5"}, schema(n={"type": "integer"})),
    ],
)
def test_every_rule_can_be_switched_off(option, arguments, given_schema):
    policy = ToolPolicy(**{option: False})
    assert repair_arguments(arguments, schema=given_schema, policy=POLICY).rules != ()
    assert repair_arguments(arguments, schema=given_schema, policy=policy).rules == ()


def test_the_threshold_of_likeness_is_a_knob():
    policy = ToolPolicy(fuzzy_match_threshold=0.95)
    assert repair_arguments({"texts": "a"}, schema=TEXT, policy=policy).rules == ()


@pytest.mark.parametrize(
    ("value", "types", "expected"),
    [
        (" -5 ", {"integer"}, -5),
        ("5.0", {"integer"}, "5.0"),
        ("", {"integer"}, ""),
        ("-", {"integer"}, "-"),
        ("9" * 5000, {"integer"}, "9" * 5000),
        ("2.5", {"number"}, 2.5),
        ("5", {"number"}, 5.0),
        ("nan", {"number"}, "nan"),
        ("1e999", {"number"}, "1e999"),
        ("Yes", {"boolean"}, True),
        (" 0 ", {"boolean"}, False),
        ("maybe", {"boolean"}, "maybe"),
        ("1", {"integer", "boolean"}, 1),
        ("yes", {"integer", "boolean"}, True),
        ("yes", {"number", "boolean"}, "yes"),
        (5, {"string"}, "5"),
        (2.5, {"string"}, "2.5"),
        (True, {"string"}, "true"),
        (True, {"integer"}, True),
        (1, {"boolean"}, 1),
        ("5", {"string", "integer"}, "5"),
        (5, {"string", "integer"}, 5),
        (5.0, {"string", "integer"}, 5.0),
        (True, {"string", "boolean"}, True),
        (None, {"string"}, None),
        (None, {"string", "null"}, None),
        ([1], {"string"}, [1]),
        ("5", set(), "5"),
    ],
)
def test_a_scalar_becomes_what_it_spells_and_nothing_else(value, types, expected):
    got = coerce_scalar(value, frozenset(types))
    assert got == expected
    assert type(got) is type(expected)


kinds = ["string", "integer", "number", "boolean", "null", "array", "object"]
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6)


@given(scalars | st.sampled_from(["--5", "²", "٣", "1_0", "+5"]), st.sets(st.sampled_from(kinds)))
def test_coercion_never_raises_and_is_done_after_once(value, types):
    once = coerce_scalar(value, frozenset(types))
    again = coerce_scalar(once, frozenset(types))
    assert again is once or again == once or once != once


@given(
    st.dictionaries(
        st.sampled_from(["text", " text", "'n'", "texts", "m", "x"]), scalars, max_size=4
    )
)
def test_repair_never_raises_and_the_rules_are_named_exactly_if_something_changed(arguments):
    given_schema = schema(
        text={"type": "string", "x-agentic-aliases": ["m"]},
        n={"type": ["integer", "boolean"], "default": 3},
    )
    got = repair_arguments(arguments, schema=given_schema, policy=POLICY)
    assert (got.arguments != arguments) == bool(got.rules)


def test_the_hook_comes_last_once_and_sees_mended_arguments():
    seen = []

    def hook(arguments):
        seen.append(dict(arguments))
        arguments["text"] += "!"
        return arguments

    got = repair_arguments({" text": "a"}, schema=TEXT, policy=POLICY, hook=hook)
    assert seen == [{"text": "a"}]
    assert got == Repaired(arguments={"text": "a!"}, rules=("normalize_key_names", "custom_hook"))


def test_a_hook_may_leave_the_arguments_alone_or_empty_them():
    assert repair_arguments({"text": "a"}, schema=TEXT, policy=POLICY, hook=lambda a: None) == (
        Repaired(arguments={"text": "a"})
    )
    emptied = repair_arguments({"text": "a"}, schema=TEXT, policy=POLICY, hook=lambda a: {})
    assert emptied == Repaired(arguments={}, rules=("custom_hook",))


def test_a_hook_without_effect_is_not_recorded_even_if_it_scribbles_on_its_copy():
    nested = {"text": {"deep": [1]}}

    def hook(arguments):
        arguments["text"]["deep"].append(2)

    assert repair_arguments(nested, schema=schema(), policy=POLICY, hook=hook).rules == ()
    assert nested == {"text": {"deep": [1]}}


def test_a_hook_that_returns_something_else_is_an_error():
    with pytest.raises(TypeError, match="returns a dict or None"):
        repair_arguments({"text": "a"}, schema=TEXT, policy=POLICY, hook=lambda a: "text")


def test_a_default_is_copied_so_that_no_call_can_change_it():
    given_schema = schema(tags={"type": "array", "default": []})
    first = repair_arguments({}, schema=given_schema, policy=POLICY)
    first.arguments["tags"].append(1)
    assert given_schema["properties"]["tags"]["default"] == []
