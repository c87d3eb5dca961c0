"""Frames of a study: columns as data, with types that can hold NA."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pandas as pd

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Field:
    """One column of a frame."""

    name: str
    dtype: str
    text: str
    """One sentence, unit included."""


def frame_of(fields: Sequence[Field], rows: Iterable[Mapping[str, object]]) -> pd.DataFrame:
    """A frame of rows by column name; what a row does not have is NA."""
    import pandas as pd

    given = list(rows)
    arrays: dict[str, Any] = {}
    for field in fields:
        dtype: Any = field.dtype
        arrays[field.name] = pd.array([row.get(field.name) for row in given], dtype=dtype)
    return pd.DataFrame(arrays, copy=False)


def documented(fields: Sequence[Field], *, indent: int = 8) -> Callable[[F], F]:
    """Write the columns into the docstring of the function that makes the frame."""

    def decorate(function: F) -> F:
        wide = max(len(field.name) for field in fields)
        kind = max(len(field.dtype) for field in fields)
        pad = " " * indent
        lines = [f"{pad}    {f.name:<{wide}}  {f.dtype:<{kind}}  {f.text}" for f in fields]
        doc = (function.__doc__ or "").rstrip()
        function.__doc__ = "\n".join([doc, "", f"{pad}Columns:", *lines, pad])
        return function

    return decorate
