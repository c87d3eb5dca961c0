"""miroflow: the agent loop of MiroFlow, as a preset on the one orchestrator.

Source: spec section 16. What is its own there is a knob here: rollbacks of duplicates, refusals,
leftover call tags and bad results, up to four in a row; empty replies that do not count as turns;
an answer stage at the end of every try. `max_turns` counts the final answer, as everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from axislab.config import AgentConfig, AnswerPolicy
from axislab.models.tokens import estimate_text
from axislab.recipe import Recipe, ToolItem
from axislab.tools.base import Tool

SYSTEM = (
    "You solve the task you are given step by step. Call the tools you need, check what they "
    "return, and change your query when it leads nowhere. When you know the answer, say so."
)
CUSHION = 1000
"""Tokens kept free beside the reply and the final prompt."""

_TAGS = ("use_mcp_tool", "server_name", "arguments")
_REFUSALS = ("time constraint", "I’m sorry, but I can’t", "I'm sorry, I cannot solve")
_QUERIES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "google_search": ("q",),
        "sogou_search": ("Query",),
        "scrape_website": ("url",),
        "scrape_and_extract_info": ("url", "info_to_extract"),
        "search_and_browse": ("subtask",),
    }
)
"""Tools whose calls can be duplicates, and the arguments that make their query."""
_ALIASES: Final[Mapping[tuple[str, str], tuple[str, ...]]] = MappingProxyType(
    {
        ("scrape_and_extract_info", "info_to_extract"): ("description", "introduction"),
        ("run_python_code", "code_block"): ("code",),
    }
)
"""Other names by which models give an argument."""


def miroflow(
    *,
    tools: Iterable[ToolItem] = (),
    context_compress_limit: int = 0,
    keep_tool_result: int = -1,
    retry_with_summary: bool = True,
    **knobs: Any,
) -> Recipe:
    """An agent that works and answers as MiroFlow's does.

    Args:
        tools: Its tools; `miroflow_tool` gives one of a known name its query and aliases.
        context_compress_limit: Whole tries after the first.
        keep_tool_result: Tool results a call shows: -1 all, 0 none, else the newest.
        retry_with_summary: Failed tries leave an account to later ones.
        **knobs: Any knob of a recipe by its flat name.

    Examples:
        >>> miroflow(context_compress_limit=2).config.knob("tries")
        3
    """
    policy = AnswerPolicy.from_seed(
        context_compress_limit=context_compress_limit,
        keep_tool_result=keep_tool_result,
        retry_with_summary=retry_with_summary,
    )
    keeps = {} if keep_tool_result < 0 else {"context_policy": "keep_newest"}
    config = AgentConfig(answer=policy).with_(
        system_prompt=SYSTEM,
        early_stop_prompt=None,
        max_turns=101,
        window=None,
        safety_margin=CUSHION + estimate_text(str(knobs.get("final_prompt", policy.final_prompt))),
        strategy="rollback",
        format_keywords=tuple(f"<{slash}{tag}>" for tag in _TAGS for slash in ("", "/")),
        refusal_keywords=_REFUSALS,
        max_rollbacks=4,
        on_rollback_limit="stop",
        on_length="accept",
        on_empty_reply="retry_uncounted",
        tool_result_role="user",
        on_duplicate="rollback",
        on_bad_result="rollback",
        bad_result_prefixes=("Unknown tool:", "Error executing tool"),
        empty_result_keys=("organic", "Pages"),
        reset_after_any_turn=True,
        repair_arguments=True,
        attempts=5,
        **keeps,
        **({"keep_tool_results": keep_tool_result} if keeps else {}),
    )
    recipe = Recipe(name="miroflow", config=config, tools=tuple(tools))
    return recipe.with_(**knobs)


def miroflow_tool(
    name: str,
    function: Callable[..., Any],
    *,
    description: str = "",
    properties: Mapping[str, Any] | None = None,
) -> Tool:
    """A tool under one of MiroFlow's names, with its query and the aliases of its arguments.

    Args:
        name: google_search, scrape_website, run_python_code and so on; any other has no query.
        function: Called with the arguments by name.
        description: What the model is told.
        properties: JSON Schema of each argument; those the name implies are texts.

    Examples:
        >>> miroflow_tool("google_search", lambda q: "…").query
        ('q',)
    """
    shown: dict[str, Any] = {q: {"type": "string"} for q in _QUERIES.get(name, ())}
    for tool, argument in _ALIASES:
        if tool == name:
            shown[argument] = {"type": "string"}
    required = list(shown)
    if name == "run_python_code":
        shown["sandbox_id"] = {"type": "string", "default": "default"}
    shown |= properties or {}
    for (tool, argument), aliases in _ALIASES.items():
        if tool == name:
            shown[argument] = {**shown[argument], "x-agentic-aliases": list(aliases)}
    schema = {"type": "object", "properties": shown, "required": required}
    return Tool(
        name,
        schema,
        function,
        description=description,
        query=_QUERIES.get(name),
        strict=False,
    )
