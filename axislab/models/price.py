"""What a model's tokens cost."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from axislab.errors import ConfigError
from axislab.messages import Usage

_MILLION: Final = 1_000_000
_STEP: Final = re.compile(r"_above_(?P<thousands>\d+)k_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """USD for a million tokens.

    Examples:
        >>> Price(input=0.5, output=1.5).of(Usage(input_tokens=1_000_000, output_tokens=0))
        0.5
    """

    input: float
    output: float
    cached: float | None = None
    """Input read from the provider's cache; None is the full price."""
    cache_write: float | None = None
    """Input written to the provider's cache; None is the full price."""
    reasoning: float | None = None
    """Output spent on thinking; None is the price of output."""

    def __post_init__(self) -> None:
        for name in ("input", "output", "cached", "cache_write", "reasoning"):
            value = getattr(self, name)
            if value is None and name not in ("input", "output"):
                continue
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not math.isfinite(value) or value < 0:
                raise ConfigError(
                    f"Price({name}={value!r}): USD for a million tokens, 0 or more, is wanted"
                )

    def of(self, usage: Usage | None) -> float | None:
        """US dollars these tokens cost; None if their number is not known.

        Input that may have come from a cache, and is not known to, has the full price.
        """
        if usage is None or usage.input_tokens is None or usage.output_tokens is None:
            return None
        read, written = usage.cached_tokens or 0, usage.cache_write_tokens or 0
        thought = min(usage.reasoning_tokens or 0, usage.output_tokens)
        fresh = max(0, usage.input_tokens - read - written)
        total = fresh * self.input + (usage.output_tokens - thought) * self.output
        total += read * _or(self.cached, self.input) + written * _or(self.cache_write, self.input)
        total += thought * _or(self.reasoning, self.output)
        return total / _MILLION

    def at_most(self, *, input_tokens: int, output_tokens: int) -> float:
        """The most US dollars a request of that size can cost, however it is cached."""
        given = max(self.input, _or(self.cached, 0.0), _or(self.cache_write, 0.0))
        made = max(self.output, _or(self.reasoning, 0.0))
        return (input_tokens * given + output_tokens * made) / _MILLION


def as_price(given: object) -> Price | None:
    """The price that was given, also as a mapping of Price's fields.

    Raises:
        ConfigError: It is neither, or a field that Price lacks.

    Examples:
        >>> as_price({"input": 0.5, "output": 1.5}).output
        1.5
    """
    if given is None or isinstance(given, Price):
        return given
    if isinstance(given, Mapping) and set(given) <= set(Price.__slots__) >= {"input", "output"}:
        with suppress(TypeError):  # input or output is missing
            return Price(**given)
    raise ConfigError(
        f"price={given!r}: give Price(input=…, output=…), US dollars for a million tokens; it also "
        "takes cached, cache_write and reasoning"
    )


def no_price(name: str, *, simulated: bool = False) -> str:
    """Why a model's tokens have no price.

    Examples:
        >>> no_price("axislab/simulated", simulated=True)
        "no price is known for 'axislab/simulated': no language model is asked"
    """
    why = "give price="
    if simulated:
        why = "no language model is asked"
    elif name.startswith("axislab-local/"):
        why = "it runs on this machine"
    return f"no price is known for {name!r}: {why}"


def price_of(model: object, *, prompt: int = 0) -> Price | None:
    """What a model says its tokens cost; None if it says nothing.

    Args:
        model: Any ChatModel; one that knows its price has a method `list_price(*, prompt=0)`.
        prompt: Input tokens of the request, where the price depends on them.
    """
    ask = getattr(model, "list_price", None)
    told = ask(prompt=prompt) if callable(ask) else None
    return told if isinstance(told, Price) else None


def listed_price(entry: Mapping[str, Any], *, prompt: int = 0) -> Price | None:
    """The price in an entry of litellm's list; None if it does not say.

    Args:
        entry: What `litellm.get_model_info` gives: US dollars for one token.
        prompt: Input tokens of the request: some providers ask more above a length.

    Examples:
        >>> listed_price({"input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06}).output
        2.0
    """
    given = _listed(entry, "input_cost_per_token", prompt)
    made = _listed(entry, "output_cost_per_token", prompt)
    if given is None or made is None:
        return None
    return Price(
        input=given,
        output=made,
        cached=_listed(entry, "cache_read_input_token_cost", prompt),
        # A zero is how the list says that writing has no price of its own.
        cache_write=_listed(entry, "cache_creation_input_token_cost", prompt) or None,
        reasoning=_listed(entry, "output_cost_per_reasoning_token", prompt),
    )


def _listed(entry: Mapping[str, Any], name: str, prompt: int) -> float | None:
    """A rate, in US dollars for a million tokens, at that length of the prompt."""
    rate, above = entry.get(name), -1
    for key, value in entry.items():
        step = _STEP.fullmatch(key.removeprefix(name)) if key.startswith(name) else None
        if step is None or not isinstance(value, int | float):
            continue
        line = int(step["thousands"]) * 1000
        if above < line < prompt:
            rate, above = value, line
    return rate * _MILLION if isinstance(rate, int | float) else None


def _or(rate: float | None, instead: float) -> float:
    return instead if rate is None else rate
