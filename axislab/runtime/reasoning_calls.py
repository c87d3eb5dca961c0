"""A rule for recipes that want it: a tool call that was only thought is a format error.

It is not in `CHAIN`, since models sketch calls while they think and then make them. Where a
server leaves calls inside the reasoning, put it before the rule that sees an empty reply:
`recipe.with_(…)` keeps the knobs, `chain=insert_before(CHAIN, "empty_reply", CALL_IN_REASONING)`
adds the rule.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from axislab.messages import Message
from axislab.runtime.decisions import Decision, Pass, Rule, Turn
from axislab.runtime.rules import format_error


def call_in_reasoning(turn: Turn) -> Decision | Pass:
    """The reply is nothing but thinking, and the thinking holds a call written as text."""
    thought = turn.message.reasoning or ""
    if turn.calls or turn.text.strip():
        return Pass("it holds text or calls")
    if not thought.strip():
        return Pass("there is no thinking in it")
    found = format_error(replace(turn, message=Message.assistant(thought)))
    if isinstance(found, Pass):
        return found
    # The places found are in the reasoning, and would be read as places in the text.
    return replace(found, rule="call_in_reasoning", spans=None)


CALL_IN_REASONING: Final = Rule("call_in_reasoning", "L4b", call_in_reasoning)
"""The rule, to be put into a chain."""
