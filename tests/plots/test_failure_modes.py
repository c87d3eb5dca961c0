"""How runs ended: every run in one part of one bar, simulated and real ones apart."""

from __future__ import annotations

from collections import Counter
from io import BytesIO

import pytest

import axislab as al
from axislab.errors import DataError
from axislab.frames.runs import runs_df
from axislab.plots.failure_modes import (
    MODES,
    Ends,
    failure_groups,
    failure_mode,
    plot_failure_modes,
)
from tests.frames.synthetic import Story, walks


def told(run_id: str, **end) -> Story:
    """A run of one group and one end."""
    header = {k: end.pop(k) for k in ("arm", "simulated", "model", "profile") if k in end}
    story = Story(run_id, **header)
    story.begin()
    if end:
        story.finish(**end)
    return story


def texts(ax) -> list[str]:
    legend = ax.get_legend()
    return [t.get_text() for t in (*ax.texts, *legend.get_texts(), *ax.get_yticklabels())]


REJECTED = "assistant_tool_calls_rejected_due_to_force_finalization"
ENDS = {
    "right": {"answer": "a", "answer_status": "ok", "correct": True},
    "answered, not judged": {"answer": "a", "answer_status": "ok"},
    "wrong answer": {"answer": "a", "answer_status": "ok", "correct": False},
    "not in the form asked for": {"answer_status": "format_error", "correct": False},
    "no answer": {"answer_status": "no_answer", "correct": False},
    "tools called at the end": {
        "status": "FAILED",
        "answer_status": "no_answer",
        "done_reason": REJECTED,
        "correct": False,
    },
    "out of tokens": {
        "status": "FAILED",
        "answer_status": "format_error",
        "done_reason": "terminated_token_exceed",
        "correct": False,
    },
    "error: timeout": {
        "status": "FAILED",
        "answer_status": "no_answer",
        "error_kind": "timeout",
        "done_reason": "error: timeout",
    },
    "interrupted": {},
}


@pytest.mark.parametrize("mode", ENDS)
def test_each_end_has_its_name_from_runs_and_from_their_frame(mode):
    run = told("r", **ENDS[mode]).run()
    assert failure_mode(runs_df(run).to_dict("records")[0]) == mode
    for data in (run, runs_df(run)):
        (group,) = failure_groups(data)
        assert group.counts == {mode: 1}


def test_a_right_answer_beside_calls_that_were_refused_is_right():
    end = {"answer": "a", "answer_status": "ok", "correct": True, "done_reason": REJECTED}
    assert failure_groups(told("r", **end).run())[0].counts == {"right": 1}


def test_every_run_is_counted_once_in_its_group():
    runs = [told(f"{arm}-{m}", arm=arm, **end).run() for arm in "ab" for m, end in ENDS.items()]
    runs.append(told("more", arm="a", **ENDS["right"]).run())
    a, b = failure_groups(runs)
    assert (a.name, a.runs, b.name, b.runs) == ("a", len(ENDS) + 1, "b", len(ENDS))
    assert (a.counts["right"], b.counts["right"]) == (2, 1)
    assert list(a.counts)[: len(MODES)] == list(MODES)
    (one,) = failure_groups(runs, by=None)
    assert (one.name, one.runs) == ("all runs", len(runs))
    assert one.height("right", "share") == pytest.approx(3 / len(runs))
    assert one.height("right", "total") == 3


@pytest.mark.parametrize(
    ("by", "name"),
    [("model", "m"), ("profile", "flaky"), ("recipe", "made up"), ("kind", "single")],
)
def test_groups_may_be_of_other_columns(by, name):
    run = told("r", model="m", profile="flaky", **ENDS["right"]).run()
    assert [g.name for g in failure_groups(run, by=by)] == [name]
    assert [g.name for g in failure_groups(Story().run(), by="arm")] == ["no arm"]


def test_simulated_and_real_runs_have_bars_of_their_own():
    runs = [told("s", **ENDS["right"]).run(), told("r", simulated=False, **ENDS["no answer"]).run()]
    assert failure_groups(runs, by=None) == [
        Ends("all runs", simulated=True, mixed=True, counts={"right": 1}),
        Ends("all runs", simulated=False, mixed=True, counts={"no answer": 1}),
    ]
    ax = plot_failure_modes(runs, by=None)
    shown = texts(ax)
    assert "in part simulated, as labelled" in shown
    assert "all runs\n1 run, real" in shown
    assert "right" in shown, "no sum over both in the legend"


def test_bars_add_up_and_hold_their_numbers():
    runs = [told(f"{m}{i}", **ENDS[m]).run() for m in ("right", "no answer") for i in range(2)]
    runs.append(told("w", **ENDS["wrong answer"]).run())
    ax = plot_failure_modes(runs)
    assert sum(bar.get_width() for bar in ax.patches) == pytest.approx(1.0)
    assert Counter(texts(ax))["2"] == 2
    assert "no answer (2)" in texts(ax)
    total = plot_failure_modes(runs, per="total")
    assert sum(bar.get_width() for bar in total.patches) == 5
    for axes in (ax, total):
        axes.figure.savefig(BytesIO(), format="png")


def test_many_kinds_of_errors_are_told_apart():
    errors = [f"error kind {i}" for i in range(6)]
    runs = [told(e, status="FAILED", error_kind=e).run() for e in errors]
    assert set(failure_groups(runs)[0].counts) == {f"error: {e}" for e in errors}
    plot_failure_modes(runs).figure.savefig(BytesIO(), format="png")


@pytest.mark.parametrize("options", [{"by": "seed"}, {"per": "run"}])
def test_unknown_options_are_refused(options):
    with pytest.raises(DataError, match="allowed: "):
        plot_failure_modes(walks(2), **options)


def test_a_frame_of_something_else_is_refused():
    with pytest.raises(DataError, match="give what runs_df gives"):
        plot_failure_modes(al.steps_df(walks(1)))


def test_the_recorded_runs_of_the_local_model_are_drawn_as_real():
    ax = plot_failure_modes(al.load_example_traces("smollm2"))
    assert not any("simulated" in text for text in texts(ax))
    assert "boxed\n18 runs" in texts(ax)
