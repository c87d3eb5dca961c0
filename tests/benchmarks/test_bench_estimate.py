"""The budget estimate is right from the start, and learns a provider's other vocabulary."""

from __future__ import annotations

import random

import pytest

import axislab as al
from axislab.messages import Message
from axislab.models.tokens import LiteLLMTokenEstimator
from axislab.runtime.budget import CharEstimator
from tests.benchmarks.bench_estimate import errors, measure, milliseconds_a_message
from tests.models.counting_server import count_prompt, count_text
from tests.models.token_talks import LANGUAGES, OTHER_VOCABULARY, SENTENCES, counting, script, talk

each_language = pytest.mark.parametrize("language", LANGUAGES)


@each_language
@pytest.mark.parametrize("window", [100_000, None])
def test_with_the_models_own_vocabulary_the_estimate_is_right_from_the_first_call(language, window):
    found = measure(language, seeds=2, window=window)
    assert found.calls >= 2 * 8
    assert found.first <= 0.10
    assert found.median <= 0.10
    assert found.p90 <= 0.20


@each_language
def test_with_another_vocabulary_it_is_learnt_by_the_fourth_call(language):
    found = measure(language, factor=OTHER_VOCABULARY, seeds=2)
    assert found.calls >= 2 * 8
    assert 0.2 < found.first < 0.4, "nothing is known of the vocabulary yet"
    assert found.median <= 0.10
    assert found.p90 <= 0.20


@each_language
def test_the_conversations_that_are_measured_do_what_they_say(language):
    with counting(factor=OTHER_VOCABULARY) as server:
        run = talk(server, language)
        bodies = server.requests
    assert run.status == "COMPLETED"
    assert run.output == "1874"
    frame = al.budgets_df(run)
    assert len(frame) == len(bodies) == len(script(language, random.Random(0))) >= 8
    counted = [-(-count_prompt(body) * 135 // 100) for body in bodies]
    assert frame.input_tokens.tolist() == pytest.approx(counted, abs=1)
    reasons = set(al.rollbacks_df(run).reason)
    assert {"empty_reply", "duplicate_query"} <= reasons
    assert frame.input_tokens.max() > 4 * frame.input_tokens.min(), "results grow"
    assert set(frame.estimator) == {"litellm:openai/gpt-4o"}
    assert 1.2 < frame.calibration_ratio.dropna().iloc[-1] < 1.4
    assert al.replay(run).ok
    assert errors([run]).calls == len(frame) - 3


@each_language
def test_by_characters_the_same_text_is_further_off(language):
    text = "\n".join(SENTENCES[language])
    truth, message = count_text(text), [Message.user(text)]
    exact = LiteLLMTokenEstimator("openai/gpt-4o").count(message)
    assert abs(exact - truth) <= 5
    assert abs(CharEstimator().count(message) - truth) > abs(exact - truth)


def test_counting_a_message_takes_well_under_a_millisecond():
    assert min(milliseconds_a_message("Chinese", times=50) for _ in range(3)) < 1.0
