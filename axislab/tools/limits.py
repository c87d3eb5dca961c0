"""The accounts of one run's tool calls: budgets, repeats, and what each tool came to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from axislab.config import ToolPolicy
from axislab.messages import Json, ToolResult, ToolStatus
from axislab.tools.base import Tool
from axislab.tools.definition import UNKNOWN_TOOL


class ToolReason(StrEnum):
    """Why a call failed or was rejected; tools may report words of their own."""

    STEP_LIMIT = "per_step_limit_exceeded"
    """Too many calls in one turn."""
    UNKNOWN_TOOL = "unknown_tool"
    """No tool of that name."""
    TASK_BUDGET = "task_budget_exceeded"
    """The run's budget is used up."""
    TOOL_BUDGET = "call_budget_exceeded"
    """The tool's budget is used up."""
    SAME_ARGS = "consecutive_same_args"
    """The very call of the turn before, too often in a row."""
    PARAMETER_ERROR = "parameter_error"
    """The arguments cannot be read or do not fit the schema."""
    ARGUMENT_HOOK_ERROR = "argument_hook_error"
    """The recipe's own repair of the arguments raised."""
    DENIED = "denied"
    """Middleware said no."""
    MIDDLEWARE_ERROR = "middleware_error"
    """Middleware raised, or answered something that is no decision."""
    APPROVAL_REQUIRED = "approval_required"
    """The call needs a person's approval and nobody can be asked."""
    APPROVAL_DENIED = "approval_denied"
    """A person said no."""
    EXECUTION_ERROR = "execution_error"
    """The tool raised."""
    TIMEOUT = "timeout"
    """The tool took too long."""


@dataclass(slots=True)
class ToolMetrics:
    """What became of the calls of one tool in one run."""

    requested: int = 0
    success: int = 0
    failed: int = 0
    rejected: int = 0
    rejections: Counter[str] = field(default_factory=Counter)
    """Rejected calls by reason."""
    failures: Counter[str] = field(default_factory=Counter)
    """Failed calls by reason."""

    def to_dict(self) -> dict[str, Json]:
        """The counts as JSON."""
        return {
            "requested": self.requested,
            "success": self.success,
            "failed": self.failed,
            "rejected": self.rejected,
            "rejections": dict(self.rejections),
            "failures": dict(self.failures),
        }


@dataclass(frozen=True, slots=True)
class Rejection:
    """A call that is not run, and what the model is told."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class _Remembered:
    arguments: Mapping[str, Json]
    count: int


class TaskLimits:
    """Decides which calls may run, and keeps count. One for each run; it knows no time."""

    def __init__(self, tools: Mapping[str, Tool], policy: ToolPolicy) -> None:
        self._tools = tools
        self._policy = policy
        self._metrics = {name: ToolMetrics() for name in tools}
        self._calls: Counter[str] = Counter()
        self._unknown: Counter[str] = Counter()
        self._total = 0
        self._step = 0
        self._memory: dict[str, _Remembered] = {}
        self._repeated: set[str] = set()

    @property
    def total(self) -> int:
        """Calls that reached a tool."""
        return self._total

    @property
    def unknown(self) -> dict[str, int]:
        """Names that no tool has, and how often each was called."""
        return dict(self._unknown)

    @property
    def metrics(self) -> dict[str, ToolMetrics]:
        """Counts by tool; calls of unknown tools under `__unknown__`."""
        return self._metrics

    @property
    def exhausted(self) -> bool:
        """Whether no further call of any tool can run."""
        if _reached(self._policy.max_tool_calls_per_task, self._total):
            return True
        return bool(self._tools) and all(
            _reached(self._limit(tool), self._calls[name]) for name, tool in self._tools.items()
        )

    def begin_round(self) -> None:
        """Forget what counts within one turn only."""
        self._step = 0
        self._repeated.clear()

    def admit(self, name: str, arguments: Mapping[str, Json] | None) -> Rejection | None:
        """Count the request, and reject it if a limit says so; in the order of the checks."""
        tool = self._tools.get(name)
        self._bucket(name).requested += 1
        policy = self._policy
        if _reached(policy.max_tool_calls_per_step, self._step):
            return Rejection(ToolReason.STEP_LIMIT, policy.step_limit_message)
        if tool is None:
            self._unknown[name] += 1
            return Rejection(ToolReason.UNKNOWN_TOOL, self._unknown_message(name))
        if _reached(policy.max_tool_calls_per_task, self._total):
            return Rejection(ToolReason.TASK_BUDGET, policy.task_limit_message)
        if _reached(self._limit(tool), self._calls[name]):
            message = tool.max_calls_message or policy.tool_limit_message
            return Rejection(ToolReason.TOOL_BUDGET, message)
        if self._repeats(tool, arguments):
            self._repeated.add(name)
            message = tool.same_args_message or policy.same_args_message
            return Rejection(ToolReason.SAME_ARGS, message)
        return None

    def use_step(self) -> None:
        """A call of this turn was not rejected."""
        self._step += 1

    def use_budget(self, name: str) -> None:
        """A call reaches its tool."""
        self._total += 1
        self._calls[name] += 1

    def record(self, result: ToolResult) -> None:
        """Count what a call came to."""
        bucket = self._bucket(result.name)
        if result.status is ToolStatus.SUCCESS:
            bucket.success += 1
        elif result.status is ToolStatus.FAILED:
            bucket.failed += 1
            bucket.failures[result.reason or ToolReason.EXECUTION_ERROR.value] += 1
        else:
            bucket.rejected += 1
            bucket.rejections[result.reason or ToolReason.DENIED.value] += 1

    def replay(self, result: ToolResult) -> None:
        """Count a call of an earlier process, whatever the limits are today."""
        self._bucket(result.name).requested += 1
        if result.status is not ToolStatus.REJECTED:
            self._step += 1
        if result.latency is not None:
            self.use_budget(result.name)
        if result.reason == ToolReason.UNKNOWN_TOOL:
            self._unknown[result.name] += 1
        if result.reason == ToolReason.SAME_ARGS and result.name in self._memory:
            self._repeated.add(result.name)
        self.record(result)

    def end_round(self, succeeded: Iterable[tuple[str, Mapping[str, Json]]]) -> None:
        """Remember, for the next turn, the last successful arguments of each tool.

        A tool without a success is forgotten, unless its very repeat was rejected: else the same
        call would run in every other turn.
        """
        latest = dict(succeeded)
        memory: dict[str, _Remembered] = {}
        for name, arguments in latest.items():
            before = self._memory.get(name)
            again = before is not None and before.arguments == arguments
            count = before.count + 1 if before is not None and again else 1
            memory[name] = _Remembered(arguments, count)
        for name in self._repeated - latest.keys():
            memory[name] = self._memory[name]
        self._memory = memory

    def _bucket(self, name: str) -> ToolMetrics:
        if name in self._tools:
            return self._metrics[name]
        return self._metrics.setdefault(UNKNOWN_TOOL, ToolMetrics())

    def _limit(self, tool: Tool) -> int | None:
        if tool.max_calls is not None:
            return tool.max_calls
        return self._policy.default_max_calls_per_tool_per_task

    def _repeats(self, tool: Tool, arguments: Mapping[str, Json] | None) -> bool:
        limit = tool.max_consecutive_same_args
        if limit is None:
            limit = self._policy.default_max_consecutive_calls_with_same_args
        before = self._memory.get(tool.name)
        if limit is None or before is None:
            return False
        return before.count >= limit and before.arguments == arguments

    def _unknown_message(self, name: str) -> str:
        names = ", ".join(self._tools) or "none"
        return f"Not run: there is no tool {name!r}. Tools: {names}."


def _reached(limit: int | None, count: int) -> bool:
    return limit is not None and count >= limit
