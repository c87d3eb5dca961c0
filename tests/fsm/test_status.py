"""Run status, step phase and the seed's flat agent status."""

import itertools
import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axislab.errors import MachineError, TransitionNotAllowed
from axislab.fsm.machine import Outcome, StateMachine
from axislab.fsm.status import (
    AGENT_TABLE,
    ALLOWED_TRANSITIONS,
    PHASE_TABLE,
    RUN_TABLE,
    AgentState,
    AgentStatus,
    RunLifecycle,
    RunStatus,
    StepPhase,
)

A, R, P = AgentStatus, RunStatus, StepPhase

SEED = {
    A.READY: {A.THINKING, A.FAILED},
    A.THINKING: {A.TOOL_CALLING, A.COMPLETED, A.FAILED},
    A.TOOL_CALLING: {A.OBSERVING, A.WAITING_APPROVAL, A.FAILED},
    A.OBSERVING: {A.THINKING, A.FAILED},
    A.WAITING_APPROVAL: {A.TOOL_CALLING, A.FAILED},
    A.COMPLETED: set(),
    A.FAILED: set(),
}
REPAIRED = {**SEED, A.WAITING_APPROVAL: {*SEED[A.WAITING_APPROVAL], A.OBSERVING}}
RUN_ARROWS = {
    R.READY: {R.RUNNING, R.FAILED, R.CANCELLED, R.INTERRUPTED},
    R.RUNNING: {R.WAITING_APPROVAL, R.COMPLETED, R.FAILED, R.CANCELLED, R.INTERRUPTED},
    R.WAITING_APPROVAL: {R.RUNNING, R.FAILED, R.CANCELLED, R.INTERRUPTED},
    R.INTERRUPTED: {R.RUNNING, R.WAITING_APPROVAL},
    R.COMPLETED: set(),
    R.FAILED: set(),
    R.CANCELLED: set(),
}
PHASE_ARROWS = {
    P.THINKING: {P.TOOL_CALLING},
    P.TOOL_CALLING: {P.OBSERVING, P.WAITING_APPROVAL},
    P.OBSERVING: {P.THINKING},
    P.WAITING_APPROVAL: {P.TOOL_CALLING, P.OBSERVING},
}


def test_the_flat_table_is_the_seeds_with_a_refusal_that_is_no_failure():
    assert ALLOWED_TRANSITIONS == REPAIRED
    with pytest.raises(TypeError):
        ALLOWED_TRANSITIONS[A.FAILED] = {A.READY}


@pytest.mark.parametrize(
    ("table", "arrows"),
    [(RUN_TABLE, RUN_ARROWS), (AGENT_TABLE, REPAIRED), (PHASE_TABLE, PHASE_ARROWS)],
)
def test_every_arrow_is_taken_and_every_missing_one_refused(table, arrows):
    assert {s: {r.target for r in table.leaving(s)} for s in table.states} == arrows
    for state, event in itertools.product(table.states, table.events):
        machine = StateMachine(table, state)
        rules = table.rules_for(state, event)
        if rules:
            taken = {machine.explain(event, waiting=w).winner.target for w in (True, False)}
            assert taken == {rule.target for rule in rules} <= arrows[state]
            assert machine.fire(event) in taken
            continue
        with pytest.raises(TransitionNotAllowed) as caught:
            machine.fire(event)
        assert machine.state is state
        for other in {rule.event for rule in table.leaving(state)}:
            assert repr(other) in str(caught.value)
        if state in table.final:
            assert f"{state.name} is final" in str(caught.value)


def test_there_are_no_transitions_of_a_state_to_itself():
    for table in (RUN_TABLE, AGENT_TABLE, PHASE_TABLE):
        assert all(rule.source is not rule.target for rule in table.rules)


# ------------------------------------------------------------------------- AgentState


@pytest.mark.parametrize(("source", "target"), list(itertools.product(A, A)))
def test_an_agent_takes_the_arrows_of_the_table_only(source, target):
    state = AgentState("Check the project", status=source)
    if target in REPAIRED[source]:
        state.transition_to(target, reason="because")
        assert state.status is target
        assert state.log[0].payload == "reason='because'"
    else:
        with pytest.raises(ValueError, match=f"{target.value!r} is not possible") as caught:
            state.transition_to(target)
        assert state.status is source
        assert state.log[0].outcome is Outcome.REFUSED
        assert all(repr(s.value) in str(caught.value) for s in REPAIRED[source])


@pytest.mark.parametrize("text", ["THINKING", "COMPELTED", None])
def test_a_plain_text_is_no_status(text):
    state = AgentState("g")
    with pytest.raises(TransitionNotAllowed, match=r"use one of AgentStatus\.READY, "):
        state.transition_to(text)
    with pytest.raises(MachineError):
        AgentState("g", status="THINKING")
    assert state.status is A.READY


def test_the_status_of_an_agent_cannot_be_assigned():
    state = AgentState("g")
    with pytest.raises(AttributeError):
        state.status = A.COMPLETED
    with pytest.raises(AttributeError):
        state.stauts = A.COMPLETED
    assert repr(state) == "<AgentState READY, step 0: 'g'>"


def test_an_agent_that_completes_stores_answer_and_time():
    state = AgentState("g", messages=[{"role": "user"}], step=3, tool_history=[{"name": "search"}])
    state.transition_to(A.THINKING)
    state.complete("42")
    assert (state.status, state.final_answer) == (A.COMPLETED, "42")
    assert state.completed_at.tzinfo is UTC
    assert state.error is None
    with pytest.raises(TransitionNotAllowed):
        state.complete("43")
    assert state.final_answer == "42"


def test_an_agent_that_fails_stores_why():
    state = AgentState("g")
    state.transition_to(A.FAILED, reason="no steps left")
    assert state.error == "no steps left"
    assert state.completed_at is None


@pytest.mark.parametrize(("said", "target"), [(True, A.TOOL_CALLING), (False, A.OBSERVING)])
def test_a_decision_names_its_approver_and_leads_on(said, target):
    state = AgentState("g", status=A.TOOL_CALLING)
    with pytest.raises(TransitionNotAllowed, match="nothing waits for a decision in TOOL_CALLING"):
        state.decide(said, approver="Ana")
    assert state.decision is None
    state.pending_action = {"name": "delete_file"}
    state.transition_to(A.WAITING_APPROVAL)
    state.decide(said, approver="Ana")
    assert (state.status, state.decision, state.approver) == (target, said, "Ana")


# ------------------------------------------------------------------------- RunLifecycle


class Watch:
    """A clock to be set by hand, and what the listeners heard."""

    def __init__(self, **options):
        self.time = 100.0
        self.heard = []
        self.life = RunLifecycle(
            clock=lambda: self.time,
            now=lambda: datetime(2030, 1, 2, tzinfo=UTC),
            on_status=lambda *news: self.heard.append(("status", *news)),
            on_phase=lambda *news: self.heard.append(("phase", *news)),
            **options,
        )

    def after(self, seconds, operation, *args):
        self.time += seconds
        getattr(self.life, operation)(*args)


def at(*operations):
    life = RunLifecycle()
    for operation in operations:
        getattr(life, operation)()
    return life


def test_a_run_with_tools_goes_through_its_phases_and_counts_their_seconds():
    watch = Watch()
    life = watch.life
    assert (life.status, life.phase, life.agent_status) == (R.READY, None, A.READY)
    watch.after(9, "start")
    assert (life.status, life.phase, life.agent_status) == (R.RUNNING, None, A.READY)
    watch.after(9, "think")
    watch.after(2, "model_returned")
    watch.after(1, "rethink")
    watch.after(4, "call_tools")
    watch.after(5, "observe")
    watch.after(1, "think")
    watch.time += 2
    assert life.seconds_in == {
        P.THINKING: 9,
        P.TOOL_CALLING: 5,
        P.OBSERVING: 1,
        P.WAITING_APPROVAL: 0,
    }
    watch.after(1, "complete", "Osk")
    watch.time += 50
    assert life.seconds_in[P.THINKING] == 10
    assert (life.final_answer, life.completed_at) == ("Osk", datetime(2030, 1, 2, tzinfo=UTC))
    assert (life.status, life.phase, life.agent_status) == (R.COMPLETED, None, A.COMPLETED)
    assert life.finished
    assert life.thinking_steps == 3
    assert watch.heard == [
        ("status", R.READY, R.RUNNING, "start", None),
        ("phase", None, P.THINKING, None),
        ("phase", P.THINKING, P.TOOL_CALLING, 7),
        ("phase", P.TOOL_CALLING, P.OBSERVING, 5),
        ("phase", P.OBSERVING, P.THINKING, 1),
        ("phase", P.THINKING, None, 3),
        ("status", R.RUNNING, R.COMPLETED, "complete", None),
    ]


def test_a_second_model_call_while_thinking_is_refused():
    life = at("start", "think")
    for operation in (life.think, life.rethink):
        with pytest.raises(TransitionNotAllowed, match="while the model call has not returned"):
            operation()
    life.model_returned()
    with pytest.raises(TransitionNotAllowed, match=r"'think' is not possible .*rethink"):
        life.think()
    life.rethink()
    assert life.model_running
    with pytest.raises(TransitionNotAllowed):
        life.rethink()
    assert (life.phase, life.thinking_steps) == (P.THINKING, 2)


def test_a_rollback_or_reprompt_is_a_new_step_but_no_transition():
    watch = Watch()
    for operation in ("start", "think", "model_returned"):
        watch.after(1, operation)
    before = list(watch.heard)
    watch.after(1, "rethink")
    assert watch.heard == before
    assert watch.life.thinking_steps == 2


def test_an_undone_tool_call_is_observed_before_the_model_thinks_again():
    life = at("start", "think", "call_tools")
    with pytest.raises(TransitionNotAllowed, match="phase TOOL_CALLING"):
        life.think()
    life.observe()
    life.think()
    assert life.phase is P.THINKING


def test_an_approved_call_comes_back_marked_so_that_it_is_not_asked_about_for_ever():
    watch = Watch()
    life = watch.life
    for operation in ("start", "think", "call_tools"):
        watch.after(1, operation)
    assert not life.approval_given
    watch.after(1, "wait_for_approval", "deletes a file")
    assert (life.status, life.phase) == (R.WAITING_APPROVAL, P.WAITING_APPROVAL)
    assert life.agent_status is A.WAITING_APPROVAL
    assert life.reason == "deletes a file"
    watch.after(60, "approved", "by Ana")
    assert (life.status, life.phase) == (R.RUNNING, P.TOOL_CALLING)
    assert life.approval_given
    watch.after(1, "observe")
    assert not life.approval_given
    assert watch.heard[-5:] == [
        ("phase", P.TOOL_CALLING, P.WAITING_APPROVAL, 1),
        ("status", R.RUNNING, R.WAITING_APPROVAL, "wait_for_approval", "deletes a file"),
        ("status", R.WAITING_APPROVAL, R.RUNNING, "approved", "by Ana"),
        ("phase", P.WAITING_APPROVAL, P.TOOL_CALLING, 60),
        ("phase", P.TOOL_CALLING, P.OBSERVING, 1),
    ]


def test_a_refusal_by_a_person_is_an_observation():
    life = at("start", "think", "call_tools", "wait_for_approval", "refused")
    assert (life.status, life.phase, life.approval_given) == (R.RUNNING, P.OBSERVING, False)


@pytest.mark.parametrize("end", ["fail", "cancel"])
@pytest.mark.parametrize(
    "path",
    [
        (),
        ("start",),
        ("start", "think"),
        ("start", "think", "call_tools"),
        ("start", "think", "call_tools", "observe"),
        ("start", "think", "call_tools", "wait_for_approval"),
    ],
)
def test_a_run_can_fail_or_be_cancelled_anywhere_and_then_nothing_follows(path, end):
    life = at(*path)
    getattr(life, end)("enough")
    assert life.status is (R.FAILED if end == "fail" else R.CANCELLED)
    assert (life.phase, life.agent_status, life.reason) == (None, A.FAILED, "enough")
    assert (life.final_answer, life.completed_at, life.model_running) == (None, None, False)
    assert life.possible == ()
    with pytest.raises(TransitionNotAllowed, match="nothing: the run has ended"):
        life.start()


@pytest.mark.parametrize(
    ("path", "phase", "status"),
    [
        ((), None, R.RUNNING),
        (("start",), None, R.RUNNING),
        (("start", "think"), P.THINKING, R.RUNNING),
        (("start", "think", "call_tools"), P.TOOL_CALLING, R.RUNNING),
        (("start", "think", "call_tools", "observe"), P.OBSERVING, R.RUNNING),
        (
            ("start", "think", "call_tools", "wait_for_approval"),
            P.WAITING_APPROVAL,
            R.WAITING_APPROVAL,
        ),
    ],
)
def test_an_interrupted_run_goes_on_where_it_stopped(path, phase, status):
    life = at(*path)
    flat = life.agent_status
    life.interrupt("kernel restarted")
    assert (life.status, life.phase, life.agent_status) == (R.INTERRUPTED, None, flat)
    assert life.possible == ("resume",)
    reborn = RunLifecycle(status=life.status, phase=phase)
    for one in (life, reborn):
        one.resume()
        assert (one.status, one.phase, one.model_running) == (status, phase, False)


def test_a_lost_model_call_is_asked_again_after_resume():
    life = at("start", "think", "interrupt", "resume")
    with pytest.raises(TransitionNotAllowed):
        life.think()
    life.rethink()
    life.complete()
    assert life.status is R.COMPLETED


def test_time_while_interrupted_is_in_no_phase():
    watch = Watch(
        status=R.INTERRUPTED, phase=P.TOOL_CALLING, seconds_in={P.THINKING: 3, P.TOOL_CALLING: 1}
    )
    watch.after(1000, "resume")
    watch.after(2, "observe")
    watch.time -= 5
    assert watch.life.seconds_in == {
        P.THINKING: 3,
        P.TOOL_CALLING: 3,
        P.OBSERVING: 0,
        P.WAITING_APPROVAL: 0,
    }


@pytest.mark.parametrize(
    ("status", "phase", "flat"),
    [
        (R.COMPLETED, None, A.COMPLETED),
        (R.FAILED, None, A.FAILED),
        (R.CANCELLED, None, A.FAILED),
        (R.READY, None, A.READY),
        (R.RUNNING, P.OBSERVING, A.OBSERVING),
        (R.WAITING_APPROVAL, P.WAITING_APPROVAL, A.WAITING_APPROVAL),
        (R.INTERRUPTED, P.THINKING, A.THINKING),
    ],
)
def test_a_run_can_be_restored_in_any_status(status, phase, flat):
    assert RunLifecycle(status=status, phase=phase).agent_status is flat


@pytest.mark.parametrize(
    ("status", "phase"),
    [
        (R.READY, P.THINKING),
        (R.RUNNING, P.WAITING_APPROVAL),
        (R.WAITING_APPROVAL, None),
        (R.COMPLETED, P.THINKING),
        (R.RUNNING, "THINKING"),
        ("RUNNING", None),
    ],
)
def test_status_and_phase_that_do_not_go_together_are_refused(status, phase):
    with pytest.raises(MachineError):
        RunLifecycle(status=status, phase=phase)


def test_status_and_phase_cannot_be_assigned():
    life = RunLifecycle()
    for name in ("status", "phase", "agent_status", "final_answer", "completed_at", "reason"):
        with pytest.raises(AttributeError):
            setattr(life, name, None)
    assert repr(life) == "<RunLifecycle READY>"
    assert repr(at("start", "think")) == "<RunLifecycle RUNNING in THINKING>"


def test_refusals_are_logged():
    life = at("start", "think")
    with pytest.raises(TransitionNotAllowed):
        life.start()
    assert [e.outcome for e in life.log] == [Outcome.FIRED, Outcome.REFUSED]


OPERATIONS = [
    "start",
    "think",
    "rethink",
    "model_returned",
    "call_tools",
    "observe",
    "wait_for_approval",
    "approved",
    "refused",
    "complete",
    "fail",
    "cancel",
    "interrupt",
    "resume",
]
WORK = [op for op in OPERATIONS if op not in ("fail", "cancel", "complete", "interrupt")]


@given(st.lists(st.sampled_from(WORK + OPERATIONS), max_size=60))
def test_whatever_is_called_status_and_phases_stay_lawful(operations):
    watch = Watch()
    life = watch.life
    for operation in operations:
        before = (life.status, life.phase, life.agent_status, life.model_running)
        told, possible = len(watch.heard), life.possible
        try:
            watch.after(1, operation)
        except TransitionNotAllowed as problem:
            words = str(problem)
            assert operation not in possible
            assert (life.status, life.phase, life.agent_status, life.model_running) == before
            assert len(watch.heard) == told
            assert all(re.search(rf"\b{name}\b", words) for name in possible)
            continue
        assert operation == "model_returned" or operation in possible
        assert (life.phase is P.WAITING_APPROVAL) == (life.status is R.WAITING_APPROVAL)
        assert life.phase is None or life.agent_status == life.phase
        assert not life.model_running or life.phase is P.THINKING
    statuses = [e for e in watch.heard if e[0] == "status"]
    phases = [e for e in watch.heard if e[0] == "phase"]
    assert all(target in RUN_ARROWS[source] for _, source, target, *_ in statuses)
    assert all(t in PHASE_ARROWS[s] for _, s, t, _ in phases if s and t)
    for chain in (statuses, phases):
        assert all(a[2] is b[1] for a, b in itertools.pairwise(chain))
    assert all((seconds is None) == (source is None) for _, source, _, seconds in phases)
