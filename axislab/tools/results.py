"""What a tool returned, as the text a model reads."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from axislab.messages import Json


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
        text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=_jsonable)
    except TypeError:  # keys of several types do not sort
        text = json.dumps(_jsonable(value), sort_keys=True, ensure_ascii=False)
    except RecursionError as problem:
        raise TypeError("it is nested too deeply, or holds itself") from problem
    return clean_text(text)


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
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


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
    try:
        return to_jsonable_python(value)
    except (PydanticSerializationError, ValueError) as problem:
        raise TypeError(f"{type(value).__name__} is neither text nor JSON") from problem
