"""research_qa: multi-hop questions over a corpus, answered in a box."""

from __future__ import annotations

from typing import Any

from axislab.config import AgentConfig
from axislab.recipe import Recipe
from axislab.tools.builtin import calculator, search_tools
from axislab.tools.corpus import Corpus

SYSTEM = (
    "You answer questions about a closed collection of documents. Search it, read what you need, "
    "follow each link of the question, and calculate with the calculator. Rely on the documents "
    "alone. When you know the answer, write it as \\boxed{...}: the bare name or number."
)


def research_qa(*, corpus: Corpus, **knobs: Any) -> Recipe:
    r"""An agent that searches a corpus and answers in \boxed{…}.

    Duplicate queries are hidden and asked again; failed tools are shown to the model.

    Args:
        corpus: What can be searched; `load_corpus("atlas")`, or your own documents.
        **knobs: Any knob of a recipe by its flat name.
    """
    recipe = Recipe(
        name="research_qa",
        config=AgentConfig().with_(
            system_prompt=SYSTEM,
            max_turns=16,
            window=16_000,
            min_tokens_for_generation=256,
            detector="structured",
            on_empty_reply="retry",
            max_reprompts=3,
            max_rollbacks=3,
            on_duplicate="rollback",
            agg_reject_tool_message=False,
        ),
        tools=(*search_tools(corpus), calculator),
        scorer="normalized",
    )
    return recipe.with_(**knobs)
