"""What a function does, as JSON that is the same in every process that holds the same code."""

from __future__ import annotations

import dataclasses
import dis
import functools
import hashlib
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from types import CellType, CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any, Final
from uuid import UUID

from axislab.messages import Json

_DEEPEST: Final = 20
"""Levels of values within values; what holds itself ends here."""
_CONTAINERS: Final = (list, dict, set, bytearray)
_TOLD_BY_REPR: Final = (
    float, complex, bytes, Decimal, Fraction, date, timedelta, PurePath, UUID,
)  # fmt: skip


def code_of(function: Callable[..., Any]) -> Json:
    """A function's bytecode with all it holds and reads: defaults, closure, object, globals.

    Neither layout and comments count, nor where it stands; no value is told by its address.
    Functions and classes it uses are followed if they are the user's own, not those of installed
    packages. A list, dict or set whose name begins with an underscore is memory, a cache say: what
    is in it does not count.
    """
    reader = _Reader()
    return [reader.called(function, 0), reader.used()]


class _Reader:
    """Tells functions and classes by their number, so that each is looked at once."""

    def __init__(self) -> None:
        self._found: list[FunctionType | type] = []
        self._numbers: dict[int, int] = {}

    def used(self) -> Json:
        """All functions and classes that were met, and those they lead to."""
        out: list[Json] = []
        while len(out) < len(self._found):
            one = self._found[len(out)]
            out.append(self._class(one) if isinstance(one, type) else self._function(one))
        return out

    def called(self, function: Any, depth: int) -> Json:
        if depth > _DEEPEST:
            return _type_name(function)
        deeper = depth + 1
        if isinstance(function, FunctionType):
            return self._number(function)
        if isinstance(function, type):
            return self._kind(function)
        if isinstance(function, functools.partial):
            held = [self._value(part, deeper) for part in (function.args, function.keywords)]
            return ["partial", self.called(function.func, deeper), *held]
        if isinstance(function, MethodType):
            bound = _told(function.__self__) or self.called(function.__self__, deeper)
            return ["method", self.called(function.__func__, deeper), bound]
        if callable(inner := inspect.getattr_static(function, "__wrapped__", None)):
            return ["wrapped", _type_name(function), self.called(inner, deeper)]  # functools.cache
        if inspect.isroutine(function):
            return _named(function)
        if type(function).__module__ == "axislab.tools.base":  # a tool that others use
            return ["tool", function.to_dict(), self.called(function.function, deeper)]
        return ["object", self._kind(type(function)), self._attributes(function, deeper)]

    def _kind(self, cls: type) -> Json:
        return self._number(cls) if _is_own(cls.__module__) else _named(cls)

    def _number(self, one: FunctionType | type) -> Json:
        if id(one) not in self._numbers:
            self._numbers[id(one)] = len(self._found)
            self._found.append(one)
        return ["number", self._numbers[id(one)]]

    def _function(self, function: FunctionType) -> Json:
        code = function.__code__
        out: dict[str, Json] = {"code": _code(code, without=function.__doc__)}
        given = {"defaults": function.__defaults__, "keywords": function.__kwdefaults__}
        out |= {name: self._value(part, 0) for name, part in given.items() if part}
        if cells := function.__closure__:
            names = zip(code.co_freevars, cells, strict=True)
            out["closure"] = {name: self._held(name, cell, 0) for name, cell in names}
        space = function.__globals__
        if read := sorted(name for name in _names_read(code) if name in space):
            out["globals"] = {name: self._global(name, space) for name in read}
        return out

    def _class(self, cls: type) -> Json:
        """A class written in Python, its bases included."""
        found: dict[str, Json] = {"class": [cls.__module__, cls.__qualname__]}
        for base in reversed(cls.__mro__):
            if base is cls or _is_own(base.__module__):
                for name, part in vars(base).items():
                    found |= self._member(name, part)
        return found

    def _member(self, name: str, part: Any) -> dict[str, Json]:
        inner = part.fget if isinstance(part, property) else getattr(part, "__func__", part)
        inner = inner.func if isinstance(inner, functools.cached_property) else inner
        if isinstance(inner, FunctionType) and not name.startswith("__annotate"):
            return {name: self._number(inner)}
        return {} if name.startswith("__") else {name: self._held(name, part, 0)}

    def _global(self, name: str, space: Mapping[str, Any]) -> Json:
        value = space[name]
        if isinstance(value, ModuleType):
            return ["module", value.__name__]
        return self._held(name, value, 0)

    def _attributes(self, holder: Any, depth: int) -> Json:
        slots = [
            name
            for base in type(holder).__mro__
            for name in _slots(vars(base).get("__slots__", ()))
            if name not in ("__dict__", "__weakref__") and hasattr(holder, name)
        ]
        held = {name: getattr(holder, name) for name in slots} | getattr(holder, "__dict__", {})
        made_later = {n for n in held if _is_cached(inspect.getattr_static(type(holder), n, None))}
        return {n: self._held(n, part, depth) for n, part in held.items() if n not in made_later}

    def _held(self, name: str, value: Any, depth: int) -> Json:
        """A value under a name; what is in a container whose name is private is not looked at."""
        if isinstance(value, CellType):
            try:
                value = value.cell_contents
            except ValueError:  # not filled yet
                return None
        if name.startswith("_") and isinstance(value, _CONTAINERS):
            return _type_name(value)
        return self._value(value, depth)

    def _value(self, value: Any, depth: int) -> Json:
        """Plain values as they are, functions by their code, anything else by its type."""
        deeper = depth + 1
        if (told := _told(value)) is not None or depth > _DEEPEST:
            return told or _type_name(value)
        if isinstance(value, dict | MappingProxyType):  # others, os.environ say, are no values
            pairs = ([self._value(k, deeper), self._value(v, deeper)] for k, v in value.items())
            return ["mapping", *sorted(pairs, key=_text)]
        if isinstance(value, list | tuple):
            return [type(value).__name__, *(self._value(part, deeper) for part in value)]
        if isinstance(value, set | frozenset):  # in an order of its own in every process
            return ["set", *sorted((self._value(part, deeper) for part in value), key=_text)]
        if isinstance(value, FunctionType | type) and not _is_own(_home(value)):
            return _named(value)
        if dataclasses.is_dataclass(value) or inspect.isroutine(value):
            return self.called(value, deeper)
        if isinstance(value, functools.partial | type):
            return self.called(value, deeper)
        return _type_name(value)


def _told(value: Any) -> Json:
    """A value that tells itself, as JSON; None if it does not."""
    if isinstance(value, Enum):
        return f"{_type_name(value)}.{value.name}"
    if value is None or isinstance(value, str | int):
        return ["plain", value if type(value) in (str, int, bool) else repr(value)]
    if isinstance(value, _TOLD_BY_REPR):
        return [type(value).__name__, repr(value)]
    if isinstance(value, re.Pattern):
        return ["pattern", repr(value.pattern), value.flags]
    if not isinstance(value, type) and isinstance(known := _own_fingerprint(value), str):
        return [_type_name(value), known]
    return _table(value)


def _own_fingerprint(value: Any) -> object:
    """That of a corpus or a set of tasks."""
    ours = type(value).__module__ in ("axislab.tools.corpus", "axislab.tasks")
    return getattr(value, "fingerprint", None) if ours else None


def _table(value: Any) -> Json:
    """An array or a frame by what is in it, if that can be told."""
    # Asked of the type: an object may answer to any name, with a request to some server say.
    if hasattr(type(value), "dtype") and hasattr(type(value), "tobytes"):
        if getattr(value.dtype, "hasobject", True):
            return None
        return ["array", str(value.dtype), list(value.shape), _digest(value.tobytes())]
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(value, pandas.DataFrame | pandas.Series):
        return None
    try:
        rows = pandas.util.hash_pandas_object(value).to_numpy().tobytes()
    except TypeError:  # a cell that cannot be hashed
        return None
    return ["frame", [str(name) for name in getattr(value, "columns", ())], _digest(rows)]


def _code(code: CodeType, *, without: str | None = None) -> Json:
    constants = code.co_consts
    if without is not None and constants and constants[0] == without:  # what the function is for
        constants = constants[1:]
    return [
        code.co_code.hex(),
        code.co_exceptiontable.hex(),
        code.co_flags,
        list(code.co_names),
        [_constant(constant) for constant in constants],
    ]


def _constant(value: Any) -> Json:
    if isinstance(value, CodeType):
        return _code(value)
    if isinstance(value, tuple):
        return ["tuple", *map(_constant, value)]
    if isinstance(value, frozenset):
        return ["set", *sorted(map(_constant, value), key=_text)]
    return _told(value) or _type_name(value)  # an ellipsis


def _names_read(code: CodeType) -> Iterator[str]:
    """Global names that code, and code within it, reads."""
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield step.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_read(constant)


def _home(one: FunctionType | type) -> str | None:
    """The module it was written in; a decorated function bears the name of another."""
    return one.__module__ if isinstance(one, type) else one.__globals__.get("__name__")


def _is_own(module: str | None) -> bool:
    """Whether a module is the user's: a notebook, a script or a file of theirs."""
    if module in (None, "__main__"):
        return True
    top = str(module).partition(".")[0]
    if top in sys.stdlib_module_names or top == "axislab":
        return False
    path = getattr(sys.modules.get(str(module)), "__file__", None) or ""
    return not {"site-packages", "dist-packages"} & set(PurePath(path).parts)


def _is_cached(part: object) -> bool:
    return isinstance(part, functools.cached_property)


def _named(one: Any) -> Json:
    return ["named", getattr(one, "__module__", None) or "", one.__qualname__]


def _slots(slots: Any) -> list[str]:
    return [slots] if isinstance(slots, str) else list(slots)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _type_name(value: object) -> str:
    return f"<{type(value).__module__}.{type(value).__qualname__}>"


def _text(value: Json) -> str:
    return json.dumps(value, sort_keys=True)
