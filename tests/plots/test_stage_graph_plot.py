"""plot_stage_graph: every draw is quiet, scales, and covers no text."""

from __future__ import annotations

from io import BytesIO
from itertools import combinations

import matplotlib as mpl
import matplotlib.pyplot as plt
import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from matplotlib.text import Text

from axislab.errors import ConfigError, DataError
from axislab.frames.transitions import transitions_df
from axislab.plots.graph import stage_graph
from axislab.plots.stage_graph import plot_stage_graph
from tests.frames.synthetic import Story, walk, walks


def draw(figure) -> None:
    """Draw for real; the canvas of a bare Figure does not."""
    figure.savefig(BytesIO(), format="png", dpi="figure")


def texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def extents(ax: Axes, kind: type, prefix: str) -> dict[str, object]:
    """Window extents of what was drawn under a name, after a real draw."""
    draw(ax.figure.canvas.figure)
    return {
        artist.get_gid(): artist.get_window_extent()
        for artist in ax.findobj(kind)
        if (artist.get_gid() or "").startswith(prefix)
    }


def overlap(a, b) -> float:
    width = min(a.x1, b.x1) - max(a.x0, b.x0)
    height = min(a.y1, b.y1) - max(a.y0, b.y0)
    return max(width, 0) * max(height, 0)


def assert_nothing_covers_a_text(ax: Axes) -> None:
    boxes = extents(ax, FancyBboxPatch, "box ")
    labels = extents(ax, Text, "label ")
    for one, other in combinations(boxes.values(), 2):
        assert overlap(one, other) == 0
    for name, label in labels.items():
        for rect in boxes.values():
            assert overlap(label, rect) == 0, name
    for one, other in combinations(labels.items(), 2):
        assert overlap(one[1], other[1]) < 2, (one[0], other[0])
    for text in ax.findobj(Text):
        if text.get_zorder() == 5 and text.get_text():
            inner = text.get_window_extent()
            assert any(
                rect.x0 <= inner.x0
                and inner.x1 <= rect.x1
                and rect.y0 <= inner.y0 + 1
                and inner.y1 - 1 <= rect.y1
                for rect in boxes.values()
            ), text.get_text()


def test_the_graph_of_200_runs_is_readable_at_the_width_of_a_notebook():
    ax = plot_stage_graph(walks(200))
    width, height = ax.figure.get_size_inches()
    assert width <= 11.2
    assert height <= 10
    assert_nothing_covers_a_text(ax)
    drawn = {gid.removeprefix("box ") for gid in extents(ax, FancyBboxPatch, "box ")}
    assert drawn == set(stage_graph(walks(200)))
    assert min(text.get_fontsize() for text in ax.texts) >= 7
    inside = ax.get_window_extent()
    for text in ax.texts:
        box = text.get_window_extent()
        assert box.x0 >= inside.x0 - 1
        assert box.x1 <= inside.x1 + 1


@pytest.mark.parametrize("size", [(6.4, 4.8), (13, 11)])
def test_into_other_axes_the_drawing_is_scaled_as_a_whole(size):
    ax = Figure(figsize=size).subplots()
    assert plot_stage_graph(walks(60), ax=ax) is ax
    assert_nothing_covers_a_text(ax)


def test_it_draws_beside_other_plots_in_a_constrained_layout():
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
    plot_stage_graph(walks(20), ax=left)
    plot_stage_graph(walks(20, simulated=False), ax=right)
    draw(figure)
    assert "simulated" in texts(left)
    assert "simulated" not in texts(right)


def test_it_draws_into_a_subfigure():
    part = plt.figure(figsize=(12, 6)).subfigures(1, 2)[0]
    draw(plot_stage_graph(walks(5), ax=part.subplots()).figure.canvas.figure)


def test_no_runs_say_so():
    for empty in ([], transitions_df([]), nx.DiGraph()):
        ax = plot_stage_graph(empty)
        assert texts(ax) == ["no runs"]
        assert not ax.axison


def test_a_min_count_above_all_says_so():
    assert texts(plot_stage_graph(walk(0), min_count=1000)) == ["no line was taken 1000 times"]


def test_what_was_left_out_is_said():
    shown = texts(plot_stage_graph(walks(30), min_count=10))
    assert any(text.startswith("not drawn: ") for text in shown)


def test_a_single_stage_is_drawn():
    story = Story(simulated=False)
    story.step("x", ["not_initialized"])
    ax = plot_stage_graph(story.run())
    assert "not initialized" in texts(ax)
    draw(ax.figure)


def test_self_loops_parallel_edges_and_cycles_are_drawn_without_overlap():
    graph = nx.MultiDiGraph()
    for a, b, reason in (
        ("a", "a", "again"),
        ("a", "b", "one"),
        ("a", "b", "two"),
        ("b", "a", ""),
        ("b", "c", "x"),
        ("c", "a", "back"),
        ("c", "c", "silent"),
    ):
        graph.add_edge(a, b, key=reason, count=3, reason=reason)
    ax = plot_stage_graph(graph)
    assert_nothing_covers_a_text(ax)
    assert "one 3\ntwo 3" in texts(ax)


def test_lines_back_are_dashed_not_only_coloured():
    ax = plot_stage_graph(walks(40))
    lines = {
        patch.get_gid(): patch.get_linestyle()
        for patch in ax.patches
        if (patch.get_gid() or "").startswith("line ")
    }
    back = "line tool_messages_await_assistant assistant_message_received"
    on = "line assistant_message_received assistant_tool_calls_await_tool"
    assert lines[back] != "-"
    assert lines[on] == "-"


def test_text_of_any_script_and_mathtext_stays_text():
    graph = nx.MultiDiGraph()
    graph.add_edge("stage $x^2$", "北京 \\boxed{1}", count=1, reason="😀 $\\frac{$ \x00 \ud800")
    ax = plot_stage_graph(graph)
    draw(ax.figure)
    assert "stage $x^2$" in texts(ax)


def test_the_picture_is_the_same_each_time():
    def places(ax):
        return [(text.get_text(), text.get_position()) for text in ax.texts]

    assert places(plot_stage_graph(walks(30))) == places(plot_stage_graph(walks(30)))


def test_no_global_style_is_changed():
    before = dict(mpl.rcParams)
    plot_stage_graph(walks(5))
    assert dict(mpl.rcParams) == before


def test_an_unknown_layout_is_refused():
    with pytest.raises(ConfigError, match="layout='spring'; allowed: layered, dot"):
        plot_stage_graph(walks(2), layout="spring")


def test_dot_draws_with_pygraphviz_and_says_how_to_get_it_without():
    try:
        import pygraphviz  # noqa: F401
    except ImportError:
        with pytest.raises(ConfigError, match="pip install pygraphviz"):
            plot_stage_graph(walks(2), layout="dot")
    else:
        draw(plot_stage_graph(walks(60), layout="dot").figure.canvas.figure)


def test_simulated_and_real_runs_are_not_drawn_together():
    with pytest.raises(DataError, match="draw them apart"):
        plot_stage_graph([walk(0), walk(1, simulated=False)])


STAGES = st.sampled_from(
    [
        "not_initialized",
        "assistant_message_received",
        "assistant_message_rollback",
        "assistant_completed",
        "x",
        "ein sehr langer Name " * 4,
        "北京",
    ]
)


@settings(max_examples=12, deadline=None)
@given(st.lists(st.lists(STAGES, max_size=9), max_size=4))
def test_any_stage_paths_are_drawn_without_a_warning(paths):
    runs = []
    for i, path in enumerate(paths):
        story = Story(f"r{i}")
        if path:
            story.stage = None
            trace = story.trace()
            from axislab.trace.trace import Record

            step = {"step": 0, "stage_path": path, "stage": path[-1], "turn": 0}
            trace.append(Record(1, "2026-11-30T12:00:01Z", "step", step))
            runs.append(trace)
    ax = plot_stage_graph(runs)
    assert_nothing_covers_a_text(ax)
    plt.close("all")
