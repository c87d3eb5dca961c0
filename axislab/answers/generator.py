"""AnswerGenerator: the end of a try, from the last prompt to an answer, or an account of failure.

Source: seed 002 and spec section 14, with rulings A1 to A5 and A20. The conversation is never
edited in place: every reply is a message, and one that gave no answer is hidden by a marker. A
call that failed leaves the conversation as it was, and is not the same as an empty reply.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from axislab.answer_policy import AnswerPolicy, AnswerRetry, AttemptKind, StageDecision
from axislab.answers.extract import AnswerStatus
from axislab.answers.failure import FailureSummary, failure_summary_text, summary_quality
from axislab.answers.prompts import DOUBTED, failure_messages, fill, form_of, open_end
from axislab.answers.stage import (
    AnswerAttempt,
    AnswerCall,
    AnswerHost,
    AnswerResult,
    AnswerSource,
    GivenReply,
    SummaryKind,
    kind_of,
    total,
)
from axislab.config import ConversationConfig, Sampling
from axislab.errors import ErrorKind, ModelError
from axislab.messages import Message, Usage
from axislab.runtime.detectors import make_detector
from axislab.runtime.stages import ConversationStage, StepAction

_FINISHED = (None, "stop", "length")
"""Finish reasons of a reply that can be an answer; any other makes it a failed call."""
_VERDICT = re.compile(r"VERDICT\W+(RIGHT|WRONG)", re.I)


@dataclass(slots=True)
class _Work:
    """What one stage has come to so far."""

    attempts: list[AnswerAttempt] = field(default_factory=list)
    usages: list[Usage | None] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    text: str = ""
    came: bool = False
    """The newest call for an answer brought a text, or one that was cut by length."""
    answer: str | None = None
    error: ModelError | None = None
    shown: bool = False
    """The newest reply stands at the end of the visible list and gave no answer."""
    stopped: bool = False
    """A ceiling of the lab leaves no room for another call."""


class AnswerGenerator:
    """Asks for the final answer of one try, under a policy.

    Args:
        host: The conversation, and the way to its model.
        policy: What to do.
        config: How the conversation reads refusals and renders tool results.
        sampling: How the model is asked, but for what a retry changes.
        sleep: Waits between calls.
    """

    def __init__(
        self,
        host: AnswerHost,
        policy: AnswerPolicy,
        *,
        config: ConversationConfig | None = None,
        sampling: Sampling | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        config = ConversationConfig() if config is None else config
        self._host = host
        self._policy = policy
        self._sampling = Sampling() if sampling is None else sampling
        self._as_text = config.tool_result_role == "user"
        self._detector = make_detector(config)
        self._sleep = sleep

    async def generate_and_finalize_answer(
        self,
        task: str,
        *,
        cut_off: bool = False,
        final: bool = True,
        kind: str | None = None,
        intermediate: Sequence[str] = (),
        given: GivenReply | None = None,
    ) -> AnswerResult:
        """Go through the stage.

        Args:
            task: What was asked, without the accounts of earlier tries.
            cut_off: The main loop ran out of turns or context.
            final: This is the last try, or the only one.
            kind: Kind of the task, for its fallback.
            intermediate: Answers that replies of the main loop held, oldest first.
            given: The reply that ended the conversation, where it is the first attempt.

        Returns:
            What it came to. No error of a model is raised, but one of a lab's ceiling ends the
            stage: its status is then EXHAUSTED.
        """
        decision = self._policy.decide(final=final, cut_off=cut_off, kind=kind)
        work = _Work()
        if decision.generate:
            await self._final_answer(task, given, work)
            if work.answer is not None and self._policy.verify_answer == "second_opinion":
                await self._second_opinion(task, work)
        fallback = work.answer is None and decision.fallback and bool(intermediate)
        answer = intermediate[-1] if fallback else work.answer
        wanted = answer is None and decision.summary != "never" and not work.stopped
        summary = await self._failure_summary(task, work) if wanted else None
        source = AnswerSource.INTERMEDIATE if fallback else AnswerSource.FINAL_TEXT
        return AnswerResult(
            answer=answer,
            status=_status(answer, work, decision),
            source=source if answer is not None else AnswerSource.NONE,
            summary_kind=_summary_kind(work, decision),
            text=work.text,
            attempts=tuple(work.attempts),
            failure_summary=summary,
            summary_requested=wanted,
            usage=total(work.usages),
            error=work.error,
        )

    # The final answer ------------------------------------------------------------------------

    async def _final_answer(self, task: str, given: GivenReply | None, work: _Work) -> None:
        prompt: str | None = self._filled(self._policy.final_prompt, task)
        sampling, of = self._sampling, self._policy.answer_attempts
        changed: tuple[str, ...] = ()
        number = 1
        if given is not None:
            self._take(given, work, _Call(1, of, "main_loop"))
            number = 2
        prompted = False
        while work.answer is None and number <= of and not work.stopped:
            if work.attempts:
                rule = self._policy.answer_retries.get(work.attempts[-1].outcome)
                count = work.kinds[work.attempts[-1].outcome]
                if rule is not None:
                    if count >= rule.attempts:
                        return
                    if rule.backoff:
                        await self._sleep(rule.backoff * 2.0 ** (count - 1))
                    new = _changed(sampling, rule)
                    sampling, changed = new.sampling, new.names
                    if rule.prompt is not None:
                        prompt = self._filled(rule.prompt, task)
            self._open(prompt, work, replaces=prompted)
            prompt, prompted = None, True
            call = _Call(number, of, f"final_answer {number}/{of}", changed)
            await self._attempt(call, sampling, work)
            number += 1

    def _open(self, prompt: str | None, work: _Work, *, replaces: bool) -> None:
        """Hide what gave no answer, append the prompt, and wait for a reply.

        Args:
            prompt: The prompt; None if the one that stands is to be answered again.
            work: The stage so far.
            replaces: A final prompt of ours stands there already.
        """
        runtime = self._host.runtime
        if replaces:
            hide = int(work.shown) + int(prompt is not None)
        else:
            hide = open_end(runtime.visible, results_as_text=self._as_text)
        work.shown = False
        if hide or prompt is not None or runtime.stage is not ConversationStage.FORCE_FINAL:
            self._host.record(runtime.ask_for_answer(prompt, hide=hide))

    async def _attempt(self, call: _Call, sampling: Sampling, work: _Work) -> None:
        runtime = self._host.runtime
        work.text, work.came, work.error = "", False, None
        try:
            reply = await self._host.ask(
                AnswerCall(purpose=call.purpose, messages=runtime.visible, sampling=sampling)
            )
        except ModelError as error:
            work.error = error
            work.stopped = error.kind is ErrorKind.BUDGET
            self._note(call, str(kind_of(error)), work, error=str(error))
            return
        work.usages.append(reply.usage)
        message = self._host.message_of(reply)
        self._host.record(runtime.apply_assistant_message(message, reply.finish_reason))
        if reply.finish_reason not in _FINISHED or runtime.action is not StepAction.DONE:
            self._withdraw()
            filtered = reply.finish_reason == "content_filter"
            kind = AttemptKind.REFUSAL if filtered else AttemptKind.FORMAT
            self._note(call, kind, work, error=f"finish reason {reply.finish_reason!r}")
            return
        work.shown = True
        self._judge(message.text, reply.finish_reason, work, call)

    def _withdraw(self) -> None:
        """Hide a reply that is no answer at all: the call counts as failed (A1)."""
        runtime = self._host.runtime
        if runtime.action is StepAction.DONE:
            self._host.record(runtime.withdraw_answer())
        else:
            self._host.record(runtime.ask_for_answer(hide=1))

    def _take(self, given: GivenReply, work: _Work, call: _Call) -> None:
        """The reply that ended the conversation is the first attempt."""
        if given.answer is None:
            self._judge(given.text, given.finish_reason, work, call)
            work.shown = False  # it stays in sight: only replies of this stage are hidden
            return
        work.answer, work.text, work.came = given.answer, given.text, True
        self._note(call, "ok", work, answer=given.answer)

    def _judge(self, text: str, finish: str | None, work: _Work, call: _Call) -> None:
        """Look for the answer in a reply."""
        found = self._host.find(text)
        work.text, work.came = text, bool(text.strip()) or finish == "length"
        work.error = None
        if found.status is AnswerStatus.OK:
            work.answer, work.shown = found.answer, False
            self._note(call, "ok", work, answer=found.answer)
        elif finish == "length":
            self._note(call, AttemptKind.TRUNCATED, work)
        elif not text.strip():
            self._note(call, AttemptKind.EMPTY, work)
        else:
            refused = bool(self._detector.refusals(text))
            self._note(call, AttemptKind.REFUSAL if refused else AttemptKind.FORMAT, work)

    def _note(
        self,
        call: _Call,
        outcome: str,
        work: _Work,
        *,
        answer: str | None = None,
        error: str | None = None,
    ) -> None:
        attempt = AnswerAttempt(
            number=call.number,
            of=call.of,
            purpose=call.purpose,
            outcome=str(outcome),
            answer=answer,
            error=error,
            changed=call.changed,
        )
        work.kinds[attempt.outcome] += 1
        work.attempts.append(attempt)
        self._host.tell(attempt)

    def _filled(self, template: str, task: str, **values: str) -> str:
        return fill(template, form=form_of(self._policy), task=task, **values)

    # A second opinion ------------------------------------------------------------------------

    async def _second_opinion(self, task: str, work: _Work) -> None:
        """Have the answer checked, and ask again while it is doubted; the last answer stands."""
        limit = self._policy.verify_reanswers
        for number in range(1, limit + 2):
            answer, text = work.answer or "", work.text
            prompt = self._filled(self._policy.verify_prompt, task, answer=answer)
            call = _Call(number, limit + 1, f"verification {number}/{limit + 1}")
            reasons = await self._side_call(call, prompt, work)
            if reasons is None or _verdict(reasons) != "wrong" or number > limit:
                return
            doubt = self._filled(DOUBTED, task, reasons=reasons)
            self._host.record(self._host.runtime.ask_for_answer(doubt))
            work.answer = None
            again = _Call(number, limit, f"final_answer again {number}/{limit}")
            await self._attempt(again, self._sampling, work)
            if work.answer is None:
                work.answer, work.text, work.came, work.error = answer, text, True, None
                return

    async def _side_call(self, call: _Call, prompt: str, work: _Work) -> str | None:
        """The reply to a question beside the conversation; None if it failed."""
        messages = [*self._host.runtime.visible, Message.user(prompt)]
        try:
            reply = await self._host.ask(
                AnswerCall(purpose=call.purpose, messages=messages, sampling=self._sampling)
            )
        except ModelError as error:
            work.stopped = error.kind is ErrorKind.BUDGET
            self._note(call, str(kind_of(error)), work, error=str(error))
            return None
        work.usages.append(reply.usage)
        text = reply.text or ""
        self._note(call, _verdict(text), work)
        return text

    # The account of a failure ----------------------------------------------------------------

    async def _failure_summary(self, task: str, work: _Work) -> FailureSummary | None:
        """The best account within the calls the policy allows; None if there is none (A2)."""
        policy = self._policy
        of = policy.summary_attempts if policy.summary_quality > 0 else 1
        best: FailureSummary | None = None
        again = ""
        for number in range(1, of + 1):
            purpose = "failure_summary" if of == 1 else f"failure_summary {number}/{of}"
            call = _Call(number, of, purpose)
            text = failure_summary_text(await self._account(call, again, work))
            if work.stopped:
                break
            quality = summary_quality(text, task)
            if text and (best is None or quality.score > best.quality.score):
                best = FailureSummary(text=text, quality=quality, calls=number)
            if text and quality.score >= policy.summary_quality:
                break
            again = "Your account lacks something: " + "; ".join(quality.missing) + "."
        return best

    async def _account(self, call: _Call, again: str, work: _Work) -> str:
        visible = self._host.runtime.visible
        messages = failure_messages(
            visible, self._policy, results_as_text=self._as_text, again=again
        )
        try:
            reply = await self._host.ask(
                AnswerCall(purpose=call.purpose, messages=messages, sampling=self._sampling)
            )
        except ModelError as error:
            work.stopped = error.kind is ErrorKind.BUDGET
            self._note(call, str(kind_of(error)), work, error=str(error))
            return ""
        work.usages.append(reply.usage)
        text = reply.text or ""
        self._note(call, "ok" if text.strip() else AttemptKind.EMPTY, work)
        return text


@dataclass(frozen=True, slots=True)
class _Call:
    """Which call of the stage it is."""

    number: int
    of: int
    purpose: str
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Changed:
    sampling: Sampling
    names: tuple[str, ...]


def _changed(sampling: Sampling, rule: AnswerRetry) -> _Changed:
    names = ("temperature", "max_output_tokens")
    new = {name: value for name in names if (value := getattr(rule, name)) is not None}
    changed = (*new, *(("prompt",) if rule.prompt is not None else ()))
    fields = {name: getattr(sampling, name) for name in Sampling.model_fields}
    return _Changed(Sampling(**{**fields, **new}), changed)


def _verdict(text: str) -> str:
    found = _VERDICT.findall(text)
    return found[-1].lower() if found else "unclear"


def _summary_kind(work: _Work, decision: StageDecision) -> SummaryKind:
    if not decision.generate:
        return SummaryKind.SKIPPED
    return SummaryKind.ANSWER if work.came else SummaryKind.NONE_GENERATED


def _status(answer: str | None, work: _Work, decision: StageDecision) -> AnswerStatus:
    if answer is not None:
        return AnswerStatus.OK
    if not decision.generate or work.stopped:
        return AnswerStatus.EXHAUSTED
    if work.error is not None:
        return AnswerStatus.FAILED
    return AnswerStatus.FORMAT_ERROR if work.came else AnswerStatus.NO_ANSWER
