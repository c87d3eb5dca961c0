"""rollbacks_df: one row a marker, that is each time messages were hidden."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from axislab.frames.clock import Clock
from axislab.frames.columns import Column, Table, documented
from axislab.frames.history import Hiding, history_of, preview, tool_names
from axislab.frames.source import RunsLike, runs_of
from axislab.messages import Role
from axislab.runtime.budget import CharEstimator
from axislab.trace.run import Run

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class RollbackRow:
    """One marker."""

    hiding: Hiding
    seconds: float | None


def rollback_rows(run: Run) -> list[RollbackRow]:
    """The markers of a run."""
    clock = Clock(run)
    return [RollbackRow(h, clock.seconds(h.record)) for h in history_of(run).hidings]


def _tokens(row: RollbackRow) -> int:
    return CharEstimator().count(row.hiding.hidden)


def _replies(row: RollbackRow) -> int:
    return sum(m.role is Role.ASSISTANT for m in row.hiding.hidden)


ROLLBACKS: Table[RollbackRow] = Table(
    "rollbacks",
    (
        Column("step", "Int64", "Step that appended the marker.", lambda r: r.hiding.step),
        Column("index", "Int64", "Place of the marker in the full list.", lambda r: r.hiding.index),
        Column(
            "turn", "Int64", "Assistant turns after that step.", lambda r: r.hiding.at.get("turn")
        ),
        Column(
            "kind",
            "string",
            "rollback, compaction, discard_all or malformed.",
            lambda r: r.hiding.kind,
        ),
        Column(
            "reason", "string", "Why; NA for markers that give none.", lambda r: r.hiding.reason
        ),
        Column(
            "hidden_messages",
            "Int64",
            "Messages it hid; 0 for a malformed marker.",
            lambda r: len(r.hiding.hidden),
        ),
        Column("hidden_replies", "Int64", "Assistant messages among them.", _replies),
        Column("hidden_tokens", "Int64", "Estimated tokens of those messages.", _tokens),
        Column(
            "consecutive",
            "Int64",
            "Rollbacks in a row, this one included.",
            lambda r: r.hiding.at.get("rollback_count"),
        ),
        Column(
            "tools",
            "string",
            "Tools called or answering in them.",
            lambda r: tool_names(r.hiding.hidden),
        ),
        Column(
            "preview",
            "string",
            "Start of the hidden reply, on one line.",
            lambda r: preview(r.hiding.hidden),
        ),
        Column("seconds", "Float64", "Seconds since the run started.", lambda r: r.seconds),
    ),
    rollback_rows,
)


@documented(ROLLBACKS)
def rollbacks_df(data: RunsLike) -> pd.DataFrame:
    """One row a marker: each time something was hidden from the model, and why.

    Args:
        data: A run, runs, a study, or the path of a trace or folder.

    Examples:
        >>> rollbacks_df([]).groupby("reason").hidden_messages.sum().empty
        True
    """
    return ROLLBACKS.frame(runs_of(data))
