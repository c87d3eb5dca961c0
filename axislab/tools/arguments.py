"""Reading the argument text of a tool call: it ends as an object, or the tool is not run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from axislab.messages import Json

EMPTY = "empty_arguments"
"""Rule: nothing, or null, was read as no arguments."""
UNFENCED = "unwrap_code_fence"
"""Rule: the object stood inside a Markdown code fence."""
UNWRAPPED = "unwrap_json_string"
"""Rule: the object stood inside a JSON string."""

_FENCE = re.compile(r"```\w*\s*\n?(?P<inner>(?:(?!```).)*)```", re.DOTALL)
_DEEPEST = 100
"""Levels of nesting; far beyond any real call, far below Python's recursion limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadArguments:
    """Arguments that were read."""

    value: dict[str, Json]
    repairs: tuple[str, ...] = ()
    """Names of the rules that were needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BadArguments:
    """Arguments a tool cannot be run with."""

    message: str
    """What is wrong and what to send, for the model."""


ReadOutcome: TypeAlias = ReadArguments | BadArguments


class _Ambiguous(ValueError):
    """It is JSON for some readers, but not for all, or means different things to them."""


def read_arguments(text: str, *, empty_ok: bool = False) -> ReadOutcome:
    """Read the argument text of one call; never guesses.

    An object inside a code fence or inside a JSON string is unwrapped, since it can mean nothing
    else. Broken, cut or ambiguous text is refused.

    Args:
        text: Exactly what the model wrote.
        empty_ok: Whether no text, or null, may stand for no arguments (no argument is required).

    Examples:
        >>> read_arguments('{"query": "tides"}').value
        {'query': 'tides'}
    """
    bare = text.strip().lstrip("\ufeff")
    if bare in {"", "null"}:
        return _empty(bare, ok=empty_ok)
    repairs: tuple[str, ...] = ()
    if bare.startswith("```") and (fenced := _FENCE.fullmatch(bare)):
        bare, repairs = fenced["inner"].strip(), (UNFENCED,)
    try:
        value = _decode(bare)
        if isinstance(value, str) and value.strip().startswith("{"):
            value, repairs = _decode(value.strip()), (*repairs, UNWRAPPED)
    except _Ambiguous as problem:
        return BadArguments(message=f"The arguments are not plain JSON: {problem}. {_WANTED}")
    except json.JSONDecodeError as problem:
        return BadArguments(message=_broken(problem))
    except (ValueError, RecursionError) as problem:
        return BadArguments(message=f"The arguments cannot be read ({problem}). {_WANTED}")
    if not isinstance(value, dict):
        return BadArguments(
            message=f"The arguments are {_kind(value)}, not a JSON object. {_WANTED}"
        )
    return ReadArguments(value=value, repairs=repairs)


_WANTED = 'Send one JSON object, such as {"name": "value"}.'


def _empty(bare: str, *, ok: bool) -> ReadOutcome:
    if ok:
        return ReadArguments(value={}, repairs=(EMPTY,))
    said = "null" if bare else "empty"
    return BadArguments(message=f"The arguments are {said}. {_WANTED}")


def _pairs(pairs: Iterable[tuple[str, Json]]) -> dict[str, Json]:
    out: dict[str, Json] = {}
    for key, value in pairs:
        if key in out and out[key] != value:
            raise _Ambiguous(f"{key!r} is given twice, with different values")
        out[key] = value
    return out


def _constant(name: str) -> Json:
    raise _Ambiguous(f"{name} is no JSON number")


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant)


def _decode(text: str) -> Json:
    if text.count("[") + text.count("{") > _DEEPEST and _depth(text) > _DEEPEST:
        raise _Ambiguous(f"it is nested more than {_DEEPEST} levels deep")
    return _DECODER.decode(text)


def _depth(text: str) -> int:
    """The deepest nesting, brackets in strings aside; a bound that holds for broken text too."""
    deepest = depth = 0
    for mark in re.findall(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', text, re.DOTALL):
        if mark in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif mark in "]}":
            depth -= 1
    return deepest


def _broken(problem: json.JSONDecodeError) -> str:
    text = problem.doc
    if problem.msg.startswith("Unterminated string") or problem.pos >= len(text):
        return (
            "The arguments end in the middle of the JSON, so they were probably cut off. "
            "Send the call again, with shorter arguments if they are long."
        )
    where = text[max(0, problem.pos - 15) : problem.pos + 15]
    return (
        f"The arguments are not valid JSON: {problem.msg} at character {problem.pos}, "
        f"near {where!r}. {_WANTED}"
    )


def _kind(value: Json) -> str:
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, bool):
        return "true or false"
    return "null" if value is None else "a number"
