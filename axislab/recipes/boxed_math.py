"""boxed_math: calculation tasks, answered in a box, with a calculator at hand."""

from __future__ import annotations

from typing import Any

from axislab.config import AgentConfig
from axislab.recipe import Recipe
from axislab.tools.builtin import calculator

SYSTEM = (
    "You solve calculation tasks. Work step by step, use the calculator for every operation that "
    "is not trivial, and end with the result in \\boxed{...}: digits only, no words."
)


def boxed_math(**knobs: Any) -> Recipe:
    r"""An agent that calculates and answers in \boxed{…}.

    Args:
        **knobs: Any knob of a recipe by its flat name.

    Examples:
        >>> boxed_math(max_turns=4).name
        'boxed_math'
    """
    recipe = Recipe(
        name="boxed_math",
        config=AgentConfig().with_(
            system_prompt=SYSTEM,
            max_turns=10,
            detector="structured",
            on_empty_reply="retry",
            max_reprompts=3,
            max_rollbacks=3,
            agg_reject_tool_message=False,
        ),
        tools=(calculator,),
        scorer="normalized",
    )
    return recipe.with_(**knobs)
