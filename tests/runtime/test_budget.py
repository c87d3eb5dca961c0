"""Budget arithmetic at its boundaries, calibration, and the default estimate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from runtime_kit import Letters

from axislab.config import ContextLimitConfig
from axislab.messages import Message, ToolCall
from axislab.runtime.budget import (
    Anchor,
    Calibration,
    CharEstimator,
    ContextBudgetEstimator,
    TokenEstimator,
    text_tokens,
)
from axislab.runtime.transcript import Transcript

NEW = Calibration()


def estimator(*, prompt=None, tools=None, out=20, **limits):
    return ContextBudgetEstimator(
        ContextLimitConfig(**limits),
        max_output_tokens=out,
        estimator=Letters(),
        tools=tools,
        prompt=None if prompt is None else Message.user("p" * prompt),
    )


def holding(budget, tokens):
    return Transcript(budget.cost).append(Message.user("x" * tokens))


@pytest.mark.parametrize(
    ("left", "hard", "warn"),
    [
        (21, False, False),
        (20, False, False),
        (19, False, True),
        (6, False, True),
        (5, False, True),
        (4, True, False),
        (0, True, False),
        (-9, True, False),
    ],
)
def test_remaining_tokens_at_both_lines(left, hard, warn):
    budget = estimator(window=100, safety_margin=7, min_tokens_for_generation=5)
    record = budget.generation(holding(budget, 93 - left), NEW)
    assert record.remaining_tokens == left
    assert (record.hard_stop, record.needs_final_warning) == (hard, warn)
    assert record.exceeds_context == (hard or warn)
    assert record.estimated_total_tokens == 93 - left + 20 + 7
    assert record.reserved_output_tokens == record.context_warning_threshold == 20
    assert len(record.to_dict()) == 11


def test_without_a_hard_line_nothing_stops_hard():
    budget = estimator(window=100)
    record = budget.generation(holding(budget, 500), NEW)
    assert (record.hard_stop, record.needs_final_warning) == (False, True)


@pytest.mark.parametrize(
    ("left", "warn", "fits"),
    [(20, False, True), (19, True, True), (1, True, True), (0, True, False), (-1, True, False)],
)
def test_the_prompt_has_a_line_of_its_own(left, warn, fits):
    budget = estimator(window=200, prompt=60)
    record = budget.with_prompt(holding(budget, 140 - left), NEW)
    assert record.warning_remaining_tokens == left
    assert (record.needs_final_warning, record.warning_prompt_fits) == (warn, fits)
    assert record.exceeds_context == warn
    assert record.estimated_prompt_with_warning_tokens == 200 - left
    assert record.estimated_total_tokens == 200 - left + 20
    assert len(record.to_dict()) == 14


def test_a_warning_may_stand_beside_a_hard_stop():
    budget = estimator(window=30, min_tokens_for_generation=5, prompt=10)
    record = budget.with_prompt(holding(budget, 28), NEW)
    assert (record.hard_stop, record.needs_final_warning) == (True, True)


def test_without_a_prompt_it_fits():
    budget = estimator(window=30)
    record = budget.with_prompt(holding(budget, 29), NEW)
    assert (record.estimated_prompt_with_warning_tokens, record.warning_prompt_fits) == (0, True)
    assert record.warning_remaining_tokens is None
    assert record.estimated_total_tokens == 49


def test_without_a_window_nothing_is_reckoned():
    budget = estimator(warning_threshold=3, safety_margin=2, prompt=5)
    alone = budget.generation(holding(budget, 900), NEW)
    assert (alone.estimated_prompt_tokens, alone.estimated_total_tokens) == (0, 0)
    assert (alone.reserved_output_tokens, alone.context_warning_threshold) == (20, 3)
    both = budget.with_prompt(holding(budget, 900), NEW)
    assert both.estimated_total_tokens == 3 + 2
    assert (both.context_window, both.remaining_tokens) == (None, None)
    assert both.warning_prompt_fits is True
    assert not both.exceeds_context


@given(
    *(st.integers(0, 60) for _ in range(5)),
    st.one_of(st.none(), st.integers(0, 60)),
)
def test_roomy_is_the_short_form_of_the_record(window, held, margin, least, threshold, prompt):
    budget = estimator(
        window=window + 1,
        safety_margin=margin,
        min_tokens_for_generation=least,
        warning_threshold=threshold + 1,
        prompt=prompt,
    )
    transcript = holding(budget, held)
    record = budget.with_prompt(transcript, NEW)
    alone = budget.generation(transcript, NEW)
    fine = not record.exceeds_context and record.warning_prompt_fits
    assert budget.roomy(transcript, NEW) == fine
    assert not (fine and alone.exceeds_context)


def test_tools_are_one_more_user_message():
    budget = estimator(window=100, tools=[{"name": "a"}], prompt=3)
    transcript = holding(budget, 10)
    assert budget.raw(transcript) == 10 + len(str([{"name": "a"}]))
    assert budget.raw(transcript, with_prompt=True) == budget.raw(transcript) + 3


# Calibration


def test_a_ratio_is_clamped_and_smoothed():
    up = NEW.observe(raw=10, count=1, observed=100_000)
    assert up.ratio == pytest.approx(0.8 + 0.2 * 4)
    down = up.observe(raw=10, count=1, observed=1)
    assert down.ratio == pytest.approx(0.8 * 1.6 + 0.2 * 0.25)
    assert NEW.observe(raw=10, count=1, observed=20).ratio == pytest.approx(1.2)


def test_estimates_are_cut_to_whole_tokens():
    assert Calibration(1.19).estimate(10) == 11
    anchored = Calibration(1.19, Anchor(2, 100, 150))
    assert anchored.estimate(100) == 150
    assert anchored.estimate(110) == 150 + 11
    assert anchored.estimate(99) == int(99 * 1.19), "below the anchor only the ratio holds"


def test_ten_equal_observations_do_not_drift_by_a_token():
    calibration = NEW
    for _ in range(10):
        calibration = calibration.observe(raw=50, count=1, observed=50)
    assert calibration.ratio == 1.0


def test_the_weight_of_an_observation_is_a_fifth_and_not_what_is_left_of_four():
    calibration = Calibration(NEW.observe(raw=10, count=1, observed=17).ratio)
    assert calibration.ratio == 0.8 + 0.2 * 1.7
    assert calibration.estimate(50) == 57, "0.8 + (1 - 0.8) * 1.7 is a hair less, and gives 56"


def test_an_anchor_is_lost_to_splices_and_shorter_lists_and_the_ratio_stays():
    anchored = Calibration(1.5, Anchor(3, 10, 15))
    assert anchored.after(3, spliced=False) is anchored
    assert anchored.after(2, spliced=False) == Calibration(1.5)
    assert anchored.after(9, spliced=True) == Calibration(1.5)
    assert Calibration(1.5).after(0, spliced=True) == Calibration(1.5)


# The default estimate


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("abcd", 1), ("abcde", 2), ("中文", 2), ("中文 abc", 3)]
)
def test_text_is_four_characters_a_token_and_one_for_each_wide_character(text, tokens):
    assert text_tokens(text) == tokens


def test_the_default_estimate_counts_calls_and_is_additive():
    estimate = CharEstimator()
    call = ToolCall(id="c", name="name", arguments="{}")
    messages = [Message.user("abcd"), Message.assistant(None, (call,))]
    assert isinstance(estimate, TokenEstimator)
    assert estimate.count(messages) == (4 + 1) + (4 + 8 + 1 + 1)
    assert estimate.count(messages) == sum(estimate.count([m]) for m in messages)
    budget = ContextBudgetEstimator(ContextLimitConfig(), max_output_tokens=9)
    assert budget.estimator.additive
    assert budget.threshold == 9
