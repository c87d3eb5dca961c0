"""Many runs at once: what is to be run, what has started, and how far it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from axislab.handle import RunHandle
from axislab.progress import progress_bar
from axislab.recipe import Recipe
from axislab.runs import Runs
from axislab.tasks import Task


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

    def __len__(self) -> int:
        return len(self.jobs)

    @property
    def done(self) -> int:
        """How many have ended."""
        return sum(handle is not None and handle.done for handle in self.handles)

    def runs(self) -> Runs:
        """The runs of those that have started, in order."""
        return Runs(handle.run for handle in self.handles if handle is not None)


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
