"""`python -m tests.benchmarks.bench_runtime`: what a turn costs as a conversation gets longer.

A turn is a reply with one tool call and its result, with budget checks and calibration on; every
twentieth is rolled back. The lengths take turns in one process, so that noise is shared.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

from axislab.config import AssistantRollbackConfig, ContextLimitConfig, ConversationConfig
from axislab.messages import Message, ToolCall
from axislab.runtime.conversation import ConversationRuntime

LENGTHS = (10, 100, 1_000, 5_000)
ROUNDS = 7
ROLLED_BACK = 20
RESULT = "a result of some length " * 5
CONFIG = ConversationConfig(
    context_limit=ContextLimitConfig(window=10**9, min_tokens_for_generation=10),
    assistant_rollback=AssistantRollbackConfig(max_rollbacks=1),
)


def converse(turns: int) -> ConversationRuntime:
    """One conversation of so many turns."""
    conversation = ConversationRuntime(CONFIG)
    conversation.initialize_conversation("What is the capital of Osk?")
    for turn in range(turns):
        conversation.record_observed_prompt_tokens(conversation.visible, 100 + turn)
        call = ToolCall(id=f"c{turn}", name="search", arguments='{"query": "Osk"}')
        reply = Message.assistant("Let me look it up.", (call,))
        conversation.apply_assistant_message(reply, "tool_calls")
        if turn % ROLLED_BACK == ROLLED_BACK - 1:
            conversation.rollback_assistant_tool_calls("duplicate_query")
            conversation.reset_rollback_counter()
        else:
            conversation.apply_batch_tool_messages([Message.tool(RESULT, tool_call_id=call.id)])
    return conversation


def seconds_a_turn(length: int, turns: int) -> float:
    """CPU seconds a turn, over as many conversations of this length as make so many turns."""
    start = time.process_time()
    for _ in range(turns // length):
        converse(length)
    return (time.process_time() - start) / (turns // length * length)


def measure(lengths: Sequence[int] = LENGTHS, *, rounds: int = ROUNDS) -> dict[int, float]:
    """Median CPU seconds a turn for each length; every length makes equally many turns."""
    turns = max(lengths)
    times: dict[int, list[float]] = {length: [] for length in lengths}
    for _ in range(rounds):
        for length in lengths:
            times[length].append(seconds_a_turn(length, turns))
    return {length: statistics.median(values) for length, values in times.items()}


def main() -> None:
    """Print the cost of a turn at each length, and its ratio to the shortest."""
    found = measure()
    for length, seconds in found.items():
        ratio = seconds / found[LENGTHS[0]]
        print(f"{length:6,} turns {1e6 * seconds:7.1f} us CPU a turn   {ratio:5.2f} x")


if __name__ == "__main__":
    main()
