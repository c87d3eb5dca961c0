"""The states of a run, of a step and of an agent, and which of them follow which."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from axislab.fsm.table import Payload, TransitionRule, TransitionTable


class RunStatus(StrEnum):
    """The life of a run: what one asks a list of runs for."""

    READY = "READY"
    """The task is set; nothing was called."""
    RUNNING = "RUNNING"
    """See the step phase for what it is doing."""
    WAITING_APPROVAL = "WAITING_APPROVAL"
    """Alive and paused: an action is fixed and a person has to decide."""
    COMPLETED = "COMPLETED"
    """Ended by itself; answer and time are stored."""
    FAILED = "FAILED"
    """Going on was impossible. A tool that fails is an observation, not this."""
    CANCELLED = "CANCELLED"
    """Given up by a person or a program."""
    INTERRUPTED = "INTERRUPTED"
    """Stopped or killed on the way; it can be resumed."""


class StepPhase(StrEnum):
    """What a run in progress is doing."""

    THINKING = "THINKING"
    """A model call is running: no second one may start."""
    TOOL_CALLING = "TOOL_CALLING"
    """Calls are decided: validation, permission, approval and execution happen here."""
    OBSERVING = "OBSERVING"
    """Results are being recorded."""
    WAITING_APPROVAL = "WAITING_APPROVAL"
    """The calls wait for a person."""


class AgentStatus(StrEnum):
    """Run status and step phase in one flat list."""

    READY = "READY"
    THINKING = "THINKING"
    TOOL_CALLING = "TOOL_CALLING"
    OBSERVING = "OBSERVING"
    WAITING_APPROVAL = "WAITING_APPROVAL"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


def was_waiting(_context: None, payload: Payload) -> bool:
    """Whether the run waited for an approval when it was interrupted."""
    return bool(payload.get("waiting"))


_R = RunStatus
_RUN_RULES: tuple[TransitionRule[RunStatus, None], ...] = (
    TransitionRule(_R.READY, "start", _R.RUNNING),
    TransitionRule(_R.RUNNING, "wait_for_approval", _R.WAITING_APPROVAL),
    TransitionRule(_R.WAITING_APPROVAL, "approved", _R.RUNNING),
    TransitionRule(
        _R.WAITING_APPROVAL, "refused", _R.RUNNING, description="the refusal is an observation"
    ),
    TransitionRule(_R.RUNNING, "complete", _R.COMPLETED),
    *(
        TransitionRule(source, event, target)
        for source in (_R.READY, _R.RUNNING, _R.WAITING_APPROVAL)
        for event, target in (
            ("fail", _R.FAILED),
            ("cancel", _R.CANCELLED),
            ("interrupt", _R.INTERRUPTED),
        )
    ),
    TransitionRule(_R.INTERRUPTED, "resume", _R.WAITING_APPROVAL, was_waiting),
    TransitionRule(_R.INTERRUPTED, "resume", _R.RUNNING),
)
RUN_TABLE: TransitionTable[RunStatus, None] = TransitionTable(
    _RUN_RULES, _R.READY, final=(_R.COMPLETED, _R.FAILED, _R.CANCELLED)
)
"""How a run lives."""

_A = AgentStatus
_AGENT_RULES: tuple[TransitionRule[AgentStatus, None], ...] = (
    TransitionRule(_A.READY, "think", _A.THINKING),
    TransitionRule(_A.THINKING, "call_tools", _A.TOOL_CALLING),
    TransitionRule(_A.THINKING, "complete", _A.COMPLETED),
    TransitionRule(_A.TOOL_CALLING, "observe", _A.OBSERVING),
    TransitionRule(_A.TOOL_CALLING, "wait_for_approval", _A.WAITING_APPROVAL),
    TransitionRule(_A.OBSERVING, "think", _A.THINKING),
    TransitionRule(_A.WAITING_APPROVAL, "approved", _A.TOOL_CALLING),
    TransitionRule(
        _A.WAITING_APPROVAL, "refused", _A.OBSERVING, description="the refusal is an observation"
    ),
    *(
        TransitionRule(source, "fail", _A.FAILED)
        for source in _A
        if source not in (_A.COMPLETED, _A.FAILED)
    ),
)
AGENT_TABLE: TransitionTable[AgentStatus, None] = TransitionTable(
    _AGENT_RULES, _A.READY, final=(_A.COMPLETED, _A.FAILED)
)
"""How an agent lives, seen flat."""

ALLOWED_TRANSITIONS: Mapping[AgentStatus, frozenset[AgentStatus]] = MappingProxyType(
    {s: frozenset(rule.target for rule in AGENT_TABLE.leaving(s)) for s in AgentStatus}
)
"""Every status and those that may follow it."""

PHASES = frozenset(phase.value for phase in StepPhase)
PHASE_TABLE: TransitionTable[StepPhase, None] = TransitionTable(
    (
        TransitionRule(
            StepPhase(rule.source.value),
            rule.event,
            StepPhase(rule.target.value),
            description=rule.description,
        )
        for rule in _AGENT_RULES
        if rule.source in PHASES and rule.target in PHASES
    ),
    StepPhase.THINKING,
)
"""How the phases of a run in progress follow each other."""

TARGET_TABLE: TransitionTable[AgentStatus, None] = TransitionTable(
    (TransitionRule(rule.source, rule.target.value, rule.target) for rule in _AGENT_RULES),
    _A.READY,
    final=AGENT_TABLE.final,
)
"""`AGENT_TABLE` with the name of the target as the event."""
