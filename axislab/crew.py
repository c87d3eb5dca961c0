"""Many runs at once: the jobs, their handles, and the list that comes of them."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from axislab.handle import RunHandle
from axislab.orchestrator.task import BUDGET_EXHAUSTED
from axislab.recipe import Recipe
from axislab.tasks import Task
from axislab.trace.run import Run

if TYPE_CHECKING:
    import pandas as pd


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
        return f"<{len(self)} runs: {' · '.join(p for p in parts if p)}>"


class Job:
    """One run to be made."""

    __slots__ = ("arm", "recipe", "repeat", "seed", "task")

    def __init__(
        self, recipe: Recipe, task: Task, *, seed: int | None, repeat: int, arm: str | None
    ) -> None:
        self.recipe, self.task = recipe, task
        self.seed, self.repeat, self.arm = seed, repeat, arm


class Crew:
    """Jobs, and the handles of those that have started."""

    def __init__(self, jobs: list[Job]) -> None:
        self.jobs = jobs
        self.handles: list[RunHandle | None] = [None] * len(jobs)
        self.exhausted = False
        """A run found no room under a budget: no other is started."""

    def __len__(self) -> int:
        return len(self.jobs)

    @property
    def done(self) -> int:
        """Runs that have ended."""
        return sum(handle is not None and handle.done for handle in self.handles)

    def runs(self) -> Runs:
        """The runs that have started; those a budget kept from starting are counted."""
        started = [handle.run for handle in self.handles if handle is not None]
        return Runs(started, not_started=len(self) - len(started) if self.exhausted else 0)

    async def drive(self, start: Callable[[Job], RunHandle], at_once: int) -> None:
        """Start the jobs in order, no more than `at_once` unfinished, while there is a budget."""
        places = iter(range(len(self)))

        async def work() -> None:
            for place in places:
                if self.exhausted:
                    return
                handle = self.handles[place] = start(self.jobs[place])
                run = await handle
                self.exhausted = self.exhausted or run.done_reason == BUDGET_EXHAUSTED

        workers = [asyncio.create_task(work()) for _ in range(min(at_once, len(self)))]
        try:
            await asyncio.gather(*workers)
        except BaseException:
            for worker in workers:
                worker.cancel()
            await asyncio.wait(workers)
            raise

    def warn(self) -> None:
        """Say how many runs a budget kept from starting."""
        if missing := self.runs().not_started:
            warnings.warn(
                f"the lab's budget is used up: {missing} of {len(self)} runs were not started "
                "(lab.spent says where it stands)",
                UserWarning,
                stacklevel=3,
            )
