"""Building a run's conversation anew from the header of its trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from axislab.config import AgentConfig
from axislab.errors import ConfigError, TraceError
from axislab.models.estimators import estimator_named
from axislab.recipe import Recipe
from axislab.runtime.budget import CharEstimator, TokenEstimator
from axislab.runtime.conversation import ConversationRuntime
from axislab.runtime.decisions import Rule
from axislab.runtime.rules import CHAIN
from axislab.tools.executor import ToolExecutor
from axislab.trace.trace import Trace


def conversation_of(
    trace: Trace, *, recipe: Recipe | None = None, estimator: TokenEstimator | None = None
) -> ConversationRuntime:
    """A conversation that has not begun, under the config a run was made with.

    Args:
        trace: The run's trace.
        recipe: The recipe, where its chain, hooks or tools are functions: a trace holds only
            their names.
        estimator: What counted its tokens, where that is an object of the user's own.

    Raises:
        TraceError: The header does not hold enough; the message says what to pass.
    """
    counter = _estimator(trace) if estimator is None else estimator
    return _from_header(trace, counter) if recipe is None else _from_recipe(recipe, counter)


def _estimator(trace: Trace) -> TokenEstimator:
    """What counted the tokens of a run; traces that do not say are by characters."""
    method = trace.header.get("estimator")
    if method is None or method == CharEstimator.method:
        return CharEstimator()
    found = estimator_named(str(method))
    if found is None:
        raise TraceError(
            f"the conversation of {trace.name} cannot be rebuilt from its trace: its tokens were "
            f"counted by {method!r}, which is none of axislab's estimators; pass estimator="
        )
    return found


def _from_recipe(recipe: Recipe, estimator: TokenEstimator) -> ConversationRuntime:
    specs = ToolExecutor(recipe.tools, recipe.config.tool_policy).specs
    return ConversationRuntime(
        recipe.config.conversation,
        max_output_tokens=recipe.config.sampling.max_output_tokens,
        estimator=estimator,
        tools=[spec.to_dict() for spec in specs] or None,
        tool_names=tuple(spec.name for spec in specs),
        chain=recipe.chain,
        direct_answer=recipe.direct_answer,
        wants_final_prompt=recipe.wants_final_prompt,
    )


def _from_header(trace: Trace, estimator: TokenEstimator) -> ConversationRuntime:
    described = trace.header.get("recipe") or {}
    for name in ("direct_answer", "wants_final_prompt"):
        if described.get(name) is not None:
            raise _needs_recipe(trace, f"its {name} is a function")
    config = _config(trace, described)
    tools = _tools(trace, described)
    return ConversationRuntime(
        config.conversation,
        max_output_tokens=config.sampling.max_output_tokens,
        estimator=estimator,
        tools=tools or None,
        tool_names=tuple(str(tool["function"]["name"]) for tool in tools),
        chain=_chain(trace, described.get("chain")),
    )


def _config(trace: Trace, described: Mapping[str, Any]) -> AgentConfig:
    config = described.get("config")
    if not isinstance(config, Mapping):
        raise _needs_recipe(trace, "its header holds no config")
    try:
        return AgentConfig.model_validate(config)
    except ConfigError as problem:
        raise _needs_recipe(trace, f"its config is not one of this version ({problem})") from None


def _tools(trace: Trace, described: Mapping[str, Any]) -> list[dict[str, Any]]:
    told = trace.header.get("tools")
    if told is None:
        told = [_spec(trace, tool) for tool in described.get("tools") or []]
    for tool in told:
        function = tool.get("function") if isinstance(tool, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise _needs_recipe(trace, f"its header holds {tool!r} as a tool")
    return list(told)


def _spec(trace: Trace, tool: object) -> dict[str, Any]:
    """What the model was told about a tool, from what the recipe says about it."""
    names = ("name", "description", "parameters")
    if not isinstance(tool, Mapping) or not all(name in tool for name in names):
        raise _needs_recipe(trace, f"its tools are made by a function, {tool!r}")
    return {"type": "function", "function": {name: tool[name] for name in names}}


def _chain(trace: Trace, described: Sequence[object] | None) -> tuple[Rule, ...]:
    if described is None:
        return CHAIN
    known = {rule.name: rule for rule in CHAIN}
    if isinstance(described, str) or not isinstance(described, Sequence):
        raise _needs_recipe(trace, f"its header holds {described!r} as a decision chain")
    chain = []
    for row in described:
        name = row.get("rule") if isinstance(row, Mapping) and "code" not in row else None
        if name not in known:
            raise _needs_recipe(trace, f"its decision chain has a rule of its own, {row!r}")
        chain.append(known[name])
    return tuple(chain)


def _needs_recipe(trace: Trace, why: str) -> TraceError:
    return TraceError(
        f"the conversation of {trace.name} cannot be rebuilt from its trace: {why}; pass "
        f"recipe=, the recipe it was run with"
    )
