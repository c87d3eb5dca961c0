"""Every knob once: frozen values with the reason for each under it.

Defaults here are those of a bare `ConversationConfig` (the behaviour the case files fix); the
recipes that ship choose otherwise where `docs` of an option says so. All flat names are unique, so
`recipe.with_(max_turns=8)` finds its field wherever it is nested.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Literal, Self

from pydantic import BaseModel, Field, model_validator

from axislab.answer_policy import AnswerPolicy as AnswerPolicy
from axislab.config_base import Config as Config
from axislab.errors import ConfigError, did_you_mean


class FormatErrorStrategy(StrEnum):
    """What a text that looks like a tool call, but is none, leads to."""

    REPROMPT = "reprompt"
    """Keep it, say so, ask again."""
    ROLLBACK = "rollback"
    """Hide it and ask again; uses the shared rollback counter."""
    IGNORE = "ignore"
    """Take it as it is."""


EARLY_STOP_PROMPT = (
    "No further tool call is possible. Give your final answer to the task now, "
    "using only what you have found so far."
)
FORMAT_REPROMPT = (
    "Your last message reads like a tool call, but no valid call came out of it. "
    "Send the call again in the proper form, or go on without call syntax."
)


class ContextLimitConfig(Config):
    """When a conversation is too long to go on (tokens)."""

    window: int | None = Field(default=None, ge=1)
    """Tokens the model's context holds; None switches every budget check off."""
    safety_margin: int = Field(default=0, ge=0)
    """Tokens kept free in every calculation."""
    min_tokens_for_generation: int = Field(default=0, ge=0)
    """Hard line: with fewer tokens left the conversation ends. 0 switches the line off."""
    warning_threshold: int | None = Field(default=None, ge=1)
    """With fewer tokens left the final answer is forced. None: the model's max output tokens."""
    preflight: bool = True
    """Check before each call, from an estimate; off, only a provider's error tells."""


class FormatErrorConfig(Config):
    """Tool calls written as text."""

    strategy: FormatErrorStrategy = FormatErrorStrategy.REPROMPT
    """reprompt, rollback or ignore."""
    format_keywords: tuple[str, ...] = ("<tool_call>", "</tool_call>")
    """Texts that give such a message away (detector="substring")."""
    reprompt: str = FORMAT_REPROMPT
    """The user message that asks again."""
    max_reprompts: int | None = Field(default=None, ge=0)
    """Reprompts per conversation, then as `ignore`; None is no limit of its own."""


class AssistantRollbackConfig(Config):
    """Hiding a bad reply and asking again."""

    max_rollbacks: int = Field(default=0, ge=0)
    """Consecutive rollbacks of any kind; 0 switches all of them off."""
    refusal_keywords: tuple[str, ...] = ()
    """Texts that make a reply a refusal (detector="substring")."""
    on_rollback_limit: Literal["accept", "stop"] = "accept"
    """At the limit: accept the reply (AxisAgentic), or stop: force the final answer (MiroFlow)."""


class ConversationConfig(Config):
    """The conversation runtime's knobs."""

    system_prompt: str | None = "You are a helpful agent."
    """The system message; None or empty for none."""
    user_prompt_template: str = "{task}"
    """The first user message; {task} is the only placeholder."""
    early_stop_prompt: str | None = EARLY_STOP_PROMPT
    """Appended when the final answer is forced; None or empty forces it silently."""
    final_response_prompt: str | None = None
    """Asks for a summary and the final answer when the model stops calling tools."""
    max_turns: int | None = Field(default=None, ge=1)
    """Assistant turns, the forced one included; None is no limit."""
    context_limit: ContextLimitConfig = ContextLimitConfig()
    """Token budget of the context."""
    format_error: FormatErrorConfig = FormatErrorConfig()
    """Tool calls written as text."""
    assistant_rollback: AssistantRollbackConfig = AssistantRollbackConfig()
    """Refusals and the shared rollback counter."""
    detector: Literal["substring", "structured"] = "substring"
    """How refusals and textual calls are found; structured parses, and skips quotations."""
    fold_case: bool = False
    """Keywords match whatever their case (detector="substring")."""
    on_length: Literal["terminate", "accept", "rollback"] = "terminate"
    """A reply cut by length that holds text or calls: end, go on as usual, or hide and retry."""
    on_empty_reply: Literal["accept", "retry", "retry_visible", "retry_uncounted"] = "accept"
    """An empty reply completes, is hidden and asked again, or stays visible and is asked again;
    retry_uncounted is that without a bound but the loop's own (MiroFlow)."""
    agg_reject_tool_message: bool = False
    """Merge rejected results of equal text into one message (strict providers refuse that)."""
    tool_result_role: Literal["tool", "user"] = "tool"
    """How tool results are rendered for the call; the trace keeps them as tool messages."""

    @model_validator(mode="before")
    @classmethod
    def _blank_is_none(cls, data: Any) -> Any:
        if isinstance(data, Mapping):
            blank = {"system_prompt", "early_stop_prompt", "final_response_prompt"}
            return {k: None if k in blank and v == "" else v for k, v in data.items()}
        return data

    def warnings(self) -> list[str]:
        """What is legal here but may run for ever, a sentence each."""
        endless = (
            self.format_error.strategy == FormatErrorStrategy.REPROMPT
            and self.format_error.max_reprompts is None
            and self.max_turns is None
            and self.context_limit.window is None
        )
        if not endless:
            return []
        return [
            "format errors are reprompted without any bound: set max_reprompts, max_turns or "
            "window, else a model that keeps writing calls as text is asked for ever"
        ]


class Sampling(Config):
    """How the model is asked."""

    temperature: float | None = Field(default=None, ge=0, le=2)
    """None leaves it to the provider."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """None leaves it to the provider."""
    max_output_tokens: int = Field(default=1024, ge=1)
    """Tokens of one reply; also the default warning threshold of the context budget."""
    reasoning_effort: str | None = None
    """For reasoning models: low, medium, high, or what the provider takes."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Further parameters, passed on as they are."""


class ToolPolicy(Config):
    """Limits and habits of the tool executor."""

    max_tool_calls_per_step: int | None = Field(default=None, ge=1)
    """Calls of one turn that are not rejected."""
    max_tool_calls_per_task: int | None = Field(default=None, ge=0)
    """Calls of one run, over all tools."""
    default_max_calls_per_tool_per_task: int | None = Field(default=None, ge=0)
    """Calls of each tool in one run, unless the tool has a limit of its own."""
    default_max_consecutive_calls_with_same_args: int | None = Field(default=None, ge=1)
    """The same call in consecutive turns, unless the tool has a limit of its own."""
    step_limit_message: str = "Not run: too many tool calls in one turn."
    """What the model reads."""
    task_limit_message: str = "Not run: the tool budget of this task is used up."
    """What the model reads."""
    tool_limit_message: str = "Not run: the budget of this tool is used up."
    """What the model reads."""
    same_args_message: str = "Not run: this very call was just made. Use its result or change it."
    """What the model reads."""
    tool_timeout: float | None = Field(default=60.0, gt=0)
    """Seconds one call may take, unless the tool has its own; None waits for ever."""
    parallel_tools: bool = True
    """Run the calls of one turn side by side."""
    max_result_chars: int | None = Field(default=20_000, ge=100)
    """Characters of a result the model sees; the rest is cut, and said so."""
    repair_arguments: bool = False
    """Mend arguments before they are validated; the rules applied are recorded."""
    repair_strict_tools: bool = False
    """Mend those of tools declared strict as well."""
    normalize_key_names: bool = True
    """Repair: trim blanks and quotes around argument names."""
    apply_schema_aliases: bool = True
    """Repair: other names declared in the schema as x-agentic-aliases."""
    fuzzy_match_single_missing_property: bool = True
    """Repair: the one unknown name stands for the one absent property, if alike enough."""
    fuzzy_match_threshold: float = Field(default=0.72, ge=0, le=1)
    """Similarity needed for that (difflib's ratio)."""
    apply_schema_defaults: bool = True
    """Repair: absent properties take the schema's default, if it fits the type."""
    coerce_scalar_types: bool = True
    """Repair: a string that spells the number or boolean wanted, and the reverse."""


class RecoveryPolicy(Config):
    """What the loop does about duplicates, failed tools and truncation errors."""

    on_duplicate: Literal["allow", "rollback", "stop"] = "allow"
    """A query that was already answered (see @tool(query=…)): run it, hide the turn, or end."""
    on_tool_error: Literal["allow", "rollback", "stop"] = "allow"
    """A failed call: show the error to the model, hide the exchange, or end the run."""
    on_bad_result: Literal["allow", "rollback"] = "allow"
    """A result that ran, but reads like an error or is an empty list: show it, or hide the turn."""
    bad_result_prefixes: tuple[str, ...] = ()
    """Starts of results that read like errors, failed calls included."""
    empty_result_keys: tuple[str, ...] = ()
    """Keys of a JSON result whose empty list makes it an empty search."""
    on_truncation_error: Literal["rollback", "stop"] = "rollback"
    """A provider error about cut arguments: hide the exchange and force the answer, or end."""
    reset_after_success: bool = True
    """A turn with a successful tool sets the shared rollback counter to 0."""
    reset_after_any_turn: bool = False
    """So does a turn whose tools ran and all failed."""


COMPACT_PROMPT = (
    "Sum up the work so far for yourself: every fact that was found, word for word, what was tried "
    "in vain, and what is still open. Do not call a tool; your summary will replace these messages."
)


class ContextPolicy(Config):
    """What of the history a model call still shows."""

    context_policy: Literal["none", "keep_newest", "compact", "discard_all"] = "none"
    """none shows everything; keep_newest only the newest tool results, the trace untouched;
    compact replaces older exchanges by a summary, and discard_all starts again from the task,
    once the visible list is too long."""
    keep_tool_results: int = Field(default=5, ge=0)
    """How many tool results keep_newest shows, 0 for none; the rest read "omitted"."""
    shorten_above_tokens: int | None = Field(default=None, ge=1)
    """Estimated tokens from which compact and discard_all act; None is 60 % of the window."""
    compact_keep_exchanges: int = Field(default=1, ge=1)
    """Newest exchanges that compact leaves as they are."""
    compact_prompt: str = COMPACT_PROMPT
    """Asks for the summary."""

    def threshold(self, window: int | None) -> int | None:
        """Tokens from which the history is shortened; None if it never is."""
        if self.context_policy not in ("compact", "discard_all"):
            return None
        if self.shorten_above_tokens is not None or window is None:
            return self.shorten_above_tokens
        return int(0.6 * window)


class RetryPolicy(Config):
    """Retries of a model call: the only layer that retries."""

    attempts: int = Field(default=3, ge=1)
    """Requests in all for one call; 1 is no retry."""
    backoff: float = Field(default=0.5, ge=0)
    """Seconds before the first retry; doubles each time."""
    max_backoff: float = Field(default=30.0, ge=0)
    """Seconds, the longest wait between two requests."""
    jitter: float = Field(default=0.25, ge=0, le=1)
    """Share of the wait that is random."""
    request_timeout: float = Field(default=120.0, gt=0)
    """Seconds for one request, trickling replies included."""
    call_deadline: float = Field(default=600.0, gt=0)
    """Seconds for all requests and waits of one call."""

    def once(self) -> Self:
        """The same without retries."""
        return _merged(self, {"attempts": 1})  # type: ignore[no-any-return]


class AgentConfig(Config):
    """All knobs of an agent, in groups."""

    conversation: ConversationConfig = ConversationConfig()
    sampling: Sampling = Sampling()
    tool_policy: ToolPolicy = ToolPolicy()
    recovery: RecoveryPolicy = RecoveryPolicy()
    context: ContextPolicy = ContextPolicy()
    answer: AnswerPolicy = AnswerPolicy()
    retry: RetryPolicy = RetryPolicy()

    def with_(self, **knobs: Any) -> Self:
        """The same config with some knobs set, by their flat names or by group.

        Raises:
            ConfigError: A name that is no knob, or a value out of range.
        """
        out = self
        for name, value in knobs.items():
            if name not in KNOBS:
                raise ConfigError(f"{name!r} is no knob: {did_you_mean(name, KNOBS)}")
            out = _set(out, KNOBS[name], value)
        return out

    def knob(self, name: str) -> Any:
        """The value of one knob by its flat name."""
        if name not in KNOBS:
            raise ConfigError(f"{name!r} is no knob: {did_you_mean(name, KNOBS)}")
        value: Any = self
        for part in KNOBS[name]:
            value = getattr(value, part)
        return value


def _set(config: Any, path: tuple[str, ...], value: Any) -> Any:
    """A copy of config with the field at path replaced, everything validated again."""
    name, rest = path[0], path[1:]
    if rest:
        value = _set(getattr(config, name), rest, value)
    return _merged(config, {name: value})


def _merged(config: Any, values: Mapping[str, Any]) -> Any:
    """A copy of config with some fields set; a mapping for a group is merged into it."""
    new = dict(values)
    for name, value in values.items():
        current = getattr(config, name, None)
        if isinstance(current, Config) and isinstance(value, Mapping):
            new[name] = _merged(current, value)
    return type(config)(**{**_shallow(config), **new})


def _shallow(config: BaseModel) -> dict[str, Any]:
    return {name: getattr(config, name) for name in type(config).model_fields}


def _walk(cls: type[BaseModel], path: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name, field in cls.model_fields.items():
        yield name, (*path, name)
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _walk(inner, (*path, name))


KNOBS: dict[str, tuple[str, ...]] = dict(_walk(AgentConfig, ()))
"""Flat name of every knob and group, and where it is nested."""


_warned: set[str] = set()


def warn_once(message: str) -> None:
    """Warn about a legal but dangerous setting, once in a process."""
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, UserWarning, stacklevel=3)
