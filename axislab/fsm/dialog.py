"""The dialog machine: the seven states of a session, its two ends, and the arrows between them.

The eleven arrows of the diagram, and what it lacks: failures that are counted, a change of goal
in the middle of a task, further goals, a way out of every state, and ends that are no success.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum, StrEnum
from typing import TypeAlias

from axislab.fsm.dialog_values import DialogContext, Intent, Relation, StepResult
from axislab.fsm.log import LogEntry
from axislab.fsm.machine import Payload, StateMachine, TransitionRule, TransitionTable


class DialogState(StrEnum):
    """Where a session is."""

    IDLE = "idle"
    """Waits for what somebody wants."""
    INTENT_PARSE = "intent_parse"
    TASK_PLAN = "task_plan"
    EXECUTING = "executing"
    """See `ExecutingState`."""
    CONFIRMING = "confirming"
    """A key operation waits for a person."""
    RECOVERING = "recovering"
    """Something failed: the context is being rebuilt."""
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ExecutingState(StrEnum):
    """What a session that executes is doing."""

    BETWEEN_STEPS = "between_steps"
    WAITING_TOOL = "waiting_tool"
    """A run works at a step."""
    WAITING_PERSON = "waiting_person"
    """A person has to decide: about a changed goal, or about a call inside the step's run."""


DialogRule: TypeAlias = TransitionRule[DialogState, DialogContext]
InnerRule: TypeAlias = TransitionRule[ExecutingState, DialogContext]
DialogTable: TypeAlias = TransitionTable[DialogState, DialogContext]
DialogMachine: TypeAlias = StateMachine[DialogState, DialogContext]

# Guards ------------------------------------------------------------------------------------------


def is_confident(context: DialogContext, payload: Payload) -> bool:
    """The intent has a name and is surer than `min_confidence`."""
    intent: Intent = payload["intent"]
    return bool(intent.name) and intent.confidence > context.min_confidence


def has_steps(_context: DialogContext, payload: Payload) -> bool:
    """There is something to do, or all of it is done already."""
    return len(payload["steps"]) > 0 or len(payload.get("kept", ())) > 0


def key_step_is_next(context: DialogContext, _payload: Payload) -> bool:
    """The next step is a key operation that nobody has confirmed."""
    if context.running is not None or not context.steps:
        return False
    return context.steps[0].key and context.confirmed != context.steps[0].name


def operation_is_pending(context: DialogContext, _payload: Payload) -> bool:
    """A person is asked about a key operation, and about nothing else."""
    return context.pending is not None and context.change is None


def change_is_pending(context: DialogContext, _payload: Payload) -> bool:
    """A person is asked about a changed goal."""
    return context.change is not None


def is_between_steps(context: DialogContext, _payload: Payload) -> bool:
    """No run works at a step."""
    return context.running is None


def step_is_running(context: DialogContext, _payload: Payload) -> bool:
    """A run works at a step."""
    return context.running is not None


def may_start(context: DialogContext, _payload: Payload) -> bool:
    """There is a step, and if it is a key operation a person has confirmed it."""
    return bool(context.steps) and (
        not context.steps[0].key or context.confirmed == context.steps[0].name
    )


def may_fail_again(context: DialogContext, _payload: Payload) -> bool:
    """With this failure there are still fewer in a row than `max_failures`."""
    return context.failure_count + 1 < context.max_failures


def may_go_on(context: DialogContext, _payload: Payload) -> bool:
    """Steps were executed, and recovery was not tried too often."""
    return bool(context.executed) and context.recoveries < context.max_recoveries


def may_plan_anew(context: DialogContext, _payload: Payload) -> bool:
    """No step was executed, and recovery was not tried too often."""
    return not context.executed and context.recoveries < context.max_recoveries


def all_is_done(context: DialogContext, _payload: Payload) -> bool:
    """No step is left, and no other goal."""
    return not context.steps and context.running is None and len(context.intents) <= 1


def more_goals(context: DialogContext, _payload: Payload) -> bool:
    """No step is left, but another goal."""
    return not context.steps and context.running is None and len(context.intents) > 1


# Actions -----------------------------------------------------------------------------------------


def hear(context: DialogContext, payload: Payload) -> None:
    """Keep what was said."""
    context.heard.append(str(payload.get("text", "")))


def push_intent(context: DialogContext, payload: Payload) -> None:
    """The intent is what is worked on now."""
    context.intents.append(payload["intent"])


def set_steps(context: DialogContext, payload: Payload) -> None:
    """Take the plan, and what it drops and keeps."""
    context.steps, context.refusals = list(payload["steps"]), []
    context.dropped = list(payload.get("dropped", ()))
    context.kept = list(payload.get("kept", ()))
    context.confirmed = None


def ask_operation(context: DialogContext, _payload: Payload) -> None:
    """Ask about the next step."""
    context.pending = context.steps[0].name


def confirm_operation(context: DialogContext, _payload: Payload) -> None:
    """The step may start, once."""
    context.confirmed, context.pending = context.pending, None


def refuse_operation(context: DialogContext, payload: Payload) -> None:
    """The step is no part of the plan any more."""
    name, reason = str(context.pending), str(payload.get("reason", ""))
    context.refusals.append(f"{name}: {reason}" if reason else name)
    context.steps = context.steps[1:]
    context.dropped, context.kept = [name], []
    context.pending = context.confirmed = None


def start_step(context: DialogContext, _payload: Payload) -> None:
    """The step runs; a confirmation is used up by that."""
    context.running, context.confirmed = context.steps[0].name, None


def keep_result(context: DialogContext, payload: Payload) -> None:
    """What came of the step, and that it did not fail."""
    result: StepResult = payload["result"]
    context.executed.append(result)
    context.steps = context.steps[1:]
    context.running, context.failure_count = None, 0


def count_failure(context: DialogContext, payload: Payload) -> None:
    """One failure more in a row."""
    parts = (context.running, str(payload.get("why", "")))
    context.failures.append(": ".join(part for part in parts if part))
    context.failure_count += 1
    context.running = context.confirmed = None


def note_stop(context: DialogContext, payload: Payload) -> None:
    """The step did not end, which is no failure of it."""
    context.failures.append(f"{context.running}: {payload.get('why', '')}")
    context.running = context.confirmed = None


def note_end(context: DialogContext, payload: Payload) -> None:
    """Why it ended."""
    context.ending = str(payload.get("reason", ""))
    context.running = context.pending = context.confirmed = context.change = None


def rebuild(context: DialogContext, payload: Payload) -> None:
    """Go on with another plan, or the same; the failures in a row are forgotten."""
    if "steps" in payload:
        before = context.steps
        context.steps = list(payload["steps"])
        context.dropped = [s.name for s in before if s not in context.steps]
        context.kept = list(context.conclusions)
    context.recoveries += 1
    context.failure_count, context.confirmed = 0, None


def ask_change(context: DialogContext, payload: Payload) -> None:
    """Ask about the changed goal."""
    context.change = payload["intent"]


def refuse_change(context: DialogContext, _payload: Payload) -> None:
    """Go on as before."""
    context.change = None


def change_goal(context: DialogContext, payload: Payload) -> None:
    """A changed goal takes the place of the one worked on; an added one waits behind it."""
    intent: Intent = payload["intent"]
    if intent.relation is Relation.ADDED and context.intents:
        context.intents.insert(len(context.intents) - 1, intent)
    else:
        context.intents[-1:] = [intent]
    context.change = context.pending = context.confirmed = None


def next_goal(context: DialogContext, _payload: Payload) -> None:
    """The goal is reached: the one before it on the stack is worked on."""
    context.intents.pop()


def forget_task(context: DialogContext, _payload: Payload) -> None:
    """Nothing of one task leaks into the next."""
    fresh = DialogContext()
    for name in DialogContext.__slots__:
        if name not in ("session_id", "min_confidence", "max_failures", "max_recoveries"):
            setattr(context, name, getattr(fresh, name))


# The tables --------------------------------------------------------------------------------------

_S, _I = DialogState, ExecutingState

EXECUTING_RULES: tuple[InnerRule, ...] = (
    TransitionRule(_I.BETWEEN_STEPS, "step_started", _I.WAITING_TOOL, may_start, start_step),
    TransitionRule(
        _I.WAITING_TOOL, "step_finished", _I.BETWEEN_STEPS, step_is_running, keep_result
    ),
    TransitionRule(_I.WAITING_TOOL, "step_stopped", _I.BETWEEN_STEPS, step_is_running, note_stop),
    TransitionRule(_I.WAITING_TOOL, "wait_for_person", _I.WAITING_PERSON, step_is_running),
    TransitionRule(_I.WAITING_PERSON, "person_decided", _I.WAITING_TOOL, step_is_running),
    TransitionRule(
        _I.BETWEEN_STEPS, "drift_asked", _I.WAITING_PERSON, is_between_steps, ask_change
    ),
    TransitionRule(
        _I.WAITING_PERSON, "drift_refused", _I.BETWEEN_STEPS, change_is_pending, refuse_change
    ),
    *(
        TransitionRule(state, "user_said", state, None, hear, "in the middle of a task")
        for state in _I
    ),
)
EXECUTING_TABLE: TransitionTable[ExecutingState, DialogContext] = TransitionTable(
    EXECUTING_RULES, _I.BETWEEN_STEPS
)
"""What happens inside EXECUTING."""

DIALOG_RULES: tuple[DialogRule, ...] = (
    TransitionRule(_S.IDLE, "user_input", _S.INTENT_PARSE, None, hear),
    TransitionRule(_S.INTENT_PARSE, "intent_resolved", _S.TASK_PLAN, is_confident, push_intent),
    TransitionRule(_S.INTENT_PARSE, "intent_ambiguous", _S.IDLE),
    TransitionRule(_S.TASK_PLAN, "steps_confirmed", _S.EXECUTING, has_steps, set_steps),
    TransitionRule(
        _S.EXECUTING, "need_confirmation", _S.CONFIRMING, key_step_is_next, ask_operation
    ),
    TransitionRule(
        _S.CONFIRMING, "user_confirmed", _S.EXECUTING, operation_is_pending, confirm_operation
    ),
    TransitionRule(
        _S.CONFIRMING, "user_refused", _S.TASK_PLAN, operation_is_pending, refuse_operation
    ),
    TransitionRule(_S.EXECUTING, "execution_failed", _S.EXECUTING, may_fail_again, count_failure),
    TransitionRule(_S.EXECUTING, "execution_failed", _S.RECOVERING, None, count_failure),
    TransitionRule(_S.RECOVERING, "context_recovered", _S.EXECUTING, may_go_on, rebuild),
    TransitionRule(_S.RECOVERING, "context_recovered", _S.TASK_PLAN, may_plan_anew, rebuild),
    TransitionRule(_S.EXECUTING, "task_done", _S.COMPLETED, all_is_done),
    TransitionRule(_S.EXECUTING, "goal_done", _S.TASK_PLAN, more_goals, next_goal),
    TransitionRule(_S.COMPLETED, "new_task", _S.IDLE, None, forget_task),
    TransitionRule(_S.EXECUTING, "intent_changed", _S.TASK_PLAN, is_between_steps, change_goal),
    TransitionRule(_S.CONFIRMING, "intent_changed", _S.TASK_PLAN, None, change_goal),
    TransitionRule(_S.TASK_PLAN, "intent_changed", _S.TASK_PLAN, None, change_goal),
    TransitionRule(_S.CONFIRMING, "drift_asked", _S.CONFIRMING, operation_is_pending, ask_change),
    TransitionRule(_S.CONFIRMING, "drift_refused", _S.CONFIRMING, change_is_pending, refuse_change),
    *(
        TransitionRule(state, "user_said", state, None, hear, "in the middle of a task")
        for state in (_S.TASK_PLAN, _S.CONFIRMING)
    ),
    *(
        TransitionRule(state, "fail", _S.FAILED, None, note_end)
        for state in _S
        if state not in (_S.IDLE, _S.COMPLETED, _S.FAILED, _S.CANCELLED)
    ),
    *(
        TransitionRule(state, "cancel", _S.CANCELLED, None, note_end)
        for state in _S
        if state not in (_S.FAILED, _S.CANCELLED)
    ),
)
"""Every arrow between the states of a session, as data."""


def dialog_table(
    extra: Iterable[DialogRule] = (), *, rules: Iterable[DialogRule] = DIALOG_RULES
) -> DialogTable:
    """The checked table of a session.

    Args:
        extra: Rules of your own; they stand above the others, so that they win where they hold.
        rules: The others.

    Raises:
        MachineError: Together they are no state machine, or one can never win; it says which.

    Examples:
        >>> len(dialog_table().rules) == len(DIALOG_RULES)
        True
    """
    return TransitionTable(
        [*extra, *rules],
        DialogState.IDLE,
        final=(DialogState.FAILED, DialogState.CANCELLED),
        children={DialogState.EXECUTING: EXECUTING_TABLE},
    )


def dialog_machine(
    context: DialogContext | None = None,
    *,
    table: DialogTable | None = None,
    path: Iterable[Enum] = (),
    journal: Callable[[LogEntry[DialogState], DialogContext], None] | None = None,
) -> DialogMachine:
    """A session's machine.

    Args:
        context: What it remembers; nothing yet by default.
        table: Its rules; `dialog_table()` by default.
        path: Where it starts, outermost state first; IDLE by default.
        journal: Hears of every event before it counts, as `Snapshots.journal` does.

    Examples:
        >>> machine = dialog_machine()
        >>> machine.fire("user_input", text="deploy v2").name
        'INTENT_PARSE'
    """
    first, *inside = tuple(path) or (DialogState.IDLE,)
    return StateMachine(
        table or dialog_table(),
        DialogState(first.value),
        inside=inside,
        context=context or DialogContext(),
        journal=journal,
    )
