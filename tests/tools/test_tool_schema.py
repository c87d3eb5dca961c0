from __future__ import annotations

import functools
import sys
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal, Optional

import pytest
from pydantic import AfterValidator, BaseModel, Field

from axislab.errors import ToolDefinitionError
from axislab.tools.arguments import BadArguments
from axislab.tools.base import Tool, tool
from axislab.tools.docstrings import parse_docstring
from axislab.tools.resolve import resolve_tools


class Colour(Enum):
    RED = "r"
    GREEN = "g"


class Point(BaseModel):
    x: int
    y: float = 0


@dataclass
class Box:
    corner: Point
    tags: list[str]


def properties(made: Tool) -> dict[str, Any]:
    return dict(made.schema["properties"])


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (Any, {}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Optional[str], {"anyOf": [{"type": "string"}, {"type": "null"}]}),  # noqa: UP045
        (Annotated[int, Field(ge=1, le=9)], {"type": "integer", "minimum": 1, "maximum": 9}),
        (Annotated[str, "the city"], {"type": "string", "description": "the city"}),
        (
            Annotated[str, Field(json_schema_extra={"x-agentic-aliases": ["q"]})],
            {"type": "string", "x-agentic-aliases": ["q"]},
        ),
        (date, {"type": "string", "format": "date"}),
        (Colour, {"$ref": "#/$defs/Colour"}),
        (Point, {"$ref": "#/$defs/Point"}),
        (Box, {"$ref": "#/$defs/Box"}),
    ],
)
def test_the_schema_of_an_argument_comes_from_its_annotation(annotation, schema):
    def function(value):
        return value

    function.__annotations__ = {"value": annotation}
    made = tool(function)
    assert properties(made) == {"value": schema}
    assert made.schema["required"] == ["value"]
    assert made.schema["additionalProperties"] is False


def test_defaults_make_an_argument_optional_and_stand_in_the_schema():
    @tool
    def function(a: str, b: int = 5, c: Colour = Colour.RED, d: str | None = None):
        return a, b, c, d

    assert function.schema["required"] == ["a"]
    assert properties(function)["b"]["default"] == 5
    assert properties(function)["c"]["default"] == "r"
    assert properties(function)["d"]["default"] is None


def test_name_and_descriptions_come_from_the_function():
    @tool
    def look_up(city: str, days: Annotated[int, Field(description="own words")] = 1) -> str:
        """Tell the weather.

        Only for ports.

        Args:
            city (str): Name of the city,
                as written on the map.
            days: not used

        Returns:
            Text: with a colon.
        """
        return city

    assert look_up.name == "look_up"
    assert look_up.description == "Tell the weather.\n\nOnly for ports."
    assert properties(look_up)["city"]["description"] == "Name of the city, as written on the map."
    assert properties(look_up)["days"]["description"] == "own words"
    assert look_up.spec.to_dict()["function"]["name"] == "look_up"


def test_name_and_description_can_be_given():
    made = tool(name="web_search", description="Searches.")(lambda: "x")
    assert (made.name, made.description) == ("web_search", "Searches.")


def test_a_section_it_does_not_know_stays_in_the_description():
    doc = parse_docstring(
        "Say.\n\nHint:\n    be brief\n\nArgs:\n    a: one\n      two\n    b : three"
    )
    assert doc.description == "Say.\n\nHint:\n    be brief"
    assert doc.arguments == {"a": "one two", "b": "three"}
    assert parse_docstring(None).description == ""


def test_arguments_may_be_called_what_pydantic_uses_itself():
    @tool
    def function(schema: str, model_config: int, json: str, _hidden: int = 0) -> str:
        return f"{schema} {model_config} {json}"

    arguments = {"schema": "s", "model_config": 1, "json": "j"}
    assert function.bind(arguments) == arguments


def test_a_tool_is_still_callable_as_the_function():
    @tool
    def add(a: int, b: int = 1) -> int:
        return a + b

    assert add(1) == 2
    assert add(a=2, b=3) == 5


def test_annotations_may_name_classes_local_to_the_place_of_definition():
    class Local(BaseModel):
        n: int

    @tool
    def plain(value: Local) -> int:
        return value.n

    @tool(max_calls=2)
    def with_options(value: Local) -> int:
        return value.n

    for made in (plain, with_options):
        assert made.bind({"value": {"n": 3}}) == {"value": Local(n=3)}


def test_methods_partials_and_callable_objects_become_tools():
    class Shop:
        def price(self, item: str) -> str:
            """Price of an item."""
            return f"{item}: 3"

        def __call__(self, item: str) -> str:
            return item

    assert tool(Shop().price)(item="ham") == "ham: 3"
    assert tool(Shop().price).description == "Price of an item."
    assert tool(name="shop")(Shop()).name == "shop"
    cheap = tool(functools.partial(Shop().price, item="egg"))
    assert (cheap.name, cheap()) == ("price", "egg: 3")
    assert not cheap.needs_arguments


def test_validated_json_is_converted_to_the_annotated_types():
    @tool
    def function(box: Box, colour: Colour, day: date, points: list[Point], n: int, x: float):
        return box, colour, day, points, n, x

    bound = function.bind(
        {
            "box": {"corner": {"x": 1, "y": 2}, "tags": ["a"]},
            "colour": "g",
            "day": "2026-02-03",
            "points": [{"x": 1}],
            "n": 3.0,
            "x": 2,
        }
    )
    assert bound == {
        "box": Box(corner=Point(x=1, y=2), tags=["a"]),
        "colour": Colour.GREEN,
        "day": date(2026, 2, 3),
        "points": [Point(x=1)],
        "n": 3,
        "x": 2.0,
    }
    assert type(bound["n"]) is int


@pytest.mark.parametrize(
    "arguments",
    [
        {"n": "5"},
        {"n": True},
        {"n": 5.5},
        {"n": None},
        {"n": 5, "flag": "true"},
        {"n": 5, "flag": 1},
        {"n": 5, "text": 7},
        {"n": 5, "even": "3"},
        {},
        {"n": 5, "more": 1},
    ],
)
def test_arguments_are_never_coerced_behind_the_models_back(arguments):
    @tool
    def function(n: int, flag: bool = False, text: str = "", even: int = 0):
        raise AssertionError("must not run")

    bad = function.bind(arguments)
    assert isinstance(bad, BadArguments)
    assert bad.message.startswith("Invalid arguments for function: ")
    assert bad.message.endswith("It takes: n (required), flag, text, even.")


def test_what_only_the_python_type_refuses_is_a_bad_argument_too():
    def even(value: int) -> int:
        if value % 2:
            raise ValueError("must be even")
        return value

    @tool
    def function(n: Annotated[int, AfterValidator(even)], day: date = date(2026, 1, 1)):
        return n, day

    assert "n: Value error, must be even" in function.bind({"n": 3}).message
    assert "day:" in function.bind({"n": 2, "day": "soon"}).message
    assert function.bind({"n": 2}) == {"n": 2}


def test_a_near_miss_of_a_name_is_pointed_out():
    @tool
    def function(query: str):
        return query

    assert "(did you mean 'query'?)" in function.bind({"querry": "a"}).message


def test_a_function_that_changes_its_arguments_does_not_change_the_call():
    made = Tool("grow", {"type": "object", "properties": {"a": {}}, "required": ["a"]}, lambda a: a)
    arguments = {"a": [1, {"b": 2}]}
    made.bind(arguments)["a"].append(3)
    made.bind(arguments)["a"][1]["b"] = 5
    assert arguments == {"a": [1, {"b": 2}]}


def positional(a: int, /): ...
def starred(*words: str): ...
def keywords(**words: str): ...
def bare(a): ...
def bare_default(a=5): ...
def unknown_name(a: Nowhere): ...  # noqa: F821
def bad_default(a: int = "x"): ...
def none_default(a: int = None): ...  # noqa: RUF013
def object_default(a: Any = object()): ...  # noqa: B008
def field_default(a: int = Field(5)): ...
def out_of_range(a: Annotated[int, Field(ge=1)] = 0): ...
def method(self, a: int): ...


def yields(a: int) -> Iterator[int]:
    yield a


class Opaque:
    pass


class Plain(typing.TypedDict):  # noqa: TID251 - what a user may well write
    n: int


def opaque(a: Opaque): ...
def of_callable(a: Callable[[int], int]): ...
def of_list_of_callable(b: int, a: list[Callable[[int], int]]): ...
def typed_dict(a: Plain): ...


@pytest.mark.parametrize(
    ("function", "advice"),
    [
        (positional, "drop the /"),
        (starred, "list each argument"),
        (keywords, "list each argument"),
        (bare, "a: str"),
        (bare_default, "a: int"),
        (unknown_name, "define or import the name"),
        (bad_default, "'x' of 'a' does not fit int"),
        (none_default, "annotate it int | None"),
        (object_default, "use a default that is JSON"),
        (field_default, "Annotated[type, Field(…)]"),
        (out_of_range, "0 of 'a' does not fit"),
        (method, "tool(thing.method)"),
        (yields, "return a list"),
        (opaque, "use str, int"),
        (of_callable, "'a' is annotated"),
        (of_list_of_callable, "'a' is annotated"),
        (min, "has no signature to read"),
        (3, "wants a function"),
        (dict.fromkeys, "drop the /"),
        (lambda: 1, "cannot name a tool"),
    ],
)
def test_a_function_that_cannot_become_a_tool_is_refused_with_advice(function, advice):
    with pytest.raises(ToolDefinitionError) as refused:
        tool(function)
    assert advice in str(refused.value)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="pydantic takes it from 3.12 on")
def test_a_typed_dict_pydantic_does_not_take_is_refused_with_its_advice():
    with pytest.raises(ToolDefinitionError, match=r"typing_extensions\.TypedDict"):
        tool(typed_dict)


def test_an_unknown_option_is_refused():
    with pytest.raises(ToolDefinitionError, match="did you mean 'timeout'"):
        tool(time_out=3)
    with pytest.raises(ToolDefinitionError, match="did you mean 'max_calls'"):
        Tool("t", {}, lambda: 1).with_(max_call=3)


def test_a_tool_of_a_tool_is_refused():
    with pytest.raises(ToolDefinitionError, match="is a tool already"):
        tool(Tool("t", {"type": "object"}, lambda: 1))


OBJECT = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "strong"}, "the arguments of a tool are an object"),
        ({"type": "array"}, "the arguments of a tool are an object"),
        ({"type": "object", "properties": {"a": {"type": "strong"}}}, "properties.a.type"),
        ({"type": "object", "properties": {"a": {"minimum": "1"}}}, "properties.a.minimum"),
        ({"type": "object", "properties": []}, "properties"),
        ({"type": "object", "required": "a"}, "required"),
        ({"properties": {"a": {"$ref": "#/$defs/B"}}}, "'#/\\$defs/B', which is not in it"),
        ({"properties": {"a": {"$ref": "https://example.org/s"}}}, "which is not in it"),
        ({"type": "object", "x": float("nan")}, "not JSON"),
        ({"type": "object", "x": object()}, "not JSON"),
        ("{}", "must be a mapping"),
    ],
)
def test_an_invalid_schema_is_refused_at_definition(schema, problem):
    with pytest.raises(ToolDefinitionError, match=problem):
        Tool("t", schema, lambda **arguments: arguments)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        OBJECT,
        {"type": ["object", "null"]},
        {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"$ref": "#"}}},
        {"type": "object", "patternProperties": {"^x": {"type": "string"}}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"},
    ],
)
def test_a_raw_schema_makes_a_tool(schema):
    made = Tool("t", schema, lambda **arguments: arguments)
    assert made.bind({"a": 1} if schema == OBJECT else {}) in ({}, {"a": 1})


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (lambda: 1, "takes no argument 'a'"),
        (lambda b, a: 1, "needs 'b'"),
        ("print", "cannot be called"),
    ],
)
def test_a_raw_schema_must_fit_its_function(function, problem):
    with pytest.raises(ToolDefinitionError, match=problem):
        Tool("t", OBJECT, function)


@pytest.mark.parametrize("name", ["", "two words", "a\n", "__unknown__", None, "x" * 129])
def test_a_name_that_cannot_be_one_is_refused(name):
    with pytest.raises(ToolDefinitionError, match="cannot name a tool"):
        Tool(name, {}, lambda: 1)


@pytest.mark.parametrize("name", ["search", "web.search", "a-b_c", "搜索", "x" * 128])
def test_other_names_are_taken(name):
    assert Tool(name, {}, lambda: 1).spec.name == name


def test_a_builtin_that_does_not_tell_its_signature_may_have_a_raw_schema():
    made = Tool("low", {"type": "object", "properties": {"a": {}}}, min)
    assert made.bind({"a": 1}) == {"a": 1}
    assert made.fingerprint == Tool("low", made.schema, min).fingerprint


@pytest.mark.parametrize(
    "option",
    [
        {"timeout": 0},
        {"timeout": -1},
        {"timeout": "5"},
        {"timeout": float("nan")},
        {"max_calls": -1},
        {"max_calls": 1.5},
        {"max_calls": True},
        {"max_consecutive_same_args": 0},
        {"query": "b"},
        {"query": ("a", "b")},
    ],
)
def test_an_option_out_of_range_is_refused(option):
    with pytest.raises(ToolDefinitionError, match=next(iter(option))):
        Tool("t", OBJECT, lambda a: a, **option)


def test_the_schema_of_a_tool_is_its_own():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    made = Tool("t", schema, lambda a=1: a)
    schema["properties"]["a"]["type"] = "string"
    made.schema["properties"]["b"] = {}
    assert made.bind({"a": 1}) == {"a": 1}
    assert (
        "b" not in Tool("t", {"type": "object", "properties": {}}, lambda: 1).schema["properties"]
    )


@pytest.mark.parametrize(
    ("query", "arguments", "key"),
    [
        (None, {"q": "x", "k": 1}, None),
        ("q", {"q": "x", "k": 1}, "t: x"),
        ("q", {"k": 1}, None),
        ("q", {"q": 5}, "t: 5"),
        (("q", "k"), {"q": "x", "k": 1}, 't: ["x", 1]'),
        (("q", "k"), {"k": 1}, "t: [null, 1]"),
        (lambda a: a["q"].lower(), {"q": "X"}, "t: x"),
        (lambda a: a["q"].lower(), {}, None),
        (lambda a: a["q"].lower(), {"q": 5}, None),
        (lambda a: None, {"q": "x"}, None),
    ],
)
def test_the_query_key_joins_the_tool_with_its_query(query, arguments, key):
    schema = {"type": "object", "properties": {"q": {}, "k": {}}}
    made = Tool("t", schema, lambda q="", k=0: q, query=query)
    assert made.query_key(arguments) == key


def test_the_fingerprint_changes_with_code_schema_and_options_but_not_with_layout():
    def make(number):
        def one(a: int) -> int:
            return a + number

        return one

    def spaced(a: int) -> int:
        # a remark
        return a + 1

    def other(a: int) -> int:
        return a + 2

    same = [tool(make(1)).fingerprint, tool(make(1)).fingerprint]
    assert same[0] == same[1]
    different = {
        same[0],
        tool(make(2)).fingerprint,
        tool(name="one")(other).fingerprint,
        tool(make(1)).with_(max_calls=3).fingerprint,
        tool(make(1)).with_(identity={"corpus": "x"}).fingerprint,
        tool(make(1)).with_(description="else").fingerprint,
    }
    assert len(different) == 6
    assert tool(spaced).fingerprint == tool(spaced).fingerprint


def test_to_dict_is_json_and_names_only_what_was_set():
    made = Tool("t", OBJECT, lambda a: a, query=lambda a: a["a"], max_calls=3, timeout=None)
    assert made.to_dict() == {
        "name": "t",
        "description": "",
        "parameters": OBJECT,
        "query": "<<lambda>>",
        "max_calls": 3,
    }
    assert repr(made) == "<Tool t(a)>"


def test_resolve_expands_collections_and_factories_and_makes_fresh_tools_each_time():
    def factory():
        seen = []
        return [
            Tool("put", {}, lambda: seen.append(1) or len(seen)),
            Tool("count", {}, lambda: len(seen)),
        ]

    single = Tool("one", {}, lambda: 1)
    first = resolve_tools([single, factory, (Tool("two", {}, lambda: 2),)])
    again = resolve_tools([factory])
    assert [made.name for made in first] == ["one", "put", "count", "two"]
    assert first[1]() == 1
    assert first[2]() == 1
    assert again[1]() == 0


@pytest.mark.parametrize(
    ("items", "problem"),
    [
        ([Tool("a", {}, lambda: 1), Tool("a", {}, lambda: 2)], "two tools are called 'a'"),
        ([5], "5 is no tool"),
        (["search"], "'search' is no tool"),
        ([bare], "decorate it with @tool"),
        ([lambda: 5], r"<lambda>\(\) did not return tools"),
        ([lambda: bare], "must return tools"),
    ],
)
def test_resolve_refuses_what_is_no_tool_and_two_of_one_name(items, problem):
    with pytest.raises(ToolDefinitionError, match=problem):
        resolve_tools(items)
