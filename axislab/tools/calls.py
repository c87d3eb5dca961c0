"""A tool call before any check: its arguments read and repaired, once."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from axislab.config import ToolPolicy
from axislab.messages import Json, ToolCall
from axislab.tools.arguments import BadArguments, read_arguments
from axislab.tools.base import Tool
from axislab.tools.limits import ToolReason
from axislab.tools.repair import repair_arguments

ArgumentHook: TypeAlias = Callable[[str, dict[str, Json]], dict[str, Json] | None]
"""The recipe's own repair: gets the tool's name and a copy of the arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedCall:
    """A call whose arguments were read and repaired."""

    call: ToolCall
    tool: Tool | None
    """None if no tool has that name."""
    arguments: dict[str, Json] | None
    """None if they cannot be read."""
    problem: str | None = None
    """What is wrong with them, for the model."""
    reason: str | None = None
    """And in a word."""
    repairs: tuple[str, ...] = ()
    """Names of the rules that were applied."""

    @property
    def query_key(self) -> str | None:
        """What it shares with a call that asks the same thing; None is never a duplicate."""
        if self.tool is None or self.arguments is None:
            return None
        return self.tool.query_key(self.arguments)

    @property
    def text(self) -> str:
        """The arguments as JSON text: the model's own unless they were repaired."""
        if self.arguments is None or not self.repairs:
            return self.call.arguments
        return dump_arguments(self.arguments)


def prepare_call(
    call: ToolCall, tool: Tool | None, *, policy: ToolPolicy, hook: ArgumentHook | None = None
) -> PreparedCall:
    """Read the arguments of a call and, where the policy says so, repair them.

    Args:
        call: As the model made it.
        tool: The tool of that name, if there is one.
        policy: Says whether and how to repair.
        hook: The last rule of repair; called at most once.
    """
    read = read_arguments(call.arguments, empty_ok=tool is not None and not tool.needs_arguments)
    if isinstance(read, BadArguments):
        return PreparedCall(
            call=call,
            tool=tool,
            arguments=None,
            problem=read.message,
            reason=ToolReason.PARAMETER_ERROR,
        )
    made = PreparedCall(call=call, tool=tool, arguments=read.value, repairs=read.repairs)
    if tool is None or not policy.repair_arguments:
        return made
    if tool.strict and not policy.repair_strict_tools:
        return made
    return _repair(made, read.value, tool=tool, policy=policy, hook=hook)


def _repair(
    made: PreparedCall,
    arguments: dict[str, Json],
    *,
    tool: Tool,
    policy: ToolPolicy,
    hook: ArgumentHook | None,
) -> PreparedCall:
    try:
        repaired = repair_arguments(
            arguments,
            schema=tool.schema,
            policy=policy,
            hook=None if hook is None else lambda mended: hook(tool.name, mended),
        )
    except Exception as problem:  # the hook is the recipe's code and may raise anything
        return replace(
            made,
            problem=f"The argument hook raised {type(problem).__name__}: {problem}",
            reason=ToolReason.ARGUMENT_HOOK_ERROR,
        )
    return replace(made, arguments=repaired.arguments, repairs=(*made.repairs, *repaired.rules))


def dump_arguments(arguments: object) -> str:
    """Arguments as JSON text that any file takes."""
    text = json.dumps(arguments, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate: keep it, as an escape
        return json.dumps(arguments)
    return text
