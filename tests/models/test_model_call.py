"""The one exit to a model: retries, deadlines, records and types of error."""

import asyncio
import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axislab.config import RetryPolicy
from axislab.errors import ErrorKind, ModelError
from axislab.events import Event, ModelRequested
from axislab.messages import Message, Usage
from axislab.models.base import ModelReply, ModelRequest
from axislab.models.call import RETRIED, call_model, next_wait
from axislab.models.scripted import ScriptedModel

REQUEST = ModelRequest(messages=[Message.user("hello")], draw="key", purpose="final_answer")
QUICK = RetryPolicy(attempts=3, backoff=0, request_timeout=5, call_deadline=20)


class Steady:
    """A chance that is always the same."""

    def __init__(self, value: float = 0.0) -> None:
        self.value = value

    def random(self) -> float:
        return self.value


class Clock:
    """A clock that only moves when it is slept on."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def failing(kind: ErrorKind, times: int, **details: Any) -> ScriptedModel:
    errors = [ModelError(f"no {n}", kind=kind, **details) for n in range(times)]
    return ScriptedModel([*errors, "done"])


class Outcome:
    """What a call came to, and what it said."""

    def __init__(self) -> None:
        self.events: list[ModelRequested] = []
        self.reply: ModelReply | None = None
        self.error: ModelError | None = None

    def emit(self, event: Event) -> None:
        assert isinstance(event, ModelRequested)
        self.events.append(event)

    @property
    def outcomes(self) -> list[str]:
        return [event.outcome for event in self.events]


def call(model: Any, *, retry: RetryPolicy = QUICK, **options: Any) -> Outcome:
    out = Outcome()

    async def main() -> None:
        try:
            out.reply = await call_model(
                model, REQUEST, retry=retry, emit=out.emit, call=4, step=9, **options
            )
        except ModelError as error:
            out.error = error

    asyncio.run(main())
    return out


def test_every_kind_has_its_line_in_the_table() -> None:
    assert set(RETRIED) == set(ErrorKind)


def test_a_reply_is_returned_and_recorded_once() -> None:
    usage = Usage(input_tokens=5, output_tokens=2, cached_tokens=1, reasoning_tokens=1)
    reply = ModelReply(text="hi", finish_reason="stop", usage=usage, cost_usd=0.5, request_id="r-1")
    model = ScriptedModel([reply], name="told")
    out = call(model, estimated=77)
    assert out.reply is not None
    assert out.reply.text == "hi"
    assert out.reply.latency > 0
    (event,) = out.events
    assert (event.call, event.attempt, event.step) == (4, 1, 9)
    assert (event.purpose, event.model, event.outcome) == ("final_answer", "told", "ok")
    assert (event.input_tokens, event.output_tokens) == (5, 2)
    assert (event.cached_tokens, event.reasoning_tokens) == (1, 1)
    assert (event.cost_usd, event.request_id) == (0.5, "r-1")
    assert event.estimated_prompt_tokens == 77
    assert (event.usage_estimated, event.error, event.retry_in) == (None, None, None)


def test_unknown_usage_and_finish_reason_stay_unknown_in_the_record() -> None:
    (event,) = call(ScriptedModel([ModelReply(text="hi")])).events
    payload = event.payload()
    assert not {"input_tokens", "output_tokens", "finish_reason", "cost_usd"} & payload.keys()
    assert payload["cost_missing"]


def test_estimated_usage_is_marked_in_the_record() -> None:
    (event,) = call(ScriptedModel(["hi"], usage="estimate")).events
    assert event.usage_estimated is True


@pytest.mark.parametrize("kind", sorted(ErrorKind))
@pytest.mark.parametrize("attempts", [1, 2, 4])
def test_requests_are_the_policys_attempts_or_one(kind: ErrorKind, attempts: int) -> None:
    model = failing(kind, 10)
    out = call(model, retry=QUICK.model_copy(update={"attempts": attempts}))
    wanted = attempts if RETRIED[kind] else 1
    assert len(model.requests) == wanted
    assert out.outcomes == [str(kind)] * wanted
    assert [event.attempt for event in out.events] == list(range(1, wanted + 1))
    assert out.error is not None
    assert str(out.error) == f"no {wanted - 1}"


@pytest.mark.parametrize("times", [1, 2])
def test_a_failure_that_passes_is_survived_and_kept(times: int) -> None:
    out = call(failing(ErrorKind.SERVER, times, status=500))
    assert out.reply is not None
    assert out.outcomes == ["server"] * times + ["ok"]
    assert [event.error for event in out.events[:-1]] == [f"no {n}" for n in range(times)]
    assert out.events[0].retry_in == 0
    assert out.events[-1].retry_in is None


def test_each_further_attempt_draws_anew() -> None:
    model = failing(ErrorKind.MALFORMED_REPLY, 2)
    call(model)
    assert [request.draw for request in model.requests] == ["key", "key#2", "key#3"]
    assert {request.purpose for request in model.requests} == {"final_answer"}


def test_waits_double_up_to_their_limit_and_nothing_sleeps_after_the_last() -> None:
    clock = Clock()
    retry = RetryPolicy(attempts=5, backoff=1, max_backoff=3, jitter=0.5)
    out = call(
        failing(ErrorKind.SERVER, 9), retry=retry, clock=clock, sleep=clock.sleep, rng=Steady()
    )
    assert clock.slept == [1, 2, 3, 3]
    assert [event.retry_in for event in out.events] == [1, 2, 3, 3, None]


def test_the_provider_is_not_asked_again_before_it_says() -> None:
    clock = Clock()
    retry = RetryPolicy(attempts=2, backoff=1, max_backoff=2, jitter=0)
    model = failing(ErrorKind.RATE_LIMIT, 1, retry_after=45.0)
    out = call(model, retry=retry, clock=clock, sleep=clock.sleep)
    assert clock.slept == [45]
    assert out.reply is not None


def test_a_wait_beyond_the_deadline_is_not_begun() -> None:
    clock = Clock()
    retry = RetryPolicy(attempts=5, call_deadline=60)
    out = call(
        failing(ErrorKind.RATE_LIMIT, 1, retry_after=61.0),
        retry=retry,
        clock=clock,
        sleep=clock.sleep,
    )
    assert clock.slept == []
    assert out.outcomes == ["rate_limit"]
    assert out.error is not None
    assert out.error.retry_after == 61


@given(
    attempt=st.integers(1, 5000),
    backoff=st.floats(0, 60),
    jitter=st.floats(0, 1),
    chance=st.floats(0, 1, exclude_max=True),
    asked=st.none() | st.floats(0, 1e4),
)
def test_a_wait_is_never_shorter_than_asked_nor_longer_than_both_bounds(
    attempt: int, backoff: float, jitter: float, chance: float, asked: float | None
) -> None:
    retry = RetryPolicy(backoff=backoff, jitter=jitter, max_backoff=30)
    error = ModelError("x", kind=ErrorKind.RATE_LIMIT, retry_after=asked)
    wait = next_wait(error, attempt=attempt, retry=retry, rng=Steady(chance))
    assert wait is not None
    assert (asked or 0) <= wait <= max(30, (asked or 0) + backoff)


def test_jitter_spreads_the_waits() -> None:
    error = ModelError("x", kind=ErrorKind.SERVER)
    retry = RetryPolicy(backoff=1, jitter=0.5)
    rng = random.Random(1)
    waits = {next_wait(error, attempt=1, retry=retry, rng=rng) for _ in range(20)}
    assert len(waits) == 20


def test_a_reply_that_does_not_end_is_given_up_in_time() -> None:
    model = ScriptedModel(["late"], delay=30)
    retry = RetryPolicy(attempts=1, request_timeout=0.05)
    out = call(model, retry=retry)
    assert out.outcomes == ["timeout"]
    assert "no complete answer in 0.05 s (request_timeout)" in str(out.error)
    assert out.events[0].latency < 5


def test_the_deadline_bounds_all_requests_together() -> None:
    model = ScriptedModel(["late"], delay=30, after="repeat")
    retry = RetryPolicy(attempts=50, backoff=0, request_timeout=0.06, call_deadline=0.15)
    out = call(model, retry=retry)
    assert 2 <= len(model.requests) <= 4
    assert set(out.outcomes) == {"timeout"}
    assert sum(event.latency for event in out.events) < 2


class Own:
    """A user's own model."""

    name = "own"
    simulated = False
    info: Mapping[str, Any] = {}

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def check(self) -> None:
        """Fine."""

    async def complete(self, request: ModelRequest) -> Any:
        return await self.answer()


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        (ValueError("odd"), ErrorKind.UNKNOWN),
        (KeyError("choices"), ErrorKind.UNKNOWN),
        (ExceptionGroup("many", [ValueError("odd")]), ErrorKind.UNKNOWN),
        (TimeoutError("slow"), ErrorKind.TIMEOUT),
        (ConnectionResetError("gone"), ErrorKind.CONNECTION),
    ],
)
def test_nothing_untyped_gets_out(problem: Exception, kind: ErrorKind) -> None:
    out = call(ScriptedModel([problem], after="repeat"), retry=RetryPolicy(attempts=1))
    assert out.error is not None
    assert out.error.kind is kind
    assert out.error.original is problem
    assert type(problem).__name__ in str(out.error)
    assert out.outcomes == [str(kind)]


@pytest.mark.parametrize("value", [None, "text", {"role": "assistant"}])
def test_what_is_no_reply_is_named_and_not_asked_for_again(value: Any) -> None:
    async def answer() -> Any:
        return value

    out = call(Own(answer))
    assert out.outcomes == ["unknown"]
    assert f"returned {type(value).__name__!r}, a ModelReply is wanted" in str(out.error)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_ends_the_process_passes_and_is_recorded(stop: type[BaseException]) -> None:
    out = Outcome()

    async def main() -> None:
        with pytest.raises(stop):
            await call_model(
                ScriptedModel([stop()]), REQUEST, retry=QUICK, emit=out.emit, call=0, step=0
            )

    asyncio.run(main())
    assert out.outcomes == ["cancelled"]


def cancelled_call(model: Any) -> Outcome:
    out = Outcome()

    async def main() -> None:
        task = asyncio.create_task(
            call_model(model, REQUEST, retry=QUICK, emit=out.emit, call=0, step=0)
        )
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()

    asyncio.run(main())
    return out


def test_a_cancelled_call_ends_at_once_and_is_recorded() -> None:
    out = cancelled_call(ScriptedModel(["late"], delay=30))
    assert out.outcomes == ["cancelled"]
    assert out.events[0].latency < 5


def test_a_model_that_turns_cancellation_into_an_error_is_still_cancelled() -> None:
    async def answer() -> Any:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            raise RuntimeError("stream closed") from None

    assert cancelled_call(Own(answer)).outcomes == ["cancelled"]


def test_a_model_that_turns_a_timeout_into_an_error_timed_out() -> None:
    async def answer() -> Any:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            raise RuntimeError("stream closed") from None

    out = call(Own(answer), retry=RetryPolicy(attempts=1, request_timeout=0.02))
    assert out.outcomes == ["timeout"]


def test_cancelling_while_waiting_sends_nothing_more() -> None:
    model = failing(ErrorKind.SERVER, 5)
    out = Outcome()
    retry = RetryPolicy(attempts=5, backoff=30, jitter=0)

    async def main() -> None:
        task = asyncio.create_task(
            call_model(model, REQUEST, retry=retry, emit=out.emit, call=0, step=0)
        )
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert out.outcomes == ["server"]
    assert len(model.requests) == 1
