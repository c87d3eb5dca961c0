"""The layered layout: nothing over anything, time runs down, the same for the same input."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axislab.plots.layout.layered import layered
from axislab.plots.layout.order import order_rows
from axislab.plots.layout.rows import assign_rows
from axislab.plots.layout.shapes import Layout, Line, Node, Point, Rect, Size

BOX, LABEL = Size(1.5, 0.5), Size(0.3, 0.12)


def nodes(names: str, *, ends: str = "", loops: str = "") -> list[Node]:
    return [Node(n, BOX, end=n in ends, loop=LABEL if n in loops else None) for n in names]


def lines(text: str, **votes: float) -> list[Line]:
    """`"ab bc"`: a line from a to b, one from b to c."""
    return [Line(a, b, LABEL, votes=votes.get(a + b, 1.0)) for a, b in text.split()]


def test_an_empty_graph_has_an_empty_layout():
    assert layered([], []) == Layout()
    assert Layout().bounds == Rect(Point(0, 0), Size(0, 0))


def test_a_single_box_stands_alone():
    layout = layered(nodes("a"), [])
    assert set(layout.boxes) == {"a"}
    assert layout.bounds.size == BOX


def test_rows_follow_the_lines_down():
    rows = assign_rows(nodes("abcd"), lines("ab bc ac cd"))
    assert rows.of == {"a": 0, "b": 1, "c": 2, "d": 3}
    assert rows.back == frozenset()


def test_a_line_back_is_turned_by_its_votes():
    rows = assign_rows(nodes("abc"), lines("ab bc ca", ca=-5))
    assert rows.of == {"a": 0, "b": 1, "c": 2}
    assert rows.back == {("c", "a")}


def test_of_a_cycle_the_least_clear_line_leads_back():
    rows = assign_rows(nodes("abc"), lines("ab bc ca", ab=9, bc=1, ca=5))
    assert rows.back == {("b", "c")}


def test_where_votes_tie_a_move_that_led_on_stays_forward():
    # r(eply) → c(alls) → t(ool results) → r, with calls undone through b(ack) to t.
    given = lines("rc ct tr cb bt", tr=-1, cb=-1, bt=-1)
    assert ("c", "t") not in assign_rows(nodes("rctb"), given).back


def test_of_two_opposite_lines_one_leads_back():
    rows = assign_rows(nodes("ab"), lines("ab ba", ba=-1))
    assert rows.back == {("b", "a")}
    layout = layered(nodes("ab"), lines("ab ba", ba=-1))
    there, again = layout.routes["a", "b"], layout.routes["b", "a"]
    assert not there.back
    assert again.back
    assert there.curve[0].y > there.curve[-1].y
    assert again.curve[0].y < again.curve[-1].y


def test_all_ends_stand_on_the_last_row():
    rows = assign_rows(nodes("abcxy", ends="xy"), lines("ab bc ax cy"))
    assert rows.of == {"a": 0, "b": 1, "c": 2, "x": 3, "y": 3}


def test_a_stage_stands_near_what_it_is_joined_to():
    rows = assign_rows(nodes("abcdz"), lines("ab bc cd zd"))
    assert rows.of["z"] == 2


def test_lines_that_need_not_cross_do_not():
    some, between = nodes("abcdef"), lines("ad be cf")
    order = order_rows(some, between, assign_rows(some, between))
    assert order.crossings == 0
    crossed = lines("af bd ce ad be cf")
    assert order_rows(some, crossed, assign_rows(some, crossed)).crossings > 0


def test_a_straight_chain_is_drawn_straight():
    layout = layered(nodes("abcd"), lines("ab bc cd"))
    assert len({round(box.center.x, 6) for box in layout.boxes.values()}) == 1
    for route in layout.routes.values():
        assert len({round(p.x, 6) for p in route.curve}) == 1


def test_a_self_loop_stands_on_the_right_of_its_box_with_its_label():
    layout = layered(nodes("ab", loops="a"), [*lines("ab"), Line("a", "a", LABEL)])
    route, box = layout.routes["a", "a"], layout.boxes["a"]
    assert route.back
    assert route.label.left > box.right
    assert route.curve[0].x == route.curve[-1].x == box.right


def test_the_same_graph_is_always_placed_the_same():
    some, between = nodes("abcdefg"), lines("ab bc ca ad de ef fa gb ge", ca=-1, fa=-2)
    assert layered(some, between) == layered(some, between)


def points_of(curve: tuple[Point, ...], n: int = 24) -> list[Point]:
    """Points along a cubic Bézier path."""
    out = []
    for i in range(0, len(curve) - 1, 3):
        p, q, r, s = curve[i : i + 4]
        for k in range(n + 1):
            t = k / n
            weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
            x = sum(w * c.x for w, c in zip(weights, (p, q, r, s), strict=True))
            y = sum(w * c.y for w, c in zip(weights, (p, q, r, s), strict=True))
            out.append(Point(x, y))
    return out


def inside(rect: Rect, p: Point, slack: float = 1e-6) -> bool:
    return (
        rect.left + slack < p.x < rect.right - slack
        and rect.bottom + slack < p.y < rect.top - slack
    )


@st.composite
def graphs(draw):
    n = draw(st.integers(1, 9))
    names = "abcdefghi"[:n]
    pairs = draw(st.sets(st.tuples(st.sampled_from(names), st.sampled_from(names)), max_size=22))
    sizes = st.builds(Size, st.floats(0.1, 1.5), st.floats(0.1, 0.6))
    some = [
        Line(a, b, draw(sizes), draw(st.floats(0, 1)), draw(st.integers(-9, 9)))
        for a, b in sorted(pairs)
    ]
    loops = {line.source: line.label for line in some if line.source == line.target}
    leaving = {line.source for line in some}
    boxes = [
        Node(name, BOX, end=name not in leaving and draw(st.booleans()), loop=loops.get(name))
        for name in names
    ]
    return boxes, some


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_whatever_the_graph_nothing_overlaps_and_no_line_runs_behind_a_foreign_box(graph):
    boxes, some = graph
    layout = layered(boxes, some)
    assert set(layout.boxes) == {box.name for box in boxes}
    assert set(layout.routes) == {(line.source, line.target) for line in some}
    rects = list(layout.boxes.values()) + [route.label for route in layout.routes.values()]
    for one, other in combinations(rects, 2):
        assert one.overlap(other) < 1e-6
    for (a, b), route in layout.routes.items():
        for point in points_of(route.curve):
            for rect in layout.boxes.values():
                assert not inside(rect, point)
            for pair, other in layout.routes.items():
                # Curves may touch a foreign label only between rows, never in its lane.
                if pair != (a, b) and a != b and pair[0] != pair[1]:
                    assert not inside(other.label, point, slack=0.01)


@pytest.mark.parametrize("n", [2, 5, 9])
def test_a_complete_graph_is_placed(n):
    names = "abcdefghi"[:n]
    all_pairs = " ".join(a + b for a in names for b in names if a != b)
    layout = layered(nodes(names), lines(all_pairs))
    assert len(layout.routes) == n * (n - 1)
