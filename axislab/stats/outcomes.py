"""Frames of runs as the arrays that statistics take: tasks x repeats, the same tasks per arm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from axislab.errors import DataError, did_you_mean
from axislab.stats.score import Array

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcomes:
    """One value of every run of a study."""

    value: str
    """The column it comes from."""
    tasks: tuple[str, ...]
    """Ids, in the order of their first run in the frame."""
    arms: Mapping[str, Array]
    """Of each arm, tasks x repeats; NaN where the run or its value is not there."""
    clusters: tuple[str | None, ...]
    """Cluster of each task."""
    simulated: bool
    """No real language model answered."""

    def of(self, arm: str) -> Array:
        """One arm's values, tasks x repeats.

        Raises:
            DataError: No such arm.
        """
        if arm not in self.arms:
            raise DataError(f"no arm {arm!r}: {did_you_mean(arm, self.arms)}")
        return self.arms[arm]


def outcomes(frame: pd.DataFrame, value: str = "correct") -> Outcomes:
    """One column of a frame of runs, arm by arm, tasks side by side.

    Args:
        frame: As `runs_df` gives it: a row a run, with task_id, arm, repeat and the value;
            simulated and cluster are used where they are there.
        value: A column of numbers or truth values; NA where unknown.

    Raises:
        DataError: A column is missing, simulated and real runs are mixed, or a task, arm and
            repeat is there twice.

    Examples:
        >>> import pandas as pd
        >>> rows = {"task_id": ["t", "t"], "arm": ["a", "b"], "repeat": 0, "correct": [True, False]}
        >>> outcomes(pd.DataFrame(rows)).of("a")
        array([[1.]])
    """
    missing = [n for n in ("task_id", "arm", "repeat", value) if n not in frame.columns]
    if missing:
        raise DataError(f"the frame has no {', '.join(missing)}; give what runs_df gives")
    simulated = _simulated(frame)
    keys = frame[["task_id", "arm", "repeat"]]
    if keys.isna().to_numpy().any():
        raise DataError("a run has no task_id, arm or repeat: give runs of a study")
    if (twice := keys.duplicated()).any():
        key = tuple(keys[twice].iloc[0])
        raise DataError(f"task, arm, repeat {key!r} is there twice: give each run once")
    numbers = frame[value].astype("Float64").to_numpy(dtype=float, na_value=np.nan)
    tasks = tuple(dict.fromkeys(map(str, frame["task_id"])))
    place = {task: i for i, task in enumerate(tasks)}
    rows = np.array([place[str(task)] for task in frame["task_id"]], dtype=int)
    columns = {repeat: i for i, repeat in enumerate(sorted(set(frame["repeat"])))}
    across = np.array([columns[repeat] for repeat in frame["repeat"]], dtype=int)
    names = frame["arm"].astype(str).to_numpy()
    arms: dict[str, Array] = {}
    for arm in dict.fromkeys(names):
        mine = names == arm
        matrix = np.full((len(tasks), len(columns)), np.nan)
        matrix[rows[mine], across[mine]] = numbers[mine]
        arms[str(arm)] = matrix
    return Outcomes(
        value=value, tasks=tasks, arms=arms, clusters=_clusters(frame, tasks), simulated=simulated
    )


def _simulated(frame: pd.DataFrame) -> bool:
    if "simulated" not in frame.columns or not len(frame):
        return False
    flags = frame["simulated"].fillna(False).astype(bool)
    if flags.any() and not flags.all():
        raise DataError(
            f"{int(flags.sum())} simulated and {int((~flags).sum())} real runs: they are never "
            "pooled; choose one sort, e.g. df[df.simulated]"
        )
    return bool(flags.any())


def _clusters(frame: pd.DataFrame, tasks: tuple[str, ...]) -> tuple[str | None, ...]:
    if "cluster" not in frame.columns:
        return (None,) * len(tasks)
    known = frame[["task_id", "cluster"]].dropna().drop_duplicates()
    named: dict[str, str] = {}
    for task, cluster in zip(known["task_id"], known["cluster"], strict=True):
        if named.setdefault(str(task), str(cluster)) != str(cluster):
            raise DataError(f"task {task!r} is in clusters {named[str(task)]!r} and {cluster!r}")
    return tuple(named.get(task) for task in tasks)
