"""attempts_df: one row a whole try at the task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from axislab.events import AnswerTried, RunFinished, TryFinished
from axislab.frames.answers import from_one, joined
from axislab.frames.clock import Clock
from axislab.frames.columns import Column, Table, documented
from axislab.frames.source import RunsLike, runs_of
from axislab.trace.run import Run
from axislab.trace.trace import Record

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One whole try."""

    data: Mapping[str, Any]
    run: Run
    last: bool
    answer_calls: int | None
    seconds: float | None


def attempt_rows(run: Run) -> list[AttemptRow]:
    """The tries of a run; a run whose policy knows no further ones was one try."""
    clock = Clock(run)
    tries = list(run.trace.of(TryFinished.kind))
    if not tries:
        ends = list(run.trace.of(RunFinished.kind))
        return [AttemptRow(_single(r, run), run, True, 0, clock.seconds(r)) for r in ends[-1:]]
    calls = list(run.trace.of(AnswerTried.kind))
    return [
        AttemptRow(
            record.data,
            run,
            last=record is tries[-1],
            answer_calls=_answer_calls(calls, record.data["number"]),
            seconds=clock.seconds(record),
        )
        for record in tries
    ]


def _answer_calls(calls: Sequence[Record], number: int) -> int:
    return sum(
        r.data["try_number"] == number and r.data["purpose"].startswith("final_answer")
        for r in calls
    )


def _single(end: Record, run: Run) -> dict[str, Any]:
    """A run without an answer stage, as the one try it was."""
    answer = end.data.get("answer")
    return {
        "number": 0,
        "final": True,
        "status": end.data.get("answer_status"),
        "source": "none" if answer is None else "final_text",
        "summary_kind": "answer" if end.data.get("output") else "none_generated",
        "main_turns": end.data.get("turns"),
        "answer": answer,
        "main_end": end.data.get("done_reason"),
        "error": end.data.get("error"),
        "seconds": end.data.get("seconds"),
    }


ATTEMPTS: Table[AttemptRow] = Table(
    "attempts",
    (
        Column("attempt", "Int64", "Number of the try, from 1.", from_one("number")),
        Column("final", "boolean", "No other could follow.", "final"),
        Column("last", "boolean", "No other did.", lambda r: r.last),
        Column("status", "string", "ok, format_error, no_answer, exhausted, failed.", "status"),
        Column("answer", "string", "Its answer; NA if none.", "answer"),
        Column(
            "correct",
            "boolean",
            "The scorer's verdict on the run; NA but for its last try.",
            lambda r: r.run.correct if r.last else None,
        ),
        Column(
            "source",
            "string",
            "Where the answer is from: final_text, intermediate, none.",
            "source",
        ),
        Column("summary_kind", "string", "answer, none_generated or skipped.", "summary_kind"),
        Column("cut_off", "boolean", "The main loop ran out of turns or context.", "cut_off"),
        Column("main_end", "string", "Why the main loop ended.", "main_end"),
        Column("main_turns", "Int64", "Turns of the main loop.", "main_turns"),
        Column(
            "answer_calls",
            "Int64",
            "Calls for the final answer after it.",
            lambda r: r.answer_calls,
        ),
        Column(
            "intermediate",
            "Int64",
            "Replies of the main loop that held an answer.",
            lambda r: None if (n := r.data.get("intermediate")) is None else len(n),
        ),
        Column("failure_summary", "string", "What later tries are told.", "failure_summary"),
        Column("summary_quality", "Float64", "Its score, 0 to 1.", "summary_quality"),
        Column("summary_calls", "Int64", "How often it was asked for.", "summary_calls"),
        Column("experiences", "string", "Tries whose accounts it was told.", joined("experiences")),
        Column("error", "string", "What broke it; NA if nothing did.", "error"),
        Column("try_seconds", "Float64", "Seconds it took.", "seconds"),
        Column("seconds", "Float64", "Seconds since the run started.", lambda r: r.seconds),
    ),
    attempt_rows,
)


@documented(ATTEMPTS)
def attempts_df(data: RunsLike) -> pd.DataFrame:
    """One row a whole try at the task.

    Args:
        data: A run, runs, a study, or the path of a trace or folder.

    Examples:
        >>> attempts_df([]).dtypes["attempt"]
        Int64Dtype()
    """
    return ATTEMPTS.frame(runs_of(data))
