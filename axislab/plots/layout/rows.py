"""Which row each box stands on: time runs down, and as few lines as possible run up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from axislab.plots.layout.shapes import Line, Node, Pair


@dataclass(frozen=True, slots=True)
class Rows:
    """The row of every box, and the lines that run up."""

    of: Mapping[str, int]
    back: frozenset[Pair]


def assign_rows(nodes: Sequence[Node], lines: Sequence[Line]) -> Rows:
    """Choose rows.

    Args:
        nodes: In the order in which runs reach them.
        lines: At most one from each source to each target; self loops are left out.
    """
    order = {node.name: i for i, node in enumerate(nodes)}
    between = [line for line in lines if line.source != line.target]
    down, back = _orient(order, between)
    rows = _shortest(nodes, down)
    return Rows(rows, frozenset(back))


def _orient(order: Mapping[str, int], lines: Sequence[Line]) -> tuple[dict[Pair, float], set[Pair]]:
    """Turn lines so that no cycle is left, the least clear ones last.

    Each line is taken the way its votes say, unless that would close a cycle with the clearer
    ones before it.
    """
    down: dict[Pair, float] = {}
    after: dict[str, set[str]] = {name: {name} for name in order}
    back: set[Pair] = set()

    def clear(line: Line) -> list[float]:
        # Where votes tie, "it led on" is surer than "it led back", and many passes than few.
        tie = [float(line.votes <= 0), -line.weight]
        return [-abs(line.votes), *tie, order[line.source], order[line.target]]

    for line in sorted(lines, key=clear):
        a, b = line.source, line.target
        forward = line.votes > 0 or (line.votes == 0 and order[a] < order[b])
        up, low = (a, b) if forward else (b, a)
        if up in after[low]:
            up, low = low, up
        for name, reached in after.items():
            if up in reached:
                after[name] = reached | after[low]
        down[up, low] = down.get((up, low), 0.0) + 1.0 + line.weight
        if (up, low) != (a, b):
            back.add((a, b))
    return down, back


def _shortest(nodes: Sequence[Node], down: Mapping[Pair, float]) -> dict[str, int]:
    """Rows that keep the lines short in sum, with all ends on the last row: a linear program.

    Its matrix is that of a network, so the best corner is whole numbers.
    """
    import numpy as np
    from scipy.optimize import linprog

    place = {node.name: i for i, node in enumerate(nodes)}
    last = len(nodes)
    cost = np.full(last + 1, 1e-4)  # all as high up as that allows
    rules: list[tuple[int, int, int]] = []  # upper, lower, rows between them at least
    for (up, low), weight in down.items():
        cost[place[up]] -= weight
        cost[place[low]] += weight
        rules.append((place[up], place[low], 1))
    rules += [(place[node.name], last, 0) for node in nodes]
    matrix, bound = np.zeros((len(rules), last + 1)), np.zeros(len(rules))
    for i, (upper, lower, gap) in enumerate(rules):
        matrix[i, upper], matrix[i, lower], bound[i] = 1, -1, -gap
    equal = np.zeros((last + 1, last + 1))
    leaving = {up for up, _ in down}  # an end that a turned line leaves cannot be last
    for i, node in enumerate(nodes):
        if node.end and node.name not in leaving:
            equal[i, i], equal[i, last] = 1, -1
    solved = linprog(cost, A_ub=matrix, b_ub=bound, A_eq=equal, b_eq=np.zeros(last + 1))
    rows = [round(x) for x in solved.x[:last]]
    used = {row: i for i, row in enumerate(sorted(set(rows)))}
    return {node.name: used[row] for node, row in zip(nodes, rows, strict=True)}
