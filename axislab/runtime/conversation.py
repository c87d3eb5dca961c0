"""ConversationRuntime: one conversation, driven by operations that are each all or nothing.

Source: seed 000 and spec sections 2 to 11. The runtime awaits nothing, logs nothing, reads no
clock and knows no model. An operation that is refused raises and leaves no trace of itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from axislab.errors import (
    InvalidMessage,
    OperationRefused,
)
from axislab.messages import Json, Message, Role
from axislab.runtime import apply, results
from axislab.runtime.base import Conversation
from axislab.runtime.budget import (
    ContextBudget,
)
from axislab.runtime.decisions import (
    Decision,
    RuleReport,
    Turn,
    decide,
    explain,
)
from axislab.runtime.info import ConversationStepResult
from axislab.runtime.markers import DiscardAll, Marker
from axislab.runtime.prompts import render_task
from axislab.runtime.stages import (
    REOPENABLE,
    RollbackReason,
    StepAction,
)
from axislab.runtime.stages import ConversationStage as Stage
from axislab.runtime.state import Draft
from axislab.runtime.transcript import task_prefix

FINAL_ANSWER = "final_answer"
"""Why the answer stage hides messages."""


class ConversationRuntime(Conversation):
    """One conversation under one config; see `Conversation` for how it is made and read."""

    def initialize_conversation(self, task: str) -> ConversationStepResult:
        """Write the system message and the task.

        Raises:
            OperationRefused: Something was appended before.
            TemplateError: The template names something other than {task}.
        """
        if self._state.transcript.full_count:
            raise OperationRefused(
                "the conversation has already begun; use reset() or a new ConversationRuntime"
            )
        text = render_task(self.config.user_prompt_template, task)
        draft = Draft(self._state)
        if self.config.system_prompt:
            draft.append(Message.system(self.config.system_prompt))
            draft.move(Stage.SYSTEM_MESSAGE_SET)
        draft.append(Message.user(text))
        draft.move(Stage.INITIAL_USER)
        info = apply.check_turns(self._context, draft)
        return self._commit("initialize", draft, info)

    def apply_assistant_message(
        self, message: Message, finish_reason: str | None = None
    ) -> ConversationStepResult:
        """Append a reply and do what the decision chain says.

        Raises:
            InvalidMessage: Not an assistant message.
            OperationRefused: No reply is awaited.
            HookError: A hook, rule or estimator of the user raised.
        """
        draft, turn = self._receive(message, finish_reason)
        decision = decide(turn)
        info = apply.decision(self._context, draft, turn, decision)
        return self._commit("assistant", draft, info, decision=decision)

    def explain(self, message: Message, finish_reason: str | None = None) -> tuple[RuleReport, ...]:
        """What every rule would say about a reply, in order; nothing changes.

        Raises:
            InvalidMessage: Not an assistant message.
            OperationRefused: No reply is awaited.
        """
        _, turn = self._receive(message, finish_reason)
        return explain(turn)

    def apply_batch_tool_messages(
        self,
        messages: Sequence[Message],
        *,
        tools_exhausted: bool = False,
        rejected_ids: Collection[str] | None = None,
    ) -> ConversationStepResult:
        """Append the results of all pending calls.

        Args:
            messages: One tool message for each pending call, in any order; it is kept.
            tools_exhausted: No tool can be called any more: the final answer is forced.
            rejected_ids: Calls that were not run.

        Raises:
            InvalidMessage: The messages do not answer the pending calls one to one.
        """
        named = results.check(messages, self._state.pending)
        if self.config.agg_reject_tool_message and rejected_ids:
            named = results.merge_rejected(named, frozenset(rejected_ids))
        draft = Draft(self._state)
        for message in named:
            draft.append(message)
        draft.pending = ()
        draft.move(Stage.TOOL_MESSAGES)
        info = apply.after_tools(self._context, draft, tools_exhausted=tools_exhausted)
        if info is None:
            info = apply.check_turns(self._context, draft)
        return self._commit("tools", draft, info)

    def rollback_assistant_tool_calls(
        self, reason: str = RollbackReason.DUPLICATE_QUERY
    ) -> ConversationStepResult | None:
        """Hide the message whose calls are pending, and ask again.

        Returns:
            None, with nothing changed, if rollbacks are off or used up.

        Raises:
            OperationRefused: No calls are pending.
        """
        if self._state.stage is not Stage.TOOL_CALLS:
            raise OperationRefused(f"no tool calls are pending in stage {self._state.stage!s}")
        if self._state.rollbacks >= self.config.assistant_rollback.max_rollbacks:
            return None
        draft = Draft(self._state)
        info = apply.roll_back(draft, str(reason), draft.received_in)
        draft.pending = ()
        return self._commit("rollback_tool_calls", draft, info)

    def rollback_latest_tool_exchange_and_force_finalize(
        self, reason: str = RollbackReason.TOKEN_EXHAUSTION
    ) -> ConversationStepResult | None:
        """Hide the newest calls with their results and force the final answer.

        Returns:
            None, with nothing changed, if the visible list does not end in such an exchange.

        Raises:
            OperationRefused: No reply is awaited.
        """
        self._require_call_model("rolling back the latest exchange")
        draft = Draft(self._state)
        info = apply.roll_back_exchange(self._context, draft, str(reason))
        return None if info is None else self._commit("rollback_latest_exchange", draft, info)

    def force_finalize_due_to_context_limit_after_error(
        self, error_info: Mapping[str, Json] | None = None
    ) -> ConversationStepResult:
        """Recover from a provider's context error: hide the newest exchange, force the answer.

        In the forced round nothing changes; info says so, and the conversation cannot be saved.

        Raises:
            OperationRefused: The conversation has not begun, waits for tools, or has ended.
        """
        self._require_call_model("recovering from a context error")
        draft = Draft(self._state)
        info = apply.after_error(self._context, draft, dict(error_info) if error_info else None)
        return self._commit("force_finalize_after_error", draft, info)

    def record_observed_prompt_tokens(self, view: Sequence[Message], tokens: int) -> bool:
        """Learn from the prompt tokens a provider counted.

        Args:
            view: The messages that were sent; anything but the current visible list is ignored.
            tokens: What the provider counted.

        Returns:
            True if the calibration changed.
        """
        state = self._state
        usable = self._budget.calibrates and isinstance(tokens, int) and tokens > 0
        if not usable or not state.transcript.visible.same_as(view):
            return False
        raw = self._budget.raw(state.transcript)
        if not raw:
            return False
        draft = Draft(state)
        draft.calibration = state.calibration.observe(
            raw=raw, count=state.transcript.visible_count, observed=tokens
        )
        self._state = draft.state()
        return True

    def reset_rollback_counter(self) -> None:
        """Set the shared counter of consecutive rollbacks to 0."""
        draft = Draft(self._state)
        draft.rollbacks = 0
        self._state = draft.state()

    def append_marker(self, marker: Marker) -> ConversationStepResult:
        """Hide or replace part of the history, checked.

        Raises:
            OperationRefused: A reply is not awaited, or the marker would touch the system
                message or the task, part a call from its result, or lies out of range.
        """
        self._require_call_model("appending a marker")
        self._state.transcript.checked(marker)
        draft = Draft(self._state)
        draft.mark(marker)
        return self._commit("marker", draft, {})

    def append_raw_marker(self, message: Message) -> ConversationStepResult:
        """Append a marker message as it stands: for imports and replays, without any check.

        Raises:
            InvalidMessage: Not a message of role ConversationRuntime, or the first message of all.
        """
        if message.role is not Role.RUNTIME:
            raise InvalidMessage(f"a marker has role ConversationRuntime, got {message.role!s}")
        draft = Draft(self._state)
        draft.append(message)
        return self._commit("marker", draft, {})

    def reopen_after_context_reset(self) -> ConversationStepResult:
        """Go on from the task after a discard; the turn count stays.

        Raises:
            OperationRefused: The conversation has not begun or has ended.
        """
        if self._state.stage not in REOPENABLE:
            raise OperationRefused(
                f"only a conversation that has begun and not ended can be reopened, "
                f"not one in stage {self._state.stage!s}"
            )
        draft = Draft(self._state)
        draft.reopen()
        draft.pending, draft.rollbacks = (), 0
        draft.trigger, draft.force_prompted = None, False
        return self._commit("reopen", draft, {})

    # The answer stage and further tries --------------------------------------------------------

    def adopt(self, messages: Sequence[Message]) -> None:
        """Take over a list of messages as it stands: for an answer stage without a main loop.

        Raises:
            OperationRefused: The conversation has begun.
        """
        if self._state.transcript.full_count:
            raise OperationRefused("a conversation that has begun cannot adopt another's messages")
        draft = Draft(self._state)
        for message in messages:
            draft.append(message)
        if messages:
            draft.reopen(Stage.COMPLETED)
        self._state = draft.state()

    def ask_for_answer(
        self, prompt: str | None = None, *, hide: int = 0, reason: str = FINAL_ANSWER
    ) -> ConversationStepResult:
        """Wait for the final answer, whatever came before: a conversation that ended goes on.

        Args:
            prompt: Appended as a user message; None asks again with what is there.
            hide: Newest visible messages to hide first: replies that gave no answer.
            reason: Why, for the marker.

        Raises:
            OperationRefused: It would hide the task, or leave tool calls without their results.
        """
        self._require_hidable(hide)
        if self._state.pending and not hide:
            raise OperationRefused("tool calls are pending: hide the message that makes them")
        draft = Draft(self._state)
        info = apply.hide_newest(draft, hide, reason)
        if prompt is not None:
            draft.append(Message.user(prompt))
        draft.reopen(Stage.FORCE_FINAL)
        draft.pending, draft.force_prompted = (), draft.force_prompted or prompt is not None
        return self._commit("ask_for_answer", draft, info)

    def withdraw_answer(
        self, *, hide: int = 1, reason: str = FINAL_ANSWER
    ) -> ConversationStepResult:
        """Hide the newest messages of a conversation that has ended; it stays ended.

        Raises:
            OperationRefused: It has not ended, or that would hide the task.
        """
        if self.action is not StepAction.DONE:
            raise OperationRefused(f"nothing can be withdrawn in stage {self._state.stage!s}")
        self._require_hidable(hide)
        draft = Draft(self._state)
        info = apply.hide_newest(draft, hide, reason)
        return self._commit("withdraw_answer", draft, info)

    def begin_try(self, text: str) -> ConversationStepResult:
        """Start over on the task: all but the system message is hidden, the turn limit is fresh.

        Args:
            text: The first user message of the new try.

        Raises:
            OperationRefused: The conversation has not begun.
        """
        if not self._state.transcript.full_count:
            raise OperationRefused("the first try begins with initialize_conversation()")
        kept = sum(m.role is Role.SYSTEM for m in self._state.transcript.visible)
        draft = Draft(self._state)
        draft.mark(DiscardAll(kept))
        draft.append(Message.user(text))
        draft.reopen()
        draft.pending, draft.rollbacks, draft.reprompts = (), 0, 0
        draft.trigger, draft.force_prompted = None, False
        draft.turn_base = draft.turn_idx
        return self._commit("begin_try", draft, apply.check_turns(self._context, draft))

    # Inside ----------------------------------------------------------------------------------

    def _require_call_model(self, what: str) -> None:
        if self.action is not StepAction.CALL_MODEL:
            raise OperationRefused(
                f"{what} is possible only while a reply is awaited, not in stage "
                f"{self._state.stage!s}"
            )

    def _require_hidable(self, count: int) -> None:
        visible = self._state.transcript.visible
        if not 0 <= count <= len(visible) - task_prefix(visible):
            raise OperationRefused(f"hiding {count} of {len(visible)} messages would hide the task")

    def _receive(self, message: Message, finish_reason: str | None) -> tuple[Draft, Turn]:
        if message.role is not Role.ASSISTANT:
            raise InvalidMessage(f"a reply has role 'assistant', got {message.role!s}")
        self._require_call_model("taking a reply")
        prior = self._state.stage
        draft = Draft(self._state)
        draft.append(message)
        draft.turn_idx += 1
        draft.received_in = prior
        draft.move(Stage.RECEIVED)
        turn = Turn(
            message=message,
            prior=prior,
            config=self.config,
            detector=self._detector,
            finish_reason=finish_reason,
            rollbacks=self._state.rollbacks,
            reprompts=self._state.reprompts,
            force_prompted=self._state.force_prompted,
            budget=self._budget_after(draft),
            direct_answer=self._direct_answer,
            wants_final_prompt=self._wants_final_prompt,
            chain=self.chain,
            visible=draft.transcript.visible,
            turn_idx=draft.turn_idx,
        )
        return draft, turn

    def _budget_after(self, draft: Draft) -> ContextBudget | None:
        if not self._budget.active or not self._budget.hard_line:
            return None
        return self._budget.generation(draft.transcript, draft.calibration)

    def _commit(
        self,
        operation: str,
        draft: Draft,
        info: Mapping[str, Any],
        *,
        decision: Decision | None = None,
    ) -> ConversationStepResult:
        result = results.step_result(operation, draft, info, decision=decision)
        self._state = draft.state()
        return result
