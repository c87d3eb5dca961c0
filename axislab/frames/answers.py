"""answers_df: one row a call of the answer stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from axislab.events import AnswerTried, ModelRequested
from axislab.frames.clock import Clock
from axislab.frames.columns import Column, Table, documented
from axislab.frames.source import RunsLike, runs_of
from axislab.trace.run import Run

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One call of the answer stage."""

    data: Mapping[str, Any]
    requests: Sequence[Mapping[str, Any]]
    """Those of its model call."""
    seconds: float | None


def answer_rows(run: Run) -> list[AnswerRow]:
    """The calls of a run's answer stages; none where the last reply is simply read."""
    by_call: dict[int, list[Mapping[str, Any]]] = {}
    for row in list(run.trace.of(ModelRequested.kind)):
        by_call.setdefault(row.data["call"], []).append(row.data)
    clock = Clock(run)
    return [
        AnswerRow(record.data, by_call.get(record.data.get("call", -1), []), clock.seconds(record))
        for record in list(run.trace.of(AnswerTried.kind))
    ]


def _sum(name: str) -> Callable[[AnswerRow], object]:
    """The sum over the requests of a call; unknown if one of them does not say."""

    def of(row: AnswerRow) -> object:
        values = [request.get(name) for request in row.requests]
        known = [value for value in values if value is not None]
        return sum(known) if known and len(known) == len(values) else None

    return of


def from_one(name: str) -> Callable[[Any], object]:
    """A number that starts at 0 in the trace, from 1."""
    return lambda row: None if row.data.get(name) is None else row.data[name] + 1


def joined(name: str) -> Callable[[Any], object]:
    """The items of a list as text."""
    return lambda row: ", ".join(map(str, row.data.get(name) or ())) or None


ANSWERS: Table[AnswerRow] = Table(
    "answers",
    (
        Column("attempt", "Int64", "Try it belongs to, from 1.", from_one("try_number")),
        Column(
            "purpose",
            "string",
            "main_loop, final_answer 1/3, failure_summary and others.",
            "purpose",
        ),
        Column("number", "Int64", "Which of the calls for the same it is, from 1.", "number"),
        Column("of", "Int64", "How many there could have been.", "of"),
        Column(
            "outcome",
            "string",
            "ok; timeout, rate_limit, server, context, truncated, format, empty, refusal, auth, "
            "bad_request, other; right, wrong, unclear.",
            "outcome",
        ),
        Column("answer", "string", "Answer found in the reply; NA if none.", "answer"),
        Column("changed", "string", "What was asked otherwise than before.", joined("changed")),
        Column("error", "string", "Why the call failed; NA if it did not.", "error"),
        Column("call", "Int64", "Model call; NA for a reply of the main loop.", "call"),
        Column("requests", "Int64", "Requests of that call.", lambda r: len(r.requests)),
        Column("input_tokens", "Int64", "Prompt tokens; NA if unknown.", _sum("input_tokens")),
        Column("output_tokens", "Int64", "Reply tokens; NA if unknown.", _sum("output_tokens")),
        Column("cost_usd", "Float64", "US dollars; NA if unknown.", _sum("cost_usd")),
        Column("latency", "Float64", "Seconds of its requests.", _sum("latency")),
        Column("step", "Int64", "Number of the step that followed.", "step"),
        Column("seconds", "Float64", "Seconds since the run started.", lambda r: r.seconds),
    ),
    answer_rows,
)


@documented(ANSWERS)
def answers_df(data: RunsLike) -> pd.DataFrame:
    """One row a call of the answer stage; runs that only read their last reply have none.

    Args:
        data: A run, runs, a study, or the path of a trace or folder.

    Examples:
        >>> list(answers_df([]).columns[:5])
        ['run_id', 'task_id', 'arm', 'attempt', 'purpose']
    """
    return ANSWERS.frame(runs_of(data))
