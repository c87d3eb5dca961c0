"""Tools: a function a model may call, with the schema of its arguments and its own limits."""

from __future__ import annotations

import copy
import hashlib
import importlib
import inspect
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, SupportsIndex, TypeAlias, overload

from pydantic import ValidationError

from axislab.borders import ends_us
from axislab.errors import ToolDefinitionError, did_you_mean
from axislab.messages import Json, ToolSpec
from axislab.tools.arguments import BadArguments
from axislab.tools.code import code_of
from axislab.tools.definition import (
    require_arguments,
    require_callable_with,
    require_count,
    require_flag,
    require_json,
    require_name,
    require_seconds,
    require_text,
)
from axislab.tools.schemas import CompiledSchema, compile_schema
from axislab.tools.signature import Converter, function_label, is_async, read_signature

Query: TypeAlias = str | Sequence[str] | Callable[[dict[str, Json]], str | None] | None
"""What makes two calls of a tool the same query: argument names, or a function of them."""
Approval: TypeAlias = bool | Callable[[dict[str, Json]], bool]
"""Whether calls need a person's approval: always, never, or as a function of the arguments."""


_SHIPPED = "axislab.tools.builtin"
"""Where the tools are that come with axislab, whatever module their functions are in."""


@dataclass(frozen=True, slots=True)
class ToolFailure:
    """Return this from a tool to say that it failed; the model reads the message."""

    message: str
    reason: str | None = None
    """A word to count failures by; None is counted as execution_error."""


@dataclass(frozen=True, eq=False)
class Tool:
    """A function a model may call.

    `@tool` makes one of a plain or async function; this class takes a raw JSON Schema and a
    function that is called with the arguments by name. Calling the tool calls the function.

    Examples:
        >>> schema = {"type": "object", "properties": {"city": {"type": "string"}}}
        >>> weather = Tool("weather", schema, lambda city="Osk": f"rain in {city}")
        >>> weather(city="Osk")
        'rain in Osk'
    """

    name: str
    """What the model calls it."""
    schema: Mapping[str, Json]
    """JSON Schema of the arguments, an object."""
    function: Callable[..., Any]
    """Plain or async. A plain one runs in a worker thread, see `blocking`; an async one must not
    block, since all runs share its thread."""
    _: KW_ONLY
    description: str = ""
    """What the model is told it does."""
    query: Query = None
    """Its duplicate key; None means a call is never a duplicate."""
    timeout: float | None = None
    """Seconds one call may take; None takes the policy's."""
    max_calls: int | None = None
    """Calls in one run; None takes the policy's."""
    max_consecutive_same_args: int | None = None
    """The same call in consecutive turns; None takes the policy's."""
    strict: bool = True
    """Its arguments are not repaired, unless the policy says so for strict tools too."""
    idempotent: bool = False
    """Running a call again does no harm: one that was in flight at a crash may be re-run."""
    requires_approval: Approval = False
    """Calls, or those the function picks, wait for a person."""
    max_calls_message: str | None = None
    """What the model reads once max_calls is used up; None takes the policy's."""
    same_args_message: str | None = None
    """What the model reads for a repeated call; None takes the policy's."""
    blocking: bool | Callable[[], bool] = True
    """Whether a plain function may take long. False runs it in place: faster, no timeout."""
    identity: Mapping[str, Json] = field(default_factory=dict)
    """What else decides its results, such as a corpus; part of the fingerprint."""
    convert: Converter | None = None
    """Turns validated arguments into Python types; None passes the JSON as it is."""

    def __post_init__(self) -> None:
        label = f"tool {self.name!r}"
        require_name(self.name)
        if not callable(self.function):
            raise ToolDefinitionError(f"{label}: {self.function!r} cannot be called")
        if not isinstance(self.schema, Mapping):
            raise ToolDefinitionError(
                f"{label}: the schema must be a mapping, got {self.schema!r}: write "
                '{"type": "object", "properties": {…}}'
            )
        try:
            self.compiled.require_valid()
        except ToolDefinitionError as problem:
            raise ToolDefinitionError(f"{label}: {problem}") from problem
        # The tool keeps its own copy: what the caller does to theirs changes nothing here.
        object.__setattr__(self, "schema", copy.deepcopy(self.compiled.schema))
        self._require_options(label)
        require_seconds(self.timeout, label=f"{label}: timeout")
        require_count(self.max_calls, label=f"{label}: max_calls", least=0)
        require_count(
            self.max_consecutive_same_args, label=f"{label}: max_consecutive_same_args", least=1
        )
        if self.query is not None and not callable(self.query):
            if not isinstance(self.query, Sequence):
                raise ToolDefinitionError(
                    f"{label}: query={self.query!r} must be names of arguments, or a function of "
                    "the arguments"
                )
            require_arguments(self._query_names, schema=self.schema, label=f"{label}: query")
        if self.convert is None:
            require_callable_with(self.function, self.schema, label=label)

    def _require_options(self, label: str) -> None:
        require_text(self.description, label=f"{label}: description", optional=False)
        for name in ("max_calls_message", "same_args_message"):
            require_text(getattr(self, name), label=f"{label}: {name}")
        for name in ("strict", "idempotent"):
            require_flag(getattr(self, name), label=f"{label}: {name}")
        for name in ("requires_approval", "blocking"):
            if not callable(value := getattr(self, name)):
                require_flag(value, label=f"{label}: {name}", also=", or a function")
        require_json(self.identity, label=f"{label}: identity")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, as if it were no tool."""
        return self.function(*args, **kwargs)

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        # One that stands in a module, under its function's name or its own, is found there again.
        for home in (getattr(self.function, "__module__", ""), _SHIPPED):
            for name in (getattr(self.function, "__qualname__", ""), self.name):
                if getattr(sys.modules.get(home), name, None) is self:
                    return _tool_of, (home, name)
        return super().__reduce_ex__(protocol)

    def __getstate__(self) -> dict[str, Any]:
        # Not the compiled schema and its like, which hold functions of no name.
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def __repr__(self) -> str:
        names = ", ".join(self.schema.get("properties", {}))
        return f"<Tool {self.name}({names})>"

    @cached_property
    def compiled(self) -> CompiledSchema:
        """Its schema, ready to judge arguments; shared by tools of equal schema."""
        return compile_schema(self.schema)

    @cached_property
    def spec(self) -> ToolSpec:
        """What a model is told about it."""
        return ToolSpec(name=self.name, description=self.description, parameters=self.schema)

    @cached_property
    def is_async(self) -> bool:
        """Whether its function gives a coroutine."""
        return is_async(self.function)

    @cached_property
    def needs_arguments(self) -> bool:
        """Whether the schema requires any."""
        return bool(self.schema.get("required"))

    @cached_property
    def fingerprint(self) -> str:
        """Changes when anything about the tool does that can change a run: its code included."""
        text = _canonical(self.to_dict() | self._code()).encode("utf-8", "surrogatepass")
        return hashlib.sha256(text).hexdigest()[:16]

    def to_dict(self) -> dict[str, Json]:
        """What it is, as JSON: the model's view of it, and the options that were set."""
        out: dict[str, Json] = {
            "name": self.name,
            "description": self.description,
            "parameters": self.schema,
        }
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name in {"schema", "function", "convert", *out} or value == f.default:
                continue
            if callable(value):
                value = f"<{function_label(value)}>"
            if value != {}:
                out[f.name] = value
        return out

    def _code(self) -> dict[str, Json]:
        parts = (self.function, self.query, self.requires_approval)
        return {"code": [code_of(part) for part in parts if callable(part)]}

    def with_(self, **options: Any) -> Tool:
        """The same tool with other options, such as `max_calls=3`.

        Raises:
            ToolDefinitionError: A name that is no option, or a value out of range.
        """
        names = {f.name for f in fields(self)}
        for name in options:
            if name not in names:
                raise ToolDefinitionError(
                    f"{name!r} is no option of a tool: {did_you_mean(name, names)}"
                )
        return replace(self, **options)

    def query_key(self, arguments: Mapping[str, Json]) -> str | None:
        """The text two calls share if they ask the same thing; None is never a duplicate.

        Arguments need not be valid: a call whose query cannot be told is no duplicate.
        """
        if self.query is None:
            return None
        if callable(self.query):
            try:
                text = self.query(dict(arguments))
            except BaseException as problem:  # the user's code, on whatever the model wrote
                if ends_us(problem):
                    raise
                return None
            return None if text is None else f"{self.name}: {text}"
        names = self._query_names
        if not any(name in arguments for name in names):
            return None
        parts = [arguments.get(name) for name in names]
        if len(parts) > 1:
            return f"{self.name}: {_canonical(parts)}"
        return f"{self.name}: {parts[0] if isinstance(parts[0], str) else _canonical(parts[0])}"

    @property
    def _query_names(self) -> tuple[str, ...]:
        if isinstance(self.query, str):
            return (self.query,)
        return () if self.query is None or callable(self.query) else tuple(self.query)

    def bind(self, arguments: Mapping[str, Json]) -> dict[str, Any] | BadArguments:
        """Validate arguments; the keyword arguments to call the function with, or what is wrong."""
        problem = self.compiled.problem(arguments)
        if problem is not None:
            return BadArguments(
                message=f"Invalid arguments for {self.name}: {problem}. {self._usage}"
            )
        # What the function does to a list it is given must not reach the record of the call.
        given = {
            name: copy.deepcopy(value) if type(value) in {list, dict} else value
            for name, value in arguments.items()
        }
        if self.convert is None:
            return given
        try:
            return self.convert(given)
        except ValidationError as failed:
            faults = "; ".join(
                f"{'.'.join(map(str, e['loc']))}: {e['msg']}"
                for e in failed.errors(include_url=False, include_context=False)[:3]
            )
            return BadArguments(
                message=f"Invalid arguments for {self.name}: {faults}. {self._usage}"
            )

    @cached_property
    def _usage(self) -> str:
        required = self.schema.get("required", ())
        known = self.schema.get("properties", {})
        names = [f"{name} (required)" if name in required else name for name in known]
        return f"It takes: {', '.join(names)}." if names else "It takes no arguments."


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *, name: str | None = None, description: str | None = None, **options: Any
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    **options: Any,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function: `@tool`, or `@tool(timeout=5, query="city")`.

    The schema comes from the annotations, the descriptions from the docstring (its first part,
    and the lines of `Args:`). The tool can still be called as the function.

    Args:
        function: Plain or async.
        name: Instead of the function's name.
        description: Instead of the docstring.
        options: Fields of `Tool`: query, timeout, max_calls, max_consecutive_same_args, strict,
            idempotent, requires_approval, max_calls_message, same_args_message, blocking,
            identity.

    Raises:
        ToolDefinitionError: The function cannot become a tool; the message says what to do.

    Examples:
        >>> @tool(query="city")
        ... def weather(city: str, days: int = 1) -> str:
        ...     "Tells the weather."
        ...     return f"{city}: rain for {days} days"
        >>> weather.spec.parameters["required"]
        ['city']
        >>> weather("Osk")
        'Osk: rain for 1 days'
    """
    allowed = {f.name for f in fields(Tool)} - {
        "name",
        "description",
        "schema",
        "function",
        "convert",
    }
    for option in options:
        if option not in allowed:
            raise ToolDefinitionError(
                f"@tool has no option {option!r}: {did_you_mean(option, allowed)}"
            )

    def make(function: Callable[..., Any], namespace: Mapping[str, Any]) -> Tool:
        if isinstance(function, Tool):
            raise ToolDefinitionError(
                f"{function!r} is a tool already: use {function.name}.with_(…)"
            )
        if not callable(function):
            raise ToolDefinitionError(f"@tool wants a function, got {function!r}")
        made = read_signature(function, namespace=namespace)
        return Tool(
            name or function_label(function),
            made.parameters,
            function,
            description=made.description if description is None else description,
            convert=made.arguments,
            **options,
        )

    if function is not None:
        return make(function, _caller_names())
    return lambda function: make(function, _caller_names())


def _caller_names() -> Mapping[str, Any]:
    """Names where the decorated function is defined: annotations may use a local class."""
    frame = inspect.currentframe()
    caller = frame.f_back.f_back if frame is not None and frame.f_back is not None else None
    return dict(caller.f_locals) if caller is not None else {}


def _canonical(value: Json) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=repr)


def _tool_of(module: str, name: str) -> Tool:
    found: Tool = getattr(importlib.import_module(module), name)
    return found
