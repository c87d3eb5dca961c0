"""What a conversation is and shows: its parts, its state and how to read it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Self

from axislab.config import ConversationConfig, warn_once
from axislab.errors import ConfigError
from axislab.messages import ToolCall
from axislab.runtime.apply import Context
from axislab.runtime.budget import ContextBudget, ContextBudgetEstimator, TokenEstimator
from axislab.runtime.decisions import DirectAnswerHook, FinalPromptHook, Rule
from axislab.runtime.detectors import make_detector
from axislab.runtime.prompts import force_prompt
from axislab.runtime.rules import CHAIN
from axislab.runtime.stages import STAGE_TO_ACTION, StepAction
from axislab.runtime.stages import ConversationStage as Stage
from axislab.runtime.state import State
from axislab.runtime.transcript import Transcript, View


class Conversation:
    """One conversation under one config.

    Args:
        config: The knobs.
        max_output_tokens: Tokens of one reply (Sampling.max_output_tokens).
        estimator: Counts tokens before a provider does; a character estimate by default.
        tools: What the model is told about tools, counted as part of every prompt.
        chain: The decision chain; `CHAIN` by default.
        direct_answer: Finds a final answer in a reply (level 5).
        wants_final_prompt: Says whether the final-response prompt follows a reply (level 6).
    """

    def __init__(
        self,
        config: ConversationConfig | None = None,
        *,
        max_output_tokens: int = 1024,
        estimator: TokenEstimator | None = None,
        tools: Any = None,
        tool_names: Collection[str] = (),
        chain: Sequence[Rule] = CHAIN,
        direct_answer: DirectAnswerHook | None = None,
        wants_final_prompt: FinalPromptHook | None = None,
    ) -> None:
        self.config = ConversationConfig() if config is None else config
        self.chain = tuple(chain)
        self._direct_answer = direct_answer
        self._wants_final_prompt = wants_final_prompt
        self._detector = make_detector(self.config, tool_names=tool_names)
        self._budget = ContextBudgetEstimator(
            self.config.context_limit,
            max_output_tokens=max_output_tokens,
            estimator=estimator,
            tools=tools,
            prompt=force_prompt(self.config),
        )
        self._context = Context(budget=self._budget, max_turns=self.config.max_turns)
        self._state = State(transcript=Transcript(self._budget.cost))
        for sentence in self.config.warnings():
            warn_once(sentence)

    @property
    def stage(self) -> Stage:
        """Where the conversation stands."""
        return self._state.stage

    @property
    def action(self) -> StepAction | None:
        """What to do next; None before the conversation started."""
        return STAGE_TO_ACTION.get(self._state.stage)

    @property
    def visible(self) -> View:
        """What the model sees now."""
        return self._state.transcript.visible

    @property
    def full(self) -> View:
        """Everything ever appended."""
        return self._state.transcript.full

    @property
    def turn_idx(self) -> int:
        """Assistant turns so far; a rolled-back turn does not count."""
        return self._state.turn_idx

    @property
    def rollback_count(self) -> int:
        """Consecutive rollbacks of any kind."""
        return self._state.rollbacks

    @property
    def pending(self) -> tuple[ToolCall, ...]:
        """Tool calls still to be answered."""
        return self._state.pending

    @property
    def finalization_trigger(self) -> str | None:
        """Why the final answer was forced, if it was."""
        return self._state.trigger

    @property
    def estimator_method(self) -> str:
        """What the estimator calls its way of counting."""
        return self._budget.method

    @property
    def calibration_ratio(self) -> float:
        """Observed over estimated prompt tokens, smoothed."""
        return self._state.calibration.ratio

    @property
    def max_turns(self) -> int | None:
        """The turn limit; may be changed while the conversation runs."""
        return self._context.max_turns

    @max_turns.setter
    def max_turns(self, value: int | None) -> None:
        number = isinstance(value, int) and not isinstance(value, bool)
        if value is not None and not (number and value >= 1):
            raise ConfigError(f"max_turns={value!r}: it must be at least 1, or None for no limit")
        self._context = replace(self._context, max_turns=value)

    def estimate(self) -> int:
        """Estimated prompt tokens of a call on the visible list, tools included."""
        return self._budget.estimate(self._state.transcript, self._state.calibration)

    def budget(self) -> ContextBudget:
        """The budget of a call on the visible list, and whether the force prompt would fit."""
        return self._budget.with_prompt(self._state.transcript, self._state.calibration)

    def clone(self) -> Self:
        """A second conversation that goes on from here by itself."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def reset(self) -> None:
        """Start over; only max_turns is kept."""
        self._state = State(transcript=Transcript(self._budget.cost))
