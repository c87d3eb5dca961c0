"""How a run ended, what its answer is and whether it is right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from axislab.answers.extract import AnswerStatus
from axislab.answers.grader import ModelGrader
from axislab.answers.scorers import Score, score
from axislab.borders import ends_us, text_of
from axislab.config import warn_once
from axislab.errors import AxislabError, ModelError
from axislab.events import RunFinished
from axislab.recipe import Recipe
from axislab.runtime.info import ConversationStepInfo
from axislab.tasks import Task

_OUT_OF_TOKENS = "terminated_token_exceed"
_REJECTED = "assistant_tool_calls_rejected_due_to_force_finalization"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Why a run came to its end."""

    done_reason: str
    failed_because: str | None = None
    """What went wrong outside the conversation; None if the conversation itself ended."""
    error_kind: str | None = None
    cause: BaseException | None = None
    """The exception itself, for this process only."""

    @classmethod
    def done(cls, done_reason: str) -> Self:
        """The conversation reached one of its four ends."""
        return cls(done_reason=done_reason)

    @classmethod
    def failed(cls, done_reason: str, because: str, *, error: ModelError | None = None) -> Self:
        """The run cannot go on."""
        kind = None if error is None else str(error.kind)
        return cls(done_reason=done_reason, failed_because=because, error_kind=kind, cause=error)

    @classmethod
    def broken(cls, problem: BaseException) -> Self:
        """Code raised: a hook, a rule, or ours."""
        kind = type(problem).__name__
        said = text_of(problem)
        text = said if isinstance(problem, AxislabError) else f"{kind}: {said}" if said else kind
        return cls(
            done_reason=f"error: {kind}", failed_because=text, error_kind=kind, cause=problem
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the tries of a run came to, where more happens than reading its last reply."""

    answer: str | None
    status: AnswerStatus


def finished_event(
    ending: Ending,
    *,
    output: str,
    recipe: Recipe,
    task: Task,
    last: ConversationStepInfo | None,
    steps: int,
    turns: int,
    seconds: float,
    verdict: Verdict | None = None,
) -> RunFinished:
    """The last event: status, answer and score.

    A conversation that ran out of tokens is FAILED; one whose forced reply called tools is, too,
    unless an answer stands beside the calls. A run broken from outside has no verdict, nor has
    one whose scorer raised: the agent did its part, so its status stays. A verdict of an answer
    stage takes the place of what the last reply says.
    """
    found = recipe.find_answer(output)
    direct = None if last is None else last.direct_final_answer
    answer = direct if direct is not None else found.answer
    status = AnswerStatus.OK if direct is not None else found.status
    if verdict is not None:
        answer, status = verdict.answer, verdict.status
    broken = ending.failed_because is not None
    failed = (
        broken
        or ending.done_reason == _OUT_OF_TOKENS
        or (ending.done_reason == _REJECTED and answer is None)
    )
    judged = _Judged()
    waits = isinstance(recipe.scorer, ModelGrader)  # asked when the rest is settled
    if task.answers and not waits and not (broken and ending.error_kind is not None):
        judged = _judge(answer, task, recipe)
    error = ending.failed_because or judged.problem
    if failed and error is None:
        error = _why(ending.done_reason, last, recipe)
    return RunFinished(
        status="FAILED" if failed else "COMPLETED",
        done_reason=ending.done_reason,
        output=output,
        answer=answer,
        answer_status=str(status),
        correct=None if judged.score is None else judged.score.correct,
        score=None if judged.score is None else judged.score.value,
        error=error,
        error_kind="scorer" if judged.problem else ending.error_kind,
        steps=steps,
        turns=turns,
        seconds=round(seconds, 6),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    score: Score | None = None
    problem: str | None = None


def _judge(answer: str | None, task: Task, recipe: Recipe) -> _Judged:
    """What the scorer says; it may be the user's, so this is a border."""
    try:
        return _Judged(score=score(answer, task.answers, recipe.scorer))
    except BaseException as error:
        if ends_us(error):
            raise
        problem = f"the scorer raised {type(error).__name__}: {text_of(error)}"
        warn_once(f"{problem}; `correct` and `score` stay unknown")
        return _Judged(problem=problem)


def _why(done_reason: str, last: ConversationStepInfo | None, recipe: Recipe) -> str:
    """One sentence on a conversation that came to a bad end by itself."""
    if done_reason == _REJECTED:
        return "the model called tools when it had to give its final answer"
    if last is not None and last.context_budget_stop:
        window = recipe.config.conversation.context_limit.window
        return f"no room for an answer is left in the context window of {window} tokens"
    limit = recipe.config.sampling.max_output_tokens
    return f"the last reply was cut by length (max_output_tokens={limit})"
