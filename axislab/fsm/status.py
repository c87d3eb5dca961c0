"""The status of a run and the phase of its step, which only their machines can change."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import NoReturn, TypeAlias

from axislab.errors import MachineError, TransitionNotAllowed
from axislab.fsm.agent_state import AgentState, utc_now
from axislab.fsm.machine import LogEntry, StateMachine
from axislab.fsm.status_tables import (
    AGENT_TABLE,
    ALLOWED_TRANSITIONS,
    PHASE_TABLE,
    PHASES,
    RUN_TABLE,
    AgentStatus,
    RunStatus,
    StepPhase,
)

__all__ = [
    "AGENT_TABLE",
    "ALLOWED_TRANSITIONS",
    "PHASE_TABLE",
    "RUN_TABLE",
    "AgentState",
    "AgentStatus",
    "OnPhase",
    "OnStatus",
    "RunLifecycle",
    "RunStatus",
    "StepPhase",
]

OnStatus: TypeAlias = Callable[[RunStatus, RunStatus, str, "str | None"], None]
"""Hears of a new run status: source, target, event, reason."""
OnPhase: TypeAlias = Callable[["StepPhase | None", "StepPhase | None", "float | None"], None]
"""Hears of a new phase: source, target, seconds the source lasted (None without a source)."""


@dataclass(frozen=True, slots=True)
class _Move:
    """What an operation of a run fires: an event of the run, one of the agent, or both."""

    run: str | None = None
    agent: str | None = None


_MOVES = {
    "start": _Move(run="start"),
    "think": _Move(agent="think"),
    "call_tools": _Move(agent="call_tools"),
    "observe": _Move(agent="observe"),
    "wait_for_approval": _Move(run="wait_for_approval", agent="wait_for_approval"),
    "approved": _Move(run="approved", agent="approved"),
    "refused": _Move(run="refused", agent="refused"),
    "complete": _Move(run="complete", agent="complete"),
    "fail": _Move(run="fail", agent="fail"),
    "cancel": _Move(run="cancel", agent="fail"),
    "interrupt": _Move(run="interrupt"),
    "resume": _Move(run="resume"),
}
_Machine: TypeAlias = "StateMachine[RunStatus, None] | StateMachine[AgentStatus, None]"
_ACTIVE = (RunStatus.RUNNING, RunStatus.WAITING_APPROVAL)


class RunLifecycle:
    """Drives the status of one run and, inside it, the phase of its step.

    An operation that is not possible raises TransitionNotAllowed, naming those that are, and
    changes neither status nor phase.

    Args:
        clock: Monotonic seconds, for the time spent in each phase.
        now: Time of day, for `completed_at`.
        on_status: Hears of every change of status.
        on_phase: Hears of every change of phase.
        status: Where an earlier life of the run ended.
        phase: The phase it ended in; with INTERRUPTED, the one it was interrupted in.
        seconds_in: Seconds it had spent in each phase.

    Raises:
        MachineError: Status and phase do not go together.

    Examples:
        >>> life = RunLifecycle()
        >>> life.start()
        >>> life.think()
        >>> life.complete("Osk")
        >>> life.status.name, life.final_answer
        ('COMPLETED', 'Osk')
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = utc_now,
        on_status: OnStatus | None = None,
        on_phase: OnPhase | None = None,
        status: RunStatus = RunStatus.READY,
        phase: StepPhase | None = None,
        seconds_in: Mapping[StepPhase, float] | None = None,
    ) -> None:
        self._clock, self._now = clock, now
        self._on_status, self._on_phase = on_status, on_phase
        self._run = StateMachine(RUN_TABLE, status)
        self._agent = StateMachine(AGENT_TABLE, _agent_status(status, phase))
        self._seconds = {p: (seconds_in or {}).get(p, 0.0) for p in StepPhase}
        self._since = clock()
        self._model_running = False
        self._approval_given = False
        self._thinking_steps = 0
        self._final_answer: str | None = None
        self._completed_at: datetime | None = None
        self._reason: str | None = None

    @property
    def status(self) -> RunStatus:
        """The status of the run."""
        return self._run.state

    @property
    def phase(self) -> StepPhase | None:
        """The phase of the step; None before the first, while interrupted and after the end."""
        if self._run.state in _ACTIVE and self._agent.state in PHASES:
            return StepPhase(self._agent.state.value)
        return None

    @property
    def agent_status(self) -> AgentStatus:
        """Both in one; CANCELLED shows as FAILED, INTERRUPTED as the phase it stopped in."""
        return self._agent.state

    @property
    def finished(self) -> bool:
        """Whether nothing can follow."""
        return self._run.finished

    @property
    def model_running(self) -> bool:
        """Whether a model call was begun and has not returned."""
        return self._model_running

    @property
    def approval_given(self) -> bool:
        """Whether the present TOOL_CALLING was approved, so that it need not ask again."""
        return self._approval_given

    @property
    def thinking_steps(self) -> int:
        """Model calls begun, those after a rollback or reprompt included."""
        return self._thinking_steps

    @property
    def seconds_in(self) -> dict[StepPhase, float]:
        """Seconds spent in each phase, the present one included."""
        seconds = dict(self._seconds)
        if (phase := self.phase) is not None:
            seconds[phase] += max(0.0, self._clock() - self._since)
        return seconds

    @property
    def final_answer(self) -> str | None:
        """The answer it completed with."""
        return self._final_answer

    @property
    def completed_at(self) -> datetime | None:
        """When it completed; None if it did not."""
        return self._completed_at

    @property
    def reason(self) -> str | None:
        """Why it failed, was cancelled, interrupted or made to wait: the last reason given."""
        return self._reason

    @property
    def log(self) -> tuple[LogEntry[RunStatus], ...]:
        """Every event of the run's status, refused ones included."""
        return self._run.log

    @property
    def possible(self) -> tuple[str, ...]:
        """The operations that are possible now, by name."""
        names = [name for name in _MOVES if self._refuser(name) is None]
        if self._may_rethink():
            names.append("rethink")
        return tuple(names)

    def __repr__(self) -> str:
        inside = f" in {self.phase.name}" if self.phase else ""
        return f"<RunLifecycle {self.status.name}{inside}>"

    def start(self) -> None:
        """READY -> RUNNING; no phase yet."""
        self._go("start")

    def think(self) -> None:
        """A model call begins: the first one, or the one after OBSERVING."""
        self._go("think")

    def model_returned(self) -> None:
        """The model call is over, with or without a reply; saying so twice does no harm."""
        self._model_running = False

    def rethink(self) -> None:
        """A new step stays in THINKING: the reply was rolled back, or is asked for again.

        Raises:
            TransitionNotAllowed: The phase is another, or the call before has not returned.
        """
        if not self._may_rethink():
            self._refuse("rethink", self._agent)
        self._model_running = True
        self._thinking_steps += 1

    def call_tools(self) -> None:
        """The reply decided on tool calls; none has run yet."""
        self._go("call_tools")

    def observe(self) -> None:
        """The calls have their results, or were rolled back."""
        self._go("observe")

    def wait_for_approval(self, reason: str | None = None) -> None:
        """The calls need a person: status and phase become WAITING_APPROVAL."""
        self._go("wait_for_approval", reason)

    def approved(self, reason: str | None = None) -> None:
        """Back to TOOL_CALLING, with `approval_given`."""
        self._go("approved", reason)

    def refused(self, reason: str | None = None) -> None:
        """On to OBSERVING: the refusal is what the model gets to see."""
        self._go("refused", reason)

    def complete(self, answer: str | None = None) -> None:
        """The end, out of THINKING; the answer may be None."""
        self._check("complete")
        self._final_answer, self._completed_at = answer, self._now()
        self._go("complete")

    def fail(self, reason: str | None = None) -> None:
        """The end: going on is impossible."""
        self._go("fail", reason)

    def cancel(self, reason: str | None = None) -> None:
        """The end: nobody wants it any more."""
        self._go("cancel", reason)

    def interrupt(self, reason: str | None = None) -> None:
        """Stop here, to be resumed later; a model call that was running is lost."""
        self._go("interrupt", reason)

    def resume(self, reason: str | None = None) -> None:
        """Go on in the phase of the interruption; in THINKING `rethink` asks the model again."""
        self._go("resume", reason)

    def _may_rethink(self) -> bool:
        return self.phase is StepPhase.THINKING and not self._model_running

    def _go(self, operation: str, reason: str | None = None) -> None:
        self._check(operation)
        move, status, phase = _MOVES[operation], self.status, self.phase
        if move.run is not None:
            self._run.fire(move.run, **self._payload(operation, reason))
        if move.agent is not None:
            self._agent.fire(move.agent)
            self._approval_given = operation == "approved"
        self._model_running = operation == "think"
        self._thinking_steps += self._model_running
        self._reason = self._reason if reason is None else reason
        self._tell(operation, status, phase, reason)

    def _tell(
        self, operation: str, status: RunStatus, phase: StepPhase | None, reason: str | None
    ) -> None:
        """Count the phase that ended, then call the listeners.

        Into RUNNING the status is told first, out of it the phase.
        """
        moved = self.phase is not phase
        seconds = None
        if moved:
            time_now = self._clock()
            if phase is not None:
                seconds = max(0.0, time_now - self._since)
                self._seconds[phase] += seconds
            self._since = time_now
        entering = self.status is RunStatus.RUNNING
        if moved and self._on_phase and not entering:
            self._on_phase(phase, self.phase, seconds)
        if self.status is not status and self._on_status:
            self._on_status(status, self.status, operation, reason)
        if moved and self._on_phase and entering:
            self._on_phase(phase, self.phase, seconds)

    def _payload(self, operation: str, reason: str | None = None) -> dict[str, object]:
        payload: dict[str, object] = {} if reason is None else {"reason": reason}
        if operation == "resume":
            payload["waiting"] = self._agent.state is AgentStatus.WAITING_APPROVAL
        return payload

    def _refuser(self, operation: str) -> _Machine | None:
        """The machine that will not do it; None if the operation is possible."""
        move = _MOVES[operation]
        if move.run is None:
            if self.status is not RunStatus.RUNNING:
                return self._run
        elif not self._run.can_fire(move.run):
            return self._run
        if move.agent is not None and not self._agent.can_fire(move.agent):
            return self._agent
        return None

    def _check(self, operation: str) -> None:
        refuser = self._refuser(operation)
        if refuser is not None:
            self._refuse(operation, refuser)

    def _refuse(self, operation: str, refuser: _Machine) -> NoReturn:
        with suppress(TransitionNotAllowed):
            refuser.fire(operation)
        place = self.status.name + (f", phase {self.phase.name}" if self.phase else "")
        why = " while the model call has not returned" if self._model_running else ""
        ways = ", ".join(self.possible) or "nothing: the run has ended"
        raise TransitionNotAllowed(
            f"{operation!r} is not possible in {place}{why}; possible: {ways}"
        )


def _agent_status(status: RunStatus, phase: StepPhase | None) -> AgentStatus:
    """The flat view of a run that is restored.

    Raises:
        MachineError: Status and phase do not go together.
    """
    fits = {
        RunStatus.RUNNING: phase is not StepPhase.WAITING_APPROVAL,
        RunStatus.WAITING_APPROVAL: phase is StepPhase.WAITING_APPROVAL,
        RunStatus.INTERRUPTED: True,
    }
    if not fits.get(status, phase is None) or not isinstance(phase, StepPhase | None):
        raise MachineError(f"a run cannot be {status!r} in phase {phase!r}")
    if phase is not None:
        return AgentStatus(phase.value)
    if status is RunStatus.CANCELLED:
        return AgentStatus.FAILED
    return AgentStatus(status.value) if RUN_TABLE.kind(status) == "final" else AgentStatus.READY
