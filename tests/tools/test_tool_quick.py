from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from axislab.tools.quick import quick_check
from axislab.tools.schemas import compile_schema

names = st.sampled_from(["a", "b", "c", "long name", "键"])
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 6)
    | st.sampled_from([0.0, 1.0, 2.5, -0.5])
    | st.sampled_from(["", "a", "b", "ab", "键"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
types = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
keywords = {
    "type": types | st.lists(types, min_size=1, max_size=3, unique=True) | st.just("strong"),
    "enum": st.lists(st.sampled_from(["a", "b", "ab", 1]), min_size=1, max_size=3, unique=True),
    "const": st.sampled_from(["a", "b", 1, None]),
    "required": st.lists(names, max_size=2),
    "minimum": st.integers(-2, 5) | st.just(1.5) | st.just("1"),
    "maximum": st.integers(-2, 5),
    "exclusiveMinimum": st.integers(-2, 5) | st.booleans(),
    "exclusiveMaximum": st.integers(-2, 5),
    "minLength": st.integers(-1, 3) | st.just(1.0),
    "maxLength": st.integers(0, 3),
    "minItems": st.integers(0, 2),
    "maxItems": st.integers(0, 2),
    "pattern": st.sampled_from(["a", "^b$", "["]),
    "description": st.just("words") | st.just(5),
    "default": values,
    "examples": st.just([1]) | st.just(1),
    "deprecated": st.booleans() | st.just("yes"),
    "x-own": values,
    "$ref": st.sampled_from(["#/$defs/A", "#/$defs/B", "#"]),
    "uniqueItems": st.booleans(),
}


def nested(inner):
    more = {
        "properties": st.dictionaries(names, inner, max_size=3),
        "additionalProperties": st.booleans() | inner,
        "items": inner | st.booleans(),
        "anyOf": st.lists(inner, max_size=2),
        "not": inner,
        "patternProperties": st.dictionaries(st.just("^a"), inner, max_size=1),
        "prefixItems": st.lists(inner, min_size=1, max_size=2),
    }
    return st.lists(st.sampled_from([*keywords, *more]), max_size=4, unique=True).flatmap(
        lambda chosen: st.fixed_dictionaries({key: {**keywords, **more}[key] for key in chosen})
    )


flat = st.lists(st.sampled_from(list(keywords)), max_size=3, unique=True).flatmap(
    lambda chosen: st.fixed_dictionaries({key: keywords[key] for key in chosen})
)
schemas = st.builds(
    lambda schema, definitions: {**schema, "$defs": definitions},
    st.recursive(flat, nested, max_leaves=4),
    st.fixed_dictionaries({"A": flat, "B": flat}) | st.just({}),
)


@settings(max_examples=400, deadline=None)
@given(schemas, st.lists(values, min_size=3, max_size=6))
def test_a_quick_check_accepts_exactly_what_jsonschema_accepts(schema, instances):
    check = quick_check(schema)
    if check is None:
        return
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    for instance in instances:
        assert check(instance) == validator.is_valid(instance), (schema, instance)


@pytest.mark.parametrize(
    ("schema", "value", "fits"),
    [
        ({"type": "integer"}, 3.0, True),
        ({"type": "integer"}, True, False),
        ({"type": "number"}, False, False),
        ({"type": ["string", "null"]}, None, True),
        ({"minLength": 2}, 5, True),
        ({"minLength": 2}, "a", False),
        ({"enum": ["a"]}, "b", False),
        ({"properties": {"a": {"type": "string"}}}, {"a": 1}, False),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"b": 1}, False),
        ({"additionalProperties": {"type": "integer"}}, {"b": "x"}, False),
        ({"items": {"type": "integer"}}, [1, "x"], False),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x", False),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"type": "integer"}}}, "x", False),
    ],
)
def test_plain_schemas_have_a_quick_check(schema, value, fits):
    assert quick_check(schema)(value) is fits


@pytest.mark.parametrize(
    "schema",
    [
        {"oneOf": [{}]},
        {"$schema": "http://json-schema.org/draft-07/schema#"},
        {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}},
        {"type": "strong"},
        {"patternProperties": {}},
        {"properties": {"a": False}},
    ],
)
def test_anything_else_is_left_to_jsonschema(schema):
    assert quick_check(schema) is None


def test_schemas_without_a_quick_check_are_judged_by_jsonschema():
    compiled = compile_schema(
        {"type": "object", "properties": {"a": {"oneOf": [{"type": "integer"}, {"const": 5}]}}}
    )
    compiled.require_valid()
    assert compiled.problem({"a": 4}) is None
    assert compiled.problem({"a": 5}).startswith("a: ")


def test_all_faults_are_told_but_not_at_any_length():
    compiled = compile_schema(
        {
            "type": "object",
            "properties": {"a": {"type": "string", "maxLength": 3}},
            "required": ["a", "b", "c", "d", "e"],
        }
    )
    told = compiled.problem({"a": "x" * 5000})
    assert len(told) < 700
    assert told.endswith("and 2 more")


def test_equal_schemas_are_compiled_once():
    assert compile_schema({"type": "object"}) is compile_schema({"type": "object"})


def test_plain_tools_run_without_importing_jsonschema_or_any_heavy_library():
    code = (
        "import sys, asyncio, axislab.tools.builtin as b;"
        "from axislab.tools.executor import ToolExecutor;"
        "from axislab.messages import ToolCall;"
        "from axislab.tools.corpus import Corpus;"
        "tools = b.search_tools(Corpus.from_texts(['a']));"
        "session = ToolExecutor([b.calculator, b.notes_tools, tools]).begin_task();"
        "call = ToolCall(id='1', name='calculator', arguments='{\"expression\": \"1+1\"}');"
        "result = asyncio.run(session.run_round([call])).results[0];"
        "assert result.content == '2', result;"
        "heavy = {'jsonschema', 'bm25s', 'numpy', 'pandas', 'litellm', 'matplotlib'};"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
