"""What a decision, a batch of results or an error does to a conversation in the making.

Every function changes a `Draft` and gives the conditional info fields of the step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from axislab.config import ConversationConfig
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

    config: ConversationConfig
    budget: ContextBudgetEstimator
    prompt: Message | None
    """Forces the final answer; None forces it silently."""
    max_turns: int | None

    @property
    def hard_line(self) -> int:
        """Tokens below which generation is not possible; 0 is no line."""
        return self.config.context_limit.min_tokens_for_generation


def decision(context: Context, draft: Draft, turn: Turn, made: Decision) -> Info:
    """Do what the chain decided about the reply at the end of the draft."""
    return _APPLY[made.verdict](context, draft, turn, made)


def check_turns(context: Context, draft: Draft) -> Info:
    """Force the final answer if the next turn is the last one allowed."""
    limit = context.max_turns
    if limit is None or draft.state.turn_idx + 1 < limit:
        return {}
    return force_final(context, draft, FinalizationTrigger.TURN_LIMIT)


def force_final(context: Context, draft: Draft, trigger: str) -> Info:
    """Append the force prompt and wait for the final answer."""
    if context.prompt is not None:
        draft.append(context.prompt)
    draft.move(Stage.FORCE_FINAL)
    draft.set(trigger=str(trigger), force_prompted=context.prompt is not None)
    return {
        "finalization_trigger": str(trigger),
        "has_early_stop_prompt": context.prompt is not None,
    }


def roll_back(draft: Draft, reason: str, target: Stage, *, count: int = 1) -> Info:
    """Hide the newest assistant message and go back to where it was received."""
    draft.mark(Rollback(count, reason))
    draft.move(Stage.ROLLBACK, target)
    draft.set(turn_idx=draft.state.turn_idx - 1, rollbacks=draft.state.rollbacks + 1)
    return {"assistant_rollback_count": draft.state.rollbacks, "rollback_reason": reason}


def finalize_for_context(
    context: Context,
    draft: Draft,
    record: ContextBudget,
    *,
    count: int,
) -> Info:
    """Make room by hiding `count` messages, then force the final answer if its prompt fits.

    Args:
        context: What stays the same.
        draft: The operation in the making.
        record: The budget that asked for it.
        count: Messages to hide, where the stage allows a context rollback.
    """
    hidden = 0
    if count and (draft.state.stage, Stage.CONTEXT_ROLLBACK) in VALID_STAGE_TRANSITION:
        draft.mark(Rollback(count, RollbackReason.CONTEXT_LIMIT))
        draft.move(Stage.CONTEXT_ROLLBACK)
        hidden = count
    record = _fit(context, draft, record)
    info: Info = {
        "finalization_trigger": str(FinalizationTrigger.CONTEXT_LIMIT),
        "rollback_message_count": hidden,
        "context_limit_estimate": record.to_dict(),
    }
    if context.hard_line and not record.warning_prompt_fits:
        draft.move(Stage.TOKEN_EXCEEDED)
        return info | {"context_budget_stop": True}
    return info | force_final(context, draft, FinalizationTrigger.CONTEXT_LIMIT)


def _fit(context: Context, draft: Draft, record: ContextBudget) -> ContextBudget:
    """The record with the figures of the force prompt on the list as it is now."""
    if not context.config.context_limit.preflight:
        return replace(
            record,
            estimated_prompt_with_warning_tokens=0,
            warning_remaining_tokens=None,
            warning_prompt_fits=True,
        )
    state = draft.state
    now = context.budget.with_prompt(state.transcript, state.calibration, context.prompt)
    remaining = now.warning_remaining_tokens
    return replace(
        record,
        estimated_prompt_with_warning_tokens=now.estimated_prompt_with_warning_tokens,
        warning_remaining_tokens=remaining,
        warning_prompt_fits=remaining is None or remaining >= max(context.hard_line, 1),
    )


def latest_exchange(draft: Draft) -> int:
    """Newest visible messages back to and including the last assistant message; 0 if none."""
    for count, message in enumerate(draft.state.transcript.visible.newest_first(), start=1):
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
    state = draft.state
    if context.hard_line:
        record = context.budget.generation(state.transcript, state.calibration)
        if record.hard_stop or record.needs_final_warning:
            return _out_of_room(context, draft, record)
    record = context.budget.with_prompt(state.transcript, state.calibration, context.prompt)
    if record.hard_stop or record.needs_final_warning or not record.warning_prompt_fits:
        return _out_of_room(context, draft, record)
    return None


def _out_of_room(context: Context, draft: Draft, record: ContextBudget) -> Info:
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
    state = draft.state
    if context.config.context_limit.preflight:
        record = context.budget.with_prompt(state.transcript, state.calibration, context.prompt)
        record = replace(record, provider_error=error)
    else:
        record = context.budget.provider_error_record(error)
    if state.stage is Stage.FORCE_FINAL:
        return {
            "finalization_trigger": str(FinalizationTrigger.CONTEXT_LIMIT),
            "context_limit_estimate": record.to_dict(),
            "context_limit_error_during_force_final": True,
        }
    return finalize_for_context(context, draft, record, count=latest_exchange(draft))


def roll_back_exchange(context: Context, draft: Draft, reason: str) -> Info | None:
    """Hide the newest calls with their results, and a force prompt after them."""
    count = _exchange_at_end(context, draft)
    if not count or (draft.state.stage, Stage.CONTEXT_ROLLBACK) not in VALID_STAGE_TRANSITION:
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


def _exchange_at_end(context: Context, draft: Draft) -> int:
    results = 0
    for count, message in enumerate(draft.state.transcript.visible.newest_first(), start=1):
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
    draft.set(pending=turn.message.tool_calls)
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
    return roll_back(draft, made.reason or "", turn.prior, count=0)


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
    draft.set(reprompts=draft.state.reprompts + 1)
    return _format_info(turn, made) | check_turns(context, draft)


def _verdict_final_prompt(context: Context, draft: Draft, turn: Turn, made: Decision) -> Info:
    draft.append(Message.user(made.prompt or ""))
    draft.move(Stage.FINAL_PROMPT)
    draft.set(rollbacks=0)
    return check_turns(context, draft)


def _verdict_force_final(context: Context, draft: Draft, turn: Turn, made: Decision) -> Info:
    if made.budget is None:
        return force_final(context, draft, made.reason or FinalizationTrigger.CONTEXT_LIMIT)
    # Unanswered calls must not stay in sight before a user message (D6).
    return finalize_for_context(context, draft, made.budget, count=1 if turn.calls else 0)


def _verdict_complete(context: Context, draft: Draft, turn: Turn, made: Decision) -> Info:
    draft.move(Stage.COMPLETED)
    forced = turn.prior is Stage.FORCE_FINAL
    if not forced:
        draft.set(rollbacks=0)
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
