"""Compiled JSON Schemas: each is checked and compiled once in a process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from axislab.errors import ToolDefinitionError
from axislab.messages import Json
from axislab.tools.quick import quick_check

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

_SHOWN = 3
"""Faults of one call that the model is told."""
_LONGEST = 300
"""Characters of one fault; jsonschema quotes the whole value."""


class CompiledSchema:
    """One schema of tool arguments, ready to judge."""

    def __init__(self, text: str) -> None:
        self.schema: dict[str, Json] = json.loads(text)
        self._quick = quick_check(self.schema)

    def require_valid(self) -> None:
        """Find out what is wrong with the schema itself.

        Raises:
            ToolDefinitionError: It is no JSON Schema, or none of an object.
        """
        types = self.schema.get("type", "object")
        if types != "object" and not (isinstance(types, list) and "object" in types):
            raise ToolDefinitionError(
                f'the arguments of a tool are an object, but its schema has "type": {types!r}: '
                'write {"type": "object", "properties": {…}}'
            )
        if self._quick is None:
            _require_local_refs(self.schema)
            _ = self._validator

    def problem(self, arguments: Mapping[str, Json]) -> str | None:
        """What does not fit, in words for a model; None if all does."""
        if self._quick is not None and self._quick(arguments):
            return None
        try:
            errors = list(self._validator.iter_errors(arguments))
        except RecursionError:
            return "the arguments are nested too deeply"
        if not errors:
            return None
        faults = [self._fault(error, arguments) for error in errors[:_SHOWN]]
        if len(errors) > _SHOWN:
            faults.append(f"and {len(errors) - _SHOWN} more")
        return "; ".join(faults)

    @cached_property
    def _validator(self) -> Validator:
        # Imported here: with all its format checkers installed this takes a second.
        from jsonschema import SchemaError
        from jsonschema.validators import validator_for
        from referencing.jsonschema import EMPTY_REGISTRY

        cls = validator_for(self.schema)
        try:
            cls.check_schema(self.schema)
        except SchemaError as problem:
            place = ".".join(str(part) for part in problem.absolute_path) or "the schema"
            raise ToolDefinitionError(
                f"not a valid JSON Schema: {place}: {problem.message}"
            ) from problem
        # With a registry of its own it never fetches a $ref from the network.
        return cls(self.schema, registry=EMPTY_REGISTRY)

    def _fault(self, error: ValidationError, arguments: Mapping[str, Json]) -> str:
        from jsonschema.exceptions import best_match

        deepest = best_match([error]) or error
        place = ".".join(str(part) for part in deepest.absolute_path)
        text = deepest.message
        if len(text) > _LONGEST:
            text = f"{text[: _LONGEST - 1]}…"
        known = self.schema.get("properties")
        if error.validator == "additionalProperties" and not place and known:
            given = next((name for name in arguments if name not in known), "")
            near = get_close_matches(given, known, n=1)
            text += f" (did you mean {near[0]!r}?)" if near else ""
        return f"{place}: {text}" if place else text


def compile_schema(schema: Mapping[str, Json]) -> CompiledSchema:
    """The compiled form of a schema; equal schemas share one.

    Raises:
        ToolDefinitionError: The schema is not JSON.
    """
    try:
        text = json.dumps(schema, allow_nan=False)
    except (TypeError, ValueError) as problem:
        raise ToolDefinitionError(f"the schema is not JSON ({problem}): {schema!r}") from problem
    return _compiled(text)


@lru_cache(maxsize=2048)
def _compiled(text: str) -> CompiledSchema:
    return CompiledSchema(text)


def _require_local_refs(schema: Mapping[str, Json]) -> None:
    for ref in _refs(schema):
        found: Json = schema
        for part in ref.split("/")[1:] if ref.startswith("#/") else ():
            key = part.replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, Mapping) else None
        if found is None or not (ref == "#" or ref.startswith("#/")):
            raise ToolDefinitionError(
                f"the schema refers to {ref!r}, which is not in it: put the definition under "
                '"$defs" and refer to "#/$defs/<name>"'
            )


def _refs(part: Json) -> Iterator[str]:
    if isinstance(part, Mapping):
        for key, value in part.items():
            if key == "$ref" and isinstance(value, str):
                yield value
            else:
                yield from _refs(value)
    elif isinstance(part, list):
        for value in part:
            yield from _refs(value)
