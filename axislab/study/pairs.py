"""pairs_df: one row a pair of a study, beside the baseline's run of the same task and repeat."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from axislab.errors import DataError
from axislab.study.frame import Field, documented, frame_of
from axislab.study.outcomes import Outcome
from axislab.study.study import Study

if TYPE_CHECKING:
    import pandas as pd

PAIRS: tuple[Field, ...] = (
    Field("task_id", "string", "Id of the task."),
    Field("repeat", "Int64", "Number of the repeat, from 0."),
    Field("arm", "string", "Name of the arm."),
    Field("order", "Int64", "Place in the plan, from 0."),
    Field("state", "string", "finished, to do, or set aside: run, and to be run anew."),
    Field("run_id", "string", "Id of the run that counts; NA if there is none."),
    Field("set_aside", "Int64", "Runs of this pair that do not count."),
    Field("counted", "boolean", "False for a copy of another run; NA if not finished."),
    Field("copy_of", "string", "The run it is a copy of."),
    Field("end", "string", "answered, format_error, refused, exhausted or failed."),
    Field("correct", "boolean", "The scorer's verdict; NA without one."),
    Field("score", "Float64", "The scorer's score."),
    Field("minus", "string", "The baseline; NA in its own rows."),
    Field("correct_minus", "boolean", "The baseline's verdict on the same task and repeat."),
    Field("score_minus", "Float64", "The baseline's score."),
    Field("difference", "Float64", "1, 0 or -1: right alone, alike, wrong alone."),
    Field("turns", "Int64", "Turns."),
    Field("tokens", "Int64", "Input and output together; NA if not known."),
    Field("tokens_minus", "Int64", "The baseline's."),
    Field("cached", "Int64", "Requests that the reply cache answered."),
    Field("cost_usd", "Float64", "US dollars needed; NA if not known."),
    Field("seconds", "Float64", "Seconds the run took."),
    Field("error", "string", "What went wrong, in a sentence."),
    Field("kind", "string", "Kind of the task."),
    Field("cluster", "string", "Tasks of one cluster are not independent."),
    Field("study", "string", "The study's own name."),
    Field("simulated", "boolean", "No real language model answered."),
)


@documented(PAIRS, indent=4)
def pairs_df(study: Study) -> pd.DataFrame:
    """One row for each pair of a study, in the order of the plan.

    A pair is one arm on one task, for one repeat.

    Args:
        study: What `lab.compare` or `load_study` gave.

    Raises:
        DataError: Not a study.
    """
    if not isinstance(study, Study):
        raise DataError(f"{type(study).__name__} is no study: give what lab.compare(…) returned")
    return frame_of(PAIRS, _rows(study))


def _rows(study: Study) -> Iterator[Mapping[str, object]]:
    copies = {copy.run_id: copy.of for copy in study.values.independence.copies}
    broken = study.book.broken_of
    base = {
        (pair.task_id, pair.repeat): study.book.outcome(pair)
        for pair in study.book.pairs
        if pair.arm == study.baseline
    }
    for order, pair in enumerate(study.book.pairs):
        found = study.book.outcome(pair)
        other = base[pair.task_id, pair.repeat] if pair.arm != study.baseline else None
        aside = len(broken(pair))
        yield {
            "task_id": pair.task_id,
            "repeat": pair.repeat,
            "arm": pair.arm,
            "order": order,
            "state": "finished" if found else "set aside" if aside else "to do",
            "set_aside": aside,
            "cluster": study.manifest.clusters.get(pair.task_id),
            "study": study.name,
            "simulated": study.simulated,
            "minus": None if pair.arm == study.baseline else study.baseline,
            **(_figures(found, copies) if found else {}),
            **(_beside(found, other) if other else {}),
        }


def _figures(found: Outcome, copies: Mapping[str, str]) -> dict[str, object]:
    return {
        "run_id": found.run_id,
        "counted": found.run_id not in copies,
        "copy_of": copies.get(found.run_id),
        "end": found.end,
        "correct": found.correct,
        "score": found.score,
        "turns": found.turns,
        "tokens": found.tokens,
        "cached": found.cached_requests,
        "cost_usd": found.cost_usd,
        "seconds": found.seconds,
        "error": found.error,
        "kind": found.kind,
    }


def _beside(found: Outcome | None, other: Outcome) -> dict[str, object]:
    apart = None
    if found is not None and found.correct is not None and other.correct is not None:
        apart = float(found.correct) - float(other.correct)
    return {
        "correct_minus": other.correct,
        "score_minus": other.score,
        "tokens_minus": other.tokens,
        "difference": apart,
    }
