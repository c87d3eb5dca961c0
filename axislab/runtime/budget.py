"""The token budget of a context: an estimate, calibrated by what the provider counted.

Source: ContextLimitConfig and ContextBudgetEstimator of seed 000; the arithmetic is that of
`ContextBudget` below. All figures are tokens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Protocol, runtime_checkable

from axislab.borders import text_of
from axislab.config import ContextLimitConfig
from axislab.errors import HookError
from axislab.messages import Json, Message
from axislab.runtime.transcript import Transcript

RATIO_MIN, RATIO_MAX = 0.25, 4.0
RATIO_MEMORY, RATIO_STEP = 0.8, 0.2
"""Weights of the ratio so far and of a new observation."""


@runtime_checkable
class TokenEstimator(Protocol):
    """Counts tokens before a provider does."""

    additive: bool
    """The count of a list is the sum over its messages."""
    includes_tools: bool
    """The tools are already counted; else they are counted as one more user message."""

    def count(self, messages: Sequence[Message]) -> int:
        """Tokens of these messages."""


@runtime_checkable
class CountsOverhead(Protocol):
    """An estimator that knows what tools cost; with others they cost as one more user message."""

    def overhead(self, tools: object) -> int:
        """Tokens of a prompt besides its messages; None is no tools."""


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
    estimated_prompt_with_warning_tokens: int = 0
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
        """One more observation of a raw sum above 0: a smoothed ratio, and a new anchor."""
        step = min(max(observed / raw, RATIO_MIN), RATIO_MAX)
        ratio = RATIO_MEMORY * self.ratio + RATIO_STEP * step
        return Calibration(ratio, Anchor(count, raw, observed))

    def after(self, visible_count: int, *, spliced: bool) -> Calibration:
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
    """Budget checks over a transcript, for one conversation's limits, tools and force prompt.

    Args:
        limits: Window, margin and the two lines.
        max_output_tokens: Tokens of one reply; also the warning line where none is set.
        estimator: Counts tokens; a character estimate by default.
        tools: What the model is told about tools; counted by the estimator's `overhead(tools)`
            if it has one, else as one more user message.
        prompt: Forces the final answer; None forces it silently.
    """

    def __init__(
        self,
        limits: ContextLimitConfig,
        *,
        max_output_tokens: int,
        estimator: TokenEstimator | None = None,
        tools: object = None,
        prompt: Message | None = None,
    ) -> None:
        self.estimator: TokenEstimator = CharEstimator() if estimator is None else estimator
        self.prompt = prompt
        self.max_output_tokens = max_output_tokens
        self.window = limits.window
        self.margin = limits.safety_margin
        self.hard_line = limits.min_tokens_for_generation
        """Tokens left below which generation is not possible; 0 is no line."""
        self.threshold = limits.warning_threshold or max_output_tokens
        """Tokens left below which the final answer is forced."""
        self.preflight = limits.preflight
        self.active = self.preflight and self.window is not None
        """Checks are made before calls."""
        additive, tools_in = self.estimator.additive, self.estimator.includes_tools
        self.calibrates = self.active and additive and not tools_in
        """Observed prompt tokens are learnt from."""
        knows = isinstance(self.estimator, CountsOverhead)
        self._probe = Message.user(str(tools)) if tools and not tools_in and not knows else None
        self._fixed = 0 if self._probe is None else self.cost(self._probe)
        if knows and not tools_in:
            self._fixed = self._overhead(tools)
        self._prompt_cost = 0 if prompt is None else self.cost(prompt)

    def cost(self, message: Message) -> int:
        """Raw tokens of one message; 0 where only whole lists can be counted.

        Raises:
            HookError: The estimator raised, or gave something that is no number.
        """
        return self._count((message,)) if self.estimator.additive else 0

    @property
    def method(self) -> str:
        """What the estimator calls its way of counting."""
        return str(getattr(self.estimator, "method", type(self.estimator).__name__))

    def _count(self, messages: Sequence[Message]) -> int:
        return self._guarded(lambda: self.estimator.count(messages))

    def _overhead(self, tools: object) -> int:
        counter = self.estimator
        return self._guarded(lambda: counter.overhead(tools))  # type: ignore[attr-defined]

    def _guarded(self, count: Callable[[], int]) -> int:
        try:
            return max(0, int(count()))
        except Exception as problem:
            raise HookError(
                f"the token estimator raised {type(problem).__name__}: {text_of(problem)}"
            ) from problem

    def raw(self, transcript: Transcript, *, with_prompt: bool = False) -> int:
        """Raw sum of the visible list and the tools, and of the force prompt if asked."""
        if self.estimator.additive:
            more = self._prompt_cost if with_prompt else 0
            return transcript.visible_cost + self._fixed + more
        messages = list(transcript.visible)
        more_messages = (self._probe, self.prompt if with_prompt else None)
        fixed = 0 if self._probe is not None else self._fixed
        return fixed + self._count([*messages, *(m for m in more_messages if m is not None)])

    def estimate(
        self, transcript: Transcript, calibration: Calibration, *, with_prompt: bool = False
    ) -> int:
        """Prompt tokens expected for the visible list, and the force prompt if asked."""
        raw = self.raw(transcript, with_prompt=with_prompt)
        return calibration.estimate(raw) if self.estimator.additive else raw

    def generation(self, transcript: Transcript, calibration: Calibration) -> ContextBudget:
        """May the model be called on the visible list?"""
        if self.window is None:
            return self._unchecked(total=0)
        return self._record(self.estimate(transcript, calibration))

    def with_prompt(self, transcript: Transcript, calibration: Calibration) -> ContextBudget:
        """The same, and whether the force prompt would still fit."""
        if self.window is None:
            total = self.threshold + self.margin
            return self._unchecked(total=total, fits=True)
        prompt = self.estimate(transcript, calibration)
        if self.prompt is None:
            return self._record(prompt, fits=True)
        total = self.estimate(transcript, calibration, with_prompt=True)
        return self._record(prompt, with_prompt=total)

    def roomy(self, transcript: Transcript, calibration: Calibration) -> bool:
        """True if `with_prompt` would find nothing amiss; asked at every turn, so made short."""
        free = (self.window or 0) - self.margin
        enough = max(self.threshold, self.hard_line)
        if free - self.estimate(transcript, calibration) < enough:
            return False
        if self.prompt is None:
            return True
        total = self.estimate(transcript, calibration, with_prompt=True)
        return free - total >= max(self.threshold, 1)

    def provider_error(self, error: Mapping[str, Json] | None) -> ContextBudget:
        """The record where nothing is estimated and a provider's error is all there is."""
        record = self._unchecked(total=0, fits=True)
        return replace(
            record,
            context_window=self.window,
            exceeds_context=True,
            context_limit_detection="provider_error",
            provider_error=error,
        )

    def _record(
        self, prompt: int, *, with_prompt: int | None = None, fits: bool | None = None
    ) -> ContextBudget:
        """What follows from the estimates, for a window that is set."""
        window, threshold, margin = self.window or 0, self.threshold, self.margin
        remaining = window - prompt - margin
        hard = self.hard_line > 0 and remaining < self.hard_line
        warn = not hard and remaining < threshold
        total = prompt
        with_prompt_left = None
        if with_prompt is not None:
            with_prompt_left = window - with_prompt - margin
            warn = warn or with_prompt_left < threshold
            total = max(prompt, with_prompt)
            fits = with_prompt_left > 0
        return ContextBudget(
            estimated_prompt_tokens=prompt,
            reserved_output_tokens=threshold,
            context_safety_margin=margin,
            estimated_total_tokens=total + threshold + margin,
            remaining_tokens=remaining,
            min_tokens_for_generation=self.hard_line,
            context_warning_threshold=threshold,
            context_window=window,
            hard_stop=hard,
            needs_final_warning=warn,
            exceeds_context=hard or warn,
            estimated_prompt_with_warning_tokens=with_prompt or 0,
            warning_remaining_tokens=with_prompt_left,
            warning_prompt_fits=fits,
        )

    def _unchecked(self, *, total: int, fits: bool | None = None) -> ContextBudget:
        """The record where no window is set, or nothing is estimated."""
        return ContextBudget(
            estimated_prompt_tokens=0,
            reserved_output_tokens=self.max_output_tokens,
            context_safety_margin=self.margin,
            estimated_total_tokens=total,
            remaining_tokens=None,
            min_tokens_for_generation=self.hard_line,
            context_warning_threshold=self.threshold,
            context_window=None,
            hard_stop=False,
            needs_final_warning=False,
            exceeds_context=False,
            warning_prompt_fits=fits,
        )
