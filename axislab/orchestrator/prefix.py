"""What two recipes differ in, and whether that matters before the answer stage at all.

Arms that differ only from the answer stage on can share one main loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from axislab.recipe import Recipe

ANSWER_STAGE_FIELDS: Final = ("name", "answer_finder", "scorer", "config.answer")
"""Fields of a recipe that no model call, tool or decision of the first main loop depends on; a
dot leads into the config, and everything below a name is meant."""


def differing_fields(recipe: Recipe, other: Recipe) -> tuple[str, ...]:
    """Dotted names of what two recipes differ in, in order.

    Examples:
        >>> differing_fields(Recipe(), Recipe().with_(tries=2, max_turns=9))
        ('config.answer.tries', 'config.conversation.max_turns')
    """
    mine, theirs = _flat(recipe.to_dict()), _flat(other.to_dict())
    names = sorted({*mine, *theirs})
    return tuple(n for n in names if mine.get(n, _ABSENT) != theirs.get(n, _ABSENT))


def same_main_loop(recipes: Iterable[Recipe]) -> bool:
    """Whether recipes differ, if at all, only from the answer stage of the first try on.

    Examples:
        >>> same_main_loop([Recipe(), Recipe().with_(answer_attempts=3)])
        True
        >>> same_main_loop([Recipe(), Recipe().with_(max_turns=3)])
        False
    """
    first, *others = recipes
    return all(_late(name) for other in others for name in differing_fields(first, other))


_ABSENT: Final = object()


def _late(name: str) -> bool:
    return any(name == field or name.startswith(f"{field}.") for field in ANSWER_STAGE_FIELDS)


def _flat(nested: Mapping[str, Any], under: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in nested.items():
        if isinstance(value, Mapping) and value:
            out |= _flat(value, f"{under}{name}.")
        else:
            out[f"{under}{name}"] = value
    return out
