"""plot_fsm: every arrow of a machine, how often it was taken, and no text in the way of another."""

import warnings
from enum import Enum
from io import BytesIO
from itertools import combinations

import matplotlib as mpl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from matplotlib.text import Text

from axislab.errors import ConfigError
from axislab.fsm.dialog import DialogState, dialog_machine, dialog_table
from axislab.fsm.machine import StateMachine, TransitionRule, TransitionTable
from axislab.fsm.status_tables import AGENT_TABLE, RUN_TABLE
from axislab.plots.fsm import NEVER, plot_fsm
from axislab.plots.text import label
from tests.dialog.ops_world import opened

HIDDEN = ["cancel", "fail"]


def draw(ax):
    ax.figure.canvas.figure.savefig(BytesIO(), format="png", dpi="figure")


def texts(ax):
    return [text.get_text() for text in ax.texts]


def extents(ax, kind, prefix):
    draw(ax)
    return [
        artist.get_window_extent()
        for artist in ax.findobj(kind)
        if (artist.get_gid() or "").startswith(prefix)
    ]


def overlap(a, b):
    width = min(a.x1, b.x1) - max(a.x0, b.x0)
    height = min(a.y1, b.y1) - max(a.y0, b.y0)
    return max(width, 0) * max(height, 0)


def assert_nothing_covers_a_text(ax):
    boxes, labels = extents(ax, FancyBboxPatch, "box "), extents(ax, Text, "label ")
    assert all(overlap(a, b) == 0 for a, b in combinations(boxes, 2))
    assert all(overlap(label, box) == 0 for label in labels for box in boxes)
    assert all(overlap(a, b) < 2 for a, b in combinations(labels, 2))


@pytest.mark.parametrize(
    "table", [dialog_table(), RUN_TABLE, AGENT_TABLE], ids=["dialog", "run", "agent"]
)
def test_a_whole_machine_is_drawn_with_every_state_and_event(table):
    ax = plot_fsm(table)
    assert_nothing_covers_a_text(ax)
    shown = "\n".join(texts(ax))
    assert all(event in shown for event in table.events)
    assert all(state.name.replace("_", " ") in shown for state in table.states)
    assert ax.get_title(loc="left").endswith(f"{len(table.rules)} arrows")


def session():
    _, chat = opened(max_failures=1)
    chat.say("排查集群故障并自动修复")
    chat.confirm()
    chat.confirm()
    return chat


def test_arrows_say_how_often_they_were_taken_and_those_that_were_not_are_pale():
    chat = session()
    ax = plot_fsm(chat.machine, counts=chat.transitions, leave_out=HIDDEN)
    assert_nothing_covers_a_text(ax)
    shown = texts(ax)
    assert "need_confirmation 2×" in shown
    assert "execution_failed 1×" in shown
    assert "intent_ambiguous" in shown
    pale = {t.get_text() for t in ax.texts if t.get_color() == NEVER}
    assert "intent_ambiguous" in pale
    assert "need_confirmation 2×" not in pale
    assert "never taken" in [t.get_text() for t in ax.get_legend().get_texts()]


def test_the_log_of_a_machine_counts_like_its_history():
    chat = session()
    one = plot_fsm(chat.machine, counts=chat.machine.log, leave_out=HIDDEN)
    other = plot_fsm(chat.machine, counts=chat.transitions, leave_out=HIDDEN)
    assert texts(one) == texts(other)


def test_refused_events_do_not_count():
    machine = dialog_machine()
    with pytest.raises(ValueError, match="not possible"):
        machine.fire("user_confirmed")
    assert not any("×" in text for text in texts(plot_fsm(machine, counts=machine.log)))


def test_counts_can_be_numbers_of_ones_own():
    counts = {("IDLE", "user_input", "INTENT_PARSE"): 1234}
    assert "user_input 1,234×" in texts(plot_fsm(dialog_table(), counts=counts, leave_out=HIDDEN))


def test_the_machine_inside_a_state_is_drawn_by_itself():
    chat = session()
    ax = plot_fsm(chat.machine, within="EXECUTING", counts=chat.transitions, guards=True)
    assert_nothing_covers_a_text(ax)
    assert "step_started\n[may_start] 5×" in texts(ax)
    outside = texts(plot_fsm(chat.machine, leave_out=HIDDEN))
    assert "3 states inside" in outside


def test_the_present_state_is_marked_on_every_level():
    machine = dialog_machine(path=(DialogState.EXECUTING, *list(dialog_machine_inner())[:1]))
    for within, name in (("", "EXECUTING"), ("EXECUTING", "BETWEEN_STEPS")):
        ax = plot_fsm(machine, within=within, leave_out=() if within else HIDDEN)
        wide = max(ax.findobj(FancyBboxPatch), key=lambda p: p.get_linewidth())
        assert wide.get_gid() == f"box {name}"
        assert "where it is" in [t.get_text() for t in ax.get_legend().get_texts()]
    elsewhere = plot_fsm(dialog_machine(), within="EXECUTING")
    assert "where it is" not in [t.get_text() for t in elsewhere.get_legend().get_texts()]


def dialog_machine_inner():
    return dialog_table().children[DialogState.EXECUTING].states


def test_what_is_left_out_is_said_and_states_only_it_leads_to_are_not_drawn():
    ax = plot_fsm(dialog_table(), leave_out=HIDDEN)
    assert "not drawn: cancel, fail" in texts(ax)
    assert not {"FAILED", "CANCELLED"} & set(texts(ax))
    assert ax.get_title(loc="left") == "DialogState: 7 of 9 states, 21 of 33 arrows"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"within": "IDLE"}, "within='IDLE' holds no machine"),
        ({"within": "EXECUTING/WAITING_TOOL"}, "within='WAITING_TOOL' holds no machine"),
        ({"leave_out": ["cancle"]}, "did you mean 'cancel'"),
    ],
)
def test_what_is_not_there_is_refused(options, words):
    with pytest.raises(ConfigError, match=words):
        plot_fsm(dialog_table(), **options)


def test_chinese_names_and_mathtext_are_neither_boxes_nor_warnings():
    ticket = Enum("工单", "空闲 处理中 已完成")
    rules = [
        TransitionRule(ticket.空闲, "用户输入 $x^2$", ticket.处理中),
        TransitionRule(ticket.处理中, "任务完成", ticket.已完成),
        TransitionRule(ticket.处理中, "重试", ticket.处理中),
    ]
    machine = StateMachine(rules, ticket.空闲, final=[ticket.已完成])
    machine.fire("用户输入 $x^2$")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax = plot_fsm(machine, counts=machine.log)
        draw(ax)
    if "\\u" not in "".join(texts(ax)):  # a font for it is installed: the words are there
        assert "处理中" in texts(ax)
        assert "用户输入 $x^2$ 1×" in texts(ax)
    # Whatever is drawn, some font of the text has it; what none has is spelled out.
    assert all(label(text).text == text for text in texts(ax))
    assert len([text for text in texts(ax) if text]) == 6


def test_it_draws_into_axes_of_ones_own_and_changes_no_global_style():
    before = dict(mpl.rcParams)
    axes = Figure(figsize=(12, 10)).subplots()
    assert plot_fsm(dialog_table(), ax=axes) is axes
    assert_nothing_covers_a_text(axes)
    assert dict(mpl.rcParams) == before


Four = Enum("Four", "A B C D")
RULES = st.lists(
    st.builds(TransitionRule, st.sampled_from(Four), st.sampled_from("xyz"), st.sampled_from(Four)),
    max_size=8,
)


@settings(max_examples=15, deadline=None)
@given(RULES)
def test_any_machine_is_drawn_without_overlap(rules):
    unique = {(r.source, r.event): r for r in rules}
    ring = [
        TransitionRule(a, "ring", b) for a, b in zip(Four, [*list(Four)[1:], Four.A], strict=True)
    ]
    table = TransitionTable([*unique.values(), *ring], Four.A)
    assert_nothing_covers_a_text(plot_fsm(table, counts={("A", "ring", "B"): 3}))
    plt.close("all")
