"""The JSON Schema of a function's arguments, from its signature and docstring."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from axislab.errors import ToolDefinitionError
from axislab.messages import Json
from axislab.tools.docstrings import Docstring, parse_docstring

_Parameter = inspect.Parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSchema:
    """What a function says about itself as a tool."""

    description: str
    parameters: dict[str, Json]
    """JSON Schema of its arguments."""
    arguments: Converter
    """Turns validated JSON into what the function's annotations ask for."""


class Converter:
    """Converts validated JSON to the annotated Python types, and does nothing else to it."""

    __slots__ = ("_fields", "_model")

    def __init__(self, model: type[BaseModel], fields: Mapping[str, str]) -> None:
        self._model = model
        self._fields = fields

    def __call__(self, arguments: Mapping[str, Json]) -> dict[str, Any]:
        """The keyword arguments for the function; only those that were given.

        Raises:
            ValidationError: A value fits the JSON Schema, but not the Python type.
        """
        made = self._model.model_validate(arguments)
        return {name: getattr(made, self._fields[name]) for name in arguments}


def read_signature(
    function: Callable[..., Any], *, namespace: Mapping[str, Any] | None = None
) -> FunctionSchema:
    """Describe a function as a tool.

    Args:
        function: Plain or async; every argument needs an annotation.
        namespace: Further names its annotations may use (those where it is defined).

    Raises:
        ToolDefinitionError: The function cannot be called with named JSON arguments.
    """
    label = function_label(function)
    parameters = _parameters(function, label)
    hints = _hints(function, label, namespace=namespace)
    doc = parse_docstring(inspect.getdoc(_target(function)))
    fields: dict[str, Any] = {}
    for number, parameter in enumerate(parameters):
        _require_annotation(parameter, label, known=hints)
        # Numbered names with aliases: an argument may be called "schema" or "model_name".
        fields[f"p{number}"] = _field(parameter, hints[parameter.name], doc=doc)
    model = _model(label, fields)
    schema = _json_schema(model, label, fields)
    names = {parameter.name: f"p{number}" for number, parameter in enumerate(parameters)}
    return FunctionSchema(
        description=doc.description, parameters=schema, arguments=Converter(model, names)
    )


def function_label(function: Callable[..., Any]) -> str:
    """The name by which messages call a function."""
    target = _target(function)
    return str(getattr(target, "__name__", None) or type(target).__name__)


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it gives a coroutine."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - wanted is what it is, not whether
    )


def _target(function: Callable[..., Any]) -> Callable[..., Any]:
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _parameters(function: Callable[..., Any], label: str) -> list[_Parameter]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as problem:
        raise ToolDefinitionError(
            f"{label} has no signature to read ({problem}): give Tool(name, schema, function) a "
            "JSON Schema"
        ) from problem
    target = _target(function)
    if inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
        raise ToolDefinitionError(f"{label} yields: a tool returns one value; return a list")
    for parameter in parameters:
        _require_kind(parameter, label)
    return parameters


def _require_kind(parameter: _Parameter, label: str) -> None:
    if parameter.kind is _Parameter.POSITIONAL_ONLY:
        raise ToolDefinitionError(
            f"{label}: {parameter.name!r} is positional-only, but a model names its arguments: "
            "drop the / from the signature"
        )
    if parameter.kind in {_Parameter.VAR_POSITIONAL, _Parameter.VAR_KEYWORD}:
        raise ToolDefinitionError(
            f"{label}: {parameter} has no names a model could be told: list each argument, or "
            "give Tool(name, schema, function) a JSON Schema"
        )


def _require_annotation(parameter: _Parameter, label: str, *, known: Mapping[str, Any]) -> None:
    name, default = parameter.name, parameter.default
    if isinstance(default, FieldInfo):
        raise ToolDefinitionError(
            f"{label}: the default of {name!r} is a Field: write {name}: Annotated[type, Field(…)] "
            "and give the default behind it"
        )
    if name in known:
        return
    if name in {"self", "cls"}:
        raise ToolDefinitionError(
            f"{label} is a method without its object: make the tool of the bound one, "
            f"tool(thing.{label})"
        )
    hint = "str" if default is _Parameter.empty or default is None else type(default).__name__
    raise ToolDefinitionError(
        f"{label}: {name!r} has no annotation: write its type, such as {name}: {hint}"
    )


def _hints(
    function: Callable[..., Any], label: str, *, namespace: Mapping[str, Any] | None
) -> dict[str, Any]:
    target = _target(function)
    if not inspect.isroutine(target):
        target = type(target).__call__
    try:
        try:
            return get_type_hints(target, include_extras=True)
        except NameError:
            if namespace is None:
                raise
            return get_type_hints(target, localns=dict(namespace), include_extras=True)
    except (NameError, TypeError) as problem:
        raise ToolDefinitionError(
            f"{label}: an annotation cannot be resolved ({problem}): define or import the name "
            "before the function"
        ) from problem


def _field(parameter: _Parameter, hint: Any, *, doc: Docstring) -> Any:
    default = ... if parameter.default is _Parameter.empty else parameter.default
    text = _description(hint)
    if text is None:
        text = doc.arguments.get(parameter.name)
    if text is None:
        return hint, Field(default, alias=parameter.name)
    return hint, Field(default, alias=parameter.name, description=text)


def _description(hint: Any) -> str | None:
    """What Annotated says: a Field with a description, or a bare string."""
    if get_origin(hint) is not Annotated:
        return None
    for extra in get_args(hint)[1:]:
        if isinstance(extra, str):
            return extra
        if isinstance(extra, FieldInfo) and extra.description is not None:
            return extra.description
    return None


def _model(label: str, fields: Mapping[str, Any]) -> type[BaseModel]:
    """A model of all arguments; if pydantic refuses, the message names the argument."""
    try:
        return create_model(label, __config__=ConfigDict(extra="forbid"), **fields)
    except (PydanticUserError, TypeError) as problem:
        for hint, info in fields.values():
            try:
                TypeAdapter(hint)
            except (PydanticUserError, TypeError):
                raise _no_json(label, info.alias, hint, problem) from problem
        raise ToolDefinitionError(f"{label}: {problem}") from problem


def _no_json(label: str, name: str | None, hint: Any, problem: Exception) -> ToolDefinitionError:
    reason = str(problem).splitlines()[0]
    return ToolDefinitionError(
        f"{label}: {name!r} is annotated {hint!r}, which JSON cannot express ({reason}): use str, "
        "int, float, bool, list, dict, Literal, an Enum, a dataclass or a pydantic model"
    )


class _Schema(GenerateJsonSchema):
    """Without titles, which only cost tokens; what cannot be written is an error."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        raise TypeError(detail)


def _json_schema(model: type[BaseModel], label: str, fields: Mapping[str, Any]) -> dict[str, Json]:
    for hint, info in fields.values():
        _require_default(hint, info, label)
    try:
        schema = model.model_json_schema(schema_generator=_Schema)
    except (PydanticUserError, TypeError) as problem:
        for hint, info in fields.values():
            try:
                TypeAdapter(hint).json_schema(schema_generator=_Schema)
            except (PydanticUserError, TypeError):
                raise _no_json(label, info.alias, hint, problem) from problem
        raise ToolDefinitionError(f"{label}: {problem}") from problem
    for part in (schema, *schema.get("$defs", {}).values()):
        part.pop("title", None)
    schema.pop("description", None)
    return schema


def _require_default(hint: Any, info: FieldInfo, label: str) -> None:
    if info.is_required():
        return
    adapter: TypeAdapter[Any] = TypeAdapter(hint)
    try:
        adapter.validate_python(info.default)
        adapter.dump_python(info.default, mode="json", warnings="error")
    except ValueError as problem:  # pydantic's two, or bytes that are no UTF-8
        advice = (
            f"annotate it {_type_name(hint)} | None"
            if info.default is None
            else "use a default that is JSON and of the annotated type, or None"
        )
        raise ToolDefinitionError(
            f"{label}: the default {info.default!r} of {info.alias!r} does not fit "
            f"{_type_name(hint)}: {advice}"
        ) from problem


def _type_name(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else repr(hint)
