"""Machines inside the states of machines, held against a second, naive model."""

from enum import Enum, StrEnum

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axislab.errors import MachineError, TransitionNotAllowed
from axislab.fsm.machine import Outcome, StateMachine, TransitionRule, TransitionTable


class Work(StrEnum):
    REST = "rest"
    BUSY = "busy"
    GONE = "gone"


class Inside(StrEnum):
    BETWEEN = "between"
    TOOL = "tool"
    PERSON = "person"


class Tool(StrEnum):
    STARTING = "starting"
    RUNNING = "running"


def allowed(context, payload):
    return payload.get("ok", True)


def note(context, payload):
    context.append(payload.get("n"))
    if payload.get("n") == 13:
        raise LookupError("thirteen")


TOOL = TransitionTable(
    [
        TransitionRule(Tool.STARTING, "up", Tool.RUNNING),
        TransitionRule(Tool.RUNNING, "down", Tool.STARTING),
    ],
    Tool.STARTING,
)
INSIDE = TransitionTable(
    [
        TransitionRule(Inside.BETWEEN, "call", Inside.TOOL, allowed, note),
        TransitionRule(Inside.TOOL, "ask", Inside.PERSON),
        TransitionRule(Inside.TOOL, "done", Inside.BETWEEN),
        TransitionRule(Inside.PERSON, "done", Inside.BETWEEN),
        TransitionRule(Inside.PERSON, "stop", Inside.BETWEEN, allowed),
    ],
    Inside.BETWEEN,
    children={Inside.TOOL: TOOL},
)
RULES = [
    TransitionRule(Work.REST, "begin", Work.BUSY),
    TransitionRule(Work.BUSY, "stop", Work.REST, action=note),
    TransitionRule(Work.BUSY, "again", Work.BUSY),
    TransitionRule(Work.REST, "leave", Work.GONE),
]
TABLE = TransitionTable(RULES, Work.REST, final=[Work.GONE], children={Work.BUSY: INSIDE})


def names(machine):
    return "/".join(state.name for state in machine.path)


def fired(*events):
    machine = StateMachine(TABLE, context=[])
    for event in events:
        machine.fire(event)
    return machine


def test_entering_a_state_starts_its_machine_and_all_inside_it():
    assert names(fired()) == "REST"
    assert names(fired("begin")) == "BUSY/BETWEEN"
    assert names(fired("begin", "call")) == "BUSY/TOOL/STARTING"
    assert names(fired("begin", "call", "up")) == "BUSY/TOOL/RUNNING"


def test_leaving_a_state_forgets_where_its_machine_was():
    assert names(fired("begin", "call", "up", "done", "call")) == "BUSY/TOOL/STARTING"
    assert names(fired("begin", "call", "stop", "begin")) == "BUSY/BETWEEN"


def test_a_rule_back_to_its_own_state_starts_the_machine_inside_anew():
    assert names(fired("begin", "call", "up", "again")) == "BUSY/BETWEEN"


def test_an_event_goes_to_the_innermost_machine_first_and_outwards_if_its_guard_objects():
    machine = fired("begin", "call", "ask")
    assert machine.explain("stop", ok=True).winner is INSIDE.rules[-1]
    assert machine.explain("stop", ok=False).winner is RULES[1]
    machine.fire("stop", ok=False)
    assert names(machine) == "REST"


def test_the_log_says_where_every_machine_was_and_is():
    machine = fired("begin", "call")
    with pytest.raises(TransitionNotAllowed, match="BUSY/TOOL/STARTING") as caught:
        machine.fire("leave")
    assert all(repr(e) in str(caught.value) for e in ("up", "ask", "done", "stop", "again"))
    call, refused = machine.log[-2:]
    assert (call.source, call.target) == (Work.BUSY, Work.BUSY)
    assert call.before == (Work.BUSY, Inside.BETWEEN)
    assert call.after == (Work.BUSY, Inside.TOOL, Tool.STARTING)
    assert refused.outcome is Outcome.REFUSED
    assert refused.before == refused.after == call.after


def test_an_action_inside_that_raises_changes_no_machine():
    machine = fired("begin")
    with pytest.raises(LookupError):
        machine.fire("call", n=13)
    assert (names(machine), machine.context) == ("BUSY/BETWEEN", [])
    assert machine.log[-1].outcome is Outcome.FAILED


def test_possible_names_the_events_of_every_level_innermost_first():
    assert fired("begin", "call").possible == ("up", "ask", "done", "stop", "again")
    assert fired("begin", "call").can_fire("up")
    assert not fired("begin").can_fire("up")


def test_explain_shows_the_rules_of_every_level_and_where_else_one_holds():
    seen = fired("begin", "call").explain("done")
    assert [v.why for v in seen.verdicts] == ["", "holds in PERSON inside BUSY only"]
    seen = fired().explain("up")
    assert [v.why for v in seen.verdicts] == ["holds in STARTING inside TOOL inside BUSY only"]


def test_a_machine_can_start_anywhere_inside():
    machine = StateMachine(TABLE, Work.BUSY, inside=[Inside.TOOL, Tool.RUNNING], context=[])
    assert names(machine) == "BUSY/TOOL/RUNNING"
    assert repr(machine) == "<StateMachine Work.BUSY/TOOL/RUNNING, 0 events>"


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        ([Inside.TOOL], "name a state of it, too"),
        ([Tool.RUNNING], "none of the table's states: BETWEEN"),
        ([Inside.PERSON, Tool.RUNNING], "has no child machine to be in"),
    ],
)
def test_a_place_that_does_not_exist_is_refused(inside, words):
    with pytest.raises(MachineError, match=words):
        StateMachine(TABLE, Work.BUSY, inside=inside, context=[])


def test_the_report_names_what_a_child_takes_and_what_it_reports_itself():
    report = "\n".join(TABLE.report)
    assert "'stop' in BUSY goes to its child first, which has rules for it in PERSON" in report
    doubled = TransitionTable(
        [TransitionRule(Tool.RUNNING, "down", Tool.STARTING, allowed), *TOOL.rules],
        Tool.STARTING,
    )
    table = TransitionTable(RULES, Work.REST, final=[Work.GONE], children={Work.BUSY: doubled})
    assert "in BUSY: 'down' in RUNNING has 2 rules, the first that holds wins" in table.report[0]


def test_an_event_that_a_grandchild_takes_is_reported_too():
    rules = [*RULES, TransitionRule(Work.BUSY, "up", Work.REST)]
    table = TransitionTable(rules, Work.REST, final=[Work.GONE], children={Work.BUSY: INSIDE})
    assert any("'up' in BUSY goes to its child first" in line for line in table.report)


@pytest.mark.parametrize(
    ("children", "words"),
    [
        ({Inside.TOOL: TOOL}, "none of its states"),
        ({Work.BUSY: RULES}, "must be a TransitionTable"),
        ({Work.GONE: TOOL}, "GONE is final: it cannot hold a child machine"),
    ],
)
def test_children_that_cannot_be_are_refused_by_name(children, words):
    with pytest.raises(MachineError, match=words):
        TransitionTable(RULES, Work.REST, final=[Work.GONE], children=children)


def test_the_graph_and_the_rows_hold_every_level():
    graph = fired("begin", "call").to_networkx()
    assert dict(graph.nodes(data="parent"))["BUSY/TOOL/RUNNING"] == "BUSY/TOOL"
    current = [n for n, now in graph.nodes(data="current") if now]
    assert current == ["BUSY", "BUSY/TOOL", "BUSY/TOOL/STARTING"]
    assert graph.has_edge("BUSY/TOOL/STARTING", "BUSY/TOOL/RUNNING")
    frame = pd.DataFrame(TABLE.rows())
    assert frame.groupby("within").size().to_dict() == {"": 4, "BUSY": 5, "BUSY/TOOL": 2}


# ------------------------------------------------------------------ against a naive second model

Outer = Enum("Outer", "A B C")
Inner = Enum("Inner", "P Q R")
EVENTS = ["x", "y", "ring", "spin"]


def wants(number):
    return lambda context, payload: payload["n"] % 3 == number


def push(context, payload):
    context.append(payload["n"])
    if payload["n"] == 5:
        raise OverflowError


def rules_of(states):
    one = st.builds(
        TransitionRule,
        st.sampled_from(states),
        st.sampled_from(["x", "y"]),
        st.sampled_from(states),
        st.none() | st.builds(wants, st.integers(0, 2)),
        st.none() | st.just(push),
    )
    return st.lists(one, max_size=7)


def ringed(rules, states, event):
    """The rules that can win, and a ring that makes every state reachable."""
    kept, closed = [], set()
    for rule in rules:
        if (rule.source, rule.event) not in closed:
            kept.append(rule)
        if rule.guard is None:
            closed.add((rule.source, rule.event))
    members = list(states)
    ring = zip(members, [*members[1:], members[0]], strict=True)
    return [*kept, *(TransitionRule(a, event, b) for a, b in ring)]


class Naive:
    """The same, said as plainly as possible: lists, and no thought of anything else."""

    def __init__(self, outer, inner, holders):
        self.outer, self.inner, self.holders = outer, inner, holders
        self.context = []
        self.enter(Outer.A)

    def enter(self, state):
        self.state = state
        self.child = Inner.P if state in self.holders else None

    def fire(self, event, n):
        for rules, place in ((self.inner, self.child), (self.outer, self.state)):
            for r in rules:
                if (
                    r.source is place
                    and r.event == event
                    and (not r.guard or r.guard([], {"n": n}))
                ):
                    if r.action is not None and n == 5:
                        return "failed"
                    if r.action is not None:
                        self.context = [*self.context, n]
                    if rules is self.inner:
                        self.child = r.target
                    else:
                        self.enter(r.target)
                    return "fired"
        return "refused"


@given(
    rules_of(Outer),
    rules_of(Inner),
    st.sets(st.sampled_from(Outer)),
    st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 5)), max_size=25),
)
def test_a_nested_machine_does_what_the_naive_one_does(outer, inner, holders, events):
    outer, inner = ringed(outer, Outer, "ring"), ringed(inner, Inner, "spin")
    child = TransitionTable(inner, Inner.P)
    table = TransitionTable(outer, Outer.A, children=dict.fromkeys(holders, child))
    machine, naive = StateMachine(table, context=[]), Naive(outer, inner, holders)
    for event, n in events:
        seen, could = machine.explain(event, n=n), machine.can_fire(event, n=n)
        try:
            machine.fire(event, n=n)
            outcome = "fired"
        except TransitionNotAllowed:
            outcome = "refused"
        except OverflowError:
            outcome = "failed"
        assert outcome == naive.fire(event, n)
        assert bool(seen) == could == (outcome != "refused")
        path = (naive.state,) if naive.child is None else (naive.state, naive.child)
        assert (machine.path, machine.context) == (path, naive.context)
        assert machine.log[-1].outcome == outcome
