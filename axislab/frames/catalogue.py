"""What the columns of each frame mean, as a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from axislab.errors import DataError, did_you_mean
from axislab.frames.budgets import BUDGETS
from axislab.frames.columns import Table
from axislab.frames.messages import MESSAGES
from axislab.frames.rollbacks import ROLLBACKS
from axislab.frames.runs import RUNS
from axislab.frames.steps import STEPS
from axislab.frames.tools import TOOLS
from axislab.frames.transitions import TRANSITIONS

if TYPE_CHECKING:
    import pandas as pd

TABLES: dict[str, Table[Any]] = {
    table.name: table for table in (RUNS, STEPS, TRANSITIONS, MESSAGES, ROLLBACKS, BUDGETS, TOOLS)
}
"""Every frame by its name: `TABLES["runs"]` is what runs_df makes."""


def columns(frame: str | None = None) -> pd.DataFrame:
    """The columns of a frame with dtype and meaning; of all frames without a name.

    Args:
        frame: runs, steps, transitions, messages, rollbacks, budgets or tools.

    Raises:
        DataError: There is no frame of that name.

    Examples:
        >>> list(columns("runs").columns)
        ['frame', 'column', 'dtype', 'description']
    """
    import pandas as pd

    if frame is not None and (frame := frame.removesuffix("_df")) not in TABLES:
        raise DataError(f"{frame!r} is no frame: {did_you_mean(frame, TABLES)}")
    tables = TABLES.values() if frame is None else [TABLES[frame]]
    rows = [(t.name, c.name, c.dtype, c.description) for t in tables for c in t.all_columns]
    return pd.DataFrame(
        {
            "frame": pd.array([r[0] for r in rows], dtype="string"),
            "column": pd.array([r[1] for r in rows], dtype="string"),
            "dtype": pd.array([r[2] for r in rows], dtype="string"),
            "description": pd.array([r[3] for r in rows], dtype="string"),
        }
    )
