"""Replaying a run: its recorded replies and results are decided again, and must come out the same.

Nothing is called: no model, no tool. What the trace says happened goes through a fresh
conversation, one operation for each step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from axislab.errors import ConversationError, TraceError
from axislab.events import ModelRequested, StepTaken, ToolFinished
from axislab.messages import Message, Role, ToolStatus
from axislab.recipe import Recipe
from axislab.runtime.budget import TokenEstimator
from axislab.runtime.conversation import ConversationRuntime
from axislab.runtime.decisions import RuleReport
from axislab.runtime.info import ConversationStepResult
from axislab.trace.rebuild import conversation_of
from axislab.trace.run import Run
from axislab.trace.trace import Record, Trace

_OPTIONAL = ("rule", "level", "estimated_tokens", "calibration_ratio")
"""Not compared where the trace does not hold them."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a replay first came out otherwise."""

    step: int
    field: str
    """What differs, or "refused" if the conversation did not take the operation."""
    recorded: Any
    replayed: Any

    def __str__(self) -> str:
        return f"step {self.step}, {self.field}: {self.recorded!r} -> {self.replayed!r}"


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """What came of a replay."""

    ok: bool
    """Every step came out as it was recorded."""
    steps: int
    """Steps that did."""
    difference: Difference | None = None
    """The first one; what follows it is not looked at."""

    def __str__(self) -> str:
        return f"{self.steps} steps the same" + (f"; {self.difference}" if self.difference else "")


def replay(
    source: Run | Trace,
    *,
    recipe: Recipe | None = None,
    estimator: TokenEstimator | None = None,
) -> ReplayReport:
    """Decide a recorded run again and compare every step with what was recorded.

    Args:
        source: The run.
        recipe: The recipe it was run with; needed where its chain, hooks or tools are functions
            that the trace only names.
        estimator: What counted its tokens, where that is an object of your own.

    Raises:
        TraceError: The header does not hold enough; the message says what to pass.

    Examples:
        >>> print(replay(load_run("traces/demo/osk.jsonl")))
        4 steps the same
    """
    trace = source.trace if isinstance(source, Run) else source
    runtime = conversation_of(trace, recipe=recipe, estimator=estimator)
    tape = _Tape(trace)
    steps = trace.of(StepTaken.kind)
    for done, record in enumerate(steps):
        difference = _replay_step(runtime, tape, record)
        if difference is not None:
            return ReplayReport(ok=False, steps=done, difference=difference)
    if steps and not runtime.visible.same_as(trace.visible(steps[-1].data["step"])):
        last = steps[-1].data["step"]
        seen = trace.visible(last)
        difference = Difference(last, "visible", len(seen), len(runtime.visible))
        return ReplayReport(ok=False, steps=len(steps), difference=difference)
    return ReplayReport(ok=True, steps=len(steps))


def explain_step(
    source: Run | Trace, step: int | None = None, *, recipe: Recipe | None = None
) -> tuple[RuleReport, ...]:
    """What every rule of the decision chain said about a recorded reply, in order.

    Args:
        source: The run.
        step: A step that judged a reply; the newest one by default.
        recipe: As for `replay`.

    Raises:
        TraceError: The step judged no reply, or what comes before it does not replay.

    Examples:
        >>> reports = explain_step(load_run("traces/demo/osk.jsonl"))
        >>> [report.rule for report in reports if report.outcome == "fired"]
        ['completed']
    """
    trace = source.trace if isinstance(source, Run) else source
    judged = [
        r.data["step"] for r in trace.of(StepTaken.kind) if r.data["operation"] == "assistant"
    ]
    wanted = judged[-1] if step is None and judged else step
    if wanted not in judged:
        raise TraceError(f"step {wanted!r} judged no reply; steps that did: {judged}")
    runtime, tape = conversation_of(trace, recipe=recipe), _Tape(trace)
    for record in trace.of(StepTaken.kind):
        if record.data["step"] == wanted:
            break
        if (difference := _replay_step(runtime, tape, record)) is not None:
            raise TraceError(f"{trace.name} does not replay up to step {wanted}: {difference}")
    message = tape.messages(record.data)[0]
    return runtime.explain(message, tape.finish_reasons.get(wanted))


class _Tape:
    """What a trace recorded for each step."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.prompt = str((trace.header.get("task") or {}).get("prompt", ""))
        self.finish_reasons = {
            row.data["step"]: row.data.get("finish_reason")
            for row in trace.of(ModelRequested.kind)
            if row.data["outcome"] == "ok" and _is_reply(row.data["purpose"])
        }
        self.rejected = frozenset(
            row.data["call_id"]
            for row in trace.of(ToolFinished.kind)
            if row.data["status"] == ToolStatus.REJECTED
        )

    def messages(self, step: Mapping[str, Any]) -> tuple[Message, ...]:
        return self.trace.messages_at(step["step"])


def _is_reply(purpose: str) -> bool:
    """The reply to it became a message; those of side questions do not."""
    return purpose == "main_loop" or purpose.startswith("final_answer")


def _replay_step(runtime: ConversationRuntime, tape: _Tape, record: Record) -> Difference | None:
    step = record.data
    number = step["step"]
    operation = _OPERATIONS.get(step["operation"])
    if operation is None:
        raise TraceError(
            f"step {number} of {tape.trace.name} is {step['operation']!r}, which is no operation "
            f"of a conversation; known: {', '.join(sorted(_OPERATIONS))}"
        )
    if (observed := step.get("observed_tokens")) is not None:
        runtime.record_observed_prompt_tokens(runtime.visible, observed)
    try:
        result = operation(runtime, tape, step)
    except (ConversationError, LookupError) as problem:
        return Difference(number, "refused", step["operation"], str(problem))
    if result is None:
        return Difference(number, "refused", step["operation"], "nothing to do")
    if step.get("counter_reset"):
        runtime.reset_rollback_counter()
    return _compare(runtime, result, tape, step)


def _compare(
    runtime: ConversationRuntime,
    result: ConversationStepResult,
    tape: _Tape,
    step: Mapping[str, Any],
) -> Difference | None:
    recorded, came = tape.messages(step), result.appended
    for name, value in _fields(runtime, result).items():
        given = list(step[name]) if isinstance(value, list) else step.get(name)
        if given != value and not (given is None and name in _OPTIONAL):
            return Difference(step["step"], name, given, value)
    if recorded != came:
        was, now = (_first_other(a, b) for a, b in ((recorded, came), (came, recorded)))
        return Difference(step["step"], "messages", was, now)
    return None


def _fields(runtime: ConversationRuntime, result: ConversationStepResult) -> dict[str, Any]:
    """A step as a trace tells it."""
    info, decision = result.info, result.decision
    return {
        "stage_path": list(map(str, info.stage_path)),
        "stage": str(result.stage),
        "action": str(result.action),
        "done_reason": result.done_reason,
        "turn": info.assistant_turn_idx,
        "visible_count": info.visible_message_count,
        "raw_count": info.raw_message_count,
        "rollback_count": runtime.rollback_count,
        "pending": list(result.pending),
        "rule": decision.rule if decision else None,
        "level": decision.level if decision else None,
        "estimated_tokens": runtime.estimate(),
        "calibration_ratio": round(runtime.calibration_ratio, 9),
    }


def _first_other(messages: Sequence[Message], others: Sequence[Message]) -> Message | None:
    for place, message in enumerate(messages):
        if place >= len(others) or message != others[place]:
            return message
    return None


# One function for each operation -----------------------------------------------------------------


def _initialize(
    runtime: ConversationRuntime, tape: _Tape, step: Mapping[str, Any]
) -> ConversationStepResult:
    return runtime.initialize_conversation(tape.prompt)


def _assistant(
    runtime: ConversationRuntime, tape: _Tape, step: Mapping[str, Any]
) -> ConversationStepResult:
    reply = tape.messages(step)[0]
    return runtime.apply_assistant_message(reply, tape.finish_reasons.get(step["step"]))


def _tools(
    runtime: ConversationRuntime, tape: _Tape, step: Mapping[str, Any]
) -> ConversationStepResult:
    results = [
        Message.tool(m.text, tool_call_id=call_id, name=None if "," in (m.name or "") else m.name)
        for m in tape.messages(step)
        if m.role is Role.TOOL
        for call_id in (m.tool_call_id or "").split(",")  # rejected ones may have been merged
    ]
    return runtime.apply_batch_tool_messages(
        results,
        tools_exhausted=bool((step.get("info") or {}).get("tools_exhausted")),
        rejected_ids=tape.rejected,
    )


def _rollback_calls(
    runtime: ConversationRuntime, tape: _Tape, step: Mapping[str, Any]
) -> ConversationStepResult | None:
    return runtime.rollback_assistant_tool_calls(step.get("rollback_reason") or "")


def _rollback_exchange(
    runtime: ConversationRuntime, tape: _Tape, step: Mapping[str, Any]
) -> ConversationStepResult | None:
    reason = step.get("rollback_reason") or ""
    return runtime.rollback_latest_tool_exchange_and_force_finalize(reason)


def _after_error(
    runtime: ConversationRuntime, tape: _Tape, step: Mapping[str, Any]
) -> ConversationStepResult:
    estimate = (step.get("info") or {}).get("context_limit_estimate") or {}
    error = estimate.get("provider_error")
    return runtime.force_finalize_due_to_context_limit_after_error(error)


def _marker(
    runtime: ConversationRuntime, tape: _Tape, step: Mapping[str, Any]
) -> ConversationStepResult:
    return runtime.append_raw_marker(tape.messages(step)[0])


def _reopen(
    runtime: ConversationRuntime, tape: _Tape, step: Mapping[str, Any]
) -> ConversationStepResult:
    return runtime.reopen_after_context_reset()


def _ask_for_answer(
    runtime: ConversationRuntime, tape: _Tape, step: Mapping[str, Any]
) -> ConversationStepResult:
    prompt = next((m.text for m in tape.messages(step) if m.role is Role.USER), None)
    return runtime.ask_for_answer(
        prompt,
        hide=step.get("rollback_message_count") or 0,
        reason=step.get("rollback_reason") or "",
    )


def _withdraw_answer(
    runtime: ConversationRuntime, tape: _Tape, step: Mapping[str, Any]
) -> ConversationStepResult:
    return runtime.withdraw_answer(
        hide=step.get("rollback_message_count") or 0, reason=step.get("rollback_reason") or ""
    )


def _begin_try(
    runtime: ConversationRuntime, tape: _Tape, step: Mapping[str, Any]
) -> ConversationStepResult:
    return runtime.begin_try(next(m.text for m in tape.messages(step) if m.role is Role.USER))


_Operation = Callable[
    [ConversationRuntime, _Tape, Mapping[str, Any]], ConversationStepResult | None
]

_OPERATIONS: dict[str, _Operation] = {
    "initialize": _initialize,
    "assistant": _assistant,
    "tools": _tools,
    "rollback_tool_calls": _rollback_calls,
    "rollback_latest_exchange": _rollback_exchange,
    "force_finalize_after_error": _after_error,
    "marker": _marker,
    "reopen": _reopen,
    "ask_for_answer": _ask_for_answer,
    "withdraw_answer": _withdraw_answer,
    "begin_try": _begin_try,
}
