"""What of a model's account of its failure is worth telling the next attempt."""

from __future__ import annotations

import re

from axislab.answers.thinking import first_tag_opens, without_thinking

_CALL = re.compile(r"<(?:use_mcp_tool|tool_call)\b")


def failure_summary_text(text: str) -> str:
    """The account alone: no thinking, nothing before it, nothing from the first tool call on.

    If nothing is left, the thinking is the account; "" if there is none either.

    Examples:
        >>> failure_summary_text("<think>hm</think>Failure type: blocked<tool_call>{}")
        'Failure type: blocked'
        >>> failure_summary_text("<think>still going")
        'still going'
    """
    spoken = without_thinking(text[first_tag_opens(text) or 0 :])
    call = _CALL.search(spoken.text)
    said = spoken.text[: call.start() if call else None].strip()
    return said or "\n".join(t for thought in spoken.thoughts if (t := thought.strip()))
