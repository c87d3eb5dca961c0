"""Judging an answer against what was expected."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from axislab.answers.normalize import normalize
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


def _accepted(expected: Expected) -> Sequence[str]:
    return (expected,) if isinstance(expected, str) else expected


SCORERS: dict[str, Scorer] = {"exact": exact_match, "normalized": normalized_match}
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
