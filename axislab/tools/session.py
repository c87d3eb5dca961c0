"""The tool calls of one run, turn by turn: every call is checked, run and answered here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from axislab.config import ToolPolicy
from axislab.messages import Json, ToolCall, ToolResult, ToolStatus
from axislab.tools.arguments import BadArguments
from axislab.tools.base import Tool
from axislab.tools.calls import ArgumentHook, PreparedCall, dump_arguments, prepare_call
from axislab.tools.execution import run_tool
from axislab.tools.limits import Rejection, TaskLimits, ToolMetrics, ToolReason
from axislab.tools.middleware import (
    After,
    Approve,
    Before,
    Cleared,
    ToolRequest,
    run_after,
    run_before,
)
from axislab.tools.results import cap_text

OnStart: TypeAlias = Callable[[ToolCall, dict[str, Json]], None]
"""Told of a call and the arguments it runs with, right before it does."""
OnFinish: TypeAlias = Callable[[ToolResult], None]
"""Told of a result, as soon as it is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What the calls of one turn came to."""

    results: tuple[ToolResult, ...]
    """One for each call, in the order of the calls."""
    exhausted: bool
    """Whether no further call of any tool can run."""
    total_calls: int
    """Calls of the run so far that reached a tool."""

    @property
    def rejected_ids(self) -> frozenset[str]:
        """Ids of the calls that were not run."""
        return frozenset(r.call_id for r in self.results if r.status is ToolStatus.REJECTED)

    @property
    def any_success(self) -> bool:
        """Whether at least one tool worked."""
        return any(r.status is ToolStatus.SUCCESS for r in self.results)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """What all runs of one executor share."""

    tools: Mapping[str, Tool]
    policy: ToolPolicy
    before: tuple[Before, ...] = ()
    after: tuple[After, ...] = ()
    hook: ArgumentHook | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ready:
    """A call that has passed every check."""

    prepared: PreparedCall
    cleared: Cleared

    @property
    def text(self) -> str:
        if self.cleared.edited:
            return dump_arguments(self.cleared.request.arguments)
        return self.prepared.text


class ToolSession:
    """Budgets, memory and metrics of one run. A round that raised is its last."""

    def __init__(self, workshop: Workshop, *, approve: Approve | None = None) -> None:
        self._workshop = workshop
        self._approve = approve
        self._limits = TaskLimits(workshop.tools, workshop.policy)

    @property
    def exhausted(self) -> bool:
        """Whether no further call of any tool can run."""
        return self._limits.exhausted

    @property
    def total_calls(self) -> int:
        """Calls that reached a tool."""
        return self._limits.total

    @property
    def metrics(self) -> Mapping[str, ToolMetrics]:
        """Counts by tool; calls of unknown tools under `__unknown__`."""
        return MappingProxyType(self._limits.metrics)

    @property
    def unknown(self) -> dict[str, int]:
        """Names that no tool has, and how often each was called."""
        return self._limits.unknown

    def prepare(self, call: ToolCall) -> PreparedCall:
        """Read and repair the arguments of a call; give `run_round` the result to do so once."""
        shop = self._workshop
        return prepare_call(call, shop.tools.get(call.name), policy=shop.policy, hook=shop.hook)

    async def run_round(
        self,
        calls: Sequence[ToolCall | PreparedCall],
        *,
        on_start: OnStart | None = None,
        on_finish: OnFinish | None = None,
        known: Mapping[str, ToolResult] | None = None,
    ) -> Round:
        """Run the calls of one turn.

        All calls are checked, in order, before the first is run. Every call gets one result, at
        its place, even where two share an id.

        Args:
            calls: As the model made them, or prepared.
            on_start: Told right before a tool really runs.
            on_finish: Told of each result as soon as it is known, rejected ones included.
            known: Results by call id of an earlier process: counted, not run or told again.
        """
        known = known or {}
        self._limits.begin_round()
        prepared = [c if isinstance(c, PreparedCall) else self.prepare(c) for c in calls]
        checked: list[ToolResult | _Ready] = []
        for one in prepared:
            if (result := known.get(one.call.id)) is not None:
                self._limits.replay(result)
                checked.append(result)
                continue
            outcome = await self._check(one)
            if isinstance(outcome, ToolResult):
                self._tell(outcome, on_finish)
            checked.append(outcome)
        done = iter(
            await self._run_all([c for c in checked if isinstance(c, _Ready)], on_start, on_finish)
        )
        results = tuple(c if isinstance(c, ToolResult) else next(done) for c in checked)
        self._limits.end_round(
            (one.call.name, one.arguments)
            for one, result in zip(prepared, results, strict=True)
            if result.status is ToolStatus.SUCCESS and one.arguments is not None
        )
        return Round(
            results=results, exhausted=self._limits.exhausted, total_calls=self._limits.total
        )

    async def _check(self, one: PreparedCall) -> ToolResult | _Ready:
        """All checks of one call, in the order of the specification."""
        rejection = self._limits.admit(one.call.name, one.arguments)
        if rejection is not None:
            return _refused(one, rejection)
        assert one.tool is not None  # calls of unknown tools are never admitted
        if one.arguments is None or one.problem is not None:
            self._limits.use_step()
            return _unfit(one, one.problem or "", reason=one.reason)
        bound = one.tool.bind(one.arguments)
        if isinstance(bound, BadArguments):
            self._limits.use_step()
            return _unfit(one, bound.message, reason=ToolReason.PARAMETER_ERROR)
        request = ToolRequest(call=one.call, tool=one.tool, arguments=one.arguments)
        cleared = await self._clear(Cleared(request=request, bound=bound))
        if isinstance(cleared, Rejection):
            return _refused(one, cleared)
        self._limits.use_step()
        self._limits.use_budget(one.tool.name)
        return _Ready(prepared=one, cleared=cleared)

    async def _clear(self, call: Cleared) -> Cleared | Rejection:
        if not self._workshop.before and call.request.tool.requires_approval is False:
            return call
        return await run_before(
            call,
            self._workshop.before,
            approve=self._approve,
            timeout=self._seconds(call.request.tool),
        )

    def _seconds(self, tool: Tool) -> float | None:
        """How long one call of it may take, and each function that looks at the call."""
        policy = self._workshop.policy
        return policy.tool_timeout if tool.timeout is None else tool.timeout

    async def _run_all(
        self, ready: Sequence[_Ready], on_start: OnStart | None, on_finish: OnFinish | None
    ) -> list[ToolResult]:
        if len(ready) < 2 or not self._workshop.policy.parallel_tools:
            return [await self._run(one, on_start, on_finish) for one in ready]
        tasks = [asyncio.ensure_future(self._run(one, on_start, on_finish)) for one in ready]
        try:
            return await asyncio.gather(*tasks)
        except BaseException:
            # gather leaves the others running when one raises: nothing may outlive the round.
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise

    async def _run(
        self, ready: _Ready, on_start: OnStart | None, on_finish: OnFinish | None
    ) -> ToolResult:
        request, policy = ready.cleared.request, self._workshop.policy
        tool = request.tool
        if on_start is not None:
            on_start(request.call, dict(request.arguments))
        output = await run_tool(
            tool,
            ready.cleared.bound,
            timeout=self._seconds(tool),
        )
        result = ToolResult(
            call_id=request.call.id,
            name=tool.name,
            content=output.content,
            status=output.status,
            reason=output.reason,
            latency=output.latency,
            arguments=ready.text,
            repairs=ready.prepared.repairs,
        )
        if self._workshop.after:
            result = await self._edit(request, result)
        capped = cap_text(result.content, policy.max_result_chars)
        if capped.cut:
            result = replace(result, content=capped.text, truncated=result.truncated + capped.cut)
        self._tell(result, on_finish)
        return result

    async def _edit(self, request: ToolRequest, result: ToolResult) -> ToolResult:
        seconds = self._seconds(request.tool)
        edited = await run_after(request, result, self._workshop.after, timeout=seconds)
        if isinstance(edited, ToolResult):
            return edited
        return replace(
            result, status=ToolStatus.FAILED, reason=edited.reason, content=edited.message
        )

    def _tell(self, result: ToolResult, on_finish: OnFinish | None) -> None:
        self._limits.record(result)
        if on_finish is not None:
            on_finish(result)


def _refused(one: PreparedCall, rejection: Rejection) -> ToolResult:
    return ToolResult(
        call_id=one.call.id,
        name=one.call.name,
        content=rejection.message,
        status=ToolStatus.REJECTED,
        reason=rejection.reason,
        repairs=one.repairs,
    )


def _unfit(one: PreparedCall, message: str, *, reason: str | None) -> ToolResult:
    return ToolResult(
        call_id=one.call.id,
        name=one.call.name,
        content=message,
        status=ToolStatus.FAILED,
        reason=reason,
        repairs=one.repairs,
    )
