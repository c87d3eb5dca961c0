"""stage_graph: exact counts, and what a drawing of it says."""

from __future__ import annotations

import networkx as nx
import pytest

from axislab.errors import DataError
from axislab.frames.transitions import transitions_df
from axislab.plots.graph import stage_graph, walks_of
from axislab.plots.sheet import sheet_of
from axislab.runtime.stages import ConversationStage as S
from tests.frames.synthetic import Story, walk, walks

INIT, RECV, ROLL = S.INITIAL_USER, S.RECEIVED, S.ROLLBACK


def twice_rolled_back(**header):
    """Two refusals and a format error before the answer, all on the first turn."""
    story = Story(**header)
    story.begin(system=False)
    for reason in ("assistant_refusal", "assistant_refusal", "format_error"):
        story.step("assistant", [INIT, RECV, ROLL, INIT], rollback_reason=reason, rule="x")
    story.step("assistant", [INIT, RECV, S.COMPLETED], rule="completed")
    return story.run()


def test_nodes_count_visits_and_know_their_kind():
    graph = stage_graph(twice_rolled_back())
    assert dict(graph.nodes(data="visits")) == {
        "not_initialized": 1,
        INIT: 4,
        RECV: 4,
        ROLL: 3,
        "assistant_completed": 1,
    }
    assert graph.nodes[ROLL]["kind"] == "recovery"
    assert graph.nodes[INIT] == {"visits": 4, "runs": 1, "kind": "setup", "first": 1.0}
    assert graph.graph == {"runs": 1, "simulated": True}


def test_a_multigraph_has_an_edge_for_each_reason():
    graph = stage_graph([twice_rolled_back(), twice_rolled_back()])
    assert isinstance(graph, nx.MultiDiGraph)
    assert graph[RECV][ROLL]["assistant_refusal"] == {
        "count": 4,
        "runs": 2,
        "votes": 2,
        "reason": "assistant_refusal",
        "reason_kind": "rollback",
    }
    assert graph[RECV][ROLL]["format_error"]["count"] == 2
    assert graph[ROLL][INIT][""]["votes"] == -2, "both runs had been there before"


def test_a_plain_graph_sums_over_the_reasons():
    graph = stage_graph(twice_rolled_back(), multi=False)
    assert not graph.is_multigraph()
    assert graph[RECV][ROLL]["count"] == 3
    assert graph[RECV][ROLL]["runs"] == 1
    assert graph[RECV][ROLL]["reason"] == "assistant_refusal, format_error"


def test_a_frame_of_transitions_gives_the_same_graph():
    runs = walks(12)
    for multi in (True, False):
        one, other = stage_graph(runs, multi=multi), stage_graph(transitions_df(runs), multi=multi)
        assert nx.utils.graphs_equal(one, other)
        assert one.graph == other.graph


def test_a_frame_without_the_columns_is_refused_by_name():
    frame = transitions_df(walks(2)).drop(columns=["reason", "source"])
    with pytest.raises(DataError, match="the frame has no source, reason; give what transitions"):
        walks_of(frame)


def test_the_graph_can_be_written_as_graphml(tmp_path):
    path = tmp_path / "graph.graphml"
    nx.write_graphml(stage_graph(walks(3)), path)
    assert nx.read_graphml(path).number_of_nodes() > 3


def test_simulated_and_real_runs_are_not_pooled():
    mixed = [walk(0), walk(1, simulated=False)]
    with pytest.raises(DataError, match="1 simulated and 1 real runs in one picture"):
        stage_graph(mixed)
    with pytest.raises(DataError, match="draw them apart"):
        stage_graph(transitions_df(mixed))


def test_no_runs_give_an_empty_graph():
    assert stage_graph([]).number_of_nodes() == 0
    assert stage_graph(transitions_df([])).graph["runs"] == 0


def labels(sheet):
    return {(line.source, line.target): line.text for line in sheet.lines}


def test_a_line_says_its_reasons_and_counts_the_most_frequent_first():
    sheet = sheet_of(stage_graph(twice_rolled_back()))
    assert labels(sheet)[RECV, ROLL] == "assistant_refusal 2\nformat_error 1"
    assert labels(sheet)[ROLL, INIT] == "3"
    assert labels(sheet)[RECV, S.COMPLETED] == "1", "a rule alone on its line is not named"
    assert sheet.title == "stages of 1 run"
    assert sheet.simulated


def test_rules_are_named_where_several_lead_along_one_line():
    graph = nx.MultiDiGraph()
    graph.add_edge("a", "b", count=2, reason="completed", reason_kind="rule")
    graph.add_edge("a", "b", count=1, reason="direct_answer", reason_kind="rule")
    assert labels(sheet_of(graph)) == {("a", "b"): "completed 2\ndirect_answer 1"}


def test_shares_are_those_of_all_that_left_the_stage():
    graph = nx.DiGraph()
    graph.add_edge("a", "b", count=750)
    graph.add_edge("a", "c", count=249)
    graph.add_edge("a", "d", count=1)
    found = labels(sheet_of(graph, relative=True))
    assert found == {("a", "b"): "75 %", ("a", "c"): "25 %", ("a", "d"): "<1 %"}
    kept = sheet_of(graph, relative=True, min_count=300)
    assert labels(kept) == {("a", "b"): "75 %"}
    assert [box.stage for box in kept.boxes] == ["a", "b"]
    assert kept.note == "not drawn: 2 lines taken fewer than 300 times"


def test_a_stage_without_any_line_is_kept():
    graph = nx.DiGraph()
    graph.add_edge("a", "b", count=1)
    graph.add_node("alone", visits=1)
    assert [box.stage for box in sheet_of(graph).boxes] == ["a", "b", "alone"]


def test_many_reasons_are_cut_short_and_summed():
    graph = nx.MultiDiGraph()
    for i in range(8):
        graph.add_edge("a", "b", count=8 - i, reason=f"r{i}")
    assert labels(sheet_of(graph))["a", "b"] == "r0 8\nr1 7\nr2 6\nr3 5\n4 others 10"


def test_all_boxes_are_of_one_size_that_holds_the_longest_name():
    sheet = sheet_of(stage_graph(walks(40)))
    sizes = {node.size for node in sheet.nodes()}
    assert len(sizes) == 1
    assert all(box.size.width <= next(iter(sizes)).width for box in sheet.boxes)
    ends = {node.name for node in sheet.nodes() if node.end}
    assert ends <= {S.COMPLETED, S.FORCE_COMPLETED, S.CALLS_REJECTED, S.TOKEN_EXCEEDED}
    assert S.COMPLETED in ends
