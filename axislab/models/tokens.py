"""Counts tokens without the network: by litellm's tokenizers, or by characters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from axislab.messages import Message
from axislab.models._litellm import load_litellm, quiet
from axislab.models.outgoing import wire_messages

PER_MESSAGE: Final = 4
"""Tokens a chat template adds to a message, roughly."""
_CHARS_PER_TOKEN: Final = 4.0
_DENSE: Final = 0x2E80
"""From here on (CJK, kana, hangul, emoji) a character is about one token."""


def estimate_text(text: str) -> int:
    """Tokens of a text by its characters: four to a token, but one to a token for CJK.

    Examples:
        >>> estimate_text("four letters")
        3
        >>> estimate_text("四个汉字")
        4
    """
    if text.isascii():
        return math.ceil(len(text) / _CHARS_PER_TOKEN)
    dense = sum(1 for char in text if ord(char) >= _DENSE)
    light = len(text) - dense
    return dense + math.ceil(light / _CHARS_PER_TOKEN)


def estimate_message(message: Message) -> int:
    """Tokens of a message by its characters, calls included."""
    total = PER_MESSAGE + estimate_text(message.text)
    for call in message.tool_calls:
        total += PER_MESSAGE + estimate_text(call.name) + estimate_text(call.arguments)
    return total


class LiteLLMTokenEstimator:
    """Counts each message by itself with the tokenizer litellm has for a model.

    Additive: the estimate of a conversation is the sum over its messages, so each is counted
    once. What a tokenizer cannot count is counted by characters; nothing is ever downloaded.

    Args:
        model: A litellm model string.

    Examples:
        >>> estimator = LiteLLMTokenEstimator("openai/gpt-4o")
        >>> estimator.method
        'litellm:openai/gpt-4o'
    """

    additive: bool = True
    includes_tools: bool = False

    def __init__(self, model: str) -> None:
        self.method = f"litellm:{model}"
        self._model = model
        self._base: int | None = None
        self.fallbacks = 0
        """How many messages were counted by characters instead."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._model!r})"

    def count(self, messages: Sequence[Message]) -> int:
        """Tokens of these messages; markers have none."""
        return sum(self._one(message) for message in messages)

    def _one(self, message: Message) -> int:
        wire = wire_messages([message])
        if not wire:
            return 0
        base = self._overhead()
        counted = None if base is None else self._tokens(wire)
        if counted is None or base is None:
            self.fallbacks += 1
            return estimate_message(message)
        return max(1, counted - base)

    def _overhead(self) -> int | None:
        """Tokens litellm adds to every list, so that a sum does not add them each time."""
        if self._base is None:
            one = self._tokens([{"role": "user", "content": "a"}])
            two = self._tokens([{"role": "user", "content": "a"}] * 2)
            if one is not None and two is not None:
                self._base = max(0, 2 * one - two)
        return self._base

    def _tokens(self, messages: list[dict[str, Any]]) -> int | None:
        try:
            with quiet:
                return int(load_litellm().token_counter(model=self._model, messages=messages))
        except Exception:  # tokenizers raise ValueError, KeyError, RuntimeError, PanicException
            return None
