"""What the answer stage asks of its surroundings, and what it reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from axislab.answer_policy import AttemptKind
from axislab.answers.extract import AnswerStatus, Extraction
from axislab.answers.failure import FailureSummary
from axislab.config import Sampling
from axislab.errors import ErrorKind, ModelError
from axislab.messages import Message, Usage
from axislab.models.base import ModelReply
from axislab.runtime.conversation import ConversationRuntime
from axislab.runtime.info import ConversationStepResult


class AnswerSource(StrEnum):
    """Where an answer comes from."""

    FINAL_TEXT = "final_text"
    INTERMEDIATE = "intermediate"
    """An answer that a reply of the main loop held: the fallback."""
    NONE = "none"


class SummaryKind(StrEnum):
    """What the text of the answer stage is."""

    ANSWER = "answer"
    NONE_GENERATED = "none_generated"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCall:
    """One call of the answer stage."""

    purpose: str
    messages: Sequence[Message]
    sampling: Sampling


@dataclass(frozen=True, slots=True)
class GivenReply:
    """The reply that ended the conversation, as the first attempt."""

    text: str
    finish_reason: str | None = None
    answer: str | None = None
    """The answer, where a hook of the conversation found it already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerAttempt:
    """What one call of the answer stage came to."""

    number: int
    """From 1; the reply that ended the conversation is the first where it counts as one."""
    of: int
    purpose: str
    outcome: str
    """"ok", or the kind of failure, an AttemptKind; for a verification right, wrong or unclear."""
    answer: str | None = None
    error: str | None = None
    """Message of the error, where the call itself failed."""
    changed: tuple[str, ...] = ()
    """What was changed for this call: temperature, max_output_tokens, prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerResult:
    """What the answer stage came to."""

    answer: str | None
    status: AnswerStatus
    source: AnswerSource
    summary_kind: SummaryKind
    text: str
    """The last reply; empty if there is none."""
    attempts: tuple[AnswerAttempt, ...] = ()
    failure_summary: FailureSummary | None = None
    summary_requested: bool = False
    usage: Usage
    """Tokens of the stage's calls; None where one that was answered did not report them."""
    error: ModelError | None = None
    """The error of the last call for an answer, if that failed."""

    @property
    def purposes(self) -> tuple[str, ...]:
        """What each call was for, in order."""
        return tuple(a.purpose for a in self.attempts if a.purpose != "main_loop")

    @property
    def fallback_used(self) -> bool:
        """An intermediate answer stands in for a missing one."""
        return self.source is AnswerSource.INTERMEDIATE


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierTry:
    """A try that was made, or begun, before the loop was taken up again."""

    number: int
    finished: bool = True
    answer: str | None = None
    failure_summary: str | None = None


class AnswerHost(Protocol):
    """The conversation an answer stage belongs to, and its way to a model."""

    @property
    def runtime(self) -> ConversationRuntime:
        """The conversation."""

    async def ask(self, call: AnswerCall) -> ModelReply:
        """Call the model.

        Raises:
            ModelError: It did not reply.
        """

    def message_of(self, reply: ModelReply) -> Message:
        """The reply as a message."""

    def find(self, text: str) -> Extraction:
        """The answer in a text."""

    def record(self, result: ConversationStepResult) -> object:
        """Hear of a step of the conversation."""

    def tell(self, attempt: AnswerAttempt) -> None:
        """Hear of an attempt."""


_KINDS = {
    ErrorKind.TIMEOUT: AttemptKind.TIMEOUT,
    ErrorKind.RATE_LIMIT: AttemptKind.RATE_LIMIT,
    ErrorKind.CONNECTION: AttemptKind.SERVER,
    ErrorKind.SERVER: AttemptKind.SERVER,
    ErrorKind.OVERLOADED: AttemptKind.SERVER,
    ErrorKind.MALFORMED_REPLY: AttemptKind.SERVER,
    ErrorKind.CONTEXT_LIMIT: AttemptKind.CONTEXT,
    ErrorKind.TRUNCATED: AttemptKind.TRUNCATED,
    ErrorKind.CONTENT_POLICY: AttemptKind.REFUSAL,
    ErrorKind.AUTH: AttemptKind.AUTH,
    ErrorKind.MISSING_KEY: AttemptKind.AUTH,
    ErrorKind.QUOTA: AttemptKind.AUTH,
    ErrorKind.NOT_FOUND: AttemptKind.BAD_REQUEST,
    ErrorKind.BAD_REQUEST: AttemptKind.BAD_REQUEST,
}

PROVIDER_KINDS = frozenset(_KINDS.values())
"""Kinds that a call without a reply can have, `other` aside."""


def kind_of(error: ModelError) -> AttemptKind:
    """What an attempt that got no reply counts as."""
    return _KINDS.get(error.kind, AttemptKind.OTHER)


def total(usages: Iterable[Usage | None]) -> Usage:
    """The sum; a figure that one of them lacks is unknown."""
    given = [u or Usage() for u in usages]

    def added(values: Sequence[int | None]) -> int | None:
        known = [v for v in values if v is not None]
        return sum(known) if known and len(known) == len(values) else None

    return Usage(
        input_tokens=added([u.input_tokens for u in given]),
        output_tokens=added([u.output_tokens for u in given]),
        cached_tokens=added([u.cached_tokens for u in given]),
        cache_write_tokens=added([u.cache_write_tokens for u in given]),
        reasoning_tokens=added([u.reasoning_tokens for u in given]),
        estimated=any(u.estimated for u in given),
    )
