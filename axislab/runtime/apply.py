"""What a decision, a batch of results or an error does to a conversation in the making.

Every function changes a `Draft` and gives the conditional info fields of the step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from axislab.errors import HookError
from axislab.messages import Json, Message, Role
from axislab.runtime.budget import ContextBudget, ContextBudgetEstimator
from axislab.runtime.decisions import Decision, Turn, Verdict, preview
from axislab.runtime.markers import Rollback
from axislab.runtime.stages import VALID_STAGE_TRANSITION, FinalizationTrigger, RollbackReason
from axislab.runtime.stages import ConversationStage as Stage
from axislab.runtime.state import Draft

Info = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What stays the same during an operation."""

    budget: ContextBudgetEstimator
    max_turns: int | None

    @property
    def prompt(self) -> Message | None:
        """Forces the final answer; None forces it silently."""
        return self.budget.prompt


def decision(context: Context, draft: Draft, turn: Turn, made: Decision) -> Info:
    """Do what the chain decided about the reply at the end of the draft.

    Raises:
        HookError: A rule decided what cannot be done with this reply.
    """
    if turn.calls and made.verdict in _KEEPS_REPLY_IN_SIGHT:
        raise HookError(
            f"rule {made.rule!r} decided {made.verdict!s} about a reply that calls tools, whose "
            f"calls would stay unanswered: roll it back, run the calls, or end the conversation"
        )
    if made.verdict is Verdict.EXECUTE_TOOLS and not turn.calls:
        raise HookError(f"rule {made.rule!r} decided to run the tools of a reply that calls none")
    return _APPLY[made.verdict](context, draft, turn, made)


def check_turns(context: Context, draft: Draft) -> Info:
    """Force the final answer if the next turn is the last one allowed."""
    limit = context.max_turns
    if limit is None or draft.turn_idx - draft.turn_base + 1 < limit:
        return {}
    return force_final(context, draft, FinalizationTrigger.TURN_LIMIT)


def force_final(context: Context, draft: Draft, trigger: str) -> Info:
    """Append the force prompt and wait for the final answer."""
    prompted = context.prompt is not None
    if context.prompt is not None:
        draft.append(context.prompt)
    draft.move(Stage.FORCE_FINAL)
    draft.trigger, draft.force_prompted = str(trigger), prompted
    return {"finalization_trigger": str(trigger), "has_early_stop_prompt": prompted}


def roll_back(draft: Draft, reason: str, target: Stage) -> Info:
    """Hide the newest assistant message and go back to where it was received."""
    draft.mark(Rollback(1, reason))
    return ask_again(draft, reason, target)


def ask_again(draft: Draft, reason: str, target: Stage, *, counted: bool = True) -> Info:
    """Go back to where the newest assistant message was received, as if it had not come."""
    draft.move(Stage.ROLLBACK, target)
    draft.turn_idx -= 1
    draft.rollbacks += counted
    return {"assistant_rollback_count": draft.rollbacks, "rollback_reason": reason}


def finalize_for_context(
    context: Context, draft: Draft, record: ContextBudget, *, count: int
) -> Info:
    """Make room by hiding `count` messages, then force the final answer if its prompt fits.

    Args:
        context: What stays the same.
        draft: The operation in the making.
        record: The budget that asked for it.
        count: Messages to hide.
    """
    if count:
        draft.mark(Rollback(count, RollbackReason.CONTEXT_LIMIT))
        draft.move(Stage.CONTEXT_ROLLBACK)
    record = _fit(context, draft, record)
    info: Info = {"rollback_message_count": count}
    if context.budget.hard_line and not record.warning_prompt_fits:
        return info | _token_exceed(draft, record)
    info["context_limit_estimate"] = record.to_dict()
    return info | force_final(context, draft, FinalizationTrigger.CONTEXT_LIMIT)


def _fit(context: Context, draft: Draft, record: ContextBudget) -> ContextBudget:
    """The record with the figures of the force prompt on the list as it is now."""
    if not context.budget.preflight:
        return record
    now = context.budget.with_prompt(draft.transcript, draft.calibration)
    remaining = now.warning_remaining_tokens
    return replace(
        record,
        estimated_prompt_with_warning_tokens=now.estimated_prompt_with_warning_tokens,
        warning_remaining_tokens=remaining,
        warning_prompt_fits=remaining is None or remaining >= max(context.budget.hard_line, 1),
    )


def latest_exchange(draft: Draft) -> int:
    """Newest visible messages back to and including the last assistant message; 0 if none."""
    for count, message in enumerate(draft.transcript.visible.newest_first(), start=1):
        if message.role is Role.SYSTEM:
            return 0
        if message.role is Role.ASSISTANT:
            return count
    return 0


def after_tools(context: Context, draft: Draft, *, tools_exhausted: bool) -> Info | None:
    """What tool results lead to, but for the turn limit: None if they change nothing."""
    if tools_exhausted:
        info = force_final(context, draft, FinalizationTrigger.TOOLS_EXHAUSTED)
        return info | {"tools_exhausted": True}
    if not context.budget.active:
        return None
    budget = context.budget
    if budget.roomy(draft.transcript, draft.calibration):
        return None
    record = budget.with_prompt(draft.transcript, draft.calibration)
    if budget.hard_line:
        alone = budget.generation(draft.transcript, draft.calibration)
        record = alone if alone.exceeds_context else record
    if record.hard_stop:
        return _token_exceed(draft, record)
    return finalize_for_context(context, draft, record, count=latest_exchange(draft))


def _token_exceed(draft: Draft, record: ContextBudget) -> Info:
    draft.move(Stage.TOKEN_EXCEEDED)
    return {
        "finalization_trigger": str(FinalizationTrigger.CONTEXT_LIMIT),
        "context_limit_estimate": record.to_dict(),
        "context_budget_stop": True,
    }


def after_error(context: Context, draft: Draft, error: Mapping[str, Json] | None) -> Info:
    """What a provider's context error leads to."""
    if context.budget.preflight:
        record = context.budget.with_prompt(draft.transcript, draft.calibration)
        record = replace(record, provider_error=error)
    else:
        record = context.budget.provider_error(error)
    if draft.stage is Stage.FORCE_FINAL:
        return {
            "finalization_trigger": str(FinalizationTrigger.CONTEXT_LIMIT),
            "context_limit_estimate": record.to_dict(),
            "context_limit_error_during_force_final": True,
        }
    count = latest_exchange(draft) if _may_hide(draft) else 0
    return finalize_for_context(context, draft, record, count=count)


def hide_newest(draft: Draft, count: int, reason: str) -> Info:
    """Hide visible messages from the end; replies among them do not count as turns."""
    if not count:
        return {}
    visible = draft.transcript.visible
    draft.turn_idx -= sum(m.role is Role.ASSISTANT for m in visible[len(visible) - count :])
    draft.mark(Rollback(count, reason))
    return {"rollback_message_count": count, "rollback_reason": reason}


def roll_back_exchange(context: Context, draft: Draft, reason: str) -> Info | None:
    """Hide the newest calls with their results, and a force prompt after them."""
    count = _exchange_at_end(context, draft)
    if not count or not _may_hide(draft):
        return None
    draft.mark(Rollback(count, reason))
    draft.move(Stage.CONTEXT_ROLLBACK)
    info = force_final(context, draft, FinalizationTrigger.CONTEXT_LIMIT)
    info |= {
        "rollback_message_count": count,
        "rollback_reason": reason,
        "force_finalization_recovery": True,
    }
    if reason == RollbackReason.TOKEN_EXHAUSTION:
        info["token_exhaustion_recovery"] = True
    elif reason == RollbackReason.CONTEXT_LIMIT:
        info["context_limit_error_recovery"] = True
    return info


def _may_hide(draft: Draft) -> bool:
    """The stage allows a context rollback."""
    return (draft.stage, Stage.CONTEXT_ROLLBACK) in VALID_STAGE_TRANSITION


def _exchange_at_end(context: Context, draft: Draft) -> int:
    results = 0
    for count, message in enumerate(draft.transcript.visible.newest_first(), start=1):
        if message.role is Role.TOOL:
            results += 1
        elif message.role is Role.ASSISTANT:
            return count if results and message.tool_calls else 0
        elif count > 1 or context.prompt is None or message != context.prompt:
            return 0
    return 0


# One function for each verdict -----------------------------------------------------------------


def _verdict_token_exceed(context: Context, draft: Draft, turn: Turn, made: Decision) -> Info:
    if made.budget is not None:
        return _token_exceed(draft, made.budget)
    draft.move(Stage.TOKEN_EXCEEDED)
    if made.rule != "truncated_reply":
        return {}
    return {
        "finish_reason": turn.finish_reason,
        "token_exhaustion_had_content": bool(turn.text),
    }


def _verdict_execute(context: Context, draft: Draft, turn: Turn, made: Decision) -> Info:
    draft.pending = turn.message.tool_calls
    draft.move(Stage.TOOL_CALLS)
    return {"tool_request_count": turn.calls}


def _verdict_roll_back(context: Context, draft: Draft, turn: Turn, made: Decision) -> Info:
    info = roll_back(draft, made.reason or "", turn.prior)
    if made.rule == "refusal":
        info["refusal_keywords"] = made.matched
        info["matched_spans"] = made.spans
    elif made.rule == "format_error":
        info |= _format_info(turn, made)
    elif made.rule == "truncated_reply":
        info["finish_reason"] = turn.finish_reason
        info["token_exhaustion_had_content"] = bool(turn.text)
    return info


def _verdict_ask_again(context: Context, draft: Draft, turn: Turn, made: Decision) -> Info:
    counted = turn.config.on_empty_reply != "retry_uncounted"
    return ask_again(draft, made.reason or "", turn.prior, counted=counted)


def _format_info(turn: Turn, made: Decision) -> Info:
    return {
        "wrong_tool_call_format_keywords": made.matched,
        "format_error_strategy": str(turn.config.format_error.strategy),
        "offending_content_preview": preview(turn.text),
        "offending_content_length": len(turn.text),
        "matched_spans": made.spans,
    }


def _verdict_reprompt(context: Context, draft: Draft, turn: Turn, made: Decision) -> Info:
    draft.append(Message.user(made.prompt or ""))
    draft.move(Stage.REPROMPT)
    draft.reprompts += 1
    info = _format_info(turn, made) if made.rule == "format_error" else {}
    return info | check_turns(context, draft)


def _verdict_final_prompt(context: Context, draft: Draft, turn: Turn, made: Decision) -> Info:
    draft.append(Message.user(made.prompt or ""))
    draft.move(Stage.FINAL_PROMPT)
    draft.rollbacks = 0
    return check_turns(context, draft)


def _verdict_force_final(context: Context, draft: Draft, turn: Turn, made: Decision) -> Info:
    # Unanswered calls must not stay in sight before a user message (D6).
    count = 1 if turn.calls else 0
    if made.budget is not None:
        return finalize_for_context(context, draft, made.budget, count=count)
    trigger = made.reason or FinalizationTrigger.CONTEXT_LIMIT
    if not count:
        return force_final(context, draft, trigger)
    draft.mark(Rollback(count, trigger))
    draft.move(Stage.CONTEXT_ROLLBACK)
    return force_final(context, draft, trigger) | {"rollback_message_count": count}


def _verdict_complete(context: Context, draft: Draft, turn: Turn, made: Decision) -> Info:
    draft.move(Stage.COMPLETED)
    forced = turn.prior is Stage.FORCE_FINAL
    if not forced:
        draft.rollbacks = 0
    if made.answer is None:
        return {}
    info: Info = {
        "direct_final_answer": made.answer,
        "direct_final_answer_preview": preview(made.answer),
    }
    if made.rule == "truncated_reply":
        info["finish_reason"] = turn.finish_reason
    return info


def _verdict_force_complete(context: Context, draft: Draft, turn: Turn, made: Decision) -> Info:
    draft.move(Stage.FORCE_COMPLETED)
    return {}


def _verdict_reject(context: Context, draft: Draft, turn: Turn, made: Decision) -> Info:
    draft.move(Stage.CALLS_REJECTED)
    return {"tool_request_count": turn.calls}


_KEEPS_REPLY_IN_SIGHT = (Verdict.REPROMPT, Verdict.FINAL_PROMPT, Verdict.ASK_AGAIN)
"""Verdicts after which the model is called with the reply in sight."""

_APPLY: dict[Verdict, Callable[[Context, Draft, Turn, Decision], Info]] = {
    Verdict.TOKEN_EXCEED: _verdict_token_exceed,
    Verdict.EXECUTE_TOOLS: _verdict_execute,
    Verdict.ROLL_BACK: _verdict_roll_back,
    Verdict.ASK_AGAIN: _verdict_ask_again,
    Verdict.REPROMPT: _verdict_reprompt,
    Verdict.FINAL_PROMPT: _verdict_final_prompt,
    Verdict.FORCE_FINAL: _verdict_force_final,
    Verdict.COMPLETE: _verdict_complete,
    Verdict.FORCE_COMPLETE: _verdict_force_complete,
    Verdict.REJECT_CALLS: _verdict_reject,
}
