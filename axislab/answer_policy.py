"""AnswerPolicy: how an agent arrives at its final answer, as a frozen value.

Source: seed 002 and spec sections 14 and 15; the presets stand in `axislab.answers.policy`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, field_validator

from axislab.config_base import Config
from axislab.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

FINAL_PROMPT = (
    "The work on the task ends here: no further tool call is possible. This was the task:\n\n"
    "{task}\n\n"
    "Give your final answer now, using only what you have found so far. {form}"
)
"""Asks for the final answer; {task} and {form} are filled in."""
FAILURE_PROMPT = (
    "This attempt has failed: it came to no valid answer. Write a summary of the experience for "
    "whoever tries next, without calling a tool.\n"
    "Failure type: blocked, incomplete, misdirected, or wrong form of the answer.\n"
    "What happened: the steps you took and where they led nowhere.\n"
    "Useful findings: every fact you found, word for word, and what is still missing."
)
"""Asks for the account of a failed try."""
FAILURE_PREFIX = (
    "<think>\nI look back at the attempt and write down what the next one needs.\n</think>\n\n"
)
"""How the account begins, where a model goes on from the start of its own reply."""
VERIFY_PROMPT = (
    "Check this candidate answer to the task against all that was found.\n\n"
    "Task: {task}\n\nCandidate answer: {answer}\n\n"
    "Do not call a tool. Give your reasons in a few sentences, then end with one line: "
    "VERDICT: RIGHT or VERDICT: WRONG."
)
"""Asks for a second opinion; {task} and {answer} are filled in."""


class AttemptKind(StrEnum):
    """How one call for the final answer ended, if not with an answer."""

    TIMEOUT = "timeout"
    RATE_LIMIT = "rate_limit"
    SERVER = "server"
    """The provider failed, was out of capacity or could not be reached."""
    CONTEXT = "context"
    """The prompt does not fit the window."""
    TRUNCATED = "truncated"
    """The reply was cut by length and holds no answer."""
    FORMAT = "format"
    """A reply without an answer in the form asked for, or with tool calls in its place."""
    EMPTY = "empty"
    """A reply without text: not the same as a call that failed."""
    REFUSAL = "refusal"
    """The model, or its provider's safety system, refused."""
    AUTH = "auth"
    """Key, account or quota."""
    BAD_REQUEST = "bad_request"
    """The provider rejected the request, or has no such model."""
    OTHER = "other"


class AnswerRetry(Config):
    """What follows a call for the final answer that ended in one kind of error."""

    attempts: int = Field(default=3, ge=1)
    """Calls that may end like this, the first included; `answer_attempts` bounds all kinds."""
    backoff: float = Field(default=0.0, ge=0)
    """Seconds before the next call; doubles each time."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """That of the next call; None leaves it as it is."""
    max_output_tokens: int | None = Field(default=None, ge=1)
    """That of the next call; None leaves it as it is."""
    prompt: str | None = None
    """A final prompt for the next call, in place of the one before; None asks again as before."""


Fallback = Literal["never", "last_try", "every_try"]
"""When the newest intermediate answer may stand in for a missing one."""


class AnswerPolicy(Config):
    """How the final answer is asked for, found, retried and replaced."""

    answer_format: Literal["boxed", "regex", "json", "text"] = "boxed"
    r"""boxed is \boxed{…}; text takes the whole reply."""
    answer_pattern: str | None = None
    """For regex: a pattern with one group. For json: the key (default "answer")."""

    answer_stage: Literal["if_needed", "always"] = "if_needed"
    """if_needed takes the reply that ends the conversation as the first attempt; always asks."""
    answer_attempts: int = Field(default=1, ge=1)
    """Calls for the final answer within one try."""
    tries: int = Field(default=1, ge=1)
    """Whole attempts at the task: the seed's context_compress_limit is one less."""
    retry_with_summary: bool = True
    """A try that failed leaves an account of its failure to those after it."""
    skip_when_cut_off: bool = True
    """A try that ran out of turns or context, and is not the last, is not asked for an answer."""
    fallback_on_last_try: bool = False
    """Without a valid answer the newest intermediate one is taken, on the last (or only) try."""
    fallback_on_early_tries: bool = False
    """The same on tries before the last: usable rather than right."""
    fallback_by_kind: Mapping[str, Fallback] = Field(default_factory=dict)
    """The two fallbacks for tasks of one kind (their metadata's `kind`), by kind."""
    answer_retries: Mapping[str, AnswerRetry] = Field(default_factory=dict)
    """By kind of error: how often a call is repeated, how soon, and what changes. Where one is
    given for an error of the provider, `answer_attempts` counts those too, and no request of the
    answer stage is repeated below it."""
    summary_quality: float = Field(default=0.0, ge=0, le=1)
    """An account of a failure that scores less is asked for again; 0 takes any."""
    summary_attempts: int = Field(default=2, ge=1)
    """Calls for one account; the best is kept."""
    verify_answer: Literal["never", "second_opinion"] = "never"
    """second_opinion has the answer checked by one more call before it stands."""
    verify_reanswers: int = Field(default=1, ge=0)
    """Answers that may follow a verdict of "wrong"; after them the last answer stands."""

    final_prompt: str = FINAL_PROMPT
    """Asks for the final answer. {task} is the task, {form} says how to write the answer."""
    failure_prompt: str = FAILURE_PROMPT
    """Asks for the account of a failed try."""
    failure_prefix: str | None = None
    """Start of the account, sent as the assistant's; None where a model does not take one."""
    verify_prompt: str = VERIFY_PROMPT
    """Asks for a second opinion. {task} is the task, {answer} the candidate."""

    @field_validator("answer_retries", mode="before")
    @classmethod
    def _known_kinds(cls, given: Any) -> Any:
        return _checked_keys("answer_retries", given, allowed=AttemptKind)

    @classmethod
    def from_seed(
        cls,
        *,
        context_compress_limit: int = 0,
        keep_tool_result: int = -1,
        retry_with_summary: bool = True,
        **fields: Any,
    ) -> Self:
        """A policy by the names of seed 002, with MiroFlow's stage and fallbacks.

        Args:
            context_compress_limit: Whole attempts after the first.
            keep_tool_result: -1 allows three calls for the final answer, anything else one. What
                it does to the history is `ContextPolicy`'s.
            retry_with_summary: Failed tries leave an account.
            **fields: Further fields of the policy.

        Examples:
            >>> AnswerPolicy.from_seed(context_compress_limit=2, keep_tool_result=5).tries
            3
        """
        if keep_tool_result < -1 or context_compress_limit < 0:
            raise ConfigError(
                f"keep_tool_result={keep_tool_result!r} and "
                f"context_compress_limit={context_compress_limit!r}: the first is -1 or more, "
                "the second 0 or more"
            )
        given = {
            "answer_stage": "always",
            "answer_attempts": 3 if keep_tool_result == -1 else 1,
            "tries": context_compress_limit + 1,
            "retry_with_summary": retry_with_summary,
            "fallback_on_last_try": True,
            "failure_prefix": FAILURE_PREFIX,
        }
        return cls(**{**given, **fields})

    @property
    def context_compress_limit(self) -> int:
        """The seed's name for the tries after the first."""
        return self.tries - 1

    @property
    def active(self) -> bool:
        """Whether more may happen than reading the reply that ends the conversation."""
        return (
            self.answer_stage == "always"
            or self.answer_attempts > 1
            or self.tries > 1
            or self.verify_answer != "never"
            or self.falls_back
        )

    @property
    def most_calls(self) -> int:
        """Calls of one try beside its main loop, at most."""
        summaries = self.summary_attempts if self.tries > 1 and self.retry_with_summary else 0
        opinions = 0 if self.verify_answer == "never" else 2 * self.verify_reanswers + 1
        return self.answer_attempts + summaries + opinions

    @property
    def falls_back(self) -> bool:
        """Whether an intermediate answer may ever stand in."""
        return (
            self.fallback_on_last_try
            or self.fallback_on_early_tries
            or any(when != "never" for when in self.fallback_by_kind.values())
        )

    def fallback(self, *, final: bool, kind: str | None) -> bool:
        """Whether an intermediate answer may stand in, on this try and kind of task."""
        if kind is not None and (rule := self.fallback_by_kind.get(kind)) is not None:
            return rule == "every_try" or (rule == "last_try" and final)
        return self.fallback_on_last_try if final else self.fallback_on_early_tries

    def decision_table(self) -> pd.DataFrame:
        """What the policy does in every case, one row each.

        Returns:
            Columns context_management, cut_off, final_try, kind (NA for any other), generate,
            answer_calls, fallback, failure_summary.
        """
        import pandas as pd

        rows = []
        for kind in (None, *self.fallback_by_kind):
            for cut_off in (False, True):
                for final in (True,) if self.tries == 1 else (False, True):
                    made = self.decide(final=final, cut_off=cut_off, kind=kind)
                    rows.append((self.tries > 1, cut_off, final, kind, *made.row()))
        return pd.DataFrame(rows, columns=list(_TABLE_COLUMNS)).astype(_TABLE_COLUMNS)

    def decide(self, *, final: bool, cut_off: bool, kind: str | None = None) -> StageDecision:
        """What the answer stage of one try does.

        Args:
            final: The try is the last, or the only one.
            cut_off: The main loop ran out of turns or context; a natural end is none (A16).
            kind: Kind of the task.
        """
        early = self.tries > 1 and not final
        return StageDecision(
            generate=not (early and cut_off and self.skip_when_cut_off),
            calls=self.answer_attempts,
            fallback=self.fallback(final=not early, kind=kind),
            summary="if no answer" if early and self.retry_with_summary else "never",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StageDecision:
    """What the answer stage of one try does."""

    generate: bool
    """The model is asked for the final answer."""
    calls: int
    """How often at most."""
    fallback: bool
    """An intermediate answer may stand in."""
    summary: str
    """When an account of the failure is asked for: "never" or "if no answer"."""

    def row(self) -> tuple[object, ...]:
        """The same as the cells of a table."""
        return (self.generate, self.calls if self.generate else 0, self.fallback, self.summary)


_TABLE_COLUMNS = {
    "context_management": "boolean",
    "cut_off": "boolean",
    "final_try": "boolean",
    "kind": "string",
    "generate": "boolean",
    "answer_calls": "Int64",
    "fallback": "boolean",
    "failure_summary": "string",
}


def _checked_keys(name: str, given: Any, *, allowed: Iterable[str]) -> Any:
    if isinstance(given, Mapping):
        for key in given:
            if key not in list(allowed):
                raise ValueError(f"{key!r} is no kind of error: {did_you_mean(key, allowed)}")
    return given
