"""Columns as data: what each is called, holds and means, and how frames are built of them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

from axislab.trace.run import Run

if TYPE_CHECKING:
    import pandas as pd

Dtype: TypeAlias = Literal["Int64", "Float64", "boolean", "string", "datetime64[us, UTC]"]
"""Types that can hold NA: unknown is never 0, False or an empty text."""

R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Column(Generic[R]):
    """One column of a frame.

    Examples:
        >>> Column("turn", "Int64", "Assistant turns so far.", "turn").dtype
        'Int64'
    """

    name: str
    dtype: Dtype
    description: str
    """One sentence, unit included."""
    value: str | Callable[[R], object]
    """A key of the row's record (`a.b` looks inside), or a function of the row."""

    def of(self, rows: Iterable[R]) -> Iterator[object]:
        """The raw values of some rows; None is unknown."""
        if not isinstance(self.value, str):
            return map(self.value, rows)
        keys = self.value.split(".")
        if len(keys) == 1:
            return (row.data.get(keys[0]) for row in rows)  # type: ignore[attr-defined]
        return (reduce(_inside, keys, row.data) for row in rows)  # type: ignore[attr-defined]


def _inside(value: object, key: str) -> object:
    return value.get(key) if isinstance(value, Mapping) else None


def on_run(name: str) -> Callable[[Run], object]:
    """A column's function that reads a property of the run."""
    return lambda run: getattr(run, name)


KEY_COLUMNS: tuple[Column[Run], ...] = (
    Column("run_id", "string", "Id of the run.", on_run("id")),
    Column("task_id", "string", "Id of the task.", on_run("task_id")),
    Column("arm", "string", "Arm of the study; NA outside one.", on_run("arm")),
)
"""The first columns of every frame."""

ABOUT_COLUMNS: tuple[Column[Run], ...] = (
    Column("study", "string", "Study the run belongs to; NA outside one.", on_run("study")),
    Column("model", "string", "Model string the run was made with.", on_run("model")),
    Column("simulated", "boolean", "No real language model answered.", on_run("simulated")),
    Column("seed", "Int64", "Seed of the run.", on_run("seed")),
    Column("repeat", "Int64", "Repeat of the same task and arm, from 0.", on_run("repeat")),
)
"""The last columns of every frame."""

RUN_COLUMNS = (*KEY_COLUMNS, *ABOUT_COLUMNS)
"""What every row says of its run."""


@dataclass(frozen=True, slots=True)
class Table(Generic[R]):
    """A frame before pandas: its name, its columns, and the rows of one run."""

    name: str
    columns: tuple[Column[R], ...]
    rows: Callable[[Run], Sequence[R]]

    @property
    def all_columns(self) -> tuple[Column[Any], ...]:
        """Which run, then what the frame is about, then more of the run."""
        return (*KEY_COLUMNS, *self.columns, *ABOUT_COLUMNS)

    def frame(self, runs: Iterable[Run]) -> pd.DataFrame:
        """The frame of some runs; with none it has the same columns and dtypes."""
        import pandas as pd

        values: dict[str, list[object]] = {c.name: [] for c in self.all_columns}
        for run in runs:
            rows = self.rows(run)
            for of_run in RUN_COLUMNS:
                values[of_run.name] += [*of_run.of((run,))] * len(rows)
            for column in self.columns:
                values[column.name] += column.of(rows)
        arrays = {c.name: _array(self.name, c, values[c.name]) for c in self.all_columns}
        return pd.DataFrame(arrays, copy=False)


def documented(table: Table[Any]) -> Callable[[F], F]:
    """Write the table of columns into the docstring of the function that makes the frame."""

    def decorate(function: F) -> F:
        width = max(len(c.name) for c in table.all_columns)
        kinds = max(len(c.dtype) for c in table.all_columns)
        lines = [
            f"        {c.name:<{width}}  {c.dtype:<{kinds}}  {c.description}"
            for c in table.all_columns
        ]
        doc = (function.__doc__ or "").rstrip()
        function.__doc__ = "\n".join([doc, "", "    Columns:", *lines, "    "])
        return function

    return decorate


@dataclass(slots=True)
class _Misfits:
    """Values that are not of their column's type."""

    count: int = 0
    example: object = None

    def take(self, value: object) -> None:
        if not self.count:
            self.example = value
        self.count += 1


@dataclass(frozen=True, slots=True)
class _Fit:
    """Turns raw values into those of a dtype; what does not fit is unknown, and counted."""

    convert: Callable[[Any], object]
    misfits: _Misfits = field(default_factory=_Misfits)

    def __call__(self, value: object) -> object:
        if value is None:
            return None
        try:
            return self.convert(value)
        except (TypeError, ValueError, OverflowError):
            self.misfits.take(value)
            return None


def _integer(value: Any) -> int:
    if isinstance(value, bool) or int(value) != value or not -(2**63) <= value < 2**63:
        raise ValueError
    return int(value)


def _number(value: Any) -> float:
    if isinstance(value, bool | str):
        raise TypeError
    return float(value)


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _text(value: Any) -> str:
    if isinstance(value, str):
        return str(value)
    return json.dumps(value, ensure_ascii=False, default=str)


_CONVERT: Mapping[Dtype, Callable[[Any], object]] = {
    "Int64": _integer,
    "Float64": _number,
    "boolean": _truth,
    "string": _text,
    "datetime64[us, UTC]": datetime.fromisoformat,
}


def _array(table: str, column: Column[Any], values: list[object]) -> Any:
    import pandas as pd

    fit = _Fit(_CONVERT[column.dtype])
    fitted: list[Any] = [fit(value) for value in values]
    if fit.misfits.count:
        warnings.warn(
            f"{table}: {fit.misfits.count} values of {column.name!r} are no {column.dtype} and "
            f"read as NA, e.g. {fit.misfits.example!r}",
            UserWarning,
            stacklevel=5,
        )
    if column.dtype == "datetime64[us, UTC]":
        return pd.Series(pd.to_datetime(fitted, utc=True)).astype(column.dtype)
    dtype: Any = column.dtype
    try:
        return pd.array(fitted, dtype=dtype)
    except UnicodeEncodeError:  # arrow refuses half a surrogate pair, which a model may write
        return pd.array([_whole(v) for v in fitted], dtype=dtype)


def _whole(value: Any) -> Any:
    return None if value is None else value.encode("utf-8", "replace").decode("utf-8")
