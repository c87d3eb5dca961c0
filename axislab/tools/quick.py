"""A fast yes for plain JSON Schemas; anything it does not know is left to `jsonschema`.

A check built here accepts exactly what `jsonschema` accepts. It exists because nearly every tool
has a plain schema and nearly every call fits it, while importing `jsonschema` can cost a second.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from axislab.messages import Json

Check: TypeAlias = Callable[[Json], bool]
_DEEPEST = 24
"""Levels of a schema that are followed; definitions are unfolded where they are referred to."""


class _Unknown(Exception):
    """The schema says something that is not known here, or says it wrongly."""


def quick_check(schema: Mapping[str, Json]) -> Check | None:
    """A function that tells whether a value fits, or None where the schema is not plain.

    None also stands for an invalid schema: a schema with a quick check is known to be valid.
    """
    try:
        definitions = _mapping(schema.get("$defs", {}))
        for name in definitions:
            _compile(definitions[name], definitions, (name,))
        return _compile(schema, definitions, ())
    except _Unknown:
        return None


def _compile(schema: Json, definitions: Mapping[str, Json], path: tuple[str, ...]) -> Check:
    if schema is True:
        return _anything
    if len(path) > _DEEPEST:
        raise _Unknown(path)
    checks: list[Check] = []
    for keyword, value in _mapping(schema).items():
        if keyword in _BUILDERS:
            checks.append(_BUILDERS[keyword](value))
        elif keyword in _NESTED:
            checks.append(_NESTED[keyword](value, schema, definitions, path))
        elif not _is_annotation(keyword, value, nested=bool(path)):
            raise _Unknown(keyword)
    return _all(checks)


def _is_annotation(keyword: str, value: Json, *, nested: bool) -> bool:
    """Whether a keyword is there for the reader only, and is well-formed."""
    if keyword in {"title", "description", "$comment", "format"}:
        return isinstance(value, str)
    if keyword == "default" or keyword.startswith("x-"):
        return True
    if keyword == "examples":
        return isinstance(value, list)
    if keyword in {"deprecated", "readOnly", "writeOnly"}:
        return isinstance(value, bool)
    return keyword == "$defs" and not nested


def _anything(_value: Json) -> bool:
    return True


def _all(checks: list[Check]) -> Check:
    if not checks:
        return _anything
    if len(checks) == 1:
        return checks[0]

    return lambda value: all(one(value) for one in checks)


def _mapping(value: Json) -> Mapping[str, Json]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise _Unknown(value)
    return value


def _is_integer(value: Json) -> bool:
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: dict[str, Check] = {
    "string": lambda value: isinstance(value, str),
    "integer": _is_integer,
    "number": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def _type(wanted: Json) -> Check:
    names = [wanted] if isinstance(wanted, str) else wanted
    if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
        raise _Unknown(wanted)
    if len(set(names)) < len(names) or any(name not in _TYPES for name in names):
        raise _Unknown(wanted)
    checks = [_TYPES[name] for name in names]
    if len(checks) == 1:
        return checks[0]
    return lambda value: any(check(value) for check in checks)


def _enum(wanted: Json) -> Check:
    if not isinstance(wanted, list) or not wanted or not all(isinstance(w, str) for w in wanted):
        raise _Unknown(wanted)
    if len(set(wanted)) < len(wanted):
        raise _Unknown(wanted)
    allowed = frozenset(wanted)
    return lambda value: isinstance(value, str) and value in allowed


def _const(wanted: Json) -> Check:
    return _enum([wanted])


def _required(names: Json) -> Check:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _Unknown(names)
    if len(set(names)) < len(names):
        raise _Unknown(names)
    wanted = frozenset(names)
    return lambda value: not isinstance(value, dict) or wanted <= value.keys()


def _limit(fits: Callable[[Json, Json], bool]) -> Callable[[Json], Check]:
    def build(limit: Json) -> Check:
        if not _is_number(limit):
            raise _Unknown(limit)
        return lambda value: not _is_number(value) or fits(value, limit)

    return build


def _size(
    kind: type[str] | type[list[Json]], fits: Callable[[int, int], bool]
) -> Callable[[Json], Check]:
    def build(limit: Json) -> Check:
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
            raise _Unknown(limit)
        return lambda value: not isinstance(value, kind) or fits(len(value), limit)

    return build


def _pattern(text: Json) -> Check:
    if not isinstance(text, str):
        raise _Unknown(text)
    try:
        pattern = re.compile(text)
    except re.error as problem:
        raise _Unknown(text) from problem
    return lambda value: not isinstance(value, str) or pattern.search(value) is not None


_BUILDERS: dict[str, Callable[[Json], Check]] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "required": _required,
    "minimum": _limit(lambda value, limit: bool(value >= limit)),
    "maximum": _limit(lambda value, limit: bool(value <= limit)),
    "exclusiveMinimum": _limit(lambda value, limit: bool(value > limit)),
    "exclusiveMaximum": _limit(lambda value, limit: bool(value < limit)),
    "minLength": _size(str, lambda size, limit: size >= limit),
    "maxLength": _size(str, lambda size, limit: size <= limit),
    "minItems": _size(list, lambda size, limit: size >= limit),
    "maxItems": _size(list, lambda size, limit: size <= limit),
    "pattern": _pattern,
}


def _properties(
    value: Json, _schema: Json, definitions: Mapping[str, Json], path: tuple[str, ...]
) -> Check:
    checks = {
        name: _compile(part, definitions, (*path, "")) for name, part in _mapping(value).items()
    }

    def check(instance: Json) -> bool:
        if isinstance(instance, dict):
            for name, one in checks.items():
                if name in instance and not one(instance[name]):
                    return False
        return True

    return check


def _additional(
    value: Json, schema: Json, definitions: Mapping[str, Json], path: tuple[str, ...]
) -> Check:
    if "patternProperties" in schema:
        raise _Unknown(schema)
    known = frozenset(_mapping(schema.get("properties", {})))
    if value is False:
        return lambda instance: not isinstance(instance, dict) or instance.keys() <= known
    each = _compile(value, definitions, (*path, ""))

    def check(instance: Json) -> bool:
        return not isinstance(instance, dict) or all(
            each(part) for name, part in instance.items() if name not in known
        )

    return check


def _items(
    value: Json, schema: Json, definitions: Mapping[str, Json], path: tuple[str, ...]
) -> Check:
    if "prefixItems" in schema:
        raise _Unknown(schema)
    each = _compile(value, definitions, (*path, ""))
    return lambda instance: not isinstance(instance, list) or all(map(each, instance))


def _any_of(
    value: Json, _schema: Json, definitions: Mapping[str, Json], path: tuple[str, ...]
) -> Check:
    if not isinstance(value, list) or not value:
        raise _Unknown(value)
    choices = [_compile(part, definitions, (*path, "")) for part in value]
    return lambda instance: any(choice(instance) for choice in choices)


def _ref(
    value: Json, _schema: Json, definitions: Mapping[str, Json], path: tuple[str, ...]
) -> Check:
    name = value.removeprefix("#/$defs/") if isinstance(value, str) else ""
    # A name in the path is a definition being built: recursion is jsonschema's business.
    escaped = any(mark in name for mark in "/~%")
    if escaped or name not in definitions or name in path or value != f"#/$defs/{name}":
        raise _Unknown(value)
    return _compile(definitions[name], definitions, (*path, name))


_NESTED: dict[str, Callable[[Json, Json, Mapping[str, Json], tuple[str, ...]], Check]] = {
    "properties": _properties,
    "additionalProperties": _additional,
    "items": _items,
    "anyOf": _any_of,
    "$ref": _ref,
}
