"""tools_df: one row a tool call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from axislab.events import ToolFinished, ToolStarted
from axislab.frames.clock import Clock
from axislab.frames.columns import Column, Table, documented
from axislab.frames.source import RunsLike, runs_of
from axislab.trace.run import Run

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class ToolRow:
    """One call: what its start said, and what its end said over it."""

    data: Mapping[str, Any]
    started: bool
    finished: bool
    seconds: float | None

    @property
    def chars(self) -> int | None:
        """Length of the result."""
        content = self.data.get("content")
        return len(content) if isinstance(content, str) else None


def tool_rows(run: Run) -> list[ToolRow]:
    """The tool calls of a run, in the order they were first heard of."""
    clock = Clock(run)
    rows: dict[object, ToolRow] = {}
    for record in list(run.trace.records):
        if record.kind not in (ToolStarted.kind, ToolFinished.kind):
            continue
        ended = record.kind == ToolFinished.kind
        known = rows.get(record.data.get("call_id", record.seq))
        rows[record.data.get("call_id", record.seq)] = ToolRow(
            data={**(known.data if known else {}), **record.data},
            started=not ended or (known is not None and known.started),
            finished=ended or (known is not None and known.finished),
            seconds=known.seconds if known else clock.seconds(record),
        )
    return list(rows.values())


def _repairs(row: ToolRow) -> object:
    names = row.data.get("repairs")
    return ", ".join(map(str, names)) or None if isinstance(names, list) else names


TOOLS: Table[ToolRow] = Table(
    "tools",
    (
        Column("call_id", "string", "Our id of the call.", "call_id"),
        Column("name", "string", "The tool.", "name"),
        Column("step", "Int64", "Step its result leads to.", "step"),
        Column("status", "string", "success, failed, rejected; NA if it never ended.", "status"),
        Column("reason", "string", "Why it failed or was rejected.", "reason"),
        Column("latency", "Float64", "Seconds it ran; NA if it never did.", "latency"),
        Column("arguments", "string", "JSON text it ran with.", "arguments"),
        Column("raw_arguments", "string", "As the model wrote them, if mended.", "raw_arguments"),
        Column(
            "repairs",
            "string",
            "Repair rules applied, joined by commas.",
            _repairs,
        ),
        Column("result", "string", "What the model read.", "content"),
        Column("result_chars", "Int64", "Length of the result.", lambda r: r.chars),
        Column("truncated", "Int64", "Characters cut off the result.", "truncated"),
        Column("duplicate", "boolean", "The query had been answered before.", "duplicate"),
        Column("started", "boolean", "The tool itself was called.", lambda r: r.started),
        Column("finished", "boolean", "The call has its result.", lambda r: r.finished),
        Column("idempotent", "boolean", "Declared safe to run again.", "idempotent"),
        Column("seconds", "Float64", "Seconds since the run started.", lambda r: r.seconds),
    ),
    tool_rows,
)


@documented(TOOLS)
def tools_df(data: RunsLike) -> pd.DataFrame:
    """One row a tool call, those that were rejected or never ended included.

    Args:
        data: A run, runs, a study, or the path of a trace or folder.

    Examples:
        >>> tools_df([]).groupby("name").latency.median().empty
        True
    """
    return TOOLS.frame(runs_of(data))
