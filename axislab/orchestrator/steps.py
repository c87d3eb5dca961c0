"""StepLog: says each step of the runtime as events, its messages first."""

from __future__ import annotations

from axislab.events import Emit, MessageAppended, StepTaken
from axislab.runtime.conversation import ConversationRuntime
from axislab.runtime.info import ConversationStepInfo, ConversationStepResult


class StepLog:
    """Numbers the steps and messages of one run."""

    def __init__(self, runtime: ConversationRuntime, emit: Emit) -> None:
        self._runtime = runtime
        self._emit = emit
        self.next_step = 0
        self.last: ConversationStepInfo | None = None
        """What the newest step reported."""
        self.done_reason: str | None = None
        """Why the conversation ended, if the newest step ended it."""

    def record(
        self,
        result: ConversationStepResult,
        *,
        observed_tokens: int | None = None,
        counter_reset: bool = False,
    ) -> ConversationStepResult:
        """Emit the messages a step appended, then the step.

        Args:
            result: What the runtime returned.
            observed_tokens: Prompt tokens the runtime learnt of just before.
            counter_reset: The shared rollback counter was set to 0 just after.
        """
        info = result.info
        step, self.next_step = self.next_step, self.next_step + 1
        first = info.raw_message_count - len(result.appended)
        for place, message in enumerate(result.appended):
            self._emit(MessageAppended(index=first + place, message=message.to_dict(), step=step))
        self.last, self.done_reason = info, result.done_reason
        decision = result.decision
        self._emit(
            StepTaken(
                step=step,
                operation=result.operation,
                stage=info.stage,
                action=str(result.action),
                stage_path=list(info.stage_path),
                turn=info.assistant_turn_idx,
                visible_count=info.visible_message_count,
                raw_count=info.raw_message_count,
                rollback_count=0 if counter_reset else result.rollback_count,
                pending=list(result.pending),
                rule=decision.rule if decision else None,
                level=decision.level if decision else None,
                rollback_reason=_reason(result),
                rollback_message_count=_hidden(result),
                finalization_trigger=info.finalization_trigger,
                done_reason=result.done_reason,
                estimated_tokens=self._runtime.estimate(),
                calibration_ratio=round(self._runtime.calibration_ratio, 9),
                observed_tokens=observed_tokens,
                counter_reset=True if counter_reset else None,
                info=info.conditional() or None,
            )
        )
        return result


def _reason(result: ConversationStepResult) -> str | None:
    """Why the step hid messages; a context rollback says so by its count alone."""
    if result.info.rollback_reason is not None:
        return result.info.rollback_reason
    return "context_limit" if result.info.rollback_message_count else None


def _hidden(result: ConversationStepResult) -> int | None:
    """How many messages the step hid."""
    if result.info.rollback_message_count is not None:
        return result.info.rollback_message_count or None
    if result.info.rollback_reason is None:
        return None
    return 0 if result.info.rollback_reason == "empty_reply" and _visible_retry(result) else 1


def _visible_retry(result: ConversationStepResult) -> bool:
    return result.decision is not None and result.decision.verdict == "ask_again"
