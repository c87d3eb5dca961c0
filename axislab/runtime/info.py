"""What a step reports: the fields every step has, and those that only some have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from axislab.messages import Json, Message
from axislab.runtime.decisions import Decision
from axislab.runtime.stages import ConversationStage, StepAction
from axislab.runtime.transcript import View

ALWAYS = (
    "stage",
    "stage_path",
    "visible_message_count",
    "raw_message_count",
    "appended_message_count",
    "assistant_turn_idx",
)


@dataclass(frozen=True, init=False)
class ConversationStepInfo:
    """Diagnostics of one step; a field that is None does not apply to it.

    `raw_message_count - visible_message_count` is what markers hide, and the markers themselves.
    """

    def __init__(self, **values: Any) -> None:
        # Only what applies is stored, the rest is read from the class: every step makes one of
        # these, and a generated __init__ would assign two dozen times None.
        self.__dict__.update(values)

    stage: str
    stage_path: tuple[str, ...]
    """Every stage of this step, starting with the one before it."""
    visible_message_count: int
    raw_message_count: int
    appended_message_count: int
    assistant_turn_idx: int
    """Assistant turns so far; a rolled-back turn does not count."""
    force_finalize_stage: str | None = None
    finalization_trigger: str | None = None
    has_early_stop_prompt: bool | None = None
    tool_request_count: int | None = None
    finish_reason: str | None = None
    token_exhaustion_had_content: bool | None = None
    direct_final_answer: str | None = None
    direct_final_answer_preview: str | None = None
    assistant_rollback_count: int | None = None
    rollback_reason: str | None = None
    rollback_message_count: int | None = None
    refusal_keywords: tuple[str, ...] | None = None
    wrong_tool_call_format_keywords: tuple[str, ...] | None = None
    format_error_strategy: str | None = None
    offending_content_preview: str | None = None
    offending_content_length: int | None = None
    matched_spans: tuple[tuple[int, int], ...] | None = None
    """Where in the reply the structured detector found it (characters)."""
    tools_exhausted: bool | None = None
    context_limit_estimate: Mapping[str, Json] | None = None
    context_budget_stop: bool | None = None
    context_limit_error_during_force_final: bool | None = None
    force_finalization_recovery: bool | None = None
    token_exhaustion_recovery: bool | None = None
    context_limit_error_recovery: bool | None = None

    def conditional(self) -> dict[str, Json]:
        """Only the fields that apply to this step, as JSON."""
        found = self.__dict__.items()
        return {k: _json(v) for k, v in found if k not in ALWAYS and v is not None}

    def to_dict(self) -> dict[str, Json]:
        """All fields that apply, as JSON."""
        return {name: _json(getattr(self, name)) for name in ALWAYS} | self.conditional()


def _json(value: object) -> Json:
    if isinstance(value, tuple):
        return [_json(item) for item in value]
    return dict(value) if isinstance(value, Mapping) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationStepResult:
    """What one operation of the conversation came to."""

    operation: str
    stage: ConversationStage
    action: StepAction
    """What to do next."""
    info: ConversationStepInfo
    appended: tuple[Message, ...]
    """Messages and markers this step appended to the full list."""
    visible: View
    """What the model sees now; read when needed."""
    full: View
    decision: Decision | None = None
    """What the decision chain said, where a reply was judged."""
    done_reason: str | None = None
    """Why the conversation ended, if it did."""
    rollback_count: int = 0
    """Consecutive rollbacks: the shared counter."""
    pending: tuple[str, ...] = ()
    """Ids of the tool calls still to be answered."""

    @property
    def stage_path(self) -> tuple[str, ...]:
        """Every stage of this step, starting with the one before it."""
        return self.info.stage_path
