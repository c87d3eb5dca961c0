"""Stage paths, rollback reasons, token budgets: their numbers, and that they draw quietly."""

from __future__ import annotations

import doctest
import importlib
from io import BytesIO
from types import SimpleNamespace

import matplotlib as mpl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from axislab.errors import DataError
from axislab.frames.budgets import Limits, budgets_df
from axislab.frames.rollbacks import rollbacks_df
from axislab.frames.steps import steps_df
from axislab.messages import Message
from axislab.plots.budget import Hidden, Point, plot_token_budget, token_curve
from axislab.plots.failure_modes import plot_failure_modes
from axislab.plots.rollbacks import Group, plot_rollback_reasons, rollback_groups
from axislab.plots.stage_path import Mark, Spot, plot_stage_path, stage_trail
from axislab.plots.style import reason_styles, simulated_footer, stage_style
from axislab.runtime.markers import Rollback
from axislab.runtime.stages import STAGE_KIND, RollbackReason
from axislab.runtime.stages import ConversationStage as S
from tests.frames.synthetic import Story, walk, walks

PLOTS = {
    "path": plot_stage_path,
    "reasons": plot_rollback_reasons,
    "budget": plot_token_budget,
    "failures": plot_failure_modes,
}
each_plot = pytest.mark.parametrize("plot", PLOTS.values(), ids=PLOTS)


def draw(figure) -> None:
    """Draw for real; the canvas of a bare Figure does not."""
    figure.savefig(BytesIO(), format="png", dpi="figure")


def texts(ax) -> list[str]:
    legend = ax.get_legend()
    more = [] if legend is None else legend.get_texts()
    return [text.get_text() for text in (*ax.texts, *more, *ax.get_yticklabels())]


def refused(**header) -> Story:
    """A refusal on the second turn, then a forced answer."""
    story = Story(**header)
    story.begin()
    story.request(input_tokens=20)
    story.turn = 1
    story.step("assistant", [S.INITIAL_USER, S.RECEIVED, S.TOOL_CALLS], [Message.assistant("a")])
    path = [S.TOOL_CALLS, S.TOOL_MESSAGES]
    story.step("tools", path, [Message.user("b")])
    story.request(outcome="timeout", output_tokens=None)
    story.request(attempt=2, input_tokens=50)
    story.step(
        "assistant",
        [S.TOOL_MESSAGES, S.RECEIVED, S.ROLLBACK, S.TOOL_MESSAGES],
        [Message.assistant("no"), Rollback(1, "assistant_refusal")],
        rollback_reason="assistant_refusal",
    )
    story.step("x", [S.TOOL_MESSAGES, S.FORCE_FINAL], finalization_trigger="turn_limit")
    story.request(input_tokens=60)
    story.step("assistant", [S.FORCE_FINAL, S.RECEIVED, S.FORCE_COMPLETED])
    story.finish()
    return story


@each_plot
def test_no_runs_say_so_and_leave_the_axes_empty(plot):
    ax = plot([])
    assert texts(ax)[0] == "no runs"
    assert not ax.axison


@each_plot
def test_it_draws_on_axes_of_a_bare_figure_and_returns_them(plot):
    ax = Figure(layout="constrained").subplots()
    assert plot(walk(1), ax=ax) is ax
    draw(ax.figure)


@each_plot
def test_a_simulated_run_is_labelled_and_a_real_one_is_not(plot):
    assert "simulated" in texts(plot(walk(1)))
    assert not any("simulated" in t for t in texts(plot(walk(1, simulated=False))))


@each_plot
def test_no_global_style_is_changed(plot):
    before = dict(mpl.rcParams)
    draw(plot(walk(1)).figure)
    assert dict(mpl.rcParams) == before


@each_plot
def test_a_file_a_folder_and_a_study_will_do(plot, tmp_path):
    path = refused().write(tmp_path)
    for data in (path, str(tmp_path), SimpleNamespace(runs=[refused().run()])):
        assert "simulated" in texts(plot(data))


@each_plot
def test_a_run_that_only_has_a_header_is_drawn(plot):
    ax = plot(Story().run())
    assert ax.texts[0].get_text().startswith("no ") or plot is plot_failure_modes
    assert "simulated" in texts(ax) or plot is plot_stage_path


@pytest.mark.parametrize("plot", [plot_stage_path, plot_token_budget])
def test_a_plot_of_one_run_refuses_several(plot):
    with pytest.raises(DataError, match="shows one run, got 3; choose one"):
        plot(walks(3))


@pytest.mark.parametrize(
    ("plot", "frame"), [(plot_stage_path, steps_df), (plot_token_budget, budgets_df)]
)
def test_a_plot_of_one_run_takes_its_frame_and_refuses_others(plot, frame):
    draw(plot(frame(walk(1))).figure)
    assert texts(plot(frame([])))[0] == "no runs"
    with pytest.raises(DataError, match="the frame holds 2; choose one"):
        plot(frame([walk(1), walk(4)]))
    with pytest.raises(DataError, match=f"give what {frame.__name__} gives"):
        plot(frame(walk(1)).drop(columns=["step"]))


def test_the_examples_in_the_docstrings_run():
    attempted = 0
    for name in (
        "budget",
        "failure_modes",
        "graph",
        "rollbacks",
        "stage_graph",
        "stage_path",
        "style",
        "text",
    ):
        result = doctest.testmod(importlib.import_module(f"axislab.plots.{name}"))
        assert result.failed == 0
        attempted += result.attempted
    assert attempted >= 7


def test_a_trail_places_the_result_of_each_step_at_its_number():
    trail = stage_trail(refused().run())
    assert trail.spots[:5] == (
        Spot(-0.8, S.NOT_INITIALIZED),
        Spot(-0.4, S.SYSTEM_MESSAGE_SET),
        Spot(0.0, S.INITIAL_USER),
        Spot(0.5, S.RECEIVED),
        Spot(1.0, S.TOOL_CALLS),
    )
    assert Spot(3.0, S.TOOL_MESSAGES, back=True) in trail.spots
    assert [(m.stage, m.reason) for m in trail.hidden] == [(S.ROLLBACK, "assistant_refusal")]
    assert trail.forced == (Mark(4.0, S.FORCE_FINAL, "turn_limit"),)
    assert trail.stages[0] == S.NOT_INITIALIZED
    assert trail.stages[-1] == S.FORCE_COMPLETED


def test_a_stage_path_names_reasons_in_the_legend():
    shown = texts(plot_stage_path(refused().run()))
    assert "hidden: assistant_refusal (1)" in shown
    assert "answer forced: turn_limit" in shown
    assert "assistant message rollback" in shown


def test_rollbacks_are_counted_by_group_and_reason():
    runs = [
        refused(run_id="a1", arm="a").run(),
        refused(run_id="a2", arm="a").run(),
        Story("b1", arm="b").run(),
    ]
    assert rollback_groups(runs) == [
        Group("a", simulated=True, mixed=False, runs=2, counts={"assistant_refusal": 2}),
        Group("b", simulated=True, mixed=False, runs=1, counts={}),
    ]
    (one,) = rollback_groups(runs, by=None)
    assert (one.name, one.runs, one.height("assistant_refusal", "run")) == ("all runs", 3, 2 / 3)
    assert one.height("assistant_refusal", "total") == 2


def test_groups_may_be_profiles_or_models():
    runs = [refused(run_id="a", profile="stubborn").run(), refused(run_id="b", model="m").run()]
    assert [g.name for g in rollback_groups(runs, by="profile")] == ["stubborn", "no profile"]
    assert [g.counts for g in rollback_groups(runs, by="profile")] == [{"assistant_refusal": 1}] * 2
    assert [g.name for g in rollback_groups(runs, by="model")] == ["axislab/simulated", "m"]


def test_simulated_and_real_runs_have_bars_of_their_own():
    runs = [refused(run_id="a").run(), refused(run_id="b", simulated=False).run()]
    groups = rollback_groups(runs, by=None)
    assert [(g.simulated, g.runs, g.about) for g in groups] == [
        (True, 1, "1 run, simulated"),
        (False, 1, "1 run, real"),
    ]
    ax = plot_rollback_reasons(runs, by=None)
    shown = texts(ax)
    assert "in part simulated, as labelled" in shown
    assert "assistant_refusal" in shown, "no sum over both in the legend"
    draw(ax.figure)


def test_a_frame_of_rollbacks_gives_totals_but_no_means():
    frame = rollbacks_df(refused(arm="a").run())
    assert rollback_groups(frame)[0] == Group("a", True, False, None, {"assistant_refusal": 1})
    draw(plot_rollback_reasons(frame, per="total").figure)
    with pytest.raises(DataError, match="give the runs, or per='total'"):
        plot_rollback_reasons(frame)
    with pytest.raises(DataError, match="no profile; give what rollbacks_df gives"):
        rollback_groups(frame, by="profile")


@pytest.mark.parametrize("options", [{"by": "seed"}, {"per": "turn"}])
def test_unknown_options_are_refused(options):
    with pytest.raises(DataError, match="allowed: "):
        plot_rollback_reasons(walks(2), **options)


def test_runs_without_rollbacks_say_so():
    assert "no rollbacks in 2 runs" in texts(plot_rollback_reasons([Story("a").run()] * 2))


def test_bars_hold_the_numbers():
    ax = plot_rollback_reasons([refused(run_id="a").run(), Story("b").run()])
    (bar,) = [patch for patch in ax.patches if patch.get_width()]
    assert bar.get_width() == 0.5
    assert bar.get_y() + bar.get_height() / 2 == 0
    assert ax.get_yticklabels()[0].get_text() == "no arm\n2 runs"
    assert texts(ax).count("0.50") == 2, "in the bar and at its end"


def test_a_token_curve_holds_estimates_counts_failures_and_what_was_hidden():
    curve = token_curve(refused().run())
    assert curve.observed == (Point(0, 20), Point(1, 50), Point(2, 60))
    assert [p.call for p in curve.estimated] == [0, 1, 2]
    assert [p.call for p in curve.failed] == [1]
    assert curve.hidden == (Hidden(1.5, "assistant_refusal", 5),)
    assert curve.limits == Limits(4000, 100, 200, 600)
    assert (curve.limits.warning_at, curve.limits.stop_at) == (3300, 3700)
    assert not curve.counted_by_us


def test_a_window_far_above_the_prompts_is_named_not_drawn():
    ax = plot_token_budget(refused().run())
    assert ax.get_ylim()[1] < 100
    assert "window: 4,000 (off scale)\nlargest prompt: 2 % of it" in texts(ax)


def test_a_window_near_the_prompts_is_drawn():
    story = Story(window=120)
    story.request(input_tokens=100)
    ax = plot_token_budget(story.run())
    assert ax.get_ylim()[1] > 120
    assert "window: 120" in texts(ax)


def test_a_run_without_a_window_is_drawn_without_limits():
    ax = plot_token_budget(walk(3, window=None))
    assert not any("window" in text for text in texts(ax))


def test_the_legend_names_what_estimated_the_tokens():
    story = Story()
    story.request(input_tokens=10, estimator="litellm:openai/gpt-4o")
    frame = budgets_df(story.run())
    assert "estimated\nby litellm:openai/gpt-4o" in texts(plot_token_budget(frame))
    assert "estimated" in texts(plot_token_budget(frame.drop(columns="estimator")))


def test_tokens_counted_by_us_are_not_called_reported():
    story = Story()
    story.request(input_tokens=10, usage_estimated=True)
    assert "counted by us" in texts(plot_token_budget(story.run()))


def test_the_footer_refuses_a_mixture_that_is_not_told_apart():
    mixed = [walk(0), walk(1, simulated=False)]
    ax = Figure().subplots()
    with pytest.raises(DataError, match="draw them apart"):
        simulated_footer(ax, mixed)
    simulated_footer(ax, mixed, apart=True)
    assert ax.texts[0].get_text() == "in part simulated, as labelled"


def test_the_footer_stands_below_the_label_of_the_axis():
    ax = plot_token_budget(walk(1))
    draw(ax.figure)
    (foot,) = [text for text in ax.texts if text.get_text() == "simulated"]
    assert foot.get_window_extent().y1 <= ax.xaxis.label.get_window_extent().y0
    assert foot.get_window_extent().y0 >= 0


def test_every_stage_and_reason_has_a_style_that_differs_in_more_than_colour():
    styles = reason_styles(RollbackReason)
    assert len({style.marker for style in styles.values()}) == len(RollbackReason)
    assert len({style.hatch for style in styles.values()}) == len(RollbackReason)
    assert len({style.color for style in styles.values()}) == len(RollbackReason)
    kinds = {stage_style(stage).name for stage in STAGE_KIND}
    assert kinds == {"setup", "normal", "recovery", "finalization", "end", "end without an answer"}
    assert stage_style("mine").name == "other"
    assert list(reason_styles(["b", "a"])) == ["a", "b"]


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([None, 1500, 100_000]), st.booleans())
def test_any_run_is_drawn_without_a_warning(number, window, simulated):
    run = walk(number, window=window, trouble=2, simulated=simulated, arm="$a$ \\b 北京\n_")
    for plot in PLOTS.values():
        ax = plot(run)
        draw(ax.figure)
        mpl.pyplot.close(ax.figure)


def test_a_longer_path_is_not_more_things_to_draw() -> None:
    def things(turns: int) -> int:
        story = Story()
        story.begin()
        for _ in range(turns):
            story.step("assistant", [S.TOOL_MESSAGES, S.RECEIVED, S.TOOL_CALLS])
            story.step("tools", [S.TOOL_CALLS, S.TOOL_MESSAGES])
        ax = plot_stage_path(story.run(), ax=Figure().subplots())
        assert sum(len(lines.get_segments()) for lines in ax.collections) == 3 + 3 * turns
        return len(ax.lines) + len(ax.collections)

    assert things(40) == things(4)
