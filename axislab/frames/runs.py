"""runs_df: one row a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from axislab.errors import DataError
from axislab.events import (
    Graded,
    PhaseChanged,
    StepTaken,
)
from axislab.frames.columns import Column, Table, documented
from axislab.frames.source import RunsLike, runs_of
from axislab.frames.tools import tool_rows
from axislab.messages import ToolStatus, Usage
from axislab.runtime.markers import Rollback, parse_marker
from axislab.trace.derive import agent_requests, grading_usd
from axislab.trace.run import Run

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run, and its lines that are counted."""

    run: Run
    requests: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]]
    usage: Usage
    phases: Mapping[str, float | None]
    """Seconds in each phase the run was in; unknown where one was not measured."""

    def seconds_in(self, phase: str) -> float | None:
        """Seconds spent in a phase; unknown if phases were not recorded."""
        return self.phases.get(phase, 0.0) if self.phases else None

    def tools_that(self, status: str) -> int:
        """Tool calls that ended so."""
        return sum(t.get("status") == status for t in self.tools)

    @property
    def data(self) -> Mapping[str, Any]:
        """The header."""
        return self.run.trace.header


def run_rows(run: Run) -> list[RunRow]:
    """The one row of a run."""
    return [
        RunRow(
            run,
            requests=[r.data for r in agent_requests(run.trace)],
            tools=[row.data for row in tool_rows(run)],
            usage=run.usage,
            phases=_phases(run),
        )
    ]


def _phases(run: Run) -> dict[str, float | None]:
    seconds: dict[str, float | None] = {}
    for record in list(run.trace.of(PhaseChanged.kind)):
        phase, took = record.data.get("source"), record.data.get("seconds")
        if phase is not None:
            before = seconds.get(phase, 0.0)
            seconds[phase] = None if took is None or before is None else before + took
    return seconds


def _rollbacks(row: RunRow) -> int:
    return sum(isinstance(parse_marker(m), Rollback) for m in row.run.trace.full)


def _final_stage(row: RunRow) -> object:
    steps = row.run.trace.of(StepTaken.kind)
    return steps[-1].data.get("stage") if steps else None


def _grade(row: RunRow, name: str) -> object:
    grades = row.run.trace.of(Graded.kind)
    return grades[-1].data.get(name) if grades else None


def _started(row: RunRow) -> str | None:
    return row.run.started or None


def _completed(row: RunRow) -> str | None:
    finished = row.run.trace.finished
    return None if finished is None else finished.time


def _profile(row: RunRow) -> object:
    info = row.data.get("model_info")
    profile = info.get("profile") if isinstance(info, Mapping) else None
    return profile.get("name") if isinstance(profile, Mapping) else profile


def _on_run(name: str) -> Any:
    return lambda row: getattr(row.run, name)


def _usage(name: str) -> Any:
    return lambda row: getattr(row.usage, name)


def _cost_missing(row: RunRow) -> str | None:
    if row.run.cost_usd is not None:
        return None
    return next((q["cost_missing"] for q in row.requests if q.get("cost_missing")), None)


def _saved(name: str) -> Any:
    return lambda row: getattr(row.run.saved_usage, name)


RUNS: Table[RunRow] = Table(
    "runs",
    (
        Column("status", "string", "COMPLETED, FAILED, INTERRUPTED and others.", _on_run("status")),
        Column("correct", "boolean", "The scorer's verdict; NA without one.", _on_run("correct")),
        Column("answer", "string", "Answer found; NA if none.", _on_run("answer")),
        Column("expected", "string", "Answer wanted; NA if not known.", _on_run("expected")),
        Column("score", "Float64", "The scorer's score.", _on_run("score")),
        Column(
            "answer_status",
            "string",
            "ok, format_error, no_answer, exhausted, failed.",
            _on_run("answer_status"),
        ),
        Column(
            "grader_disagreement",
            "Float64",
            "Share of a grading model's votes against its verdict; NA without one.",
            lambda r: _grade(r, "disagreement"),
        ),
        Column(
            "grader_agrees_with_text",
            "boolean",
            "Comparing normalised texts gives its verdict, too; NA without one.",
            lambda r: _grade(r, "agrees_with_text"),
        ),
        Column(
            "grading_usd",
            "Float64",
            "What grading cost, in no other column.",
            lambda r: grading_usd(r.run.trace) if r.run.trace.of(Graded.kind) else None,
        ),
        Column("done_reason", "string", "Why the conversation ended.", _on_run("done_reason")),
        Column("kind", "string", "Kind of the task.", "task.metadata.kind"),
        Column(
            "cluster",
            "string",
            "Tasks of one cluster are not independent.",
            "task.metadata.cluster",
        ),
        Column("recipe", "string", "Name of the recipe.", "recipe.name"),
        Column("final_stage", "string", "Stage after the last step.", _final_stage),
        Column("error_kind", "string", "Kind of the error that ended it.", _on_run("error_kind")),
        Column("error", "string", "What went wrong, in a sentence.", _on_run("error")),
        Column("steps", "Int64", "Steps of the conversation runtime.", _on_run("steps")),
        Column("turns", "Int64", "Assistant turns that count.", _on_run("turns")),
        Column("rollbacks", "Int64", "Rollback markers.", _rollbacks),
        Column(
            "model_calls",
            "Int64",
            "Model calls, retries not counted.",
            lambda r: len({q.get("call") for q in r.requests}),
        ),
        Column("requests", "Int64", "Requests, retries counted.", lambda r: len(r.requests)),
        Column(
            "failed_requests",
            "Int64",
            "Requests without a reply.",
            lambda r: sum(q.get("outcome") != "ok" for q in r.requests),
        ),
        Column(
            "cached_requests",
            "Int64",
            "Requests not sent: the reply cache had the reply.",
            _on_run("cached_requests"),
        ),
        Column(
            "input_tokens",
            "Int64",
            "Prompt tokens sent; NA if any is unknown.",
            _usage("input_tokens"),
        ),
        Column("output_tokens", "Int64", "Reply tokens; NA likewise.", _usage("output_tokens")),
        Column(
            "uncached_tokens",
            "Int64",
            "Input at full price; NA likewise.",
            _usage("uncached_tokens"),
        ),
        Column(
            "cached_tokens", "Int64", "Input read from cache; NA likewise.", _usage("cached_tokens")
        ),
        Column(
            "cache_write_tokens",
            "Int64",
            "Input written to cache; NA likewise.",
            _usage("cache_write_tokens"),
        ),
        Column("reasoning_tokens", "Int64", "Thinking; NA likewise.", _usage("reasoning_tokens")),
        Column(
            "cost_usd", "Float64", "US dollars; NA if one reply's is unknown.", _on_run("cost_usd")
        ),
        Column("cost_missing", "string", "Why there is no price; NA if there is.", _cost_missing),
        Column(
            "saved_input_tokens",
            "Int64",
            "Prompt tokens of cached requests, in no other column.",
            _saved("input_tokens"),
        ),
        Column(
            "saved_output_tokens",
            "Int64",
            "Reply tokens of cached requests, in no other column.",
            _saved("output_tokens"),
        ),
        Column("saved_usd", "Float64", "What cached replies had cost.", _on_run("saved_usd")),
        Column(
            "tool_calls", "Int64", "Tool calls, rejected ones included.", lambda r: len(r.tools)
        ),
        Column(
            "tool_failures",
            "Int64",
            "Tool calls that failed.",
            lambda r: r.tools_that(ToolStatus.FAILED),
        ),
        Column(
            "tool_rejections",
            "Int64",
            "Tool calls that were not run.",
            lambda r: r.tools_that(ToolStatus.REJECTED),
        ),
        Column("seconds", "Float64", "Seconds the run took.", _on_run("seconds")),
        Column(
            "seconds_thinking",
            "Float64",
            "Seconds waiting for the model.",
            lambda r: r.seconds_in("THINKING"),
        ),
        Column(
            "seconds_tool_calling",
            "Float64",
            "Seconds checking and running tools.",
            lambda r: r.seconds_in("TOOL_CALLING"),
        ),
        Column(
            "seconds_observing",
            "Float64",
            "Seconds recording results.",
            lambda r: r.seconds_in("OBSERVING"),
        ),
        Column("started_at", "datetime64[us, UTC]", "Time of the first line.", _started),
        Column("completed_at", "datetime64[us, UTC]", "Time of the end; NA if open.", _completed),
        Column("recipe_fingerprint", "string", "Recipe used.", _on_run("recipe_fingerprint")),
        Column("profile", "string", "Failure profile of a simulated model.", _profile),
        Column("parent", "string", "Run this one was forked from.", _on_run("parent")),
        Column("fork_step", "Int64", "Step it was forked at.", _on_run("fork_step")),
    ),
    run_rows,
)


@documented(RUNS)
def runs_df(data: RunsLike, *, metadata: Sequence[str] = ()) -> pd.DataFrame:
    """One row a run: how it ended, and what it used.

    Args:
        data: A run, runs, a study, or the path of a trace or folder.
        metadata: Keys of the tasks' metadata, each a column more (`hops`, `topic`, …).

    Raises:
        DataError: A key that is a column already.

    Examples:
        >>> runs_df([]).groupby(["arm", "simulated"]).correct.mean().empty
        True
    """
    runs = list(runs_of(data))
    frame = RUNS.frame(runs)
    keys = [metadata] if isinstance(metadata, str) else list(metadata)
    if taken := [key for key in keys if key in frame.columns]:
        raise DataError(f"metadata={taken!r}: columns of that name are there already")
    for key in keys:
        frame[key] = [(run.task.get("metadata") or {}).get(key) for run in runs]
        frame[key] = frame[key].convert_dtypes()
    return frame
