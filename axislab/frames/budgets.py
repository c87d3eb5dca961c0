"""budgets_df: one row a model request, with what its prompt was expected to weigh."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from axislab.events import ModelRequested, StepTaken
from axislab.frames.clock import Clock
from axislab.frames.columns import Column, Table, documented
from axislab.frames.source import RunsLike, runs_of
from axislab.trace.run import Run

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Limits:
    """The token limits a run was made with; None is not set, or not known."""

    window: int | None = None
    safety_margin: int | None = None
    min_tokens: int | None = None
    warning_threshold: int | None = None

    @property
    def warning_at(self) -> int | None:
        """Prompt tokens above which the final answer is forced."""
        return self._below_window(self.warning_threshold)

    @property
    def stop_at(self) -> int | None:
        """Prompt tokens above which the conversation ends."""
        return self._below_window(self.min_tokens)

    def remaining(self, prompt: int | None) -> int | None:
        """Tokens left for the reply to a prompt."""
        if self.window is None or prompt is None:
            return None
        return self.window - prompt - (self.safety_margin or 0)

    def _below_window(self, tokens: int | None) -> int | None:
        if self.window is None or not tokens:
            return None
        return self.window - (self.safety_margin or 0) - tokens


def limits_of(run: Run) -> Limits:
    """The limits in a run's recipe."""
    recipe = run.trace.header.get("recipe")
    group = _find(recipe, "context_limit")
    if not isinstance(group, Mapping):
        return Limits()
    threshold = _count(group.get("warning_threshold"))
    if threshold is None:
        threshold = _count(_find(recipe, "max_output_tokens"))
    return Limits(
        window=_count(group.get("window")),
        safety_margin=_count(group.get("safety_margin")),
        min_tokens=_count(group.get("min_tokens_for_generation")),
        warning_threshold=threshold,
    )


def _find(tree: object, name: str) -> object:
    """The first value of that key in a recipe, however it is nested; knobs' names are unique."""
    if not isinstance(tree, Mapping):
        return None
    if name in tree:
        return tree[name]
    found = (_find(branch, name) for branch in tree.values())
    return next((value for value in found if value is not None), None)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """One request."""

    data: Mapping[str, Any]
    limits: Limits
    ratio: float | None
    seconds: float | None

    @property
    def estimate(self) -> int | None:
        """Prompt tokens expected."""
        return _count(self.data.get("estimated_prompt_tokens"))

    def flag(self, name: str) -> bool | None:
        """What is said of a reply only where it is true; None without a reply."""
        return bool(self.data.get(name)) if self.data.get("outcome") == "ok" else None

    @property
    def error(self) -> int | None:
        """Estimate minus observed."""
        observed = _count(self.data.get("input_tokens"))
        if self.estimate is None or observed is None:
            return None
        return self.estimate - observed

    @property
    def relative_error(self) -> float | None:
        """The error as a share of the observed tokens."""
        if self.error is None or not self.data["input_tokens"]:
            return None
        return self.error / float(self.data["input_tokens"])


def budget_rows(run: Run) -> list[BudgetRow]:
    """The requests of a run."""
    clock, limits = Clock(run), limits_of(run)
    rows: list[BudgetRow] = []
    ratio: float | None = None
    for record in list(run.trace.records):
        if record.kind == StepTaken.kind:
            ratio = record.data.get("calibration_ratio", ratio)
        elif record.kind == ModelRequested.kind:
            rows.append(BudgetRow(record.data, limits, ratio, clock.seconds(record)))
    return rows


BUDGETS: Table[BudgetRow] = Table(
    "budgets",
    (
        Column("call", "Int64", "Number of the model call, from 0.", "call"),
        Column("attempt", "Int64", "Number of the request within the call, from 1.", "attempt"),
        Column("purpose", "string", "What for: main_loop, final_answer and others.", "purpose"),
        Column("step", "Int64", "Step the reply leads to.", "step"),
        Column("outcome", "string", "ok, or the kind of the error.", "outcome"),
        Column("finish_reason", "string", "The provider's word; NA if none.", "finish_reason"),
        Column(
            "thinking_only",
            "boolean",
            "The reply is nothing but thinking.",
            lambda r: r.flag("thinking_only"),
        ),
        Column(
            "possibly_truncated",
            "boolean",
            "The limit may have cut the reply, whatever finish_reason says.",
            lambda r: r.flag("possibly_truncated"),
        ),
        Column(
            "estimated_prompt_tokens",
            "Int64",
            "Prompt tokens the estimate expected.",
            "estimated_prompt_tokens",
        ),
        Column("estimator", "string", "How they were counted, before calibration.", "estimator"),
        Column("input_tokens", "Int64", "Prompt tokens reported.", "input_tokens"),
        Column("output_tokens", "Int64", "Tokens of the reply.", "output_tokens"),
        Column("uncached_tokens", "Int64", "Input tokens at full price.", "uncached_tokens"),
        Column("cached_tokens", "Int64", "Input tokens read from cache.", "cached_tokens"),
        Column(
            "cache_write_tokens", "Int64", "Input tokens written to cache.", "cache_write_tokens"
        ),
        Column("reasoning_tokens", "Int64", "Output tokens of thinking.", "reasoning_tokens"),
        Column("usage_estimated", "boolean", "Counted by us, not reported.", "usage_estimated"),
        Column("error", "Int64", "Estimate minus input_tokens.", lambda r: r.error),
        Column("relative_error", "Float64", "error / input_tokens.", lambda r: r.relative_error),
        Column("window", "Int64", "Tokens the context holds.", lambda r: r.limits.window),
        Column(
            "remaining",
            "Int64",
            "Window minus estimate minus safety margin.",
            lambda r: r.limits.remaining(r.estimate),
        ),
        Column(
            "warning_threshold",
            "Int64",
            "With fewer remaining, the final answer is forced.",
            lambda r: r.limits.warning_threshold,
        ),
        Column(
            "min_tokens_for_generation",
            "Int64",
            "With fewer remaining, the conversation ends; 0 is no such line.",
            lambda r: r.limits.min_tokens,
        ),
        Column(
            "safety_margin",
            "Int64",
            "Tokens kept free in every calculation.",
            lambda r: r.limits.safety_margin,
        ),
        Column(
            "calibration_ratio",
            "Float64",
            "Factor of the estimate before the request.",
            lambda r: r.ratio,
        ),
        Column("latency", "Float64", "Seconds the request took.", "latency"),
        Column("cost_usd", "Float64", "US dollars of the request; NA if unknown.", "cost_usd"),
        Column("cost_missing", "string", "Why there is no price.", "cost_missing"),
        Column(
            "cached",
            "boolean",
            "From the reply cache: tokens are the original's, not spent; cost_usd is 0.",
            lambda r: r.data.get("cached", False),
        ),
        Column("saved_usd", "Float64", "What a cached reply had cost.", "saved_usd"),
        Column("saved_seconds", "Float64", "Seconds it had taken.", "saved_seconds"),
        Column("cache_key", "string", "Same key: copies of one draw; NA: no cache.", "cache_key"),
        Column("error_message", "string", "What a failed request said.", "error"),
        Column("retry_in", "Float64", "Seconds from it to the next attempt; NA: none.", "retry_in"),
        Column("request_id", "string", "The provider's id of the request.", "request_id"),
        Column("seconds", "Float64", "Seconds since the run started.", lambda r: r.seconds),
    ),
    budget_rows,
)


@documented(BUDGETS)
def budgets_df(data: RunsLike) -> pd.DataFrame:
    """One row a request to a model, failed ones included.

    Args:
        data: A run, runs, a study, or the path of a trace or folder.

    Examples:
        >>> budgets_df([]).relative_error.abs().median()
        <NA>
    """
    return BUDGETS.frame(runs_of(data))
