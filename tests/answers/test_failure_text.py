"""What is kept of an account of a failure."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axislab.answers.failure import failure_summary_text


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("<think>a</think> <think>b</think>", "a\nb"),
        ("before <think>a</think>", "a"),
        ("before <think>a", "a"),
        ("one <tool_call>x</tool_call> two", "one"),
        ("one <tool_calls_made> two", "one <tool_calls_made> two"),
        ("one <tool_call", "one"),
        ("<think>use <tool_call> now</think>text", "text"),
        ("went on thinking</think>\n\nFailure type: blocked", "Failure type: blocked"),
        ("went on thinking</think>\n\n<tool_call>x", "went on thinking"),
        ("thought</think>one<think>b</think>two", "onetwo"),
    ],
)
def test_only_the_account_is_kept(text, kept):
    assert failure_summary_text(text) == kept


TAGS = ["<think>", "</think>", "<tool_call>", "<use_mcp_tool>", " ", "a", "b"]


@given(st.lists(st.sampled_from(TAGS), max_size=12).map("".join))
def test_no_account_is_empty_unless_nothing_was_written(text):
    kept = failure_summary_text(text)
    assert kept == kept.strip()
    assert set(kept) <= set(text) | {"\n"}
