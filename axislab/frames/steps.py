"""steps_df: one row a step of the conversation runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from axislab.events import StepTaken
from axislab.frames.clock import Clock
from axislab.frames.columns import Column, Table, documented
from axislab.frames.history import history_of
from axislab.frames.source import RunsLike, runs_of
from axislab.trace.run import Run

if TYPE_CHECKING:
    import pandas as pd

ARROW = " → "
"""Between the stages of a path written as text."""


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step."""

    data: Mapping[str, Any]
    hidden: int | None
    seconds: float | None


def step_rows(run: Run) -> list[StepRow]:
    """The steps of a run."""
    records = list(run.trace.of(StepTaken.kind))
    clock = Clock(run)
    hidden = history_of(run).hidden_before([r.data.get("raw_count") for r in records])
    return [
        StepRow(record.data, n, clock.seconds(record))
        for record, n in zip(records, hidden, strict=True)
    ]


def path_text(row: StepRow) -> str | None:
    """The stages a step passed, as text."""
    path = row.data.get("stage_path")
    return ARROW.join(map(str, path)) if isinstance(path, Sequence) else None


STEPS: Table[StepRow] = Table(
    "steps",
    (
        Column("step", "Int64", "Number of the step, from 0 in each run.", "step"),
        Column(
            "operation",
            "string",
            "What was done: initialize, assistant, tools and others.",
            "operation",
        ),
        Column("stage", "string", "Stage after the step.", "stage"),
        Column("action", "string", "What comes next: call_model, execute_tools, done.", "action"),
        Column("rule", "string", "Rule of the decision chain; NA if no reply was judged.", "rule"),
        Column("level", "string", "Level of that rule: L1 to L7, or budget.", "level"),
        Column(
            "stage_path", "string", "Stages passed, joined by ' → ', the old one first.", path_text
        ),
        Column(
            "turn", "Int64", "Assistant turns so far; a rolled-back one does not count.", "turn"
        ),
        Column(
            "visible_count", "Int64", "Messages the model sees after the step.", "visible_count"
        ),
        Column("raw_count", "Int64", "Messages ever appended, markers included.", "raw_count"),
        Column(
            "hidden_count",
            "Int64",
            "Messages hidden so far, markers not counted.",
            lambda r: r.hidden,
        ),
        Column("rollback_count", "Int64", "Consecutive rollbacks.", "rollback_count"),
        Column(
            "rollback_reason", "string", "Why the step hid messages; NA if none.", "rollback_reason"
        ),
        Column(
            "rollback_message_count",
            "Int64",
            "Messages the step hid; NA if none.",
            "rollback_message_count",
        ),
        Column(
            "finalization_trigger",
            "string",
            "Why the final answer is forced.",
            "finalization_trigger",
        ),
        Column("done_reason", "string", "Why the conversation ended; NA before.", "done_reason"),
        Column(
            "estimated_tokens", "Int64", "Estimated tokens of the visible list.", "estimated_tokens"
        ),
        Column(
            "calibration_ratio", "Float64", "Factor learnt for the estimate.", "calibration_ratio"
        ),
        Column(
            "pending_calls",
            "Int64",
            "Tool calls still to be answered.",
            lambda r: _length(r.data.get("pending")),
        ),
        Column("seconds", "Float64", "Seconds since the run started.", lambda r: r.seconds),
    ),
    step_rows,
)


def _length(value: object) -> int | None:
    return len(value) if isinstance(value, Sequence) else None


@documented(STEPS)
def steps_df(data: RunsLike) -> pd.DataFrame:
    """One row a step of the conversation runtime.

    Args:
        data: A run, runs, a study, or the path of a trace or folder.

    Examples:
        >>> steps_df([]).dtypes["turn"]
        Int64Dtype()
    """
    return STEPS.frame(runs_of(data))
