"""What every group of knobs is: a frozen value that explains what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from axislab.errors import ConfigError, did_you_mean


class Config(BaseModel):
    """A frozen description; unknown names and values out of range raise ConfigError."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=False, use_attribute_docstrings=True
    )

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as problem:
            raise ConfigError(_explain(type(self), problem)) from None

    @classmethod
    def model_validate(cls, obj: Any, **_: Any) -> Self:
        """The same as calling the class, for a mapping or an instance."""
        if isinstance(obj, cls):
            return obj
        if not isinstance(obj, Mapping):
            raise ConfigError(f"{cls.__name__} wants a mapping of its fields, got {obj!r}")
        return cls(**obj)


def _explain(cls: type[BaseModel], problem: ValidationError) -> str:
    lines = []
    for error in problem.errors(include_url=False, include_context=False):
        place = ".".join(str(part) for part in error["loc"]) or cls.__name__
        if error["type"] == "extra_forbidden":
            lines.append(f"{place!r} is no field of it: {did_you_mean(place, cls.model_fields)}")
        elif error["type"] == "value_error":
            lines.append(f"{place}: {error['msg'].removeprefix('Value error, ')}")
        else:
            lines.append(f"{place}={error['input']!r}: {error['msg']}")
    return f"{cls.__name__}: " + "; ".join(lines)
