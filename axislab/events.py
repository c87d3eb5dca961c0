"""What a run says as it goes: one frozen event per line of its trace.

An emitter is any function that takes an event. The orchestrator only calls it; a recorder, a
live view and a test's list are three such functions. The recorder adds `seq` and `time`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeAlias

SCHEMA_VERSION = 1
"""Version of what the events below hold; the header of every trace carries it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """The base of all events."""

    kind: ClassVar[str] = "event"

    def payload(self) -> dict[str, Any]:
        """The fields as JSON; those that are None are left out (absent is unknown)."""
        out = {}
        for f in fields(self):
            if (value := getattr(self, f.name)) is not None:
                out[f.name] = value
        return out


Emit: TypeAlias = Callable[[Event], None]
"""Receives events in order; what it does with them is its own business."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """The header: all that is needed to understand the rest."""

    kind: ClassVar[str] = "run.started"

    run_id: str
    schema: int
    axislab_version: str
    recipe: Mapping[str, Any]
    """Whole, as `Recipe.to_dict()` gives it."""
    recipe_fingerprint: str
    task: Mapping[str, Any]
    """id, prompt, expected, metadata."""
    model: str
    simulated: bool
    """True if no real language model answered."""
    seed: int
    repeat: int = 0
    arm: str | None = None
    study: str | None = None
    parent: str | None = None
    """Run this one was forked from."""
    fork_step: int | None = None
    model_info: Mapping[str, Any] | None = None
    """What identifies the model further: weights' checksum, failure profile, api_base."""
    tools: list[dict[str, Any]] | None = None
    """What the model was told about tools: `ToolSpec.to_dict()` of each, in order."""
    estimator: str | None = None
    """How prompts are counted before they are sent; absent is by characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusChanged(Event):
    """The run's life: READY, RUNNING, WAITING_APPROVAL, COMPLETED, FAILED, …."""

    kind: ClassVar[str] = "status"

    source: str
    target: str
    event: str
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseChanged(Event):
    """The step phase: THINKING, TOOL_CALLING, OBSERVING (WAITING_APPROVAL while paused)."""

    kind: ClassVar[str] = "phase"

    source: str | None
    target: str | None
    seconds: float | None = None
    """How long the source phase lasted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageAppended(Event):
    """One message, marker included, at its place in the full list."""

    kind: ClassVar[str] = "message"

    index: int
    """Place in the full (append-only) list, from 0."""
    message: Mapping[str, Any]
    """`Message.to_dict()`."""
    step: int
    """Number of the step that appended it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTaken(Event):
    """One operation of the conversation runtime."""

    kind: ClassVar[str] = "step"

    step: int
    """From 0 in each run."""
    operation: str
    """initialize, assistant, tools, rollback_tool_calls, force_finalize_after_error, …"""
    stage: str
    action: str | None
    stage_path: list[str]
    turn: int
    """Assistant turns so far; a rolled-back turn does not count."""
    visible_count: int
    raw_count: int
    rollback_count: int
    """Consecutive rollbacks, the shared counter."""
    pending: list[str]
    """Ids of calls still to be answered."""
    rule: str | None = None
    """Rule of the decision chain that decided; None where no reply was judged."""
    level: str | None = None
    """Its level: L1, L1b, L2, budget, L3, L4a, L4b, L5, L6, L7."""
    rollback_reason: str | None = None
    rollback_message_count: int | None = None
    finalization_trigger: str | None = None
    done_reason: str | None = None
    estimated_tokens: int | None = None
    """Estimate of the visible list after the step."""
    observed_tokens: int | None = None
    """Prompt tokens the provider counted, as the runtime was told just before this step."""
    counter_reset: bool | None = None
    """The shared rollback counter was set to 0 after this step."""
    calibration_ratio: float | None = None
    info: Mapping[str, Any] | None = None
    """All conditional fields of ConversationStepInfo."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequested(Event):
    """One request to a model: a row for every attempt, failed ones included."""

    kind: ClassVar[str] = "model.request"

    call: int
    """Number of the model call within the run, from 0."""
    attempt: int
    """Number of the request within the call, from 1."""
    purpose: str
    """main_loop, final_answer, failure_summary, …"""
    step: int
    """Number of the next step: the one this reply leads to."""
    model: str
    outcome: str
    """ok, or the kind of the error."""
    latency: float
    """Seconds."""
    finish_reason: str | None = None
    """The provider's own word; absent if it gave none."""
    thinking_only: bool | None = None
    """True if the reply is nothing but thinking; absent if it is not."""
    possibly_truncated: bool | None = None
    """True if the limit may have cut the reply, whatever finish_reason says; absent if not."""
    input_tokens: int | None = None
    """The whole prompt: uncached, read from the cache and written to it."""
    output_tokens: int | None = None
    """The whole reply, thinking included."""
    uncached_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    usage_estimated: bool | None = None
    cost_usd: float | None = None
    cost_missing: str | None = None
    """Why there is no cost."""
    request_id: str | None = None
    cached: bool | None = None
    """The reply came from the reply cache: nothing was sent. Tokens are then those the original
    had, saved and not spent; `cost_usd` is 0. Absent where no cache was asked."""
    cache_key: str | None = None
    """Key of the request in the reply cache; replies of one key are copies of one draw."""
    saved_usd: float | None = None
    """What a cached reply had cost when it was paid for."""
    saved_seconds: float | None = None
    """How long it had taken."""
    estimated_prompt_tokens: int | None = None
    """What the budget estimate expected the prompt to be."""
    estimator: str | None = None
    """How it was counted; the calibration comes on top."""
    error: str | None = None
    """Short message of the error."""
    retry_in: float | None = None
    """Seconds until the next attempt, if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted(Event):
    """A tool call is about to run; written alone, before it does."""

    kind: ClassVar[str] = "tool.started"

    call_id: str
    name: str
    arguments: str
    """JSON text it runs with."""
    step: int
    idempotent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished(Event):
    """A tool call has its result; written alone."""

    kind: ClassVar[str] = "tool.finished"

    call_id: str
    name: str
    status: str
    content: str
    step: int
    reason: str | None = None
    latency: float | None = None
    arguments: str | None = None
    raw_arguments: str | None = None
    """As the model wrote them."""
    repairs: list[str] | None = None
    truncated: int | None = None
    duplicate: bool | None = None
    """The same query had been answered before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerTried(Event):
    """One call of the answer stage, or the reply that counts as its first."""

    kind: ClassVar[str] = "answer"

    try_number: int
    """Number of the try, from 0."""
    number: int
    """Number of the call among those for the same, from 1."""
    of: int
    """How many there may be."""
    purpose: str
    """main_loop, final_answer 1/3, failure_summary, verification 1/2, …"""
    outcome: str
    """ok, or the kind of failure; of a verification right, wrong or unclear."""
    step: int
    """Number of the next step."""
    answer: str | None = None
    error: str | None = None
    changed: list[str] | None = None
    """What was asked otherwise than before: temperature, max_output_tokens, prompt."""
    call: int | None = None
    """Number of the model call; absent where the reply came from the main loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TryFinished(Event):
    """A whole try at the task is over."""

    kind: ClassVar[str] = "try"

    number: int
    """From 0."""
    final: bool
    """No other could follow."""
    status: str
    """ok, format_error, no_answer, exhausted or failed."""
    source: str
    """Where the answer comes from: final_text, intermediate or none."""
    summary_kind: str
    """answer, none_generated or skipped."""
    cut_off: bool
    """The main loop ran out of turns or context."""
    main_turns: int
    """Turns of the main loop."""
    step: int
    """Number of the next step."""
    answer: str | None = None
    failure_summary: str | None = None
    """What later tries are told; absent if none was made."""
    summary_quality: float | None = None
    summary_calls: int | None = None
    experiences: list[int] | None = None
    """Numbers, from 1, of the tries whose accounts this one was told."""
    intermediate: list[str] | None = None
    """Answers that replies of the main loop held, hidden ones included."""
    main_end: str | None = None
    """Why the main loop ended."""
    error: str | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded(Event):
    """What a grading model said about the run's answer."""

    kind: ClassVar[str] = "grade"

    grader: str
    """Name of the model that was asked."""
    correct: bool
    votes: list[str]
    """right, wrong or unclear, one a call."""
    disagreement: float
    """Share of the clear votes that are against the verdict."""
    cached: bool
    """The same answer was graded before: no call was made."""
    agrees_with_text: bool
    """A comparison of the normalised texts says the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(Event):
    """The last event of a run that ended in any way but a crash."""

    kind: ClassVar[str] = "run.finished"

    status: str
    done_reason: str
    output: str
    """The last assistant message's text; empty if that is empty."""
    answer: str | None = None
    answer_status: str | None = None
    """ok, format_error, no_answer, exhausted, failed."""
    correct: bool | None = None
    score: float | None = None
    error: str | None = None
    error_kind: str | None = None
    steps: int = 0
    turns: int = 0
    seconds: float = 0.0
