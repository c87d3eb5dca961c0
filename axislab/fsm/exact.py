"""Values as JSON and back without loss: what comes back is equal, or encoding says where not.

Only types that JSON or Python's own libraries define, enums and dataclasses. Nothing is imported
and no constructor runs when a value is read back: enums and dataclasses are looked up among the
types that were given, or written, before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

from axislab.errors import TraceError

Tree: TypeAlias = Any
"""What `json.loads` gives: None, bool, int, float, str, list and dict of such."""

_LONGEST_INT = 10**4000
"""Python refuses to spell longer integers."""
_DEEPEST = 200


def _spelled(name: str) -> Callable[[Any], Tree]:
    return lambda value: getattr(value, name)()


_WRITTEN: Mapping[type, Callable[[Any], Tree]] = {
    date: _spelled("isoformat"),
    timedelta: lambda v: [v.days, v.seconds, v.microseconds],
    Decimal: str,
    bytes: _spelled("hex"),
    complex: lambda v: [v.real.hex(), v.imag.hex()],
}
_READ: Mapping[str, Callable[[Any], Any]] = {
    "int": lambda v: int(v, 16),
    "float": float,
    "text": lambda v: "".join(map(chr, v)),
    "date": date.fromisoformat,
    "timedelta": lambda v: timedelta(*v),
    "Decimal": Decimal,
    "bytes": bytes.fromhex,
    "complex": lambda v: complex(float.fromhex(v[0]), float.fromhex(v[1])),
}


class ExactJson:
    """Encodes values as JSON trees and decodes them.

    Args:
        types: Enums and dataclasses that may be read back; those that are written are added.

    Examples:
        >>> exact = ExactJson()
        >>> exact.decode(exact.encode({"seen": {1, 2}, "at": (1.5, None)}))
        {'seen': {1, 2}, 'at': (1.5, None)}
    """

    def __init__(self, types: Iterable[type] = ()) -> None:
        self._types: dict[str, type] = {}
        self._known: dict[int, tuple[object, Tree]] = {}
        for cls in types:
            self._add(cls)

    def encode(self, value: object) -> Tree:
        """The tree of a value.

        Raises:
            TraceError: Something in it would not come back equal; the message names its path.
        """
        return self._encode(value, "$", 0)

    def decode(self, tree: Tree) -> Any:
        """The value of a tree.

        Raises:
            TraceError: A type is not known here, or this is no tree of ours.
        """
        if isinstance(tree, list):
            return [self.decode(item) for item in tree]
        if not isinstance(tree, dict):
            return tree
        if "$" not in tree:
            return {key: self.decode(item) for key, item in tree.items()}
        try:
            return self._tagged(tree)
        except (ValueError, TypeError, KeyError, IndexError, ArithmeticError) as problem:
            raise TraceError(f"{str(tree)[:120]} is no value of a snapshot: {problem}") from problem

    # Writing -------------------------------------------------------------------------------------

    def _encode(self, value: Any, path: str, depth: int) -> Tree:
        if value is None or value is True or value is False:
            return value
        kind = type(value)
        if kind in (str, int, float):
            return _plain(value)
        if depth > _DEEPEST:
            raise TraceError(f"{path} is nested too deeply, or holds itself: keep a flat copy")
        if kind in (list, tuple, set, frozenset):
            return self._several(value, path, depth)
        if kind is dict:
            return self._mapping(value, path, depth)
        if kind in _WRITTEN:
            return {"$": kind.__name__, "v": _WRITTEN[kind](value)}
        if kind in (datetime, time):
            return _moment(value, path)
        if isinstance(value, Enum):
            return self._enum(value, path)
        if is_dataclass(value) and not isinstance(value, type):
            return self._dataclass(value, path, depth)
        raise TraceError(
            f"{path} is a {kind.__qualname__}, which JSON cannot carry exactly: keep numbers, "
            "text, lists, tuples, sets, dicts, dates, enums or dataclasses of them"
        )

    def _several(self, value: Any, path: str, depth: int) -> Tree:
        items = [self._encode(v, f"{path}[{i}]", depth + 1) for i, v in enumerate(value)]
        if isinstance(value, set | frozenset):
            items.sort(key=repr)  # the same set is the same text
        return items if type(value) is list else {"$": type(value).__name__, "v": items}

    def _mapping(self, value: dict[Any, Any], path: str, depth: int) -> Tree:
        if all(type(key) is str and _is_text(key) for key in value) and "$" not in value:
            return {k: self._encode(v, f"{path}.{k}", depth + 1) for k, v in value.items()}
        pairs = []
        for key, item in value.items():
            place = f"{path}[{key!r:.40}]"
            pairs.append([self._encode(key, f"key {place}", depth + 1)])
            pairs[-1].append(self._encode(item, place, depth + 1))
        return {"$": "dict", "v": pairs}

    def _enum(self, value: Enum, path: str) -> Tree:
        named = self._add(type(value), path)
        if isinstance(value, Flag):
            return {"$": "flag", "t": named, "v": value.value}
        return {"$": "enum", "t": named, "v": value.name}

    def _dataclass(self, value: Any, path: str, depth: int) -> Tree:
        known = self._known.get(id(value))
        if known is not None and known[0] is value:
            return known[1]
        named = self._add(type(value), path)
        names = [f.name for f in fields(value)]
        if extra := sorted(set(getattr(value, "__dict__", ())) - set(names)):
            raise TraceError(f"{path}.{extra[0]} is no field of {named}: make it one, or leave it")
        if isinstance(value, str | int | float | list | dict | set | tuple):
            raise TraceError(f"{path} is a {named}, a dataclass that is more than its fields")
        held = {}
        for name in names:
            if not hasattr(value, name):
                raise TraceError(f"{path}.{name} was never set")
            held[name] = self._encode(getattr(value, name), f"{path}.{name}", depth + 1)
        tree = {"$": "dataclass", "t": named, "v": held}
        if value.__dataclass_params__.frozen and all(map(_is_scalar, held.values())):
            self._known[id(value)] = (value, tree)  # holds the value, so that its id stays its own
        return tree

    def _add(self, cls: type, path: str = "types") -> str:
        named = f"{cls.__module__}:{cls.__qualname__}"
        if not (isinstance(cls, type) and (issubclass(cls, Enum) or is_dataclass(cls))):
            raise TraceError(f"{path}: {cls!r} is neither an enum nor a dataclass")
        self._types[named] = cls  # a cell that runs again defines the class anew
        return named

    # Reading -------------------------------------------------------------------------------------

    def _tagged(self, tree: dict[str, Tree]) -> Any:
        tag, value = tree["$"], tree["v"]
        if tag in _READ:
            return _READ[tag](value)
        if tag in ("tuple", "set", "frozenset"):
            return {"tuple": tuple, "set": set, "frozenset": frozenset}[tag](self.decode(value))
        if tag == "dict":
            return {self.decode(key): self.decode(item) for key, item in value}
        if tag in ("datetime", "time"):
            kind: Any = datetime if tag == "datetime" else time
            read = kind.fromisoformat(value)
            zone = ZoneInfo(tree["zone"]) if "zone" in tree else read.tzinfo
            return read.replace(tzinfo=zone, fold=tree.get("fold", 0))
        cls: Any = self._type(tree["t"])
        if tag == "enum":
            return cls[value]
        if tag == "flag":
            return cls(value)
        return self._filled(cls, value)

    def _type(self, named: str) -> type:
        if named not in self._types:
            raise TraceError(
                f"a snapshot holds a {named}, which is not known here: give the class in types=[…]"
            )
        return self._types[named]

    def _filled(self, cls: Any, held: Mapping[str, Tree]) -> Any:
        names = {f.name for f in fields(cls)}
        if names != set(held):
            odd = ", ".join(sorted(names ^ set(held)))
            raise TraceError(f"{cls.__qualname__} has other fields than when it was kept: {odd}")
        value: Any = object.__new__(cls)
        for name, item in held.items():
            object.__setattr__(value, name, self.decode(item))
        return value


def _is_scalar(tree: Tree) -> bool:
    return not isinstance(tree, list | dict) or (isinstance(tree, dict) and tree.get("$") == "enum")


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _plain(value: Any) -> Tree:
    if isinstance(value, str) and not _is_text(value):
        return {"$": "text", "v": list(map(ord, value))}
    if isinstance(value, float) and not math.isfinite(value):
        return {"$": "float", "v": repr(value)}
    if isinstance(value, int) and not -_LONGEST_INT < value < _LONGEST_INT:
        return {"$": "int", "v": hex(value)}
    return value


def _moment(value: datetime | time, path: str) -> Tree:
    zone = value.tzinfo
    tree: dict[str, Tree] = {"$": type(value).__name__, "v": value.isoformat()}
    if isinstance(zone, ZoneInfo) and zone.key:
        tree = {"$": type(value).__name__, "v": value.replace(tzinfo=None).isoformat()}
        tree["zone"] = zone.key
    elif zone is not None and type(zone) is not timezone:
        raise TraceError(f"{path} has the time zone {zone!r:.60}: use UTC, an offset or a ZoneInfo")
    if value.fold:
        tree["fold"] = 1
    return tree
