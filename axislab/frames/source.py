"""What a frame or a plot may be made of, read as a list of runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

from axislab.errors import DataError
from axislab.trace.reader import load_run, load_runs
from axislab.trace.run import Run
from axislab.trace.trace import Trace


@runtime_checkable
class HasRuns(Protocol):
    """A study, or anything else that holds runs."""

    @property
    def runs(self) -> Iterable[Run]:
        """The runs."""


RunsLike: TypeAlias = "Run | Trace | HasRuns | str | Path | Iterable[object]"
"""A run, a trace, a study, a file or folder of traces, or a list of such things."""


def runs_of(data: RunsLike) -> list[Run]:
    """The runs in `data`, in its order.

    Args:
        data: A run, a trace, a study, a file or folder of traces, or a list of such things.

    Raises:
        DataError: It is something else, or a path that does not exist.
    """
    if isinstance(data, Run):
        return [data]
    if isinstance(data, Trace):
        return [Run(data)]
    if isinstance(data, str | Path):
        return _read(Path(data))
    if type(data).__module__.partition(".")[0] == "pandas":
        raise DataError("a frame is made of runs, not the other way round; give the runs")
    if isinstance(data, HasRuns):
        return list(data.runs)
    if isinstance(data, Iterable) and not isinstance(data, Mapping | bytes):
        return [run for item in data for run in runs_of(item)]  # type: ignore[arg-type]
    raise DataError(
        f"{_short(data)} is no run; give a Run, a list of runs, a study (with .runs), "
        "or the path of a trace or of a folder of traces"
    )


def _read(path: Path) -> list[Run]:
    if path.is_dir():
        return load_runs(path) if any(path.rglob("*.jsonl")) else []
    if path.is_file():
        return [load_run(path)]
    raise DataError(f"{str(path)!r} does not exist; give a .jsonl trace or a folder of traces")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
