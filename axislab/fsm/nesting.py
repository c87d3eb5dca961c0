"""Tables inside the states of a table: what is wrong with them, what is worth knowing, a graph."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import networkx as nx

    from axislab.fsm.table import TransitionTable


def node_name(within: str, state: Enum) -> str:
    """What a state is called in a graph: with the states around it."""
    return f"{within}/{state.name}" if within else state.name


def child_problems(table: TransitionTable[Any, Any]) -> Iterator[str]:
    """What makes the children of a table impossible."""
    for state, child in table.children.items():
        if type(state) is not type(table.initial):
            yield f"children has {state!r}, which is none of its states"
        elif not isinstance(child, type(table)):
            yield f"the child of {state.name} must be a TransitionTable, got {child!r}"
        elif state in table.final:
            yield f"{state.name} is final: it cannot hold a child machine"


def child_reports(table: TransitionTable[Any, Any]) -> Iterator[str]:
    """Events that a child takes from its parent, and what each child reports of itself."""
    for state, child in table.children.items():
        for event in dict.fromkeys(rule.event for rule in table.leaving(state)):
            taken = [s.name for s in child.states if any(_all_rules(child, s, event))]
            if taken:
                yield (
                    f"{event!r} in {state.name} goes to its child first, which has rules for it "
                    f"in {', '.join(taken)}"
                )
        yield from (f"in {state.name}: {line}" for line in child.report)


def _all_rules(table: TransitionTable[Any, Any], state: Enum, event: str) -> Iterator[object]:
    yield from table.rules_for(state, event)
    if (child := table.children.get(state)) is not None:
        for inner in child.states:
            yield from _all_rules(child, inner, event)


def graph_of(table: TransitionTable[Any, Any]) -> nx.MultiDiGraph[str]:
    """The states of a table and its children as nodes, the rules as edges."""
    import networkx as nx

    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    _add(graph, table, within="")
    return graph


def _add(graph: nx.MultiDiGraph[str], table: TransitionTable[Any, Any], *, within: str) -> None:
    for state in table.states:
        name = node_name(within, state)
        graph.add_node(name, kind=table.kind(state), value=state.value, parent=within)
    for order, rule in enumerate(table.rules):
        graph.add_edge(
            node_name(within, rule.source),
            node_name(within, rule.target),
            event=rule.event,
            guard=rule.guard_name,
            action=rule.action_name,
            description=rule.description,
            order=order,
            label=f"{rule.event} [{rule.guard_name}]" if rule.guard else rule.event,
        )
    for state, child in table.children.items():
        _add(graph, child, within=node_name(within, state))
