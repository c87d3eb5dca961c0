"""What a tool returned, as the text a model reads."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from io import IOBase
from itertools import islice
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from axislab.messages import Json

_MOST = 100_000
"""Values taken of an iterator."""


class _NotJson(TypeError):
    """A value that no way of writing makes JSON."""


@dataclass(frozen=True, slots=True)
class CappedText:
    """A text under its size cap."""

    text: str
    cut: int = 0
    """Characters of the original that are not in it."""


def render_result(value: object) -> str:
    """Text as it is; any other value as JSON with sorted keys.

    Raises:
        TypeError: The value is neither text nor JSON.
    """
    if isinstance(value, str):
        return clean_text(value)
    try:
        return clean_text(_dump(value))
    except _NotJson:
        raise
    except TypeError:  # keys of several types do not sort
        return clean_text(_dump(_text_keys(value)))


def _dump(value: object) -> str:
    try:
        return json.dumps(value, sort_keys=True, ensure_ascii=False, default=_jsonable)
    except RecursionError as problem:
        raise _NotJson("it is nested too deeply, or holds itself") from problem


def _text_keys(value: Any) -> Any:
    """A copy whose mappings have keys of text."""
    if isinstance(value, dict):
        return {_text_key(key): _text_keys(part) for key, part in value.items()}
    return [_text_keys(part) for part in value] if isinstance(value, list | tuple) else value


def _text_key(key: object) -> str:
    return key if isinstance(key, str) else str(next(iter(to_jsonable_python({key: None}))))


def cap_text(text: str, limit: int | None) -> CappedText:
    """Cut a text so that it is, note included, no longer than the limit."""
    if limit is None or len(text) <= limit:
        return CappedText(text)
    kept = limit - len(_note(len(text), len(text)))
    return CappedText(text[:kept] + _note(len(text) - kept, len(text)), len(text) - kept)


def clean_text(text: str) -> str:
    """The text without lone surrogates, which no file or provider takes."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:  # halves that stand side by side are one character
        joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
        return joined.encode("utf-8", "replace").decode()
    return text


def _drained(values: Iterator[object]) -> list[object]:
    """What an iterator gives; one without an end would be waited for without one."""
    found = list(islice(values, _MOST + 1))
    if len(found) > _MOST:
        raise _NotJson(f"it gives more than {_MOST:,} values, perhaps without end: return a list")
    return found


def _note(cut: int, total: int) -> str:
    return f"\n[cut: {cut} of {total} characters are not shown]"


def _jsonable(value: object) -> Json:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    if callable(tolist := getattr(value, "tolist", None)):  # arrays and numbers of numpy
        return tolist()
    if isinstance(value, IOBase):
        raise _NotJson("it is an open file: return what is in it")
    if isinstance(value, Iterator):
        return _drained(value)
    try:
        return to_jsonable_python(value)
    except (PydanticSerializationError, ValueError) as problem:
        raise _NotJson(f"{type(value).__name__} is neither text nor JSON") from problem
