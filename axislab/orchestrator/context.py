"""ContextKeeper: makes room before a call of the main loop, by a marker, never by editing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from axislab.config import AgentConfig
from axislab.errors import ErrorKind, ModelError
from axislab.messages import Message, Role
from axislab.models.base import ModelReply
from axislab.orchestrator.steps import StepLog
from axislab.runtime.conversation import ConversationRuntime
from axislab.runtime.markers import Compaction, DiscardAll
from axislab.runtime.stages import ConversationStage
from axislab.runtime.transcript import task_prefix

Summarise = Callable[[Sequence[Message]], Awaitable[ModelReply]]
"""Calls the model with the messages to sum up."""


class ContextKeeper:
    """Shortens the conversation of one run under its context policy.

    Args:
        runtime: The conversation.
        config: `context` says how, the window when.
        log: Where steps are written.
        summarise: Calls the model for a summary.
    """

    def __init__(
        self,
        runtime: ConversationRuntime,
        config: AgentConfig,
        *,
        log: StepLog,
        summarise: Summarise,
    ) -> None:
        self._runtime = runtime
        self._policy = config.context
        self._above = config.context.threshold(config.conversation.context_limit.window)
        self._log = log
        self._summarise = summarise

    async def shorten(self) -> bool:
        """Shorten the visible list if it has grown too long.

        Returns:
            True if tool results that were shown before are not any more.

        Raises:
            ModelError: A ceiling of the lab leaves no room for the summary. Any other error of
                the model leaves the conversation as it is, until the next turn.
        """
        policy = self._policy.context_policy
        waits = self._runtime.stage is ConversationStage.TOOL_MESSAGES
        if self._above is None or not waits or self._runtime.estimate() <= self._above:
            return False
        return await self._compact() if policy == "compact" else self._discard()

    def _discard(self) -> bool:
        """Go on from the task alone."""
        kept = task_prefix(self._runtime.visible)
        self._log.record(self._runtime.append_marker(DiscardAll(kept)))
        self._log.record(self._runtime.reopen_after_context_reset())
        return True

    async def _compact(self) -> bool:
        """Put a summary in the place of all but the newest exchanges."""
        visible = self._runtime.visible
        start = task_prefix(visible)
        end = _older(visible, start=start, keep=self._policy.compact_keep_exchanges)
        if end - start < 2:
            return False  # a summary of one message would save nothing
        prompt = Message.user(self._policy.compact_prompt)
        try:
            reply = await self._summarise([*visible[:end], prompt])
        except ModelError as error:
            if error.kind is ErrorKind.BUDGET:
                raise
            return False
        summary = (reply.text or "").strip()
        if not summary:
            return False
        marker = Compaction(summary, start, end - start)
        self._log.record(self._runtime.append_marker(marker))
        return True


def _older(messages: Sequence[Message], *, start: int, keep: int) -> int:
    """Where the newest `keep` exchanges begin: at the replies that call tools."""
    places = [i for i in range(start, len(messages)) if messages[i].role is Role.ASSISTANT]
    return places[-keep] if keep <= len(places) else start
