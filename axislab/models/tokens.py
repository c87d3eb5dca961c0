"""Counts tokens without the network: by litellm's tokenizers, or by characters."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any, Final

from axislab.messages import Message
from axislab.models._litellm import load_litellm, quiet
from axislab.models.outgoing import wire_alone

PER_MESSAGE: Final = 4
"""Tokens a chat template adds to a message, or to a call in it, roughly."""
PREFIX: Final = "litellm:"
"""What the method of a `LiteLLMTokenEstimator` begins with; the model string follows."""
_CHARS_PER_TOKEN: Final = 4.0
_DENSE: Final = 0x2E80
"""From here on (CJK, kana, hangul, emoji) a character is about one token."""
_loading = threading.Lock()
_ready: set[str] = set()
"""Models whose table is loaded."""


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
    The first count of a process loads the tokenizer's table, which takes about half a second. (Not
    in a background thread: a process that ended meanwhile could hang.)

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
        self.method = f"{PREFIX}{model}"
        self._model = model
        self._base: int | None = None
        self.fallbacks = 0
        """How many messages were counted by characters instead."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._model!r})"

    def count(self, messages: Sequence[Message]) -> int:
        """Tokens of these messages; markers have none."""
        return sum(self._one(message) for message in messages)

    def overhead(self, tools: Any) -> int:
        """Tokens of a prompt besides its messages: what the model is told of tools, and a start.

        Args:
            tools: In the form of a chat completion; None or none at all is no tools.
        """
        base = self._overhead()
        if not tools:
            return base or 0
        pair = [{"role": "system", "content": "a"}, {"role": "user", "content": "a"}]
        bare, told = self._tokens(pair), self._tokens(pair, tools=tools)
        if base is None or bare is None or told is None:
            self.fallbacks += 1
            return PER_MESSAGE + estimate_text(str(tools))
        return base + max(0, told - bare)

    def _one(self, message: Message) -> int:
        wire = wire_alone(message)
        if wire is None:
            return 0
        base = self._overhead()
        counted = None if base is None else self._tokens([wire])
        # litellm counts the arguments of a call, yet neither its name nor what is around it.
        around = self._around(wire.get("tool_calls"))
        if counted is None or base is None or around is None:
            self.fallbacks += 1
            return estimate_message(message)
        return max(1, counted - base) + around

    def _around(self, calls: Any) -> int | None:
        if not calls:
            return 0
        names = " ".join(str(call["function"]["name"]) for call in calls)
        counted = self._tokens([{"role": "user", "content": names}])
        one = self._tokens([{"role": "user", "content": ""}])
        return None if counted is None or one is None else PER_MESSAGE * len(calls) + counted - one

    def _overhead(self) -> int | None:
        """Tokens litellm adds to every list, so that a sum does not add them each time."""
        if self._base is None:
            one = self._tokens([{"role": "user", "content": "a"}])
            two = self._tokens([{"role": "user", "content": "a"}] * 2)
            if one is not None and two is not None:
                self._base = max(0, 2 * one - two)
        return self._base

    def _tokens(self, messages: list[dict[str, Any]], *, tools: Any = None) -> int | None:
        if self._model in _ready:
            return self._asked(messages, tools)
        with _loading:  # a table is loaded once; whoever needs it meanwhile waits for it
            counted = self._asked(messages, tools)
            _ready.add(self._model)
        return counted

    def _asked(self, messages: list[dict[str, Any]], tools: Any) -> int | None:
        try:
            with quiet:
                litellm = load_litellm()
                found = litellm.token_counter(model=self._model, messages=messages, tools=tools)
                return int(found)
        except Exception:  # tokenizers raise ValueError, KeyError, RuntimeError, PanicException
            return None
