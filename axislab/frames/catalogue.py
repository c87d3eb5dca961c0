"""What the columns of each frame and the knobs of an agent mean, as frames."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from axislab.config import KNOBS, AgentConfig
from axislab.errors import DataError, did_you_mean
from axislab.frames.answers import ANSWERS
from axislab.frames.attempts import ATTEMPTS
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
    table.name: table
    for table in (
        RUNS,
        STEPS,
        TRANSITIONS,
        MESSAGES,
        ROLLBACKS,
        BUDGETS,
        TOOLS,
        ANSWERS,
        ATTEMPTS,
    )
}
"""Every frame by its name: `TABLES["runs"]` is what runs_df makes."""


def columns(frame: str | None = None) -> pd.DataFrame:
    """The columns of a frame with dtype and meaning; of all frames without a name.

    Args:
        frame: runs, steps, transitions, messages, rollbacks, budgets, tools,
            answers or attempts.

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


def knobs(group: str | None = None) -> pd.DataFrame:
    """Every knob of an agent by the flat name that `Recipe.with_` and `grid` take.

    Args:
        group: Only those of one group: conversation, sampling, tool_policy, recovery, context,
            answer or retry.

    Returns:
        Columns knob, group, default, allowed, description; one row a knob.

    Raises:
        DataError: There is no group of that name.

    Examples:
        >>> "max_turns" in set(knobs("conversation")["knob"])
        True
    """
    import pandas as pd

    groups = list(AgentConfig.model_fields)
    if group is not None and group not in groups:
        raise DataError(f"{group!r} is no group: {did_you_mean(group, groups)}")
    rows = [row for row in map(_knob, KNOBS) if row is not None]
    shown = [row for row in rows if group in (None, row["group"])]
    return pd.DataFrame(shown, columns=["knob", "group", "default", "allowed", "description"])


def _knob(name: str) -> dict[str, str] | None:
    """What stands about one knob; None for a group of knobs."""
    owner: type[BaseModel] = AgentConfig
    for part in KNOBS[name][:-1]:
        owner = type(owner.model_fields[part].get_default(call_default_factory=True))
    field = owner.model_fields[name]
    default = field.get_default(call_default_factory=True)
    if isinstance(default, BaseModel):
        return None
    limits = ", ".join(
        f"{sign} {getattr(limit, mark)}"
        for limit in field.metadata
        for mark, sign in _SIGNS.items()
        if hasattr(limit, mark)
    )
    kind = field.annotation
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        allowed = f"Literal{[str(member) for member in kind]}"
    else:
        allowed = kind.__name__ if isinstance(kind, type) else str(kind).replace("typing.", "")
    return {
        "knob": name,
        "group": KNOBS[name][0],
        "default": str(default) if isinstance(default, StrEnum) else _short(repr(default)),
        "allowed": f"{allowed} {limits}".strip(),
        "description": " ".join((field.description or "").split()),
    }


_SIGNS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"
