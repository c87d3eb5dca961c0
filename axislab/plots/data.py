"""What plots are made of: runs, or a frame that was made of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeGuard

from axislab.errors import DataError
from axislab.frames.source import RunsLike, runs_of
from axislab.trace.run import Run

if TYPE_CHECKING:
    import pandas as pd


def is_frame(data: object) -> TypeGuard[pd.DataFrame]:
    """A pandas frame rather than runs."""
    import pandas as pd

    return isinstance(data, pd.DataFrame)


def need_columns(frame: pd.DataFrame, names: Iterable[str], *, of: str) -> None:
    """Check a frame.

    Args:
        frame: What was given.
        names: Columns it must have.
        of: The function that makes such frames.

    Raises:
        DataError: Some are missing; the message names them.
    """
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise DataError(f"the frame has no {', '.join(missing)}; give what {of} gives")


def one_run(data: RunsLike) -> Run | None:
    """The run, for a plot that shows one; None if there is none.

    Raises:
        DataError: There are several.
    """
    runs = runs_of(data)
    if len(runs) > 1:
        raise DataError(f"this plot shows one run, got {len(runs)}; choose one, e.g. runs[0]")
    return runs[0] if runs else None


def one_run_frame(frame: pd.DataFrame, names: Iterable[str], *, of: str) -> pd.DataFrame:
    """The rows of the only run in a frame, checked as by `need_columns`.

    Raises:
        DataError: Columns are missing, or it holds several runs.
    """
    need_columns(frame, ["run_id", "simulated", *names], of=of)
    ids = frame["run_id"].unique()
    if len(ids) > 1:
        raise DataError(
            f"this plot shows one run, the frame holds {len(ids)}; choose one, "
            f"e.g. df[df.run_id == {str(ids[0])!r}]"
        )
    return frame
