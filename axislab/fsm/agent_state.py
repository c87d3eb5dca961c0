"""The state of one agent as a plain object, with a status that cannot be misspelt or skipped."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from axislab.errors import TransitionNotAllowed
from axislab.fsm.log import LogEntry
from axislab.fsm.machine import StateMachine
from axislab.fsm.status_tables import TARGET_TABLE, AgentStatus


def utc_now() -> datetime:
    """The time of day, in UTC."""
    return datetime.now(UTC)


class AgentState:
    """What an agent has done so far, and a status that only `transition_to` can change.

    Examples:
        >>> state = AgentState("Check the project")
        >>> state.transition_to(AgentStatus.THINKING)
        >>> state.status.name
        'THINKING'
    """

    __slots__ = (
        "_machine",
        "approver",
        "completed_at",
        "decision",
        "error",
        "final_answer",
        "goal",
        "messages",
        "pending_action",
        "step",
        "tool_history",
    )

    def __init__(
        self,
        goal: str,
        *,
        messages: list[dict[str, Any]] | None = None,
        step: int = 0,
        tool_history: list[dict[str, Any]] | None = None,
        status: AgentStatus = AgentStatus.READY,
    ) -> None:
        self.goal = goal
        self.messages = [] if messages is None else messages
        self.step = step
        self.tool_history = [] if tool_history is None else tool_history
        self.pending_action: Mapping[str, Any] | None = None
        """What a person is asked to approve."""
        self.approver: str | None = None
        self.decision: bool | None = None
        """What the person said; None while nobody has."""
        self.final_answer: str | None = None
        self.completed_at: datetime | None = None
        self.error: str | None = None
        self._machine = StateMachine(TARGET_TABLE, status)

    @property
    def status(self) -> AgentStatus:
        """Read-only: see `transition_to`."""
        return self._machine.state

    @property
    def log(self) -> tuple[LogEntry[AgentStatus], ...]:
        """Every transition, refused ones included."""
        return self._machine.log

    def __repr__(self) -> str:
        return f"<AgentState {self.status.name}, step {self.step}: {self.goal[:60]!r}>"

    def transition_to(self, new_status: AgentStatus, *, reason: str | None = None) -> None:
        """Go to a status that may follow the present one.

        Raises:
            TransitionNotAllowed: It may not, or it is no AgentStatus; the status has not changed.
        """
        if not isinstance(new_status, AgentStatus):
            known = ", ".join(f"AgentStatus.{s.name}" for s in AgentStatus)
            raise TransitionNotAllowed(
                f"{new_status!r} is a {type(new_status).__name__}, not a status: use one of {known}"
            )
        self._machine.fire(new_status.value, **({} if reason is None else {"reason": reason}))
        if new_status is AgentStatus.COMPLETED:
            self.completed_at = utc_now()
        elif new_status is AgentStatus.FAILED:
            self.error = reason

    def complete(self, final_answer: str | None) -> None:
        """End with an answer.

        Raises:
            TransitionNotAllowed: The model is not the one to speak now.
        """
        self.transition_to(AgentStatus.COMPLETED)
        self.final_answer = final_answer

    def decide(self, approved: bool, *, approver: str) -> None:
        """Record what a person said about the pending action: run it, or observe the refusal.

        Raises:
            TransitionNotAllowed: Nobody was asked.
        """
        if self.status is not AgentStatus.WAITING_APPROVAL:
            raise TransitionNotAllowed(
                f"nothing waits for a decision in {self.status.name}: go to WAITING_APPROVAL first"
            )
        self.transition_to(AgentStatus.TOOL_CALLING if approved else AgentStatus.OBSERVING)
        self.decision, self.approver = approved, approver
