"""The picture of a comparison."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from matplotlib.figure import Figure

from axislab.errors import DataError
from axislab.plots.comparison import comparison_panels, plot_comparison
from axislab.stats.contrasts import contrasts_df
from axislab.stats.outcomes import outcomes


def frame(**columns) -> pd.DataFrame:
    rows = {
        "arm": ["three", "five", "three", "five"],
        "baseline": "one",
        "metric": ["accuracy", "accuracy", "tokens", "tokens"],
        "kind": ["difference", "difference", "ratio", "ratio"],
        "difference": [0.1, 0.02, 1.4, 0.9],
        "low": [0.02, -0.05, 1.2, 0.0],
        "high": [0.18, 0.09, 1.6, math.inf],
        "simulated": True,
    }
    return pd.DataFrame(rows | columns)


def marks(ax) -> list:
    return [line for line in ax.get_lines() if line.get_marker() == "o"]


def test_each_metric_is_a_panel_and_each_arm_a_row():
    panels = comparison_panels(frame())
    assert [(p.metric, p.ratio, p.reference) for p in panels] == [
        ("accuracy", False, 0.0),
        ("tokens", True, 1.0),
    ]
    assert [e.arm for e in panels[0].estimates] == ["three", "five"]


def test_an_interval_that_leaves_out_no_difference_is_filled_and_thicker():
    ax = plot_comparison(frame())[0]
    sure, unsure = marks(ax)
    assert sure.get_markerfacecolor() == sure.get_markeredgecolor()
    assert unsure.get_markerfacecolor() == "white"
    lines = [x for x in ax.get_lines() if x.get_marker() == "None" and len(set(x.get_xdata())) > 1]
    assert [list(x.get_xdata()) for x in lines] == [[0.02, 0.18], [-0.05, 0.09]]
    assert lines[0].get_linewidth() > lines[1].get_linewidth()


def test_ratios_stand_on_a_logarithmic_scale_even_where_an_end_is_open():
    difference, ratio = plot_comparison(frame())
    assert (difference.get_xscale(), ratio.get_xscale()) == ("linear", "log")
    assert [x.get_text() for x in ratio.get_yticklabels()] == ["three", "five"]
    assert "ratio of tokens to one" in ratio.get_xlabel()
    ratio.figure.canvas.draw()


def test_simulated_runs_are_labelled_and_never_mixed_with_real_ones():
    texts = [t.get_text() for t in plot_comparison(frame())[-1].texts]
    assert "simulated" in texts
    assert not list(plot_comparison(frame(simulated=False))[-1].texts)
    with pytest.raises(DataError, match="3 simulated and 1 real"):
        plot_comparison(frame(simulated=[True, True, False, True]))


def test_what_is_not_known_is_said():
    ax = plot_comparison(frame(difference=[None, 0.1, 1.2, 0.9]))[0]
    assert [t.get_text() for t in ax.texts] == ["not known"]
    assert len(marks(ax)) == 1


def test_an_estimate_without_interval_is_a_hollow_mark():
    ax = plot_comparison(frame(low=None, high=None))[0]
    assert {m.get_markerfacecolor() for m in marks(ax)} == {"white"}


def test_the_callers_axes_are_used():
    axes = list(Figure().subplots(2, 1))
    assert plot_comparison(frame(), axes=axes) == axes
    with pytest.raises(DataError, match="1 axes for 2 metrics"):
        plot_comparison(frame(), axes=axes[:1])


def test_no_contrasts_are_an_empty_plot_that_says_so():
    ax = plot_comparison(frame().iloc[:0])[0]
    assert [t.get_text() for t in ax.texts] == ["no contrasts"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (frame().drop(columns="low"), "no low"),
        (frame(kind=["ratio", "difference", "ratio", "ratio"]), "has kind"),
        (frame(baseline=["x", "y", "x", "x"]), "has baseline"),
        ([1, 2], "give the frame"),
    ],
)
def test_other_frames_are_refused(data, words):
    with pytest.raises(DataError, match=words):
        plot_comparison(data)


def test_it_draws_what_contrasts_df_gives():
    rows = {
        "task_id": [f"t{i}" for i in range(30)] * 2,
        "arm": ["a"] * 30 + ["b"] * 30,
        "repeat": 0,
        "correct": [i % 2 for i in range(30)] + [i % 3 > 0 for i in range(30)],
    }
    found = contrasts_df(outcomes(pd.DataFrame(rows)), baseline="a")
    (ax,) = plot_comparison(found)
    assert list(marks(ax)[0].get_xdata()) == found.difference.tolist()
