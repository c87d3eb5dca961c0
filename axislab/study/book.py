"""The book of a study: which pairs are finished, which were broken off, and what comes next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from axislab.errors import ErrorKind
from axislab.events import ModelRequested
from axislab.models.account import Spent
from axislab.study.outcomes import Outcome, outcome_of
from axislab.study.plan import Pair
from axislab.study.shelf import Shelf
from axislab.trace.run import Run

NOT_OF_THE_ARM: Final = frozenset(
    map(
        str,
        (
            ErrorKind.AUTH,
            ErrorKind.MISSING_KEY,
            ErrorKind.QUOTA,
            ErrorKind.NOT_FOUND,
            ErrorKind.BUDGET,
        ),
    )
)
"""Errors that say nothing about the arm and that no retry policy mends: a pair whose run ended so
is run again once they are gone. Any other failure is a result, and counts."""


def is_finished(run: Run) -> bool:
    """Whether a run is the result of its pair, for good."""
    if run.status == "COMPLETED":
        return True
    return run.status == "FAILED" and run.error_kind not in NOT_OF_THE_ARM


class Book:
    """What there is of every pair of a plan.

    Args:
        pairs: The plan, in its order.
        shelf: Where runs are kept.
    """

    def __init__(self, pairs: Sequence[Pair], shelf: Shelf) -> None:
        self.pairs = tuple(pairs)
        self._shelf = shelf
        self._finished: dict[Pair, str] = {}
        self._broken: dict[Pair, list[str]] = {}
        self._outcomes: dict[str, Outcome] = {}
        known = shelf.run_ids()
        for pair in self.pairs:
            self._take_up(pair, known)

    def _take_up(self, pair: Pair, known: set[str]) -> None:
        number = 1
        while (run_id := pair.attempt(number)) in known:
            if (run := self._shelf.run(run_id)) is not None:
                self.book(pair, run)
            number += 1

    def book(self, pair: Pair, run: Run) -> None:
        """Take in a run of a pair that is over."""
        if pair not in self._finished and is_finished(run):
            self._finished[pair] = run.id
        else:
            self._broken.setdefault(pair, []).append(run.id)

    def remember(self, outcome: Outcome) -> None:
        """Keep what a run came to, so that its trace need not be read for it."""
        self._outcomes[outcome.run_id] = outcome

    @property
    def to_do(self) -> list[Pair]:
        """Pairs that are not finished, in the order of the plan."""
        return [pair for pair in self.pairs if pair not in self._finished]

    @property
    def finished(self) -> list[Pair]:
        """Pairs that are, in the order of the plan."""
        return [pair for pair in self.pairs if pair in self._finished]

    def is_finished(self, pair: Pair) -> bool:
        """Whether there is a result of this pair."""
        return pair in self._finished

    def next_id(self, pair: Pair) -> str:
        """The run id of the next attempt at a pair."""
        return pair.attempt(len(self._broken.get(pair, ())) + 1)

    def run(self, pair: Pair) -> Run | None:
        """The run of a finished pair."""
        run_id = self._finished.get(pair)
        return None if run_id is None else self._shelf.run(run_id)

    @property
    def broken(self) -> list[str]:
        """Ids of the runs that do not count, in the order of the plan."""
        return [run_id for pair in self.pairs for run_id in self._broken.get(pair, ())]

    def broken_of(self, pair: Pair) -> list[str]:
        """Those of one pair, oldest first."""
        return self._broken.get(pair, [])

    def set_aside(self) -> list[Run]:
        """Runs that were broken off, or that failed for a reason that is not the arm's."""
        return [run for run_id in self.broken if (run := self._shelf.run(run_id)) is not None]

    def used(self) -> Spent:
        """What all runs have spent, those set aside included, as far as it was reported."""
        ids = [*self._finished.values(), *self.broken]
        runs = [run for run_id in ids if (run := self._shelf.run(run_id)) is not None]
        rows = [row.data for run in runs for row in run.trace.of(ModelRequested.kind)]
        sent = [row for row in rows if not row.get("cached")]
        return Spent(
            requests=len(sent),
            input_tokens=sum(row.get("input_tokens") or 0 for row in sent),
            output_tokens=sum(row.get("output_tokens") or 0 for row in sent),
            known_usd=sum(row.get("cost_usd") or 0.0 for row in sent),
        )

    def outcome(self, pair: Pair) -> Outcome | None:
        """What came of a finished pair; read from its trace once."""
        if (run_id := self._finished.get(pair)) is None:
            return None
        if run_id not in self._outcomes:
            run = self._shelf.run(run_id)
            if run is None:
                return None
            self._outcomes[run_id] = outcome_of(run)
        return self._outcomes[run_id]

    def outcomes(self, pairs: Iterable[Pair] | None = None) -> list[Outcome]:
        """What came of the finished pairs among these, or of all, in the order of the plan."""
        wanted = self.pairs if pairs is None else pairs
        return [found for pair in wanted if (found := self.outcome(pair)) is not None]
