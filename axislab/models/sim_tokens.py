"""The tokenizer of the simulated provider: small, deterministic, and its own.

A run of up to six Latin letters is a token, as are up to three digits, line breaks in a row, and
every other character, Chinese ones included. Its counts are this provider's true usage, not an
estimate of anyone else's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from axislab.messages import Json, Message, ToolSpec

_TOKEN = re.compile(r"[A-Za-z\u00c0-\u024f]{1,6}|\d{1,3}|\n+|[^\s]")
PER_MESSAGE = 4
"""Tokens a message costs besides its content."""
_START = 3
"""Tokens every prompt costs."""


@lru_cache(maxsize=16384)
def count_tokens(text: str) -> int:
    """Tokens of a text.

    Examples:
        >>> count_tokens("The depth is 1200.")
        6
    """
    return sum(1 for _ in _TOKEN.finditer(text))


def cut_tokens(text: str, limit: int) -> str:
    """The text up to so many tokens."""
    for number, match in enumerate(_TOKEN.finditer(text)):
        if number == limit:
            return text[: match.start()]
    return text


def prompt_tokens(messages: Sequence[Message], tools: Sequence[ToolSpec] = ()) -> int:
    """Tokens of a request: contents, calls, tool descriptions and a few for each message."""
    told = [tool.to_dict() for tool in tools]
    return _START + sum(map(message_tokens, messages)) + sum(map(tool_tokens, told))


def message_tokens(message: Message) -> int:
    """Tokens of a message, calls included."""
    total = PER_MESSAGE + count_tokens(message.text)
    for call in message.tool_calls:
        total += PER_MESSAGE + count_tokens(call.name) + count_tokens(call.arguments)
    return total


def tool_tokens(tool: Mapping[str, Json]) -> int:
    """Tokens of what the model is told of a tool, given as `ToolSpec.to_dict()`."""
    return PER_MESSAGE + count_tokens(json.dumps(tool["function"]))


class SimTokenEstimator:
    """Counts a prompt as the simulated provider will.

    Examples:
        >>> SimTokenEstimator().count([Message.user("The depth is 1200.")])
        10
    """

    additive: bool = True
    includes_tools: bool = False
    method = "axislab/simulated"

    def count(self, messages: Sequence[Message]) -> int:
        """Tokens of these messages."""
        return sum(map(message_tokens, messages))

    def overhead(self, tools: Any) -> int:
        """Tokens of a prompt besides its messages."""
        return _START + sum(map(tool_tokens, tools or ()))
