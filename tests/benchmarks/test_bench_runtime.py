"""A turn costs the same however long the conversation is."""

from tests.benchmarks.bench_runtime import ROLLED_BACK, converse, measure


def test_a_turn_in_a_conversation_of_5000_costs_about_what_one_of_100_does():
    found = measure((100, 5_000), rounds=5)
    assert found[5_000] <= 2.5 * found[100]


def test_the_conversation_that_is_measured_does_what_it_says():
    conversation = converse(40)
    assert conversation.turn_idx == 40 - 40 // ROLLED_BACK
    assert len(conversation.full) - len(conversation.visible) == 2 * (40 // ROLLED_BACK)
    assert conversation.calibration_ratio != 1.0
    assert conversation.budget().remaining_tokens is not None
