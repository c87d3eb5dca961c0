"""Drives the pairs of a study: starts them in order, books what came of them, and stops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from axislab.handle import LiveTrace, see_to_the_end
from axislab.orchestrator.task import BUDGET_EXHAUSTED, TaskOrchestrator
from axislab.study.book import Book
from axislab.study.outcomes import outcome_of
from axislab.study.plan import Pair
from axislab.study.shelf import Shelf
from axislab.trace.run import Run


@dataclass(frozen=True, slots=True)
class Begun:
    """A run that is about to go."""

    orchestrator: TaskOrchestrator
    live: LiveTrace


Begin: TypeAlias = Callable[[Pair, str], Begun]
"""Prepares the run of a pair under a run id."""


class Driver:
    """Runs what a book says is to be done.

    Args:
        book: The study's.
        shelf: Where its runs are kept.
        begin: Prepares a run.
        at_once: Runs at the same time.
        decided: Asked after every run that ended; once it is true no other is started.
    """

    def __init__(
        self,
        book: Book,
        shelf: Shelf,
        *,
        begin: Begin,
        at_once: int,
        decided: Callable[[], bool] | None = None,
    ) -> None:
        self._book = book
        self._shelf = shelf
        self._begin = begin
        self._at_once = at_once
        self._decided = decided
        self.to_do: Sequence[Pair] = book.to_do
        self.ended = 0
        """Runs that are over."""
        self.finished = 0
        """Those of them that are the result of their pair."""
        self.calls = 0
        """Requests that were sent to a model."""
        self.stopped_by: str | None = None
        """Why no other run is started: decided or budget."""

    async def drive(self) -> None:
        """Run all that is to be done, or until something stops it; those in flight end first."""
        pairs = iter(self.to_do)
        count = min(self._at_once, len(self.to_do))
        if not count or self.stopped_by is not None:
            return
        workers = [asyncio.create_task(self._work(pairs)) for _ in range(count)]
        try:
            await asyncio.gather(*workers)
        except BaseException:
            for worker in workers:
                worker.cancel()
            await asyncio.wait(workers)
            raise

    async def _work(self, pairs: Iterator[Pair]) -> None:
        for pair in pairs:
            if self.stopped_by is not None:
                return
            begun = self._begin(pair, self._book.next_id(pair))
            try:
                await see_to_the_end(begun.orchestrator, begun.live)
            finally:
                self._over(pair, begun.live.run)

    def _over(self, pair: Pair, run: Run) -> None:
        if not run.trace.header:
            return  # nothing of it could be written
        self._shelf.keep(run)
        self._book.book(pair, run)
        self.ended += 1
        self.calls += run.requests - run.cached_requests
        if self._book.is_finished(pair):
            self.finished += 1
            self._book.remember(outcome_of(run))
            if self.stopped_by is None and self._decided is not None and self._decided():
                self.stopped_by = "decided"
        elif run.done_reason == BUDGET_EXHAUSTED and self.stopped_by is None:
            self.stopped_by = "budget"
