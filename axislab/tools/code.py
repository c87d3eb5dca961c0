"""What a function does, as JSON that is the same in every process that holds the same code."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
from collections.abc import Callable, Mapping
from enum import Enum
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any, Final

from axislab.messages import Json

_DEEPEST: Final = 20
"""Levels of values within values; what holds itself ends here."""


def code_of(function: Callable[..., Any]) -> Json:
    """A function's bytecode, and the values it holds: defaults, closure, bound object.

    Neither layout and comments count, nor where it stands; no value is told by its address. What
    it reads from its module's globals is not looked at.
    """
    return _called(function, 0)


def _called(function: Any, depth: int) -> Json:
    if depth > _DEEPEST:
        return _type_name(function)
    deeper = depth + 1
    if isinstance(function, FunctionType):
        return _function(function, deeper)
    if isinstance(function, functools.partial):
        held = [_value(part, deeper) for part in (function.args, function.keywords)]
        return ["partial", _called(function.func, deeper), *held]
    if isinstance(function, MethodType):
        return ["method", _called(function.__func__, deeper), _called(function.__self__, deeper)]
    if callable(inner := inspect.getattr_static(function, "__wrapped__", None)):
        return ["wrapped", _type_name(function), _called(inner, deeper)]  # functools.cache
    if isinstance(function, type) or inspect.isroutine(function):
        return ["named", function.__module__ or "", function.__qualname__, _methods(function)]
    return ["object", _type_name(function), _methods(type(function)), _attributes(function, deeper)]


def _function(function: FunctionType, depth: int) -> Json:
    out: dict[str, Json] = {"code": _code(function.__code__)}
    given = {"defaults": function.__defaults__, "keywords": function.__kwdefaults__}
    out |= {name: _value(part, depth) for name, part in given.items() if part}
    if function.__closure__:
        out["closure"] = [_value(cell, depth) for cell in function.__closure__]
    return out


def _code(code: CodeType) -> Json:
    return [
        code.co_code.hex(),
        code.co_exceptiontable.hex(),
        code.co_flags,
        list(code.co_names),
        [_value(constant, 0) for constant in code.co_consts],
    ]


def _methods(cls: Any) -> Json:
    """The code of a class written in Python, its bases' included."""
    if not isinstance(cls, type):
        return None
    found: dict[str, Json] = {}
    for base in reversed(cls.__mro__):
        for name, part in vars(base).items():
            inner = part.fget if isinstance(part, property) else getattr(part, "__func__", part)
            if isinstance(inner, FunctionType):
                found[name] = _code(inner.__code__)
    return found


def _attributes(holder: Any, depth: int) -> Json:
    slots = [
        name
        for base in type(holder).__mro__
        for name in _names(vars(base).get("__slots__", ()))
        if name not in ("__dict__", "__weakref__") and hasattr(holder, name)
    ]
    held = {name: getattr(holder, name) for name in slots} | getattr(holder, "__dict__", {})
    return {name: _value(part, depth) for name, part in held.items()}


def _names(slots: Any) -> list[str]:
    return [slots] if isinstance(slots, str) else list(slots)


def _value(value: Any, depth: int) -> Json:
    """Plain values as they are, functions by their code, anything else by its type."""
    deeper = depth + 1
    if isinstance(value, CodeType):
        return _code(value)
    if isinstance(value, CellType):
        try:
            return _value(value.cell_contents, deeper)
        except ValueError:  # not filled yet
            return None
    if depth > _DEEPEST or isinstance(value, Enum):
        return f"{_type_name(value)}.{value.name}" if isinstance(value, Enum) else _type_name(value)
    if value is None or isinstance(value, str | int | float | complex | bytes):
        return value if type(value) in (str, int, bool) else [type(value).__name__, repr(value)]
    if isinstance(value, Mapping):
        pairs = ([_value(k, deeper), _value(v, deeper)] for k, v in value.items())
        return ["mapping", *sorted(pairs, key=_text)]
    if isinstance(value, list | tuple):
        return [type(value).__name__, *(_value(part, deeper) for part in value)]
    if isinstance(value, set | frozenset):  # in an order of its own in every process
        return ["set", *sorted((_value(part, deeper) for part in value), key=_text)]
    if dataclasses.is_dataclass(value) or isinstance(
        value, FunctionType | MethodType | functools.partial
    ):
        return _called(value, deeper)
    return _type_name(value)


def _type_name(value: object) -> str:
    return f"<{type(value).__module__}.{type(value).__qualname__}>"


def _text(value: Json) -> str:
    return json.dumps(value, sort_keys=True)
