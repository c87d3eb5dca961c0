"""Grading a run's answer by a model: asked, traced, and put into the run's last event."""

from __future__ import annotations

from dataclasses import replace

from axislab.answers.grader import AskGrader, ModelGrader
from axislab.borders import ends_us, text_of
from axislab.config import warn_once
from axislab.events import Emit, Graded, RunFinished
from axislab.orchestrator.finish import Ending
from axislab.tasks import Task


def has_verdict(ending: Ending, task: Task) -> bool:
    """Whether there is something to judge: a run broken from outside has no verdict."""
    broken = ending.failed_because is not None and ending.error_kind is not None
    return bool(task.answers) and not broken


async def graded(
    event: RunFinished, grader: ModelGrader, task: Task, *, ask: AskGrader, emit: Emit
) -> RunFinished:
    """The last event with the grader's verdict; without one `correct` stays unknown.

    Args:
        event: As it is without a verdict.
        grader: Whom to ask.
        task: What was asked, and what is expected.
        ask: Sends and traces a request of the grader.
        emit: Hears what the grader said.
    """
    try:
        grade = await grader.grade(event.answer, task.answers, question=task.prompt, ask=ask)
    except BaseException as error:  # a border: the grader may be given any model
        if ends_us(error):
            raise
        problem = f"the grader raised {type(error).__name__}: {text_of(error)}"
        warn_once(f"{problem}; `correct` and `score` stay unknown")
        return replace(event, error=event.error or problem, error_kind="scorer")
    emit(
        Graded(
            grader=grader.model.name,
            correct=grade.correct,
            votes=list(grade.votes),
            disagreement=grade.disagreement,
            cached=grade.cached,
            agrees_with_text=grade.agrees_with_text,
        )
    )
    return replace(event, correct=grade.correct, score=float(grade.correct))
