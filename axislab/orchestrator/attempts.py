"""The multi-attempt loop: whole tries at a task, each told what those before it learnt.

Source: spec section 15, with rulings A11, A12 and A14. What happens within a try is none of its
business: it is given a function that makes one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from axislab.answers.extract import AnswerStatus
from axislab.answers.prompts import Experience
from axislab.answers.stage import EarlierTry as EarlierTry
from axislab.borders import ends_us, text_of
from axislab.errors import TraceError


@dataclass(frozen=True, slots=True)
class Try:
    """One attempt at the task, about to be made."""

    number: int
    """From 0."""
    final: bool
    """No other follows."""
    experiences: tuple[Experience, ...] = ()
    """What earlier tries learnt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TryOutcome:
    """What a try came to."""

    answer: str | None = None
    status: AnswerStatus | None = None
    """None reads ok with an answer and format_error without one."""
    failure_summary: str | None = None
    error: str | None = None
    """What broke the try: no further one follows (A11)."""

    @property
    def verdict(self) -> AnswerStatus:
        """The status; never ok where something broke."""
        if self.error is not None:
            return self.status if self.status is AnswerStatus.EXHAUSTED else AnswerStatus.FAILED
        if self.answer is not None:
            return AnswerStatus.OK
        return AnswerStatus.FORMAT_ERROR if self.status is None else self.status


@dataclass(frozen=True, slots=True, kw_only=True)
class TriesResult:
    """What the whole loop came to: an answer, or a status that says why there is none."""

    status: AnswerStatus
    answer: str | None = None
    """Never a text about an error (A12)."""
    error: str | None = None
    made: tuple[Try, ...] = field(default=())
    """The tries made here; those of an earlier life are not repeated."""


MakeTry = Callable[[Try], Awaitable[TryOutcome]]
"""Makes one try; what it raises ends the loop as failed."""


async def run_tries(
    tries: int, make: MakeTry, *, earlier: Sequence[EarlierTry] = ()
) -> TriesResult:
    """Try until there is an answer, something breaks, or all tries are used up.

    Args:
        tries: How many, those made earlier included.
        make: Makes one; what it raises ends the loop as failed, but for what ends the task.
        earlier: Tries of an earlier life, in order. A finished one is not repeated, one that was
            cut off is, and an answer among them ends the loop.

    Raises:
        TraceError: An event could not be recorded.
    """
    for past in earlier:
        if past.finished and past.answer is not None:
            return TriesResult(status=AnswerStatus.OK, answer=past.answer)
    learnt = [
        Experience(past.number + 1, past.failure_summary)
        for past in earlier
        if past.finished and past.failure_summary
    ]
    made: list[Try] = []
    status = AnswerStatus.FORMAT_ERROR
    for number in range(_next(earlier), tries):
        one = Try(number, number == tries - 1, tuple(learnt))
        made.append(one)
        try:
            outcome = await make(one)
        except TraceError:
            raise
        except Exception as problem:
            if ends_us(problem):
                raise
            outcome = TryOutcome(error=text_of(problem) or type(problem).__name__)
        status, error = outcome.verdict, outcome.error
        if error is not None or outcome.answer is not None:
            answer = outcome.answer if error is None else None
            return TriesResult(status=status, answer=answer, error=error, made=tuple(made))
        if outcome.failure_summary:
            learnt.append(Experience(number + 1, outcome.failure_summary))
    return TriesResult(status=status, made=tuple(made))


def _next(earlier: Sequence[EarlierTry]) -> int:
    """Number of the next try: a try that was cut off is made again."""
    if not earlier:
        return 0
    newest = max(earlier, key=lambda one: one.number)
    return newest.number + int(newest.finished)
