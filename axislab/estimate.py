"""What runs will take, before they are started: from recorded runs, else by a rule of thumb."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from axislab.errors import ConfigError, TraceError
from axislab.messages import Usage
from axislab.models.base import ChatModel
from axislab.models.price import Price, no_price, price_of
from axislab.models.tokens import PER_MESSAGE, estimate_text
from axislab.recipe import Recipe
from axislab.runtime.prompts import render_task
from axislab.tasks import Task
from axislab.tools.executor import ToolExecutor
from axislab.trace.reader import load_runs
from axislab.trace.run import Run

if TYPE_CHECKING:
    import pandas as pd

Number = TypeVar("Number", int, float)

Sample: TypeAlias = int | Iterable[Run] | None
"""Recorded runs to go by: all of the folder, the newest so many of each arm, or these."""

CALLS_WITH_TOOLS: Final = 6
"""Rule of thumb: model calls of a run that has tools, where it may have as many turns."""
REPLY_TOKENS: Final = 250
"""Rule of thumb: tokens of a reply."""
RESULT_TOKENS: Final = 500
"""Rule of thumb: tokens of the tool results of one turn."""

COLUMNS: Final[Mapping[str, str]] = {
    "arm": "string",
    "model": "string",
    "basis": "string",
    "recorded_runs": "Int64",
    "runs": "Int64",
    "calls": "Int64",
    "input_tokens": "Int64",
    "output_tokens": "Int64",
    "usd": "Float64",
    "cost_missing": "string",
    "calls_max": "Int64",
    "tokens_max": "Int64",
    "usd_max": "Float64",
    "method": "string",
}
"""Columns of the frame and their dtypes; `Lab.estimate` says what they mean."""

_SPARE_CALLS: Final = 2
"""Beyond turns and rollbacks: a context error and the forced answer after it."""
_FRAME_BYTES: Final = 64
"""More than a chat template adds to a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """What some runs take; None is not known."""

    calls: float
    input_tokens: float | None
    output_tokens: float | None
    usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What some runs take at most; None is no bound."""

    calls: int | None = None
    tokens: int | None = None
    output_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One arm, and what it is to be asked."""

    name: str
    recipe: Recipe
    model: ChatModel
    tasks: Sequence[Task]
    repeats: int


def recorded(folder: Path | None, *, sample: Sample) -> list[Run]:
    """The runs to go by, newest first."""
    if isinstance(sample, Iterable) and not isinstance(sample, str):
        given = list(sample)
        if all(isinstance(run, Run) for run in given):
            return given[::-1]
    elif sample is None or (type(sample) is int and sample >= 1):
        return _of_folder(folder)
    raise ConfigError(f"sample={sample!r}: give a number of recorded runs, 1 or more, or runs")


def _of_folder(folder: Path | None) -> list[Run]:
    if folder is None:
        return []
    try:
        return load_runs(folder)[::-1]
    except TraceError:  # nothing was recorded yet
        return []


def estimate_frame(arms: Iterable[Arm], *, runs: Sequence[Run], limit: int | None) -> pd.DataFrame:
    """One row an arm.

    Args:
        arms: The arms.
        runs: Recorded runs, newest first; those of an arm's recipe are found among them.
        limit: How many of them are looked at for one arm.
    """
    import pandas as pd

    rows = [_row(arm, runs, limit) for arm in arms]
    columns: dict[str, Any] = {}
    for name, dtype in COLUMNS.items():
        kind: Any = dtype
        columns[name] = pd.array([row[name] for row in rows], dtype=kind)
    return pd.DataFrame(columns)


def _row(arm: Arm, runs: Sequence[Run], limit: int | None) -> dict[str, object]:
    same = [r for r in runs if r.recipe_fingerprint == arm.recipe.fingerprint and _ended(r)]
    of_model = [r for r in same if r.model == arm.model.name]
    basis, used = "recorded", of_model[:limit]
    if not used and same:
        # Another model's runs tell more about calls than a rule of thumb does.
        used = [r for r in same if r.model == same[0].model][:limit]
        basis = f"recorded with {used[0].model}"
    if used:
        amount = _from_records(arm, used, priced=basis == "recorded")
        method = "mean of the recorded runs, of each task where that was recorded"
    else:
        amount, basis, method = _by_thumb(arm), "rule of thumb", _THUMB
    usd, missing = _cost(arm.model, amount)
    bound = _bound(arm)
    return {
        "arm": arm.name,
        "model": arm.model.name,
        "basis": basis,
        "recorded_runs": len(used),
        "runs": len(arm.tasks) * arm.repeats,
        "calls": _up(amount.calls),
        "input_tokens": _up(amount.input_tokens),
        "output_tokens": _up(amount.output_tokens),
        "usd": usd,
        "cost_missing": missing,
        "calls_max": bound.calls,
        "tokens_max": bound.tokens,
        "usd_max": _cost_at_most(arm.model, bound),
        "method": method,
    }


def _up(value: float | None) -> int | None:
    return None if value is None else math.ceil(value)


# From recorded runs ----------------------------------------------------------------------------


def _ended(run: Run) -> bool:
    """Whether a run came to an end of its own: what broke off says little."""
    return run.status == "COMPLETED" or (run.status == "FAILED" and run.error_kind is None)


def _from_records(arm: Arm, runs: Sequence[Run], *, priced: bool) -> Amount:
    return Amount(
        calls=_expected(arm, runs, {r.id: r.requests for r in runs}) or 0.0,
        input_tokens=_expected(arm, runs, {r.id: _whole_tokens(r, "input_tokens") for r in runs}),
        output_tokens=_expected(arm, runs, {r.id: _whole_tokens(r, "output_tokens") for r in runs}),
        usd=_expected(arm, runs, {r.id: _sum(r.cost_usd, r.saved_usd) for r in runs})
        if priced
        else None,
    )


def _whole_tokens(run: Run, name: str) -> int | None:
    """Tokens of a run as if nothing had come from the reply cache: another task's may not."""
    return _sum(getattr(run.usage, name), getattr(run.saved_usage, name))


def _sum(paid: Number | None, saved: Number | None) -> Number | None:
    return None if paid is None or saved is None else paid + saved


def _expected(
    arm: Arm, runs: Sequence[Run], values: Mapping[str, float | int | None]
) -> float | None:
    """The sum over the runs to be made: each is like those of its task, else like all."""
    by_task: dict[str | None, list[float]] = {}
    for run in runs:
        if (value := values[run.id]) is not None:
            by_task.setdefault(run.task_id, []).append(value)
    if not by_task:
        return None
    overall = fmean(fmean(some) for some in by_task.values())
    means = {task_id: fmean(some) for task_id, some in by_task.items()}
    return arm.repeats * sum(means.get(task.id, overall) for task in arm.tasks)


# By a rule of thumb ----------------------------------------------------------------------------

_THUMB: Final = (
    f"rule of thumb: with tools {CALLS_WITH_TOOLS} calls a run (at most max_turns), without 1, and "
    "1 more for a final prompt, an answer stage and a second opinion each; "
    f"{REPLY_TOKENS} tokens a reply (at most max_output_tokens), "
    f"{RESULT_TOKENS} a turn's tool results; prompts counted by characters, each with all before it"
)


def _by_thumb(arm: Arm) -> Amount:
    config = arm.recipe.config
    reply = min(config.sampling.max_output_tokens, REPLY_TOKENS)
    calls, growth = 1, reply + PER_MESSAGE
    if arm.recipe.tools:
        calls, growth = CALLS_WITH_TOOLS, growth + RESULT_TOKENS
    calls = min(calls, config.conversation.max_turns or calls)
    calls += config.conversation.final_response_prompt is not None
    calls += config.answer.answer_stage == "always"
    calls += config.answer.verify_answer != "never"
    window = config.conversation.context_limit.window or math.inf
    fixed = _fixed_texts(arm.recipe)
    given = 0.0
    for task in arm.tasks:
        texts = [*fixed, render_task(config.conversation.user_prompt_template, task.prompt)]
        first = sum(PER_MESSAGE + estimate_text(text) for text in texts)
        given += sum(min(first + n * growth, window) for n in range(calls))
    runs = len(arm.tasks) * arm.repeats
    return Amount(
        calls=runs * calls, input_tokens=given * arm.repeats, output_tokens=runs * calls * reply
    )


def _fixed_texts(recipe: Recipe) -> list[str]:
    """What every prompt holds beside the task."""
    specs = ToolExecutor(recipe.tools, recipe.config.tool_policy).specs
    tools = [json.dumps(spec.to_dict(), ensure_ascii=False) for spec in specs]
    return [recipe.config.conversation.system_prompt or "", *tools]


def _bound(arm: Arm) -> Bound:
    """At most: every turn of every try, each with all its rollbacks; the window, or all said."""
    config, answer = arm.recipe.config.conversation, arm.recipe.config.answer
    changed = [rule.max_output_tokens or 0 for rule in answer.answer_retries.values()]
    most_out = max(arm.recipe.config.sampling.max_output_tokens, *changed, 0)
    if config.max_turns is None or config.on_empty_reply == "retry_uncounted":
        return Bound()
    calls = config.max_turns * (config.assistant_rollback.max_rollbacks + 1) + _SPARE_CALLS
    if arm.recipe.config.context.context_policy == "compact":
        calls += config.max_turns
    if answer.active:
        calls = answer.tries * (calls + answer.most_calls)
    runs = len(arm.tasks) * arm.repeats
    tokens = None
    if config.context_limit.window is not None:
        tokens = runs * calls * config.context_limit.window
    elif not arm.recipe.tools:
        tokens = arm.repeats * sum(_most_tokens(arm, task, calls) for task in arm.tasks)
    return Bound(calls=runs * calls, tokens=tokens, output_tokens=runs * calls * most_out)


def _most_tokens(arm: Arm, task: Task, calls: int) -> int:
    """Tokens of a run without tools at most: no tokenizer makes more of a text than its bytes."""
    config = arm.recipe.config.conversation
    reply = arm.recipe.config.sampling.max_output_tokens + _FRAME_BYTES
    asked = render_task(config.user_prompt_template, task.prompt)
    said = [config.system_prompt, asked, config.early_stop_prompt, config.final_response_prompt]
    first = sum(len(text.encode("utf-8", "replace")) + _FRAME_BYTES for text in said if text)
    again = len(config.format_error.reprompt.encode("utf-8", "replace")) + _FRAME_BYTES
    if (answer := arm.recipe.config.answer).active:
        prompts = [rule.prompt or "" for rule in answer.answer_retries.values()]
        prompts += [answer.final_prompt, answer.failure_prompt, answer.failure_prefix or ""]
        prompts += [answer.verify_prompt, asked, asked]
        again += sum(len(p.encode("utf-8", "replace")) + _FRAME_BYTES for p in prompts)
    return sum(first + n * (reply + again) + reply for n in range(calls))


# US dollars ------------------------------------------------------------------------------------


def _cost(model: ChatModel, amount: Amount) -> tuple[float | None, str | None]:
    """US dollars, or why there are none."""
    if amount.usd is not None:
        return amount.usd, None
    if amount.input_tokens is None or amount.output_tokens is None:
        return None, "the recorded runs do not say how many tokens they took"
    price = _price(model, amount.input_tokens / max(amount.calls, 1.0))
    if price is None:
        return None, no_price(model.name, simulated=model.simulated)
    usage = Usage(
        input_tokens=math.ceil(amount.input_tokens), output_tokens=math.ceil(amount.output_tokens)
    )
    return price.of(usage), None


def _cost_at_most(model: ChatModel, bound: Bound) -> float | None:
    if bound.calls is None or bound.tokens is None:
        return None
    price = _price(model, bound.tokens / max(bound.calls, 1))
    if price is None:
        return None
    made = min(bound.output_tokens, bound.tokens)
    return price.at_most(input_tokens=bound.tokens - made, output_tokens=made)


def _price(model: ChatModel, prompt: float) -> Price | None:
    return price_of(model, prompt=math.ceil(prompt))
