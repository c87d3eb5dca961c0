"""What must hold of a tool before it may be one, and of the limits set on it."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from axislab.borders import shown
from axislab.errors import ToolDefinitionError, did_you_mean
from axislab.messages import Json

UNKNOWN_TOOL = "__unknown__"
"""The name under which calls of tools that do not exist are counted; no tool may bear it."""

_NAME = re.compile(r"[^\s<>\x00-\x1f\x7f]{1,128}")


def require_name(name: object) -> None:
    """A name is 1 to 128 characters without blanks; what providers take beyond is theirs to say."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name == UNKNOWN_TOOL:
        raise ToolDefinitionError(
            f"{name!r} cannot name a tool: use 1 to 128 characters without blanks or <>, such as "
            f"'web_search' (and not {UNKNOWN_TOOL!r}); give name= for a lambda or partial"
        )


def require_count(value: object, *, label: str, least: int) -> None:
    """A limit is None or a whole number."""
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ToolDefinitionError(
            f"{label}={value!r} must be a whole number, {least} or more, or None for the policy's"
        )


def require_seconds(value: object, *, label: str) -> None:
    """A timeout is None or a positive number."""
    if value is None:
        return
    if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
        raise ToolDefinitionError(
            f"{label}={value!r} must be a positive number of seconds, or None for the policy's"
        )


def require_text(value: object, *, label: str, optional: bool = True) -> None:
    """A message is text; one that may be left out may be None."""
    if not isinstance(value, str) and not (optional and value is None):
        raise ToolDefinitionError(f"{label}={value!r} must be text{' or None' if optional else ''}")


def require_flag(value: object, *, label: str, also: str = "") -> None:
    """A flag is True or False: any text would count as True."""
    if not isinstance(value, bool):
        raise ToolDefinitionError(f"{label}={value!r} must be True or False{also}")


def require_json(value: object, *, label: str) -> None:
    """What identifies a tool is written into traces."""
    try:
        if not isinstance(value, Mapping):
            raise TypeError(f"it is a {type(value).__name__}")
        json.dumps(dict(value), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as problem:
        raise ToolDefinitionError(
            f"{label}={shown(value)} must be a mapping of plain JSON values: {problem}"
        ) from problem


def require_arguments(names: Iterable[object], *, schema: Mapping[str, Json], label: str) -> None:
    """The names are properties of the schema."""
    known = schema.get("properties", {})
    for name in names:
        if name not in known:
            raise ToolDefinitionError(
                f"{label}={name!r} is no argument of it: {did_you_mean(str(name), known)}"
            )


def require_callable_with(
    function: Callable[..., Any], schema: Mapping[str, Json], *, label: str
) -> None:
    """The function takes, by name, whatever a raw schema allows."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a builtin that does not tell
        return
    named = {p.name: p for p in parameters if p.kind in {p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY}}
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
    for name in schema.get("properties", {}):
        if name not in named and not takes_any:
            raise ToolDefinitionError(
                f"{label}: its function takes no argument {name!r}: add it, or **arguments"
            )
    for name, parameter in named.items():
        if parameter.default is parameter.empty and name not in schema.get("required", ()):
            raise ToolDefinitionError(
                f"{label}: its function needs {name!r}, but the schema does not require it: add it "
                'to "required", or give it a default'
            )
