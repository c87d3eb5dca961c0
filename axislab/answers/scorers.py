"""Judging an answer against what was expected."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from axislab.answers.normalize import Normalized, normalize
from axislab.errors import ConfigError, DataError, did_you_mean

Expected: TypeAlias = str | Sequence[str]
"""One right answer, or several of which any will do."""
Scorer: TypeAlias = Callable[[str | None, Expected], float | bool]
"""Judges an answer (None if there is none): True or False, or how right it is, 1 being wholly."""


@dataclass(frozen=True, slots=True)
class Score:
    """What an answer is worth."""

    value: float
    correct: bool
    """Whether the value is 1 or more."""


def exact_match(answer: str | None, expected: Expected) -> bool:
    """Whether the answer is one of those expected, character for character.

    Examples:
        >>> exact_match("Osk", ["Port Osk", "Osk"])
        True
    """
    return answer is not None and answer in _accepted(expected)


def normalized_match(answer: str | None, expected: Expected) -> bool:
    r"""Whether the answer says the same as one of those expected; see `normalize`.

    Examples:
        >>> normalized_match(r"$\frac{1}{2}$", "0.5")
        True
        >>> normalized_match("50", "50 %")
        False
    """
    if answer is None:
        return False
    given = normalize(answer)
    return any(given == normalize(accepted) for accepted in _accepted(expected))


def set_f1(answer: str | None, expected: Expected) -> float:
    """How well a list of items fits the one expected, in any order: the F1 of its items.

    Items stand between commas, semicolons, lines or "and", and are compared as `normalized_match`
    does; the comma of "1,234" parts nothing. Of several lists that will do, the best counts.

    Examples:
        >>> set_f1("Osk and Tal Moor", "Tal Moor, Osk"), set_f1("Osk", "Osk, Bebo")
        (1.0, 0.6666666666666666)
    """
    if answer is None:
        return 0.0
    given = _items(answer)
    return max((_f1(given, _items(one)) for one in _accepted(expected)), default=0.0)


_BETWEEN = re.compile(
    r"\s*(?:[;；、\n，]|,(?!\d{3}(?!\d))|(?<!\d),)\s*(?:and\b|和|与|及)?\s*|\s+and\s+", re.I
)


def _items(text: str) -> frozenset[Normalized]:
    found = (item.strip() for item in _BETWEEN.split(text.strip().strip("[](){}")))
    return frozenset(normalize(item) for item in found if item)


def _f1(given: frozenset[Normalized], wanted: frozenset[Normalized]) -> float:
    if not given or not wanted:
        return float(given == wanted)
    return 2 * len(given & wanted) / (len(given) + len(wanted))


def _accepted(expected: Expected) -> Sequence[str]:
    return (expected,) if isinstance(expected, str) else expected


SCORERS: dict[str, Scorer] = {
    "exact": exact_match,
    "normalized": normalized_match,
    "set_f1": set_f1,
}
"""The scorers that have a name."""


def resolve_scorer(scorer: str | Scorer) -> Scorer:
    """The scorer of that name, or the function itself.

    Raises:
        ConfigError: No scorer has the name, or it is no function.
    """
    if callable(scorer):
        return scorer
    if not isinstance(scorer, str) or scorer not in SCORERS:
        raise ConfigError(
            f"scorer={scorer!r} is neither a function nor a name: "
            f"{did_you_mean(str(scorer), SCORERS)}"
        )
    return SCORERS[scorer]


def score(answer: str | None, expected: Expected, scorer: str | Scorer = "normalized") -> Score:
    """Judge an answer.

    Raises:
        ConfigError: No scorer has the name.
        DataError: The scorer gave something that is no finite number.

    Examples:
        >>> score("1,234", "1234.0")
        Score(value=1.0, correct=True)
    """
    judge = resolve_scorer(scorer)
    given = judge(answer, expected)
    try:
        value = float(given)
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        name = getattr(judge, "__name__", repr(judge))
        raise DataError(f"scorer {name} gave {given!r}: it must give True, False or a number")
    return Score(value, value >= 1)
