"""What a model's tokens cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

from axislab.errors import ConfigError
from axislab.messages import Usage

_MILLION = 1_000_000


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

    def __post_init__(self) -> None:
        for name in ("input", "output", "cached"):
            value = getattr(self, name)
            if value is None and name == "cached":
                continue
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not math.isfinite(value) or value < 0:
                raise ConfigError(
                    f"Price({name}={value!r}): USD for a million tokens, 0 or more, is wanted"
                )

    def of(self, usage: Usage | None) -> float | None:
        """What these tokens cost; None if their number is not known."""
        if usage is None or usage.input_tokens is None or usage.output_tokens is None:
            return None
        cached = usage.cached_tokens or 0
        rate = self.input if self.cached is None else self.cached
        fresh = max(0, usage.input_tokens - cached)
        total = fresh * self.input + cached * rate + usage.output_tokens * self.output
        return total / _MILLION
