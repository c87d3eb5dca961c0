"""The token budget of a context: an estimate, calibrated by what the provider counted.

Source: ContextLimitConfig and ContextBudgetEstimator of seed 000; the arithmetic is that of
`ContextBudget` below. All figures are tokens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Protocol, runtime_checkable

from axislab.config import ContextLimitConfig
from axislab.errors import HookError
from axislab.messages import Json, Message
from axislab.runtime.transcript import Transcript

RATIO_MIN, RATIO_MAX, RATIO_MEMORY = 0.25, 4.0, 0.8


@runtime_checkable
class TokenEstimator(Protocol):
    """Counts tokens before a provider does."""

    additive: bool
    """The count of a list is the sum over its messages."""
    includes_tools: bool
    """The tools are already counted; else they are counted as one more user message."""

    def count(self, messages: Sequence[Message]) -> int:
        """Tokens of these messages."""


_CJK = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")


class CharEstimator:
    """Four characters a token, but one for each CJK character, and a few for each message."""

    additive = True
    includes_tools = False
    method = "chars/4, CJK 1 each"

    def count(self, messages: Sequence[Message]) -> int:
        """Tokens of these messages."""
        return sum(_message_tokens(m) for m in messages)


def _message_tokens(message: Message) -> int:
    total = 4 + text_tokens(message.text)
    for call in message.tool_calls:
        total += 8 + text_tokens(call.name) + text_tokens(call.arguments)
    return total


def text_tokens(text: str) -> int:
    """A guess at the tokens of a text, in any script."""
    wide = 0 if text.isascii() else len(_CJK.findall(text))
    return wide + (len(text) - wide + 3) // 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextBudget:
    """One budget check: the record that stands in info as context_limit_estimate."""

    estimated_prompt_tokens: int
    reserved_output_tokens: int
    context_safety_margin: int
    estimated_total_tokens: int
    remaining_tokens: int | None
    min_tokens_for_generation: int
    context_warning_threshold: int
    context_window: int | None
    hard_stop: bool
    needs_final_warning: bool
    exceeds_context: bool
    estimated_prompt_with_warning_tokens: int | None = None
    warning_remaining_tokens: int | None = None
    warning_prompt_fits: bool | None = None
    """None: the force prompt was not part of the check."""
    context_limit_detection: str | None = None
    provider_error: Json | None = None

    def to_dict(self) -> dict[str, Json]:
        """The record; fields of a check that was not made are absent."""
        out = {f.name: getattr(self, f.name) for f in fields(self)[:11]}
        if self.warning_prompt_fits is not None:
            out |= {f.name: getattr(self, f.name) for f in fields(self)[11:14]}
        if self.context_limit_detection is not None:
            out["context_limit_detection"] = self.context_limit_detection
        if self.provider_error is not None:
            out["provider_error"] = self.provider_error
        return out


@dataclass(frozen=True, slots=True)
class Anchor:
    """A prompt whose tokens the provider counted."""

    count: int
    """Visible messages then."""
    raw: int
    """Our raw sum for them."""
    observed: int
    """The provider's figure."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """How far the estimate is off, learnt from observed prompt tokens."""

    ratio: float = 1.0
    anchor: Anchor | None = None

    def observe(self, *, raw: int, count: int, observed: int) -> Calibration:
        """One more observation: a smoothed ratio, and a new anchor."""
        step = min(max(observed / raw, RATIO_MIN), RATIO_MAX) if raw > 0 else self.ratio
        ratio = RATIO_MEMORY * self.ratio + (1 - RATIO_MEMORY) * step
        return Calibration(ratio, Anchor(count, raw, observed))

    def after(self, *, visible_count: int, spliced: bool) -> Calibration:
        """What holds after a change of the visible list; the ratio survives all of them."""
        if self.anchor and (spliced or visible_count < self.anchor.count):
            return Calibration(self.ratio)
        return self

    def estimate(self, raw: int) -> int:
        """Tokens expected for a raw sum."""
        if self.anchor is not None and raw >= self.anchor.raw:
            return self.anchor.observed + int((raw - self.anchor.raw) * self.ratio)
        return int(raw * self.ratio)


class ContextBudgetEstimator:
    """Budget checks over a transcript, for one conversation's limits and tools."""

    def __init__(
        self,
        limits: ContextLimitConfig,
        *,
        max_output_tokens: int,
        estimator: TokenEstimator | None = None,
        tools: object = None,
    ) -> None:
        self.limits = limits
        self.max_output_tokens = max_output_tokens
        self.estimator: TokenEstimator = CharEstimator() if estimator is None else estimator
        probe = tools is not None and not self.estimator.includes_tools
        self._probe = Message.user(str(tools)) if probe else None
        self._probe_cost = (
            self.cost(self._probe) if self._probe is not None and self.estimator.additive else 0
        )
        self.tools_counted = tools is not None

    @property
    def threshold(self) -> int:
        """Tokens left below which the final answer is forced."""
        configured = self.limits.warning_threshold
        return self.max_output_tokens if configured is None else configured

    @property
    def active(self) -> bool:
        """Checks are made before calls."""
        return self.limits.preflight and self.limits.window is not None

    @property
    def calibrates(self) -> bool:
        """Observed prompt tokens are learnt from."""
        return self.active and self.estimator.additive and not self.estimator.includes_tools

    def cost(self, message: Message) -> int:
        """Raw tokens of one message; 0 where only whole lists can be counted.

        Raises:
            HookError: The estimator raised.
        """
        return self._count((message,)) if self.estimator.additive else 0

    def _count(self, messages: Sequence[Message]) -> int:
        try:
            return self.estimator.count(messages)
        except Exception as problem:
            raise HookError(
                f"the token estimator raised {type(problem).__name__}: {problem}"
            ) from problem

    def raw(self, transcript: Transcript, extra: Message | None = None) -> int:
        """Raw sum of the visible list, the tools and one more message."""
        if self.estimator.additive:
            more = self.cost(extra) if extra is not None else 0
            return transcript.visible_cost + more + self._probe_cost
        messages = list(transcript.visible)
        messages += [m for m in (extra, self._probe) if m is not None]
        return self._count(messages)

    def estimate(
        self, transcript: Transcript, calibration: Calibration, extra: Message | None = None
    ) -> int:
        """Prompt tokens expected for the visible list and one more message."""
        raw = self.raw(transcript, extra)
        return calibration.estimate(raw) if self.estimator.additive else raw

    def generation(self, transcript: Transcript, calibration: Calibration) -> ContextBudget:
        """May the model be called on the visible list?"""
        limits, window = self.limits, self.limits.window
        if window is None:
            return self._unlimited()
        prompt = self.estimate(transcript, calibration)
        reserved, margin = self.threshold, limits.safety_margin
        remaining = window - prompt - margin
        hard = limits.min_tokens_for_generation > 0 and (
            remaining < limits.min_tokens_for_generation
        )
        warn = not hard and remaining < reserved
        return ContextBudget(
            estimated_prompt_tokens=prompt,
            reserved_output_tokens=reserved,
            context_safety_margin=margin,
            estimated_total_tokens=prompt + reserved + margin,
            remaining_tokens=remaining,
            min_tokens_for_generation=limits.min_tokens_for_generation,
            context_warning_threshold=reserved,
            context_window=window,
            hard_stop=hard,
            needs_final_warning=warn,
            exceeds_context=hard or warn,
        )

    def with_prompt(
        self, transcript: Transcript, calibration: Calibration, prompt: Message | None
    ) -> ContextBudget:
        """The same, and whether the force prompt would still fit."""
        base = self.generation(transcript, calibration)
        if base.context_window is None or prompt is None:
            return _replace(base, tokens=0, remaining=None, fits=True)
        total = self.estimate(transcript, calibration, prompt)
        remaining = base.context_window - total - base.context_safety_margin
        warn = base.needs_final_warning or remaining < base.context_warning_threshold
        values = {f.name: getattr(base, f.name) for f in fields(base)}
        values |= {
            "estimated_total_tokens": max(
                base.estimated_total_tokens,
                total + base.reserved_output_tokens + base.context_safety_margin,
            ),
            "needs_final_warning": warn,
            "exceeds_context": base.hard_stop or warn,
            "estimated_prompt_with_warning_tokens": total,
            "warning_remaining_tokens": remaining,
            "warning_prompt_fits": remaining > 0,
        }
        return ContextBudget(**values)

    def _unlimited(self) -> ContextBudget:
        reserved = self.max_output_tokens
        return ContextBudget(
            estimated_prompt_tokens=0,
            reserved_output_tokens=reserved,
            context_safety_margin=self.limits.safety_margin,
            estimated_total_tokens=reserved + self.limits.safety_margin,
            remaining_tokens=None,
            min_tokens_for_generation=self.limits.min_tokens_for_generation,
            context_warning_threshold=self.threshold,
            context_window=None,
            hard_stop=False,
            needs_final_warning=False,
            exceeds_context=False,
        )

    def provider_error_record(self, error: Mapping[str, Json] | None) -> ContextBudget:
        """The record where nothing is estimated and a provider's error is all there is."""
        values = {f.name: getattr(self._unlimited(), f.name) for f in fields(ContextBudget)}
        values |= {
            "estimated_total_tokens": 0,
            "context_window": self.limits.window,
            "exceeds_context": True,
            "context_limit_detection": "provider_error",
            "provider_error": error,
        }
        return ContextBudget(**values)


def _replace(
    base: ContextBudget, *, tokens: int, remaining: int | None, fits: bool
) -> ContextBudget:
    values = {f.name: getattr(base, f.name) for f in fields(base)}
    values |= {
        "estimated_prompt_with_warning_tokens": tokens,
        "warning_remaining_tokens": remaining,
        "warning_prompt_fits": fits,
    }
    return ContextBudget(**values)
