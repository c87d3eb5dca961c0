"""The engine: what a table must be, and what an event may change."""

import functools
from enum import Enum, StrEnum

import networkx as nx
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axislab.errors import AxislabError, MachineError, TransitionNotAllowed
from axislab.fsm.machine import (
    Outcome,
    StateMachine,
    TransitionRule,
    TransitionTable,
)


class Lamp(StrEnum):
    OFF = "off"
    ON = "on"
    BROKEN = "broken"


def has_power(context, payload):
    return payload.get("power", True)


def count(context, payload):
    context["switched"] += 1
    context["by"].append(payload.get("who"))


RULES = [
    TransitionRule(Lamp.OFF, "press", Lamp.ON, has_power, count, "light"),
    TransitionRule(Lamp.ON, "press", Lamp.OFF),
    TransitionRule(Lamp.ON, "drop", Lamp.BROKEN),
]


def lamp(**context):
    start = {"switched": 0, "by": []}
    return StateMachine(RULES, Lamp.OFF, final=[Lamp.BROKEN], context={**start, **context})


def test_an_event_takes_the_rule_and_runs_its_action():
    machine = lamp()
    assert machine.fire("press", who="Ana") is Lamp.ON
    assert machine.state is Lamp.ON
    assert machine.context == {"switched": 1, "by": ["Ana"]}
    (entry,) = machine.log
    assert (entry.seq, entry.event, entry.source, entry.target) == (0, "press", "off", "on")
    assert (entry.outcome, entry.payload, entry.note) == (Outcome.FIRED, "who='Ana'", "light")


def test_a_refused_event_changes_nothing_and_is_logged():
    machine = lamp()
    with pytest.raises(TransitionNotAllowed, match=r"'drop' is not possible in OFF") as caught:
        machine.fire("drop")
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, AxislabError)
    assert "'press' (if has_power holds)" in str(caught.value)
    assert machine.state is Lamp.OFF
    assert machine.context == {"switched": 0, "by": []}
    (entry,) = machine.log
    assert (entry.outcome, entry.target) == (Outcome.REFUSED, None)


def test_the_refusal_says_which_guard_did_not_hold():
    machine = lamp()
    with pytest.raises(TransitionNotAllowed, match=r"has_power does not hold") as caught:
        machine.fire("press", power=False)
    assert "No other event leads out of OFF" in str(caught.value)
    assert machine.log[0].note == "has_power does not hold"


def test_an_unknown_event_is_refused_with_the_nearest_name():
    with pytest.raises(TransitionNotAllowed, match=r"no rule knows it, did you mean 'press'\?"):
        lamp().fire("pres")


def test_nothing_leaves_a_final_state():
    machine = lamp()
    machine.fire("press")
    assert not machine.finished
    machine.fire("drop")
    assert machine.finished
    with pytest.raises(TransitionNotAllowed, match="BROKEN is final"):
        machine.fire("press")


def test_events_without_a_guard_are_named_without_a_condition():
    machine = lamp()
    machine.fire("press")
    with pytest.raises(TransitionNotAllowed, match=r"Events that would do: 'press', 'drop'\."):
        machine.fire("lift")


def test_an_action_that_raises_leaves_everything_as_it_was():
    def half(context, payload):
        context["switched"] = 99
        raise KeyError("halfway")

    rules = [TransitionRule(Lamp.OFF, "press", Lamp.ON, None, half), *RULES[1:]]
    machine = StateMachine(rules, Lamp.OFF, final=[Lamp.BROKEN], context={"switched": 0})
    with pytest.raises(KeyError, match="halfway"):
        machine.fire("press")
    assert machine.state is Lamp.OFF
    assert machine.context == {"switched": 0}
    (entry,) = machine.log
    assert (entry.outcome, entry.target) == (Outcome.FAILED, Lamp.ON)
    assert entry.note == "half raised KeyError: 'halfway'"
    with pytest.raises(KeyError):
        machine.fire("press")
    assert [e.seq for e in machine.log] == [0, 1]


def test_an_interrupt_in_an_action_leaves_everything_as_it_was():
    def stop(context, payload):
        raise KeyboardInterrupt

    rules = [TransitionRule(Lamp.OFF, "press", Lamp.ON, None, stop), *RULES[1:]]
    machine = StateMachine(rules, Lamp.OFF, final=[Lamp.BROKEN])
    with pytest.raises(KeyboardInterrupt):
        machine.fire("press")
    assert machine.state is Lamp.OFF
    assert machine.log[0].outcome is Outcome.FAILED


def test_the_context_is_shared_with_nobody():
    mine = {"switched": 0, "by": []}
    machine = StateMachine(RULES, Lamp.OFF, final=[Lamp.BROKEN], context=mine)
    mine["switched"] = 7
    machine.context["switched"] = 8
    who = ["Ana"]
    machine.fire("press", who=who)
    who.append("Bo")
    assert machine.context == {"switched": 1, "by": [["Ana"]]}


def test_a_guard_cannot_change_the_context_or_the_payload():
    def greedy(context, payload):
        context["switched"] = 50
        payload["who"].append("guard")
        return True

    rules = [TransitionRule(Lamp.OFF, "press", Lamp.ON, greedy, count), *RULES[1:]]
    start = {"switched": 0, "by": []}
    machine = StateMachine(rules, Lamp.OFF, final=[Lamp.BROKEN], context=start)
    who = []
    assert machine.can_fire("press", who=who)
    assert machine.explain("press", who=who)
    machine.fire("press", who=who)
    assert who == []
    assert machine.context == {"switched": 1, "by": [[]]}


def test_the_payload_itself_is_read_only():
    def overwrite(context, payload):
        payload["who"] = "me"

    rules = [TransitionRule(Lamp.OFF, "press", Lamp.ON, None, overwrite), *RULES[1:]]
    with pytest.raises(TypeError):
        StateMachine(rules, Lamp.OFF, final=[Lamp.BROKEN]).fire("press", who="you")


def test_a_payload_may_use_any_name():
    machine = StateMachine(RULES[1:], Lamp.ON, final=[Lamp.BROKEN, Lamp.OFF])
    assert machine.fire("press", event="x", self="y", rule="z") is Lamp.OFF
    assert machine.log[0].payload == "event='x', self='y', rule='z'"


def test_state_cannot_be_assigned():
    machine = lamp()
    with pytest.raises(AttributeError):
        machine.state = Lamp.ON
    with pytest.raises(AttributeError):
        machine.other = 1


def test_firing_from_within_an_action_is_refused():
    inner = []

    def again(context, payload):
        inner[0].fire("drop")

    rules = [TransitionRule(Lamp.OFF, "press", Lamp.ON, None, again), *RULES[1:]]
    machine = StateMachine(rules, Lamp.OFF, final=[Lamp.BROKEN])
    inner.append(machine)
    with pytest.raises(MachineError, match="'drop' fired by a guard or action"):
        machine.fire("press")
    assert machine.state is Lamp.OFF
    assert [e.outcome for e in machine.log] == [Outcome.FAILED]


def test_the_first_rule_that_holds_wins_and_explain_says_so():
    rules = [
        TransitionRule(Lamp.OFF, "press", Lamp.BROKEN, lambda c, p: 1 / p["zero"] > 0),
        TransitionRule(Lamp.OFF, "press", Lamp.ON, has_power),
        TransitionRule(Lamp.OFF, "press", Lamp.BROKEN),
        TransitionRule(Lamp.ON, "press", Lamp.OFF),
        TransitionRule(Lamp.ON, "drop", Lamp.BROKEN),
    ]
    machine = StateMachine(rules, Lamp.OFF, final=[Lamp.BROKEN])
    seen = machine.explain("press", zero=0)
    assert [v.matches for v in seen.verdicts] == [False, True, True, False]
    assert [v.why for v in seen.verdicts] == [
        "guard raised ZeroDivisionError: division by zero",
        "",
        "matches, but comes after OFF --press [has_power]--> ON",
        "holds in ON only",
    ]
    assert seen
    assert seen.winner is rules[1]
    assert machine.log == ()
    assert str(seen).splitlines()[0] == "'press' in OFF: goes to ON"
    assert "+ OFF --press [has_power]--> ON" in str(seen)
    assert machine.fire("press", zero=0) is Lamp.ON


def test_explain_of_a_refused_event_names_the_others():
    seen = lamp().explain("drop")
    assert not seen
    assert seen.winner is None
    assert seen.alternatives == ("press",)
    assert str(seen) == "'drop' in OFF: refused\n  - ON --drop--> BROKEN: holds in ON only"


def test_a_rule_names_its_guard_and_action():
    partial = TransitionRule(Lamp.OFF, "e", Lamp.ON, functools.partial(has_power), lambda c, p: 0)
    assert (partial.guard_name, partial.action_name) == ("has_power", "action")
    assert TransitionRule(Lamp.OFF, "e", Lamp.ON).guard_name == ""


def test_a_machine_can_start_on_a_checked_table_anywhere_and_go_on_with_a_log():
    table = TransitionTable(RULES, Lamp.OFF, final=[Lamp.BROKEN])
    first = StateMachine(table, context={"switched": 0, "by": []})
    first.fire("press")
    second = StateMachine(table, first.state, context=first.context, log=first.log)
    second.fire("drop")
    assert [e.seq for e in second.log] == [0, 1]
    assert len(first.log) == 1
    assert second.transitions is table
    assert repr(second) == "<StateMachine Lamp.BROKEN, 2 events>"


@pytest.mark.parametrize("state", ["off", 3])
def test_a_stranger_is_no_state_to_start_in(state):
    table = TransitionTable(RULES, Lamp.OFF, final=[Lamp.BROKEN])
    with pytest.raises(MachineError, match="OFF, ON, BROKEN"):
        StateMachine(table, state)


def test_final_states_belong_to_the_table():
    table = TransitionTable(RULES, Lamp.OFF, final=[Lamp.BROKEN])
    with pytest.raises(MachineError, match="already knows"):
        StateMachine(table, final=[Lamp.BROKEN])
    with pytest.raises(MachineError, match="initial=None"):
        StateMachine(RULES)


def test_the_table_is_data_and_a_graph():
    machine = lamp()
    assert pd.DataFrame(machine.table())["guard"].tolist() == ["has_power", "", ""]
    graph = machine.to_networkx()
    assert isinstance(graph, nx.MultiDiGraph)
    assert dict(graph.nodes(data="kind")) == {"OFF": "initial", "ON": "normal", "BROKEN": "final"}
    assert [n for n, now in graph.nodes(data="current") if now] == ["OFF"]
    assert sorted(label for *_, label in graph.edges(data="label")) == [
        "drop",
        "press",
        "press [has_power]",
    ]


def test_the_payload_is_logged_in_short():
    class Loud:
        def __repr__(self):
            raise RuntimeError("no repr")

    machine = StateMachine(RULES[1:], Lamp.ON, final=[Lamp.BROKEN, Lamp.OFF])
    machine.fire(
        "press", text="x" * 5000, n=3, big=10**90, items=[1, 2], x=0.5, none=None, loud=Loud()
    )
    assert machine.log[0].payload == (
        f"text={'x' * 40!r}… (5000), n=3, big=int, items=list of 2, x=0.5, none=None, loud=Loud"
    )


@pytest.mark.parametrize(
    ("rules", "final", "words"),
    [
        (RULES[1:], [Lamp.BROKEN, Lamp.OFF], "ON cannot be reached from OFF"),
        (RULES[:2], [], "BROKEN is a trap: not final, and no rule leads out"),
        (RULES, [], "BROKEN is a trap"),
        (
            [*RULES, TransitionRule(Lamp.BROKEN, "wait", Lamp.BROKEN)],
            [],
            "BROKEN is a trap: not final, and no rule leads out",
        ),
        (
            [*RULES, TransitionRule(Lamp.BROKEN, "mend", Lamp.OFF)],
            [Lamp.BROKEN],
            r"nothing may leave the final state: BROKEN --mend--> OFF",
        ),
        (
            [RULES[1], RULES[2], TransitionRule(Lamp.ON, "drop", Lamp.OFF, has_power), RULES[0]],
            [Lamp.BROKEN],
            r"ON --drop \[has_power\]--> OFF can never win: ON --drop--> BROKEN stands above it",
        ),
        (
            [*RULES, TransitionRule(Lamp.OFF, "press", Lamp.BROKEN, has_power)],
            [Lamp.BROKEN],
            "can never win",
        ),
        ([TransitionRule(Lamp.OFF, "press", "on")], [], "members of Lamp, got 'on'"),
        (RULES, ["broken"], "members of Lamp, got 'broken'"),
    ],
)
def test_a_table_that_is_no_state_machine_is_refused_by_name(rules, final, words):
    with pytest.raises(MachineError, match=words):
        StateMachine(rules, Lamp.OFF, final=final)


def test_a_circle_that_never_ends_is_a_trap_where_there_is_an_end():
    class Maze(Enum):
        IN = 1
        LEFT = 2
        RIGHT = 3
        OUT = 4

    rules = [
        TransitionRule(Maze.IN, "out", Maze.OUT),
        TransitionRule(Maze.IN, "left", Maze.LEFT),
        TransitionRule(Maze.LEFT, "turn", Maze.RIGHT),
        TransitionRule(Maze.RIGHT, "turn", Maze.LEFT),
    ]
    with pytest.raises(MachineError, match=r"LEFT is a trap: no way .* RIGHT is a trap: no way"):
        StateMachine(rules, Maze.IN, final=[Maze.OUT])


def test_the_initial_state_must_be_of_an_enum():
    with pytest.raises(MachineError, match="initial='off' must be a member of an Enum"):
        StateMachine([], "off")


def test_asynchronous_guards_and_actions_are_refused():
    async def later(context, payload):
        return False

    for extra in ({"guard": later}, {"action": later}):
        with pytest.raises(MachineError, match="must be plain functions"):
            StateMachine([TransitionRule(Lamp.OFF, "e", Lamp.ON, **extra)], Lamp.OFF)


def test_the_report_names_overlaps_and_states_left_only_through_guards():
    rules = [*RULES, TransitionRule(Lamp.OFF, "press", Lamp.BROKEN, lambda c, p: True)]
    overlap, stuck = StateMachine(rules, Lamp.OFF, final=[Lamp.BROKEN]).report
    assert overlap.startswith("'press' in OFF has 2 rules, the first that holds wins")
    assert stuck == "OFF is left only through guards: if none holds, it is stuck"


# ------------------------------------------------------------------------- random tables

Five = Enum("Five", "A B C D E")
EVENTS = ["x", "y", "z"]


def wants(number):
    def guard(context, payload):
        context["trail"].append("guard")
        if payload["n"] == 4:
            raise LookupError("four")
        return payload["n"] % 3 == number

    return guard


def act(context, payload):
    context["trail"].append(payload["n"])
    if payload["n"] == 5:
        raise OverflowError("five")
    context["done"] = len(context["trail"])


rule = st.builds(
    TransitionRule,
    st.sampled_from(Five),
    st.sampled_from(EVENTS),
    st.sampled_from(Five),
    st.none() | st.builds(wants, st.integers(0, 2)),
    st.none() | st.just(act),
)


def machine_of(rules):
    """The rules with what is missing to make a machine of them."""
    ring = [
        TransitionRule(a, "ring", b) for a, b in zip(Five, [*list(Five)[1:], Five.A], strict=True)
    ]
    kept, open_keys = [], set()
    for r in rules:
        if (r.source, r.event) not in open_keys:
            kept.append(r)
        if r.guard is None:
            open_keys.add((r.source, r.event))
    return StateMachine([*kept, *ring], Five.A, context={"trail": [], "done": None})


@given(
    st.lists(rule, max_size=12),
    st.lists(st.tuples(st.sampled_from([*EVENTS, "ring", "none"]), st.integers(0, 5)), max_size=20),
)
def test_fire_is_all_or_nothing_and_explain_agrees_with_it(rules, events):
    machine = machine_of(rules)
    for number, (event, n) in enumerate(events):
        state, context, log = machine.state, machine.context, machine.log
        seen = machine.explain(event, n=n)
        assert bool(seen) == machine.can_fire(event, n=n)
        assert (machine.state, machine.context, machine.log) == (state, context, log)
        winner = seen.winner
        assert sum(v.wins for v in seen.verdicts) == (winner is not None)
        assert all(v.wins or v.why for v in seen.verdicts)
        try:
            target = machine.fire(event, n=n)
        except TransitionNotAllowed as problem:
            words, expected = str(problem), Outcome.REFUSED
        except OverflowError:
            expected = Outcome.FAILED
        else:
            expected = Outcome.FIRED
        assert (winner is None) == (expected is Outcome.REFUSED)
        if expected is Outcome.FIRED:
            assert target is machine.state is winner.target
            trail = [*context["trail"], n] if winner.action else context["trail"]
            assert machine.context["trail"] == trail
        else:
            assert (machine.state, machine.context) == (state, context)
        if expected is Outcome.REFUSED:
            assert all(repr(other) in words for other in seen.alternatives)
        if expected is Outcome.FAILED:
            assert winner.action is act
        assert machine.log[:-1] == log
        entry = machine.log[-1]
        assert (entry.seq, entry.source, entry.outcome) == (number, state, expected)


@given(st.lists(rule, max_size=10), st.sets(st.sampled_from(Five)))
def test_a_table_is_built_or_refused_with_names_but_never_anything_else(rules, final):
    try:
        table = TransitionTable(rules, Five.A, final=final)
    except MachineError as problem:
        words = str(problem)
    else:
        words = "A"
        _check_graph(table)
    assert any(state.name in words for state in Five)


def _check_graph(table):
    graph = table.to_networkx()
    assert set(nx.descendants(graph, "A")) | {"A"} == {s.name for s in Five}
    assert all(table.kind(rule.source) != "final" for rule in table.rules)


@pytest.mark.parametrize("event", [None, [], 5, {"a": 1}])
def test_what_is_no_event_is_refused_like_one_that_nobody_knows(event):
    machine = lamp()
    with pytest.raises(TransitionNotAllowed, match="no rule knows it"):
        machine.fire(event)
    assert not machine.can_fire(event)
