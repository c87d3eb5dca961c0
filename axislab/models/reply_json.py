"""Replies as JSON and back: every field of ModelReply that says what the model answered."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from axislab.messages import Json
from axislab.models.base import ModelReply

OF_THE_CACHE: Final = frozenset({"cached", "cache_key", "saved_usd", "saved_seconds"})
"""Fields that say how a reply came here; they are not kept."""


def reply_to_json(reply: ModelReply) -> str:
    """The reply as JSON text; a lone surrogate stays what it is.

    Raises:
        TypeError: A field holds what JSON cannot.
    """
    data = {k: v for k, v in _encode(reply).items() if k not in OF_THE_CACHE}
    return json.dumps(data, ensure_ascii=True, separators=(",", ":"))


def reply_from_json(text: str) -> ModelReply:
    """The inverse; a field that a newer version wrote is left out.

    Raises:
        ValueError: It is not what `reply_to_json` writes.
    """
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError("a reply is a JSON object")
    try:
        reply: ModelReply = _decode(ModelReply, data)
    except (TypeError, AttributeError) as problem:
        raise ValueError(f"no reply: {problem}") from problem
    return reply


def _encode(value: object) -> Json:
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _encode(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encode(item) for item in value]
    raise TypeError(f"{type(value).__name__} {value!r} is no JSON")


@cache
def _hints(cls: type) -> Mapping[str, Any]:
    return get_type_hints(cls)


def _decode(hint: Any, value: Json) -> Any:
    if value is None:
        return None
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        kinds = [kind for kind in get_args(hint) if kind is not type(None)]
        return _decode(kinds[0], value) if len(kinds) == 1 else value
    if origin is tuple:
        return tuple(_decode(get_args(hint)[0], item) for item in value)
    if not isinstance(hint, type):
        return value
    if is_dataclass(hint):
        known = _hints(hint)
        given = {k: _decode(known[k], v) for k, v in value.items() if k in known}
        return hint(**given)
    return hint(value) if issubclass(hint, Enum) else value
