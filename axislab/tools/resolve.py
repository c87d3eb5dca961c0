"""From what a recipe lists to the tools of one run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from axislab.errors import ToolDefinitionError
from axislab.tools.base import Tool
from axislab.tools.signature import function_label


def resolve_tools(items: Iterable[Any]) -> tuple[Tool, ...]:
    """The tools a list stands for: tools, collections of them, and functions that make them.

    A function without arguments is called each time, so that tools with a state of their own
    (notes, a browser) are fresh in every run.

    Raises:
        ToolDefinitionError: An item is nothing of the kind, or two tools share a name.
    """
    found: dict[str, Tool] = {}
    for made in _expand(items):
        if made.name in found:
            raise ToolDefinitionError(
                f"two tools are called {made.name!r}: rename one, tool.with_(name=…)"
            )
        found[made.name] = made
    return tuple(found.values())


def _expand(item: Any) -> Iterable[Tool]:
    if isinstance(item, Tool):
        return [item]
    if callable(item):
        return _expand_factory(item)
    if isinstance(item, Iterable) and not isinstance(item, str | bytes | Mapping):
        return [made for part in item for made in _expand(part)]
    raise ToolDefinitionError(
        f"{item!r} is no tool: list tools made with @tool or Tool(…), or functions without "
        "arguments that return them"
    )


def _expand_factory(factory: Callable[..., Any]) -> Iterable[Tool]:
    label = function_label(factory)
    try:
        inspect.signature(factory).bind()
    except (TypeError, ValueError) as problem:
        raise ToolDefinitionError(
            f"{label} takes arguments, so it does not make tools: if it is meant as a tool, "
            f"decorate it with @tool"
        ) from problem
    try:
        made = factory()
    except Exception as problem:  # the user's own code
        raise ToolDefinitionError(
            f"{label}() is called for every run to make its tools, and raised {problem!r}"
        ) from problem
    if callable(made) and not isinstance(made, Tool):
        raise ToolDefinitionError(f"{label}() returned {made!r}: it must return tools")
    try:
        return _expand(made)
    except ToolDefinitionError as problem:
        raise ToolDefinitionError(f"{label}() did not return tools: {problem}") from problem
