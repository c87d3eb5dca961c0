"""What may stand between a valid call and its tool: functions that allow, deny, edit or ask."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from axislab.borders import Overdue, ends_us, shown, text_of, within
from axislab.messages import Json, ToolCall, ToolResult, ToolStatus
from axislab.tools.arguments import BadArguments
from axislab.tools.base import Tool
from axislab.tools.calls import dump_arguments
from axislab.tools.limits import Rejection, ToolReason
from axislab.tools.signature import function_label


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRequest:
    """A valid call, before it is run."""

    call: ToolCall
    """As the model made it."""
    tool: Tool
    arguments: Mapping[str, Json]
    """As it would be run now: repaired, and edited by the functions before."""


@dataclass(frozen=True, slots=True)
class Allow:
    """Nothing against it; returning None says the same."""


@dataclass(frozen=True, slots=True)
class Deny:
    """Do not run it; the model reads the message."""

    message: str
    reason: str = ToolReason.DENIED


@dataclass(frozen=True, slots=True)
class Edit:
    """Run it with these arguments instead; they are validated again."""

    arguments: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Ask:
    """A person has to approve it first."""

    message: str | None = None
    """Why, for the person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalDecision:
    """What a person, or a rule standing in for one, said."""

    approved: bool
    message: str | None = None
    """For the model, if the answer is no."""
    arguments: Mapping[str, Json] | None = None
    """Run it with these instead."""


Decision: TypeAlias = Allow | Deny | Edit | Ask
Before: TypeAlias = Callable[[ToolRequest], Decision | Awaitable[Decision | None] | None]
"""Runs after the arguments were validated and before approval and execution; plain or async."""
After: TypeAlias = Callable[
    [ToolRequest, ToolResult], ToolResult | Awaitable[ToolResult | None] | None
]
"""Runs on the result of a tool that ran, before it is cut to size; None keeps it."""
Approve: TypeAlias = Callable[
    [ToolRequest, Ask], ApprovalDecision | bool | Awaitable[ApprovalDecision | bool]
]
"""Asks whoever approves, and waits; what it raises ends the round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """A call nothing speaks against so far."""

    request: ToolRequest
    bound: dict[str, Any]
    """What the tool's function is called with."""
    edited: bool = False
    """Its arguments are no longer the model's."""


async def run_before(
    call: Cleared,
    before: Sequence[Before],
    *,
    approve: Approve | None,
    timeout: float | None = None,
) -> Cleared | Rejection:
    """Ask every function in turn, then, if one of them or the tool says so, a person.

    Args:
        call: What is to be run.
        before: The functions.
        approve: Asks a person, who may take as long as it takes.
        timeout: Seconds one async function may take.
    """
    asked = _tool_asks(call.request)
    for function in before:
        try:
            answer = function(_private(call.request))
            decision = await _awaited(answer, timeout)
        except Overdue:
            return _late(function, timeout)
        except BaseException as problem:  # a guard that breaks lets nothing through
            return _raised(function, problem)
        match decision:
            case None | Allow():
                continue
            case Deny(message=str(), reason=str()):
                return Rejection(decision.reason, decision.message)
            case Ask(message=None | str()):
                asked = asked or decision
            case Edit(arguments=Mapping()):
                edited = _edited(call, decision.arguments)
                if isinstance(edited, BadArguments):
                    return _broken(function, f"edited the arguments so: {edited.message}")
                call = edited
            case _:
                return _broken(function, f"answered {shown(decision)}, which is no decision")
    return call if asked is None else await _ask(call, asked, approve)


async def run_after(
    request: ToolRequest,
    result: ToolResult,
    after: Sequence[After],
    *,
    timeout: float | None = None,
) -> ToolResult | Rejection:
    """Let every function see the result and replace it; call id and tool stay what they are."""
    for function in after:
        try:
            answer = function(request, result)
            changed = await _awaited(answer, timeout)
        except Overdue:
            return _late(function, timeout)
        except BaseException as problem:
            return _raised(function, problem)
        match changed:
            case None:
                continue
            case ToolResult(content=str(), status=ToolStatus(), reason=None | str()):
                result = replace(changed, call_id=result.call_id, name=result.name)
            case _:
                return _broken(function, f"answered {shown(changed)}, which is no ToolResult")
    return result


async def _ask(call: Cleared, asked: Ask, approve: Approve | None) -> Cleared | Rejection:
    name = call.request.tool.name
    if approve is None:
        return Rejection(
            ToolReason.APPROVAL_REQUIRED,
            f"Not run: {name} needs a person's approval, and nobody can give it here.",
        )
    answer = approve(call.request, asked)
    said = await answer if isinstance(answer, Awaitable) else answer
    decision = ApprovalDecision(approved=said) if isinstance(said, bool) else said
    if not decision.approved:
        message = decision.message or f"Not run: a person refused this call of {name}."
        return Rejection(ToolReason.APPROVAL_DENIED, message)
    if decision.arguments is None:
        return call
    edited = _edited(call, decision.arguments)
    if isinstance(edited, BadArguments):
        message = f"Not run as a person edited it: {edited.message}"
        return Rejection(ToolReason.APPROVAL_DENIED, message)
    return edited


def _edited(call: Cleared, arguments: Mapping[str, Json]) -> Cleared | BadArguments:
    """The call with other arguments, validated like the model's own."""
    try:
        dump_arguments(dict(arguments))
    except (TypeError, ValueError, RecursionError) as problem:
        return BadArguments(message=f"{shown(arguments)} is not JSON: {problem}.")
    request = replace(call.request, arguments=dict(arguments))
    bound = request.tool.bind(request.arguments)
    if isinstance(bound, BadArguments):
        return bound
    return Cleared(request=request, bound=bound, edited=True)


def _tool_asks(request: ToolRequest) -> Ask | None:
    wanted = request.tool.requires_approval
    if callable(wanted):
        try:
            wanted = bool(wanted(dict(request.arguments)))
        except BaseException as problem:
            if ends_us(problem):
                raise
            return Ask(f"whether approval is needed could not be told ({shown(problem)})")
    return Ask() if wanted else None


def _private(request: ToolRequest) -> ToolRequest:
    """A copy whose arguments may be changed without effect."""
    return replace(request, arguments=copy.deepcopy(dict(request.arguments)))


async def _awaited(answer: Any, timeout: float | None) -> Any:
    return await within(answer, timeout) if isinstance(answer, Awaitable) else answer


def _late(function: Callable[..., object], timeout: float | None) -> Rejection:
    return _broken(function, f"took longer than {timeout:g} seconds and was given up")


def _raised(function: Callable[..., object], problem: BaseException) -> Rejection:
    """What a function raised, unless it came from outside and has to go on."""
    if ends_us(problem):
        raise problem
    return _broken(function, f"raised {type(problem).__name__}: {text_of(problem)}")


def _broken(function: Callable[..., object], what: str) -> Rejection:
    return Rejection(ToolReason.MIDDLEWARE_ERROR, f"The check {function_label(function)} {what}")
