"""Checking a batch of tool results, and putting a step's report together."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from axislab.errors import InvalidMessage
from axislab.messages import Message, Role, ToolCall
from axislab.runtime.decisions import Decision
from axislab.runtime.info import ConversationStepInfo, ConversationStepResult
from axislab.runtime.stages import STAGE_TO_ACTION
from axislab.runtime.stages import ConversationStage as Stage
from axislab.runtime.state import Draft

_TRIGGERED = (Stage.FORCE_FINAL, Stage.FORCE_COMPLETED, Stage.CALLS_REJECTED, Stage.COMPLETED)

_DONE_REASON = {
    Stage.COMPLETED: "assistant_final_answer",
    Stage.FORCE_COMPLETED: "assistant_final_answer",
    Stage.CALLS_REJECTED: "assistant_tool_calls_rejected_due_to_force_finalization",
    Stage.TOKEN_EXCEEDED: "terminated_token_exceed",
}


def check(messages: Sequence[Message], pending: Sequence[ToolCall]) -> list[Message]:
    """The messages, each with the name of its tool.

    Calls are pending in one stage only, so this also refuses results in every other.

    Raises:
        InvalidMessage: They do not answer the pending calls one to one.
    """
    if len(messages) != len(pending):
        raise InvalidMessage(
            f"{len(pending)} tool results are awaited, got {len(messages)}: answer every call once"
        )
    names = {call.id: call.name for call in pending}
    given = {m.tool_call_id for m in messages}
    if given != names.keys():
        raise InvalidMessage(f"results for calls {list(names)} are awaited, got {list(given)}")
    if not messages:
        raise InvalidMessage("at least one tool result is needed, and no call is pending")
    for message in messages:
        if message.role is not Role.TOOL:
            raise InvalidMessage(f"a tool result has role 'tool', got {message.role!s}")
    return [m if m.name else replace(m, name=names[m.tool_call_id or ""]) for m in messages]


def merge_rejected(messages: Sequence[Message], rejected: Collection[str]) -> list[Message]:
    """Rejected results of equal content as one message each, after all others."""
    kept = [m for m in messages if m.tool_call_id not in rejected]
    groups: dict[str | None, list[Message]] = {}
    for message in messages:
        if message.tool_call_id in rejected:
            groups.setdefault(message.content, []).append(message)
    for group in groups.values():
        ids = ",".join(m.tool_call_id or "" for m in group)
        names = ",".join(sorted({m.name or "" for m in group}))
        kept.append(replace(group[0], tool_call_id=ids, name=names))
    return kept


def step_result(
    operation: str,
    draft: Draft,
    info: Mapping[str, Any],
    *,
    decision: Decision | None = None,
) -> ConversationStepResult:
    """What the operation came to, from the draft it made."""
    stage, transcript = draft.stage, draft.transcript
    extra = dict(info)
    if stage is Stage.FORCE_FINAL:
        extra["force_finalize_stage"] = str(Stage.FORCE_FINAL)
    if stage in _TRIGGERED and draft.trigger is not None:
        extra.setdefault("finalization_trigger", draft.trigger)
    return ConversationStepResult(
        operation=operation,
        stage=stage,
        action=STAGE_TO_ACTION[stage],
        info=ConversationStepInfo(
            stage=str(stage),
            stage_path=tuple(map(str, draft.path)),
            visible_message_count=transcript.visible_count,
            raw_message_count=transcript.full_count,
            appended_message_count=len(draft.appended),
            assistant_turn_idx=draft.turn_idx,
            **extra,
        ),
        appended=tuple(draft.appended),
        visible=transcript.visible,
        full=transcript.full,
        decision=decision,
        done_reason=_done_reason(stage, draft.trigger),
        rollback_count=draft.rollbacks,
        pending=tuple(call.id for call in draft.pending),
    )


def _done_reason(stage: Stage, trigger: str | None) -> str | None:
    if stage is Stage.FORCE_COMPLETED and trigger is not None:
        return f"terminated_{trigger}"
    return _DONE_REASON.get(stage)
