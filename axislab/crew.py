"""Many runs at once: what is to be run, what has started, and how far it is."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from axislab.errors import ConfigError, DataError, TraceError
from axislab.handle import RunHandle
from axislab.orchestrator.task import BUDGET_EXHAUSTED
from axislab.progress import progress_bar
from axislab.recipe import Recipe
from axislab.runs import Runs
from axislab.tasks import Task, TaskLike, as_task


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run to be made."""

    recipe: Recipe
    task: Task
    seed: int | None
    repeat: int
    arm: str | None
    study: str | None


class Crew:
    """Jobs, and the handles of those that have started."""

    def __init__(self, jobs: list[Job]) -> None:
        self.jobs = jobs
        self.handles: list[RunHandle | None] = [None] * len(jobs)
        self.unwritten: list[TraceError] = []
        """Why traces could not be written; the other runs went on."""
        self.exhausted = False
        """A run found no room under a budget: no other is started."""

    def __len__(self) -> int:
        return len(self.jobs)

    @property
    def done(self) -> int:
        """How many have ended."""
        return sum(handle is not None and handle.done for handle in self.handles)

    def runs(self) -> Runs:
        """The runs that have started; those a budget kept from starting are counted."""
        started = [handle.run for handle in self.handles if handle is not None]
        return Runs(started, not_started=len(self) - len(started) if self.exhausted else 0)

    async def drive(self, start: Callable[[Job], RunHandle], at_once: int) -> None:
        """Start the jobs in order, no more than `at_once` unfinished, while there is a budget.

        Raises:
            TraceError: A trace could not be begun, or not one could be written to its end.
        """
        places = iter(range(len(self)))

        async def work() -> None:
            for place in places:
                if self.exhausted:
                    return
                handle = self.handles[place] = start(self.jobs[place])
                try:
                    run = await handle
                except TraceError as problem:
                    self.unwritten.append(problem)
                    continue
                self.exhausted = self.exhausted or run.done_reason == BUDGET_EXHAUSTED

        workers = [asyncio.create_task(work()) for _ in range(min(at_once, len(self)))]
        try:
            await asyncio.gather(*workers)
        except BaseException:
            for worker in workers:
                worker.cancel()
            await asyncio.wait(workers)
            raise
        if len(self.unwritten) == len(self):
            raise self.unwritten[0]

    def warn(self) -> None:
        """Say how many runs a budget kept from starting, and how many are without a trace."""
        if self.unwritten:
            warnings.warn(
                f"the traces of {len(self.unwritten)} of {len(self)} runs could not be written, "
                f"and those runs ended there: {self.unwritten[0]}",
                UserWarning,
                stacklevel=3,
            )
        if missing := self.runs().not_started:
            warnings.warn(
                f"the lab's budget is used up: {missing} of {len(self)} runs were not started "
                "(lab.spent says where it stands)",
                UserWarning,
                stacklevel=3,
            )


class Bar:
    """A progress bar that is told totals, or nothing at all."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar

    def show(self, done: int) -> None:
        """So many have ended."""
        if self._bar is not None:
            self._bar.update(done - self._bar.n)


@contextmanager
def progress_of(total: int, wanted: bool) -> Iterator[Bar]:
    """A bar where one is wanted and worth it."""
    if not wanted or total < 2:
        yield Bar(None)
        return
    with progress_bar(total) as bar:
        yield Bar(bar)


def several_tasks(tasks: Iterable[TaskLike]) -> list[Task]:
    """The tasks of a list.

    Raises:
        DataError: It is one task, a table, or empty.
    """
    if isinstance(tasks, str | Task | Mapping) or not isinstance(tasks, Iterable):
        raise DataError(f"tasks={_brief(tasks)}: several are wanted, [task]; `run` takes one")
    if hasattr(tasks, "columns"):
        raise DataError("tasks is a table, which is read by its column names: load_tasks(table)")
    asked = [as_task(task) for task in tasks]
    if not asked:
        raise DataError("no tasks: give at least one")
    return asked


def at_least_one(name: str, value: int) -> int:
    """The value of a knob that counts something.

    Raises:
        ConfigError: It is no whole number from 1 on.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f"{name}={value!r}: give a whole number, 1 or more")
    return value


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
