"""The dialog machine: every arrow is taken, every missing one refused, and no seed bug is ours."""

import copy
from dataclasses import replace
from itertools import pairwise

import pytest

from axislab.errors import MachineError, TransitionNotAllowed
from axislab.fsm.dialog import (
    DIALOG_RULES,
    EXECUTING_RULES,
    DialogState,
    ExecutingState,
    dialog_machine,
    dialog_table,
)
from axislab.fsm.dialog_values import DialogContext, Intent, PlanStep, Relation, StepResult
from axislab.fsm.log import Outcome
from axislab.fsm.machine import TransitionRule

S, INNER = DialogState, ExecutingState
BETWEEN, TOOL, PERSON = ((S.EXECUTING, inner) for inner in INNER)
DEPLOY = Intent(name="deploy", text="deploy v2", confidence=0.95)
CANARY = Intent(name="canary", text="canary first", confidence=0.9, relation=Relation.CHANGED)
LATER = replace(CANARY, name="report", relation=Relation.ADDED)
BUILD = PlanStep(name="build", prompt="Build v2", goal="deploy")
SHIP = PlanStep(name="ship", prompt="Ship v2", key=True, goal="deploy")
BUILT = StepResult(
    step="build", output="It is done: v2 is built.", conclusion="v2 is built", goal="deploy"
)


def context(**fields):
    return DialogContext(session_id="s", **fields)


ARROWS = [
    ((S.IDLE,), {}, "user_input", {"text": "hi"}, (S.INTENT_PARSE,)),
    ((S.INTENT_PARSE,), {}, "intent_resolved", {"intent": DEPLOY}, (S.TASK_PLAN,)),
    ((S.INTENT_PARSE,), {}, "intent_ambiguous", {}, (S.IDLE,)),
    ((S.TASK_PLAN,), {}, "steps_confirmed", {"steps": [BUILD]}, BETWEEN),
    (BETWEEN, {"steps": [SHIP]}, "need_confirmation", {}, (S.CONFIRMING,)),
    ((S.CONFIRMING,), {"pending": "ship"}, "user_confirmed", {}, BETWEEN),
    (
        (S.CONFIRMING,),
        {"pending": "ship", "steps": [SHIP]},
        "user_refused",
        {"reason": "no"},
        (S.TASK_PLAN,),
    ),
    (TOOL, {"running": "build", "failure_count": 1}, "execution_failed", {"why": "x"}, BETWEEN),
    (TOOL, {"failure_count": 2}, "execution_failed", {"why": "x"}, (S.RECOVERING,)),
    ((S.RECOVERING,), {"executed": [BUILT]}, "context_recovered", {}, BETWEEN),
    ((S.RECOVERING,), {}, "context_recovered", {}, (S.TASK_PLAN,)),
    (BETWEEN, {"intents": [DEPLOY]}, "task_done", {}, (S.COMPLETED,)),
    (BETWEEN, {"intents": [LATER, DEPLOY]}, "goal_done", {}, (S.TASK_PLAN,)),
    ((S.COMPLETED,), {}, "new_task", {}, (S.IDLE,)),
    (BETWEEN, {"intents": [DEPLOY]}, "intent_changed", {"intent": CANARY}, (S.TASK_PLAN,)),
    ((S.CONFIRMING,), {"pending": "ship"}, "intent_changed", {"intent": CANARY}, (S.TASK_PLAN,)),
    ((S.TASK_PLAN,), {"intents": [DEPLOY]}, "intent_changed", {"intent": CANARY}, (S.TASK_PLAN,)),
    ((S.CONFIRMING,), {"pending": "ship"}, "drift_asked", {"intent": CANARY}, (S.CONFIRMING,)),
    ((S.CONFIRMING,), {"change": CANARY}, "drift_refused", {}, (S.CONFIRMING,)),
    ((S.TASK_PLAN,), {}, "user_said", {"text": "hm"}, (S.TASK_PLAN,)),
    ((S.CONFIRMING,), {}, "user_said", {"text": "hm"}, (S.CONFIRMING,)),
    ((S.INTENT_PARSE,), {}, "fail", {}, (S.FAILED,)),
    ((S.TASK_PLAN,), {}, "fail", {}, (S.FAILED,)),
    (TOOL, {}, "fail", {}, (S.FAILED,)),
    ((S.CONFIRMING,), {}, "fail", {}, (S.FAILED,)),
    ((S.RECOVERING,), {}, "fail", {}, (S.FAILED,)),
    ((S.IDLE,), {}, "cancel", {}, (S.CANCELLED,)),
    ((S.INTENT_PARSE,), {}, "cancel", {}, (S.CANCELLED,)),
    ((S.TASK_PLAN,), {}, "cancel", {}, (S.CANCELLED,)),
    (PERSON, {}, "cancel", {}, (S.CANCELLED,)),
    ((S.CONFIRMING,), {}, "cancel", {}, (S.CANCELLED,)),
    ((S.RECOVERING,), {}, "cancel", {}, (S.CANCELLED,)),
    ((S.COMPLETED,), {}, "cancel", {}, (S.CANCELLED,)),
    (BETWEEN, {"steps": [BUILD]}, "step_started", {}, TOOL),
    (TOOL, {"steps": [BUILD], "running": "build"}, "step_finished", {"result": BUILT}, BETWEEN),
    (TOOL, {"running": "build"}, "step_stopped", {"why": "Ctrl-C"}, BETWEEN),
    (TOOL, {"running": "build"}, "wait_for_person", {}, PERSON),
    (PERSON, {"running": "build"}, "person_decided", {}, TOOL),
    (BETWEEN, {}, "drift_asked", {"intent": CANARY}, PERSON),
    (PERSON, {"change": CANARY}, "drift_refused", {}, BETWEEN),
    (BETWEEN, {}, "user_said", {"text": "hm"}, BETWEEN),
    (TOOL, {}, "user_said", {"text": "hm"}, TOOL),
    (PERSON, {}, "user_said", {"text": "hm"}, PERSON),
]
"""Where it starts, what it remembers there, the event, and where that leads."""


def named(path):
    return "/".join(state.name for state in path)


@pytest.mark.parametrize(
    ("path", "fields", "event", "payload", "target"),
    ARROWS,
    ids=[f"{named(a[0])}-{a[2]}-{named(a[4])}" for a in ARROWS],
)
def test_the_arrow_is_taken(path, fields, event, payload, target):
    machine = dialog_machine(context(**fields), path=path)
    assert machine.fire(event, **payload) is target[0]
    assert machine.path == target
    assert machine.log[-1].outcome is Outcome.FIRED


def test_no_rule_is_without_an_arrow_that_takes_it():
    taken = set()
    for path, fields, event, payload, _ in ARROWS:
        taken.add(dialog_machine(context(**fields), path=path).explain(event, **payload).winner)
    assert taken == {*DIALOG_RULES, *EXECUTING_RULES}


def places():
    return [path for state in S for path in _paths(state)]


def _paths(state):
    return [(state, inner) for inner in INNER] if state is S.EXECUTING else [(state,)]


MISSING = [
    (path, event)
    for path in places()
    for event in dict.fromkeys(rule.event for rule in (*DIALOG_RULES, *EXECUTING_RULES))
    if event not in dialog_machine(path=path).possible
]


@pytest.mark.parametrize(("path", "event"), MISSING, ids=[f"{named(p)}-{e}" for p, e in MISSING])
def test_a_missing_arrow_is_refused_with_the_events_that_would_do(path, event):
    machine = dialog_machine(context(intents=[DEPLOY]), path=path)
    before = machine.context
    with pytest.raises(TransitionNotAllowed) as caught:
        machine.fire(event, intent=DEPLOY, steps=[BUILD], result=BUILT)
    words = str(caught.value)
    assert all(repr(other) in words for other in machine.possible)
    assert machine.possible or "is final" in words
    assert (machine.path, machine.context) == (path, before)
    assert machine.log[-1].outcome is Outcome.REFUSED


GUARDED = [
    ((S.INTENT_PARSE,), {}, "intent_resolved", {"intent": replace(DEPLOY, confidence=0.8)}),
    ((S.INTENT_PARSE,), {}, "intent_resolved", {"intent": replace(DEPLOY, name="")}),
    ((S.TASK_PLAN,), {}, "steps_confirmed", {"steps": []}),
    (BETWEEN, {"steps": [BUILD]}, "need_confirmation", {}),
    (BETWEEN, {"steps": [SHIP], "confirmed": "ship"}, "need_confirmation", {}),
    (TOOL, {"steps": [SHIP], "running": "ship"}, "need_confirmation", {}),
    (BETWEEN, {}, "need_confirmation", {}),
    (BETWEEN, {"steps": [SHIP]}, "step_started", {}),
    (BETWEEN, {"steps": [SHIP], "confirmed": "build"}, "step_started", {}),
    (BETWEEN, {}, "step_started", {}),
    (BETWEEN, {"steps": [BUILD]}, "task_done", {}),
    (BETWEEN, {"intents": [LATER, DEPLOY]}, "task_done", {}),
    (BETWEEN, {"intents": [DEPLOY]}, "goal_done", {}),
    ((S.CONFIRMING,), {"pending": "ship", "change": CANARY}, "user_confirmed", {}),
    ((S.CONFIRMING,), {"pending": "ship"}, "drift_refused", {}),
    ((S.RECOVERING,), {"executed": [BUILT], "recoveries": 2}, "context_recovered", {}),
    ((S.RECOVERING,), {"recoveries": 2}, "context_recovered", {}),
    (TOOL, {"running": "build"}, "intent_changed", {"intent": CANARY}),
]


@pytest.mark.parametrize(("path", "fields", "event", "payload"), GUARDED)
def test_an_arrow_whose_guard_does_not_hold_is_refused(path, fields, event, payload):
    machine = dialog_machine(context(**fields), path=path)
    with pytest.raises(TransitionNotAllowed, match="does not hold"):
        machine.fire(event, **payload)


# The seed's bugs ---------------------------------------------------------------------------------


def whole_task():
    """A task from the first word to its end, with a key operation."""
    machine = dialog_machine(context())
    machine.fire("user_input", text="deploy v2")
    machine.fire("intent_resolved", intent=DEPLOY)
    machine.fire("steps_confirmed", steps=[BUILD, SHIP])
    machine.fire("step_started")
    machine.fire("step_finished", result=BUILT)
    machine.fire("need_confirmation")
    machine.fire("user_confirmed")
    machine.fire("step_started")
    machine.fire("step_finished", result=StepResult(step="ship", output="shipped", key=True))
    machine.fire("task_done")
    return machine


def test_every_state_can_be_reached_and_a_task_gets_to_its_end():
    machine = whole_task()
    assert machine.state is S.COMPLETED
    assert machine.context.conclusions == {"build": "v2 is built", "ship": "shipped"}


def test_events_carry_data_so_that_the_guard_of_the_intent_can_hold():
    machine = dialog_machine(context(), path=(S.INTENT_PARSE,))
    machine.fire("intent_resolved", intent=DEPLOY)
    assert machine.context.goal == DEPLOY


def test_what_was_given_and_what_was_got_share_nothing_with_the_machine():
    steps = [BUILD]
    given = context(heard=["a"])
    machine = dialog_machine(given, path=(S.TASK_PLAN,))
    machine.fire("steps_confirmed", steps=steps)
    steps.append(SHIP)
    given.heard.append("b")
    machine.context.steps.clear()
    assert machine.context.steps == [BUILD]
    assert machine.context.heard == ["a"]


def test_an_unknown_event_changes_nothing_but_is_not_silent():
    machine = dialog_machine(context())
    with pytest.raises(TransitionNotAllowed, match="did you mean 'user_input'"):
        machine.fire("user_inputs")
    assert (machine.state, machine.context) == (S.IDLE, context())
    assert [e.outcome for e in machine.log] == [Outcome.REFUSED]


def test_an_action_that_raises_leaves_nothing_of_itself_behind():
    def half(ctx, payload):
        ctx.heard.append("half")
        raise OSError("disk")

    table = dialog_table([TransitionRule(S.IDLE, "boom", S.CANCELLED, None, half)])
    machine = dialog_machine(context(), table=table)
    with pytest.raises(OSError, match="disk"):
        machine.fire("boom")
    assert (machine.state, machine.context.heard) == (S.IDLE, [])


def test_failures_are_counted_and_forgotten_by_a_success_a_recovery_and_a_new_task():
    machine = dialog_machine(context(steps=[BUILD], executed=[BUILT]), path=BETWEEN)
    for expected in (1, 2):
        machine.fire("step_started")
        machine.fire("execution_failed", why="down")
        assert machine.context.failure_count == expected
    machine.fire("step_started")
    machine.fire("execution_failed", why="down")
    assert machine.state is S.RECOVERING
    machine.fire("context_recovered")
    assert machine.context.failure_count == 0
    machine.fire("step_started")
    machine.fire("execution_failed", why="down")
    assert machine.path == BETWEEN  # not straight back to recovery
    machine.fire("step_started")
    machine.fire("step_finished", result=BUILT)
    assert machine.context.failure_count == 0
    assert machine.context.failures == ["build: down"] * 4


def test_a_new_task_starts_with_nothing_of_the_old_one():
    machine = whole_task()
    machine.fire("new_task")
    assert machine.context == context()


def test_recovering_before_any_step_is_no_dead_end():
    machine = dialog_machine(context(intents=[DEPLOY]), path=(S.RECOVERING,))
    machine.fire("context_recovered")
    machine.fire("steps_confirmed", steps=[BUILD])
    assert machine.path == BETWEEN


def test_recovery_that_never_helps_ends():
    machine = dialog_machine(
        context(steps=[BUILD], executed=[BUILT], max_failures=1, max_recoveries=2), path=BETWEEN
    )
    for _ in range(2):
        machine.fire("step_started")
        machine.fire("execution_failed", why="down")
        machine.fire("context_recovered")
    machine.fire("step_started")
    machine.fire("execution_failed", why="down")
    assert not machine.can_fire("context_recovered")
    machine.fire("fail", reason="two recoveries did not help")
    assert machine.finished


def test_there_are_ends_that_are_no_success_and_every_state_leads_to_one():
    assert dialog_table().final == {S.FAILED, S.CANCELLED}
    for path in places():
        assert "cancel" in dialog_machine(path=path).possible or path[0] in dialog_table().final


def test_a_changed_goal_takes_the_place_of_the_old_one_and_an_added_one_waits():
    machine = dialog_machine(context(intents=[DEPLOY], confirmed="ship"), path=BETWEEN)
    machine.fire("intent_changed", intent=CANARY)
    assert machine.context.intents == [CANARY]
    assert machine.context.confirmed is None
    machine.fire("intent_changed", intent=LATER)
    assert machine.context.intents == [LATER, CANARY]
    machine.fire("steps_confirmed", steps=[BUILD], dropped=["ship"], kept=["build"])
    assert (machine.context.dropped, machine.context.kept) == (["ship"], ["build"])


def test_every_transition_is_in_the_log_with_both_its_ends():
    log = whole_task().log
    assert [e.seq for e in log] == list(range(10))
    assert all(a.after == b.before for a, b in pairwise(log))
    assert (log[-1].source, log[-1].target) == (S.EXECUTING, S.COMPLETED)


# Confirmations -----------------------------------------------------------------------------------


def test_a_confirmation_is_good_for_one_start_of_one_step():
    machine = dialog_machine(context(steps=[SHIP]), path=BETWEEN)
    machine.fire("need_confirmation")
    machine.fire("user_confirmed")
    machine.fire("step_started")
    machine.fire("execution_failed", why="network")
    with pytest.raises(TransitionNotAllowed, match="may_start does not hold"):
        machine.fire("step_started")
    assert machine.can_fire("need_confirmation")


def test_a_refusal_takes_the_step_out_of_the_plan_and_keeps_the_reason():
    machine = dialog_machine(context(steps=[SHIP, BUILD]), path=BETWEEN)
    machine.fire("need_confirmation")
    machine.fire("user_refused", reason="not on a Friday")
    seen = machine.context
    assert (seen.steps, seen.dropped, seen.pending) == ([BUILD], ["ship"], None)
    assert seen.refusals == ["ship: not on a Friday"]


def test_recovery_can_bring_another_plan_and_says_what_it_drops_and_keeps():
    drain = replace(BUILD, name="drain")
    machine = dialog_machine(
        context(steps=[BUILD, SHIP], executed=[StepResult(step="diagnose", conclusion="node 7")]),
        path=(S.RECOVERING,),
    )
    machine.fire("context_recovered", steps=[drain, SHIP])
    seen = machine.context
    assert (seen.steps, seen.dropped, seen.kept) == ([drain, SHIP], ["build"], ["diagnose"])


# Rules as data -----------------------------------------------------------------------------------


def test_a_rule_of_ones_own_stands_above_the_others():
    rule = TransitionRule(
        S.EXECUTING, "execution_failed", S.CANCELLED, lambda c, p: "fatal" in p["why"]
    )
    machine = dialog_machine(context(), table=dialog_table([rule]), path=BETWEEN)
    assert any("3 rules" in line for line in machine.report)
    machine.fire("execution_failed", why="small")
    machine.fire("execution_failed", why="fatal")
    assert machine.state is S.CANCELLED


def test_a_rule_of_ones_own_that_another_could_never_win_against_is_refused():
    rule = TransitionRule(S.IDLE, "user_input", S.TASK_PLAN)
    with pytest.raises(MachineError, match="can never win"):
        dialog_table([rule])


def test_values_are_their_own_copies_and_the_context_is_not():
    original = context(intents=[DEPLOY])
    other = copy.deepcopy(original)
    assert other == original
    assert other.intents is not original.intents
    assert other.intents[0] is DEPLOY
