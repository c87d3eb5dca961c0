"""Reads what a request used: tokens that add up, in whatever shape a provider reports them.

OpenAI's prompt_tokens include what was read from the cache; Anthropic's input_tokens exclude what
was read from the cache and what was written to it. Here the input is always the whole, so that
input = uncached + cache read + cache write, and thinking is always part of the output.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from axislab.messages import Json, Usage

_CACHE: Final = re.compile(r"cache", re.IGNORECASE)
_THINKING: Final = re.compile(r"reason|thought|thinking", re.IGNORECASE)
_READ: Final = (
    "prompt_tokens_details.cached_tokens",
    "input_tokens_details.cached_tokens",
    "cache_read_input_tokens",
    "prompt_cache_hit_tokens",
)
_WRITE: Final = (
    "prompt_tokens_details.cache_write_tokens",
    "prompt_tokens_details.cache_creation_tokens",
    "cache_creation_input_tokens",
)
_REASONING: Final = (
    "completion_tokens_details.reasoning_tokens",
    "output_tokens_details.reasoning_tokens",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counts:
    """The numbers as they stand in a report; None where one does not."""

    given: int | None
    made: int | None
    read: int | None
    written: int | None
    thought: int | None
    total: int | None


def read_usage(
    usage: object, *, raw: Mapping[str, Json] | None = None, empty: bool = False
) -> Usage | None:
    """The tokens in litellm's usage; zeros that cannot be true are "not reported".

    Args:
        usage: What litellm made of the report. It fills gaps with zeros and guesses.
        raw: The provider's own report, where it was seen: what is not in there is unknown.
        empty: Whether the reply has neither text, thinking nor calls.
    """
    if usage is None:
        return None
    counts = _Counts(
        given=_number(usage, "prompt_tokens") or None,  # a prompt is never empty
        made=_number(usage, "completion_tokens"),
        read=_told(_first(usage, _READ), raw, _CACHE),
        written=_told(_first(usage, _WRITE), raw, _CACHE),
        thought=_told(_first(usage, _REASONING), raw, _THINKING, guessed=True),
        total=_number(usage, "total_tokens"),
    )
    return _usage(counts, empty=empty)


def reported_usage(raw: Mapping[str, Json] | None) -> Usage | None:
    """The tokens in a provider's own report, where litellm made no reply of it.

    Args:
        raw: OpenAI's shape, or Anthropic's.

    Examples:
        >>> reported_usage({"input_tokens": 20, "cache_read_input_tokens": 80, "output_tokens": 7})
        Usage(input_tokens=100, output_tokens=7, cached_tokens=80, cache_write_tokens=0, \
reasoning_tokens=None, estimated=False)
    """
    if not raw:
        return None
    read, written = _first(raw, _READ), _first(raw, _WRITE)
    given = _number(raw, "prompt_tokens")
    made = _number(raw, "completion_tokens")
    if given is None and (fresh := _number(raw, "input_tokens")) is not None:
        given = fresh + (read or 0) + (written or 0)
        made = _number(raw, "output_tokens")
    counts = _Counts(
        given=given or None,
        made=made,
        read=read,
        written=written,
        thought=_first(raw, _REASONING),
        total=_number(raw, "total_tokens"),
    )
    return _usage(counts, empty=True)


def _usage(counts: _Counts, *, empty: bool) -> Usage | None:
    """Numbers that add up; a part that is larger than its whole is not known."""
    given, made, thought = counts.given, counts.made, counts.thought
    if made == 0 and (given is None or not empty):
        made = None
    if given is None and made is None:
        return None
    if thought is not None and made is not None and counts.total == (given or 0) + made + thought:
        # Some count thinking beside the output (xAI); the total tells them apart.
        made += thought
    if thought is not None and made is not None and thought > made:
        thought = None
    read, written = counts.read, counts.written
    if written is None and read is not None:
        written = 0  # who reports the cache and no writes bills none
    if given is not None and (read or 0) + (written or 0) > given:
        read = written = None
    return Usage(
        input_tokens=given,
        output_tokens=made,
        cached_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=thought,
    )


def _told(
    value: int | None,
    raw: Mapping[str, Json] | None,
    words: re.Pattern[str],
    *,
    guessed: bool = False,
) -> int | None:
    """The value, unless litellm filled it in: as a zero, or where it guesses, at all."""
    if value is None or raw is None or (value and not guessed):
        return value
    return value if any(words.search(key) for key in _keys(raw)) else None


def _keys(tree: Mapping[str, Json]) -> Iterator[str]:
    """The names of all numbers in a report."""
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _keys(value)
        elif value is not None:
            yield key


def _first(holder: object, paths: tuple[str, ...]) -> int | None:
    """The first of these numbers that is there; a number above zero wins."""
    found: int | None = None
    for path in paths:
        number = _number(holder, path)
        if number:
            return number
        found = number if found is None else found
    return found


def _number(holder: object, path: str) -> int | None:
    value = holder
    for name in path.split("."):
        if value is None:
            return None
        value = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return None
    return value
