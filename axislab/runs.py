"""Runs: a list of runs that says what came of them."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import TYPE_CHECKING, SupportsIndex, overload

from axislab.trace.run import Run

if TYPE_CHECKING:
    import pandas as pd


SHOWN = 8
"""Rows a notebook shows of a list of runs."""


class Runs(list[Run]):
    """A list of runs that says in one line what came of them.

    Args:
        runs: The runs.
        not_started: How many more were asked for and not started, because a budget was used up.
    """

    def __init__(self, runs: Iterable[Run] = (), *, not_started: int = 0) -> None:
        super().__init__(runs)
        self.not_started = not_started

    @property
    def df(self) -> pd.DataFrame:
        """`runs_df` of these runs."""
        from axislab.frames.runs import runs_df

        return runs_df(self)

    @overload
    def __getitem__(self, index: SupportsIndex) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> Runs: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Run | Runs:
        """One run, or some of them as Runs."""
        found = super().__getitem__(index)
        return Runs(found) if isinstance(found, list) else found

    def where(self, **wanted: object) -> Runs:
        """The runs whose attributes have these values: `runs.where(arm="a", status="FAILED")`."""
        return Runs(
            run for run in self if all(getattr(run, key) == value for key, value in wanted.items())
        )

    def __repr__(self) -> str:
        known = [run for run in self if run.correct is not None]
        right = sum(bool(run.correct) for run in known)
        states = {s: sum(run.status == s for run in self) for s in sorted({r.status for r in self})}
        parts = [", ".join(f"{n} {s}" for s, n in states.items())]
        if known:
            parts.append(f"{right} of {len(known)} right")
        if simulated := sum(run.simulated for run in self):
            parts.append("simulated" if simulated == len(self) else f"{simulated} simulated")
        if self.not_started:
            parts.append(f"{self.not_started} not started (budget)")
        said = " · ".join(part for part in parts if part)
        return f"<{len(self)} runs: {said}>" if said else f"<{len(self)} runs>"

    def _repr_html_(self) -> str:
        shown = ["task_id", "arm", "status", "answer", "expected", "correct", "turns", "rollbacks"]
        more = f"<p>{SHOWN} of {len(self)} shown; <code>.df</code> has all</p>"
        table = self[:SHOWN].df[shown].to_html(index=False, na_rep="")
        return f"<p>{html.escape(repr(self)[1:-1])}</p>{table}{more if len(self) > SHOWN else ''}"
