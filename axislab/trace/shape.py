"""What a line of each kind must hold, read off the event classes themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from axislab.errors import InvalidMessage
from axislab.events import Event, MessageAppended
from axislab.messages import Message

RESERVED = ("seq", "time", "kind")
"""Names of the envelope; no payload may use them."""


@dataclass(frozen=True, slots=True)
class FieldShape:
    """One field of an event as JSON shows it."""

    name: str
    required: bool
    exact: frozenset[type]
    """Types json.loads makes of it: the quick test."""
    like: tuple[type, ...]
    """Types an event in memory may have instead."""
    of_text: bool
    """A list whose items must be texts."""


_JSON_TYPES: dict[Any, tuple[tuple[type, ...], tuple[type, ...]]] = {
    str: ((str,), (str,)),
    bool: ((bool,), (bool,)),
    int: ((int,), (int,)),
    float: ((float, int), (float, int)),
    Mapping: ((dict,), (Mapping,)),
    list: ((list,), (Sequence,)),
}


def _field_shape(name: str, hint: Any, *, has_default: bool) -> FieldShape:
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    exact: set[type] = set()
    like: list[type] = []
    for option in options:
        if option is not NoneType:
            quick, slow = _JSON_TYPES[get_origin(option) or option]
            exact.update(quick)
            like.extend(slow)
    required = not has_default and NoneType not in options
    of_text = list[str] in options
    return FieldShape(name, required, frozenset(exact), tuple(like), of_text)


def _shape(event: type[Event]) -> tuple[FieldShape, ...]:
    hints = get_type_hints(event)
    return tuple(
        _field_shape(f.name, hints[f.name], has_default=f.default is not MISSING)
        for f in fields(event)
    )


_EVENTS = tuple(e for e in Event.__subclasses__() if e.__module__ == Event.__module__)

CORE_KINDS = frozenset(event.kind for event in _EVENTS)
"""Kinds that show a run going on; lines of another kind may follow the end of a run."""

SHAPES: dict[str, tuple[FieldShape, ...]] = {event.kind: _shape(event) for event in _EVENTS}
"""Kind to its fields. Other kinds and further fields are let through: newer versions may add."""


def shape_problem(kind: str, data: Mapping[str, Any]) -> str | None:
    """What is wrong with a payload, as half a sentence; None if nothing is."""
    for field in SHAPES.get(kind, ()):
        value = data.get(field.name)
        if value is None:
            if field.required:
                return f"{kind} lacks {field.name!r}"
        elif type(value) not in field.exact and not _is_like(value, field):
            wanted = " or ".join(sorted(t.__name__ for t in field.exact))
            return f"{kind} has {field.name}={_brief(value)}, not {wanted}"
        elif field.of_text and not all(isinstance(item, str) for item in value):
            return f"{kind} has {field.name}={_brief(value)}, not a list of texts"
    if kind == MessageAppended.kind:
        return _message_problem(data["message"])
    return None


def _is_like(value: object, field: FieldShape) -> bool:
    if isinstance(value, bool) and bool not in field.exact:
        return False
    if isinstance(value, str) and str not in field.exact:
        return False
    return isinstance(value, field.like)


def _message_problem(message: Mapping[str, Any]) -> str | None:
    if not isinstance(message.get("role"), str):
        return f"message: role {_brief(message.get('role'))} is no text"
    try:
        Message.from_dict(message)
    except InvalidMessage as problem:
        return f"message: {problem}"
    return None


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
