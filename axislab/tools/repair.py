"""Mending tool arguments before they are validated: fixed rules in a fixed order, all recorded."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TypeAlias

from axislab.config import ToolPolicy
from axislab.messages import Json

Properties: TypeAlias = Mapping[str, Json]
RepairHook: TypeAlias = Callable[[dict[str, Json]], dict[str, Json] | None]
"""A rule of one's own: gets a copy of the arguments, returns them mended, or None."""

ALIASES_KEY = "x-agentic-aliases"
"""In the schema of a property: another name, or a list of names, for it."""
_TRUE = {"true", "1", "yes"}
_FALSE = {"false", "0", "no"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """Arguments after repair, and the names of the rules that changed them."""

    arguments: dict[str, Json]
    rules: tuple[str, ...] = ()


def repair_arguments(
    arguments: Mapping[str, Json],
    *,
    schema: Mapping[str, Json],
    policy: ToolPolicy,
    hook: RepairHook | None = None,
) -> Repaired:
    """Apply every rule the policy allows, once, in order; the arguments given stay as they are.

    Whether repair is on at all is the caller's business. The rules need the schema of an object;
    the hook comes last, sees any arguments, and is called exactly once. What it raises is raised.

    Examples:
        >>> schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
        >>> repair_arguments({" n": "3"}, schema=schema, policy=ToolPolicy())
        Repaired(arguments={'n': 3}, rules=('normalize_key_names', 'scalar_type_coercion'))
    """
    current = dict(arguments)
    rules: list[str] = []
    properties = schema.get("properties") if schema.get("type") == "object" else None
    if isinstance(properties, Mapping):
        for name, rule in _rules(policy):
            mended = rule(dict(current), properties)
            if mended != current:
                current = mended
                rules.append(name)
    if hook is not None and (own := hook(copy.deepcopy(current))) is not None:
        if not isinstance(own, dict):
            raise TypeError(f"an argument hook returns a dict or None, got {own!r}")
        if own != current:
            rules.append("custom_hook")
        current = own
    if current == arguments:
        return Repaired(arguments=current)
    return Repaired(arguments=current, rules=tuple(rules))


_Rule: TypeAlias = Callable[[dict[str, Json], Properties], dict[str, Json]]


def _rules(policy: ToolPolicy) -> list[tuple[str, _Rule]]:
    def fuzzy(arguments: dict[str, Json], properties: Properties) -> dict[str, Json]:
        return _fuzzy(arguments, properties, threshold=policy.fuzzy_match_threshold)

    every: tuple[tuple[bool, str, _Rule], ...] = (
        (policy.normalize_key_names, "normalize_key_names", _trim_names),
        (policy.apply_schema_aliases, "schema_aliases", _aliases),
        (policy.fuzzy_match_single_missing_property, "fuzzy_property_match", fuzzy),
        (policy.apply_schema_defaults, "schema_defaults", _defaults),
        (policy.coerce_scalar_types, "scalar_type_coercion", _coerce),
    )
    return [(name, rule) for wanted, name, rule in every if wanted]


def _trim_names(arguments: dict[str, Json], _properties: Properties) -> dict[str, Json]:
    out: dict[str, Json] = {}
    for name, value in arguments.items():
        out.setdefault(name.strip().strip("\"'"), value)
    return out


def _aliases(arguments: dict[str, Json], properties: Properties) -> dict[str, Json]:
    owner: dict[str, str] = {}
    for name, part in properties.items():
        names = part.get(ALIASES_KEY) if isinstance(part, Mapping) else None
        for alias in names if isinstance(names, list) else [names]:
            if isinstance(alias, str) and alias:
                owner.setdefault(alias, name)
    for alias, name in owner.items():
        if alias in arguments and name not in arguments:
            arguments[name] = arguments.pop(alias)
    return arguments


def _fuzzy(
    arguments: dict[str, Json], properties: Properties, *, threshold: float
) -> dict[str, Json]:
    unknown = [name for name in arguments if name not in properties]
    absent = [name for name in properties if name not in arguments]
    if len(unknown) == len(absent) == 1:
        given, wanted = unknown[0], absent[0]
        if SequenceMatcher(None, given, wanted).ratio() >= threshold:
            arguments[wanted] = arguments.pop(given)
    return arguments


def _defaults(arguments: dict[str, Json], properties: Properties) -> dict[str, Json]:
    for name, part in properties.items():
        if name in arguments or not isinstance(part, Mapping) or "default" not in part:
            continue
        default = part["default"]
        types = _types(part)
        if not types or _fits(default, types):
            arguments[name] = copy.deepcopy(default)
    return arguments


def _coerce(arguments: dict[str, Json], properties: Properties) -> dict[str, Json]:
    for name, part in properties.items():
        if name in arguments and isinstance(part, Mapping):
            arguments[name] = coerce_scalar(arguments[name], _types(part))
    return arguments


def _types(part: Mapping[str, Json]) -> frozenset[str]:
    given = part.get("type")
    names = given if isinstance(given, list) else [given]
    return frozenset(name for name in names if isinstance(name, str))


def _fits(value: Json, types: frozenset[str]) -> bool:
    """Whether a value is of one of the JSON types."""
    if value is None:
        return "null" in types
    if isinstance(value, bool):
        return "boolean" in types
    if isinstance(value, int | float):
        whole = isinstance(value, int) or value.is_integer()
        return "number" in types or ("integer" in types and whole)
    for kind, name in ((str, "string"), (dict, "object"), (list, "array")):
        if isinstance(value, kind):
            return name in types
    return False


def coerce_scalar(value: Json, types: frozenset[str]) -> Json:
    """The value as one of the types if it spells one, else as it is; never raises.

    Examples:
        >>> coerce_scalar(" -5 ", frozenset({"integer"}))
        -5
        >>> coerce_scalar("5", frozenset({"string", "integer"}))  # fits as it is
        '5'
    """
    if _fits(value, types):
        return value
    if isinstance(value, bool):
        return str(value).lower() if "string" in types else value
    if isinstance(value, int | float):
        return str(value) if "string" in types else value
    if isinstance(value, str):
        return _from_text(value, types)
    return value


def _from_text(value: str, types: frozenset[str]) -> Json:
    if "integer" in types and (whole := _integer(value)) is not None:
        return whole
    if "number" in types:
        # Text that spells no number is left alone even where a boolean would do.
        number = _number(value)
        return value if number is None else number
    if "boolean" in types:
        lowered = value.strip().lower()
        if lowered in _TRUE | _FALSE:
            return lowered in _TRUE
    return value


def _integer(text: str) -> int | None:
    bare = text.strip()
    if not bare.lstrip("-").isdigit():
        return None
    try:
        return int(bare)
    except ValueError:  # "--5", "²", or more digits than Python reads
        return None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
