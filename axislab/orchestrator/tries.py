"""The tries of a run: main loop, answer stage, and what later tries are told of earlier ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from axislab.answers.extract import AnswerStatus, Extraction
from axislab.answers.generator import AnswerGenerator
from axislab.answers.prompts import with_experiences
from axislab.answers.stage import (
    PROVIDER_KINDS,
    AnswerAttempt,
    AnswerCall,
    AnswerResult,
    AnswerSource,
    GivenReply,
    SummaryKind,
)
from axislab.errors import ErrorKind, ModelError
from axislab.events import AnswerTried, Emit, TryFinished
from axislab.messages import Message, Role
from axislab.models.base import ModelReply
from axislab.orchestrator.attempts import EarlierTry, TriesResult, Try, TryOutcome, run_tries
from axislab.orchestrator.finish import Ending, Verdict
from axislab.orchestrator.steps import StepLog
from axislab.runtime.conversation import ConversationRuntime
from axislab.runtime.info import ConversationStepResult
from axislab.runtime.prompts import render_task
from axislab.runtime.stages import ConversationStage, FinalizationTrigger

if TYPE_CHECKING:
    from axislab.orchestrator.task import TaskOrchestrator

BUDGET_EXHAUSTED = "budget_exhausted"
"""Done reason of a run that a ceiling of the lab left no room for."""

SAFETY_LIMIT = "terminated_loop_safety_limit"
"""Done reason of a main loop that would not end; an answer can still be asked for."""

_CUT_OFF = (FinalizationTrigger.TURN_LIMIT, FinalizationTrigger.CONTEXT_LIMIT, SAFETY_LIMIT)


class TryLoop:
    """Makes the tries of one run, and is the host of their answer stages.

    Args:
        run: The run; its `verdict` is set when the loop is over.
        log: Where steps are written.
        emit: Receives events.
        earlier: Tries of an earlier life of the run.
    """

    def __init__(
        self,
        run: TaskOrchestrator,
        *,
        log: StepLog,
        emit: Emit,
        earlier: Sequence[EarlierTry] = (),
    ) -> None:
        self._run = run
        self._log = log
        self._emit = emit
        self._earlier = tuple(earlier)
        self._config = run.recipe.config
        self._policy = run.recipe.config.answer
        self._kind = _text(run.task.metadata.get("kind"))
        self._ending: Ending | None = None
        self._try = 0
        rules = frozenset(self._policy.answer_retries)
        self._once = bool(rules & PROVIDER_KINDS)
        self._generator = AnswerGenerator(
            self, self._policy, config=self._config.conversation, sampling=self._config.sampling
        )

    async def run(self) -> Ending:
        """Make tries until one gives an answer, something breaks, or none is left."""
        came = await run_tries(self._policy.tries, self._make, earlier=self._earlier)
        self._run.verdict = Verdict(came.answer, came.status)
        return self._ending or _resumed(came)

    async def _make(self, one: Try) -> TryOutcome:
        try:
            return await self._made(one)
        except Exception as problem:  # a hook's or rule's: kept for whoever asks for the cause
            self._ending = Ending.broken(problem)
            raise

    async def _made(self, one: Try) -> TryOutcome:
        started, self._try = self._run.now(), one.number
        before = self._run.runtime.turn_idx
        ending = await self._main_loop(one)
        trigger = self._run.runtime.finalization_trigger
        endless = ending is not None and ending.done_reason == SAFETY_LIMIT
        if endless and self._policy.answer_stage == "always":
            ending, trigger = None, SAFETY_LIMIT
        cut_off = trigger in _CUT_OFF
        turns = self._run.runtime.turn_idx - before
        broken = _broken(ending)
        if broken is not None:
            self._ending = ending
            self._tell_try(one, broken, None, cut_off=cut_off, turns=turns, started=started)
            return broken
        if ending is not None and self._no_room:
            outcome, self._ending = TryOutcome(status=AnswerStatus.EXHAUSTED), ending
            self._tell_try(
                one,
                outcome,
                None,
                cut_off=True,
                turns=turns,
                started=started,
                main_end=ending.done_reason,
            )
            return outcome
        result = await self._answer(one, ending, cut_off=cut_off)
        outcome = _outcome(result)
        self._ending = self._ending_of(result, ending)
        main_end = ending.done_reason if ending else str(trigger)
        self._tell_try(
            one, outcome, result, cut_off=cut_off, turns=turns, started=started, main_end=main_end
        )
        return outcome

    async def _main_loop(self, one: Try) -> Ending | None:
        task = self._run.task.prompt
        text = None
        if one.number:
            template = self._config.conversation.user_prompt_template
            text = render_task(template, with_experiences(task, one.experiences))
            if not len(self._run.runtime.full):  # resumed: the first try was an earlier life's
                self.record(self._run.runtime.initialize_conversation(task))
        return await self._run.main_loop(text, stops_forced=lambda: self._leaves(one))

    @property
    def _no_room(self) -> bool:
        """The window is full: another call for the answer could not be sent."""
        return self._log.last is not None and bool(self._log.last.context_budget_stop)

    def _leaves(self, one: Try) -> bool:
        """Whether the answer stage takes over where the main loop would force the answer."""
        cut_off = self._run.runtime.finalization_trigger in _CUT_OFF
        decision = self._policy.decide(final=one.final, cut_off=cut_off, kind=self._kind)
        return self._policy.answer_stage == "always" or not decision.generate

    async def _answer(self, one: Try, ending: Ending | None, *, cut_off: bool) -> AnswerResult:
        given = None
        if self._policy.answer_stage == "if_needed" and ending is not None:
            given = self._last_reply()
        return await self._generator.generate_and_finalize_answer(
            self._run.task.prompt,
            cut_off=cut_off and ending is None,
            final=one.final,
            kind=self._kind,
            intermediate=self._run.intermediate,
            given=given,
        )

    def _last_reply(self) -> GivenReply:
        """The reply that ended the conversation; a direct answer is one as it stands."""
        for message in self._run.runtime.visible.newest_first():
            if message.role is Role.ASSISTANT:
                last = self._log.last
                direct = None if last is None else last.direct_final_answer
                cut = self._run.runtime.stage is ConversationStage.TOKEN_EXCEEDED
                finish = "length" if cut else None
                return GivenReply(message.text, finish, answer=direct)
        return GivenReply("", None)

    def _ending_of(self, result: AnswerResult, main: Ending | None) -> Ending:
        """How the run ends, should this try be its last."""
        if result.error is not None and result.answer is None:
            error = result.error
            stopped = error.kind is ErrorKind.BUDGET
            reason = BUDGET_EXHAUSTED if stopped else f"model_error: {error}"
            return Ending.failed(reason, str(error), error=error)
        done = self._log.done_reason
        if result.source is AnswerSource.INTERMEDIATE:
            return Ending.done("answer_fallback")
        return Ending.done(done or (main.done_reason if main else "answer_skipped"))

    def _tell_try(
        self,
        one: Try,
        outcome: TryOutcome,
        result: AnswerResult | None,
        *,
        cut_off: bool,
        turns: int,
        started: float,
        main_end: str | None = None,
    ) -> None:
        summary = None if result is None else result.failure_summary
        self._emit(
            TryFinished(
                number=one.number,
                final=one.final,
                status=str(outcome.verdict),
                source=str(AnswerSource.NONE if result is None else result.source),
                summary_kind=str(
                    SummaryKind.NONE_GENERATED if result is None else result.summary_kind
                ),
                cut_off=cut_off,
                main_turns=turns,
                step=self._log.next_step,
                answer=outcome.answer,
                failure_summary=None if summary is None else summary.text,
                summary_quality=None if summary is None else summary.quality.score,
                summary_calls=None if summary is None else summary.calls,
                experiences=[e.number for e in one.experiences] or None,
                intermediate=list(self._run.intermediate),
                main_end=main_end if outcome.error is None else None,
                error=outcome.error,
                seconds=round(self._run.now() - started, 6),
            )
        )

    # What an answer stage asks of its host ---------------------------------------------------

    @property
    def runtime(self) -> ConversationRuntime:
        """The run's conversation."""
        return self._run.runtime

    async def ask(self, call: AnswerCall) -> ModelReply:
        """Call the run's model.

        Raises:
            ModelError: It did not reply.
        """
        return await self._run.request(
            call.purpose, call.messages, sampling=call.sampling, once=self._once
        )

    def message_of(self, reply: ModelReply) -> Message:
        """The reply as a message."""
        return self._run.message_of(reply)

    def find(self, text: str) -> Extraction:
        """The answer in a text, by the recipe's format."""
        return self._run.recipe.find_answer(text)

    def record(self, result: ConversationStepResult) -> object:
        """Write a step."""
        return self._log.record(result)

    def tell(self, attempt: AnswerAttempt) -> None:
        """Write an attempt."""
        self._emit(
            AnswerTried(
                try_number=self._try,
                number=attempt.number,
                of=attempt.of,
                purpose=attempt.purpose,
                outcome=attempt.outcome,
                step=self._log.next_step,
                answer=attempt.answer,
                error=attempt.error,
                changed=list(attempt.changed) or None,
                call=None if attempt.purpose == "main_loop" else self._run.calls - 1,
            )
        )


def _outcome(result: AnswerResult) -> TryOutcome:
    summary = result.failure_summary
    stopped = result.error is not None and result.error.kind is ErrorKind.BUDGET
    return TryOutcome(
        answer=result.answer,
        status=result.status,
        failure_summary=None if summary is None else summary.text,
        error=str(result.error) if stopped else None,
    )


def _broken(ending: Ending | None) -> TryOutcome | None:
    """The outcome of a try whose main loop came to no end of its own."""
    if ending is None or ending.failed_because is None:
        return None
    stopped = isinstance(ending.cause, ModelError) and ending.cause.kind is ErrorKind.BUDGET
    status = AnswerStatus.EXHAUSTED if stopped else AnswerStatus.FAILED
    return TryOutcome(status=status, error=ending.failed_because)


def _resumed(came: TriesResult) -> Ending:
    """The end of a run whose earlier life left nothing to do, or whose try raised."""
    if came.error is not None:
        return Ending.failed("error: try", came.error)
    return Ending.done("answered_before" if came.answer is not None else "tries_exhausted")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
