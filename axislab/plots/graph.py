"""stage_graph: the stages runs went through, as a networkx graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import networkx as nx

from axislab.frames.source import RunsLike, runs_of
from axislab.frames.transitions import TransitionRow, Why, transition_rows
from axislab.plots.data import is_frame, need_columns
from axislab.plots.style import refuse_mixture, stage_kind
from axislab.trace.run import Run

if TYPE_CHECKING:
    import pandas as pd

Graph: TypeAlias = "nx.DiGraph[str]"
NEEDED = ("run_id", "simulated", "source", "target", "reason", "reason_kind")


@dataclass(frozen=True, slots=True)
class Edge:
    """One transition."""

    source: str
    target: str
    reason: str = ""
    reason_kind: str = ""


@dataclass(frozen=True, slots=True)
class Walk:
    """The way of one run through the stages."""

    run_id: str
    simulated: bool
    stages: tuple[str, ...]
    edges: tuple[Edge, ...] = field(default=())


def walks_of(data: RunsLike | pd.DataFrame) -> list[Walk]:
    """The way of each run.

    Args:
        data: Runs, a study, a path, or what `transitions_df` gave.

    Raises:
        DataError: A frame without the columns of `transitions_df`.
    """
    if not is_frame(data):
        return [_walk_of(run) for run in runs_of(data)]
    need_columns(data, NEEDED, of="transitions_df")
    return [_walk_in(str(run_id), part) for run_id, part in data.groupby("run_id", sort=False)]


def _walk_of(run: Run) -> Walk:
    edges = tuple(_edge(row) for row in transition_rows(run))
    return Walk(run.id, run.simulated, tuple(run.stage_path), edges)


def _edge(row: TransitionRow) -> Edge:
    why: Why = row.why
    return Edge(row.source, row.target, why.reason or "", why.kind or "")


def _walk_in(run_id: str, part: pd.DataFrame) -> Walk:
    texts = part[["source", "target", "reason", "reason_kind"]].astype("string").fillna("")
    edges = tuple(Edge(*row) for row in texts.itertuples(index=False))
    stages: list[str] = []
    for edge in edges:
        stages += (
            [edge.target] if stages and stages[-1] == edge.source else [edge.source, edge.target]
        )
    return Walk(run_id, bool(part["simulated"].fillna(False).any()), tuple(stages), edges)


def stage_graph(data: RunsLike | pd.DataFrame, *, multi: bool = True) -> Graph:
    """The stages runs went through: nodes are stages, edges the transitions they made.

    Nodes carry `visits`, `runs`, `kind` and `first` (mean place at which a run reaches the stage);
    edges `count`, `runs`, `reason`, `reason_kind` and `votes` (runs to which the target was new
    when they first took the edge, less those to which it was not). The graph carries `runs` and
    `simulated`.

    Args:
        data: Runs, a study, a path, or what `transitions_df` gave.
        multi: A MultiDiGraph with an edge for each reason (its key); else a DiGraph, whose
            `reason` lists them all.

    Raises:
        DataError: Simulated and real runs together.

    Examples:
        >>> stage_graph([]).number_of_nodes()
        0
    """
    walks = walks_of(data)
    simulated = sum(walk.simulated for walk in walks)
    if 0 < simulated < len(walks):
        refuse_mixture(simulated, len(walks) - simulated)
    graph: Graph = nx.MultiDiGraph() if multi else nx.DiGraph()
    graph.graph.update(runs=len(walks), simulated=bool(simulated))
    _add_nodes(graph, walks)
    _add_edges(graph, walks)
    return graph


def _add_nodes(graph: Graph, walks: Sequence[Walk]) -> None:
    visits = Counter(stage for walk in walks for stage in walk.stages)
    first: dict[str, list[int]] = {}
    for walk in walks:
        for stage in dict.fromkeys(walk.stages):
            first.setdefault(stage, []).append(walk.stages.index(stage))
    mean = {stage: sum(places) / len(places) for stage, places in first.items()}
    for stage in sorted(mean, key=lambda s: (mean[s], s)):
        graph.add_node(
            stage,
            visits=visits[stage],
            runs=len(first[stage]),
            kind=stage_kind(stage),
            first=round(mean[stage], 6),
        )


def _add_edges(graph: Graph, walks: Sequence[Walk]) -> None:
    counts = Counter(edge for walk in walks for edge in walk.edges)
    runs = Counter(edge for walk in walks for edge in set(walk.edges))
    pairs = Counter(pair for walk in walks for pair in {(e.source, e.target) for e in walk.edges})
    votes = _votes(walks)
    place = {stage: i for i, stage in enumerate(graph)}
    of_pair: dict[tuple[str, str], list[Edge]] = {}
    for edge in sorted(
        counts, key=lambda e: (place[e.source], place[e.target], -counts[e], e.reason)
    ):
        of_pair.setdefault((edge.source, edge.target), []).append(edge)
    for (a, b), edges in of_pair.items():
        if isinstance(graph, nx.MultiDiGraph):
            for e in edges:
                values = {"count": counts[e], "runs": runs[e], "votes": votes[a, b]}
                key = (
                    f"{e.reason} ({e.reason_kind})" if graph.has_edge(a, b, e.reason) else e.reason
                )
                why = {"reason": e.reason, "reason_kind": e.reason_kind}
                graph.add_edge(a, b, key=key, **values, **why)
        else:
            graph.add_edge(
                a,
                b,
                count=sum(counts[e] for e in edges),
                runs=pairs[a, b],
                votes=votes[a, b],
                reason=", ".join(e.reason for e in edges if e.reason),
                reason_kind=", ".join(dict.fromkeys(e.reason_kind for e in edges if e.reason_kind)),
            )


def _votes(walks: Iterable[Walk]) -> Counter[tuple[str, str]]:
    """Each run votes once for each edge, when it first takes it: +1 if the target is new to it."""
    votes: Counter[tuple[str, str]] = Counter()
    for walk in walks:
        seen: set[str] = set(walk.stages[:1])
        taken: set[tuple[str, str]] = set()
        for a, b in pairwise(walk.stages):
            if a != b and (a, b) not in taken:
                taken.add((a, b))
                votes[a, b] += 1 if b not in seen else -1
            seen.add(b)
    return votes
