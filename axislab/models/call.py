"""The one exit to a model: a request is timed, bounded, recorded and, if that helps, repeated."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Protocol

from axislab.borders import Overdue, ends_us, within
from axislab.config import RetryPolicy
from axislab.errors import ErrorKind, ModelError
from axislab.events import Emit, ModelRequested
from axislab.messages import Usage
from axislab.models.base import ChatModel, ModelReply, ModelRequest
from axislab.models.classify import classify
from axislab.models.deltas import Audience, OnDelta, ask
from axislab.models.meter import Hold, Meter
from axislab.models.shape import what_is_wrong
from axislab.models.truncation import marked

RETRIED: Final[Mapping[ErrorKind, bool]] = MappingProxyType(
    {
        ErrorKind.TIMEOUT: True,
        ErrorKind.CONNECTION: True,
        ErrorKind.RATE_LIMIT: True,
        ErrorKind.SERVER: True,
        ErrorKind.OVERLOADED: True,
        ErrorKind.MALFORMED_REPLY: True,
        ErrorKind.QUOTA: False,
        ErrorKind.CONTEXT_LIMIT: False,
        ErrorKind.TRUNCATED: False,
        ErrorKind.CONTENT_POLICY: False,
        ErrorKind.AUTH: False,
        ErrorKind.MISSING_KEY: False,
        ErrorKind.NOT_FOUND: False,
        ErrorKind.BAD_REQUEST: False,
        ErrorKind.BUDGET: False,
        ErrorKind.CANCELLED: False,
        ErrorKind.UNKNOWN: False,
    }
)
"""Which kinds of error the same request may survive on another try."""

CANCELLED: Final = "cancelled"
"""Outcome of a request that our side gave up."""

_MOST_DOUBLINGS: Final = 30


class Chance(Protocol):
    """Where jitter comes from: `random.Random` is one."""

    def random(self) -> float:
        """A number from 0 up to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """What one request came to."""

    latency: float
    result: ModelReply | ModelError


async def call_model(
    model: ChatModel,
    request: ModelRequest,
    *,
    retry: RetryPolicy,
    emit: Emit,
    call: int,
    step: int,
    estimated: int | None = None,
    estimator: str | None = None,
    meter: Meter | None = None,
    on_delta: OnDelta | None = None,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    rng: Chance = random,
    clock: Callable[[], float] = time.monotonic,
) -> ModelReply:
    """Ask a model until it replies or asking again is of no use; the only layer that retries.

    Args:
        model: Whom to ask.
        request: What; attempts after the first get a draw key of their own.
        retry: How often, how long.
        emit: Hears one ModelRequested for every request, failed ones included.
        call: Number of the call within the run.
        step: Number of the step the reply leads to.
        estimated: Tokens the budget expects the prompt to have.
        estimator: How they were counted.
        meter: Makes room for every request under the lab's ceilings, and books what it used.
        on_delta: Hears the pieces of each reply, which is then streamed where the model can;
            END and DISCARDED say what became of them.
        sleep: Waits between requests.
        rng: Jitter of the waits.
        clock: Seconds, for latencies and the deadline.

    Raises:
        ModelError: The last request's error. Nothing else a model raises gets out, except what
            ends the task or the process. BUDGET, if a ceiling leaves no room for the next.
    """
    call_ = _Call(
        model,
        request,
        retry=retry,
        emit=emit,
        call=call,
        step=step,
        estimated=estimated,
        estimator=estimator,
    )
    call_.audience = None if on_delta is None else Audience(on_delta)
    deadline = clock() + retry.call_deadline
    for attempt in range(1, retry.attempts + 1):
        if meter is not None:
            # Waiting for room is our own doing, so the deadline waits, too.
            asked = clock()
            call_.hold = await meter.reserve(
                request, estimated=estimated, by=model if attempt == 1 else None
            )
            deadline += clock() - asked
        seconds = min(retry.request_timeout, max(0.0, deadline - clock()))
        outcome = await call_.attempt(attempt, seconds=seconds, clock=clock)
        if not isinstance(outcome.result, ModelError):
            call_.record(attempt, outcome.latency, outcome.result)
            return outcome.result
        wait = None
        if attempt < retry.attempts:
            wait = next_wait(outcome.result, attempt=attempt, retry=retry, rng=rng)
        if wait is not None and clock() + wait >= deadline:
            wait = None
        call_.record(attempt, outcome.latency, outcome.result, retry_in=wait)
        if wait is None:
            raise outcome.result
        await sleep(wait)
    raise AssertionError("unreachable: the last attempt returns or raises")


def next_wait(error: ModelError, *, attempt: int, retry: RetryPolicy, rng: Chance) -> float | None:
    """Seconds until the next request, or None if it could not help.

    Args:
        error: What the last request came to; what it asks to wait is honoured.
        attempt: Number of that request, from 1.
        retry: Backoff and its bounds.
        rng: Jitter.
    """
    if not RETRIED[error.kind]:
        return None
    doubled = retry.backoff * 2.0 ** min(attempt - 1, _MOST_DOUBLINGS)
    chance = rng.random()
    wait = min(retry.max_backoff, doubled) * (1 - retry.jitter * chance)
    if error.retry_after is not None:
        # Never earlier than asked; a little later, so that parallel runs do not come back as one.
        wait = max(wait, error.retry_after + retry.jitter * retry.backoff * chance)
    return wait


class _Call:
    """One call of `call_model`: what all its requests share."""

    def __init__(
        self,
        model: ChatModel,
        request: ModelRequest,
        *,
        retry: RetryPolicy,
        emit: Emit,
        call: int,
        step: int,
        estimated: int | None,
        estimator: str | None,
    ) -> None:
        self.model = model
        self.request = request
        self.retry = retry
        self.emit = emit
        self.call = call
        self.step = step
        self.estimated = estimated
        self.estimator = estimator
        self.hold: Hold | None = None
        """What the request now under way has reserved."""
        self.audience: Audience | None = None

    async def attempt(self, number: int, *, seconds: float, clock: Callable[[], float]) -> _Outcome:
        """One request, whose pieces are told; all that can go wrong is in the outcome."""
        outcome, why = None, "stopped"
        try:
            outcome = await self._attempt(number, seconds=seconds, clock=clock)
            if isinstance(outcome.result, ModelError):
                why = str(outcome.result.kind)
        finally:
            if self.audience is not None:
                whole = outcome is not None and isinstance(outcome.result, ModelReply)
                self.audience.end() if whole else self.audience.discard(why)
        return outcome

    async def _attempt(
        self, number: int, *, seconds: float, clock: Callable[[], float]
    ) -> _Outcome:
        request = self.request
        if number > 1:
            request = replace(request, draw=f"{request.draw}#{number}")
        on_delta = None if self.audience is None else self.audience.listen()
        started = clock()
        try:
            reply = await within(ask(self.model, request, on_delta), seconds)
        except Overdue as problem:
            return _Outcome(latency=clock() - started, result=self._late(problem, seconds))
        except Exception as problem:  # a user's own model may raise anything
            result = classify(problem, model=self.model.name)
            return _Outcome(latency=clock() - started, result=result)
        except BaseException as problem:
            latency = clock() - started
            if isinstance(problem, asyncio.CancelledError) and not ends_us(problem):
                return _Outcome(latency=latency, result=self._cancelled_inside(problem))
            self.record(number, latency, None)
            raise
        latency = clock() - started
        problem_text = what_is_wrong(reply)
        if problem_text is not None:
            return _Outcome(latency=latency, result=self._no_reply(problem_text))
        return _Outcome(latency=latency, result=self._finished(reply, latency))

    def _finished(self, reply: ModelReply, latency: float) -> ModelReply:
        limit = self.request.sampling.max_output_tokens
        return marked(replace(reply, latency=reply.latency or latency), limit=limit)

    def record(
        self,
        attempt: int,
        latency: float,
        result: ModelReply | ModelError | None,
        *,
        retry_in: float | None = None,
    ) -> None:
        """Say what became of a request; no result is one that was given up."""
        error = result if isinstance(result, ModelError) else None
        reply = result if isinstance(result, ModelReply) else None
        told = result.usage if result is not None else None
        usage = told if isinstance(told, Usage) else Usage()
        if self.hold is not None:
            self.hold.settle(result)
            self.hold = None
        self.emit(
            ModelRequested(
                call=self.call,
                attempt=attempt,
                purpose=self.request.purpose,
                step=self.step,
                model=self.model.name,
                outcome=str(error.kind) if error else "ok" if reply else CANCELLED,
                latency=latency,
                finish_reason=reply.finish_reason if reply else None,
                thinking_only=True if reply and reply.thinking_only else None,
                possibly_truncated=True if reply and reply.possibly_truncated else None,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                uncached_tokens=usage.uncached_tokens,
                cached_tokens=usage.cached_tokens,
                cache_write_tokens=usage.cache_write_tokens,
                reasoning_tokens=usage.reasoning_tokens,
                usage_estimated=True if usage.estimated else None,
                cost_usd=result.cost_usd if result is not None else None,
                cost_missing=_cost_missing(result),
                request_id=reply.request_id if reply else None,
                cached=reply.cached if reply and reply.cache_key else None,
                cache_key=reply.cache_key if reply else None,
                saved_usd=reply.saved_usd if reply else None,
                saved_seconds=reply.saved_seconds if reply else None,
                estimated_prompt_tokens=self.estimated,
                estimator=self.estimator,
                error=str(error) if error else None,
                retry_in=retry_in,
            )
        )

    def _late(self, problem: Exception, seconds: float) -> ModelError:
        whole = seconds < self.retry.request_timeout
        knob = "call_deadline" if whole else "request_timeout"
        return ModelError(
            f"{self.model.name}: no complete answer in {seconds:.3g} s ({knob})",
            kind=ErrorKind.TIMEOUT,
            original=problem,
        )

    def _cancelled_inside(self, problem: BaseException) -> ModelError:
        return ModelError(
            f"{self.model.name}: the call was cancelled, but not by axislab",
            kind=ErrorKind.CANCELLED,
            original=problem,
        )

    def _no_reply(self, problem: str) -> ModelError:
        return ModelError(
            f"{self.model.name}: complete() returned {problem}", kind=ErrorKind.UNKNOWN
        )


def _cost_missing(result: ModelReply | ModelError | None) -> str | None:
    if isinstance(result, ModelReply):
        return result.cost_missing
    if result is None or result.usage is None or result.cost_usd is not None:
        return None
    return "no price is known for what a failed request was billed"
