"""The multi-attempt loop, whatever its tries come to."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axislab.answers.extract import AnswerStatus
from axislab.errors import TraceError
from axislab.orchestrator.attempts import EarlierTry, Try, TryOutcome, run_tries

summaries = st.none() | st.text(min_size=1, max_size=5)
outcomes = st.builds(
    TryOutcome,
    answer=st.none() | st.just("5"),
    failure_summary=summaries,
    error=st.none() | st.just("broke"),
    status=st.sampled_from([None, AnswerStatus.EXHAUSTED, AnswerStatus.NO_ANSWER]),
)


def loop(tries, script, earlier=()):
    script = list(script)

    async def make(one: Try) -> TryOutcome:
        return script[one.number]

    return asyncio.run(run_tries(tries, make, earlier=earlier))


@settings(deadline=None)
@given(st.lists(outcomes, min_size=1, max_size=6))
def test_there_is_an_answer_exactly_if_the_status_is_ok(script):
    came = loop(len(script), script)
    assert (came.answer is not None) == (came.status is AnswerStatus.OK)
    assert came.answer in (None, "5")
    if came.error is not None:
        assert came.status in (AnswerStatus.FAILED, AnswerStatus.EXHAUSTED)
        assert came.answer is None


@settings(deadline=None)
@given(st.lists(summaries, min_size=2, max_size=6), st.data())
def test_a_loop_taken_up_anywhere_makes_the_same_tries_as_one_that_was_not(found, data):
    script = [TryOutcome(failure_summary=text) for text in found]
    whole = loop(len(script), script)
    cut = data.draw(st.integers(0, len(script) - 1))
    earlier = [EarlierTry(number=n, failure_summary=found[n]) for n in range(cut)]
    assert loop(len(script), script, earlier).made == whole.made[cut:]
    half = EarlierTry(number=cut, finished=False, failure_summary="lost")
    assert loop(len(script), script, [*earlier, half]).made == whole.made[cut:]


@settings(deadline=None)
@given(st.lists(summaries, min_size=1, max_size=6))
def test_the_last_try_alone_is_final_and_accounts_bear_the_number_of_their_try(found):
    came = loop(len(found), [TryOutcome(failure_summary=text) for text in found])
    assert [one.final for one in came.made] == [False] * (len(found) - 1) + [True]
    for one in came.made:
        assert [(e.number, e.text) for e in one.experiences] == [
            (n + 1, text) for n, text in enumerate(found[: one.number]) if text
        ]


def test_a_trace_that_cannot_be_written_is_no_failed_try():
    async def make(one: Try) -> TryOutcome:
        raise TraceError("disk full")

    with pytest.raises(TraceError):
        asyncio.run(run_tries(3, make))


def test_a_loop_that_is_cancelled_is_not_a_failed_one():
    async def make(one: Try) -> TryOutcome:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run_tries(3, make))
