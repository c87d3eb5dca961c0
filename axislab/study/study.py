"""Study: arms on the same tasks, read from what is kept of it."""

from __future__ import annotations

import html
from collections.abc import Sequence
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from axislab.errors import DataError
from axislab.paths import user_path
from axislab.study.book import Book
from axislab.study.columns import CONTRASTS, LEVEL, SUMMARY
from axislab.study.frame import documented
from axislab.study.manifest import Manifest
from axislab.study.outcomes import Outcome
from axislab.study.plan import plan
from axislab.study.saving import Saving, saving_of
from axislab.study.shelf import MANIFEST, FolderShelf, Shelf
from axislab.trace.run import Run

if TYPE_CHECKING:
    import pandas as pd

    from axislab.stats.independence import Independence
    from axislab.stats.multiple import Correction
    from axislab.study.contrast import Contrast
    from axislab.study.peeking import Peek
    from axislab.study.values import Values

_ENDED = {
    "complete": "all pairs are finished",
    "decided": "it stopped because every contrast was decided",
    "budget": "it stopped because its budget was used up",
    "stopped": "it was stopped",
    "error": "it was broken off by an error",
}


class Study:
    """Arms on the same tasks, seeds and repeats: what was found so far.

    Made by `lab.compare(…)`, or by `load_study(folder)`. A pair is one arm on one task, for one
    repeat. What it shows is read from the traces, so that a study which was killed and taken up
    again shows what one that was not would.

    Args:
        manifest: What it is made of.
        shelf: Where its runs are kept.
        book: What there is of every pair, where that is known already.
    """

    def __init__(self, manifest: Manifest, shelf: Shelf, *, book: Book | None = None) -> None:
        self.manifest = manifest
        self._shelf = shelf
        self.book = book_of(manifest, shelf) if book is None else book
        self.new_runs: int | None = None
        """Pairs that the call which made this finished; None for one that was loaded."""
        self.new_calls: int | None = None
        """Requests that call sent to a model."""

    @property
    def name(self) -> str:
        """Its own name: that of its folder, and of the column `study`."""
        return self.manifest.label

    @property
    def folder(self) -> Path | None:
        """Where its traces are; None if it is in memory."""
        return self._shelf.folder

    @property
    def arms(self) -> tuple[str, ...]:
        """Names of the arms, in order."""
        return self.manifest.arm_names

    @property
    def baseline(self) -> str:
        """The arm that others are compared with."""
        return self.manifest.baseline

    @property
    def simulated(self) -> bool:
        """No real language model answered."""
        return self.manifest.simulated

    @property
    def shared(self) -> tuple[tuple[str, ...], ...]:
        """Arms that share one main loop a task and repeat, group by group."""
        return self.manifest.shared

    @property
    def saving(self) -> Saving:
        """What shared main loops saved, over the finished pairs."""
        return saving_of(self.outcomes)

    @property
    def complete(self) -> bool:
        """Every pair is finished."""
        return len(self.book.finished) == len(self.book.pairs)

    @property
    def ended_by(self) -> str:
        """Complete, decided, budget, stopped, error; unfinished if its process was killed."""
        if self.complete:
            return "complete"
        sessions = self.manifest.sessions
        return sessions[-1].ended_by if sessions else "unfinished"

    @cached_property
    def outcomes(self) -> list[Outcome]:
        """What came of every finished pair: by arm, task and repeat."""
        arms = {name: place for place, name in enumerate(self.arms)}
        tasks = {task_id: place for place, task_id in enumerate(self.manifest.tasks)}
        found = self.book.outcomes()
        return sorted(found, key=lambda o: (arms[o.arm], tasks[o.task_id], o.repeat))

    @cached_property
    def values(self) -> Values:
        """The same as statistics take it: tasks × repeats, copies left out."""
        from axislab.study.values import Values  # with scipy, which takes a while to load

        return Values(
            self.outcomes,
            arms=self.arms,
            blocks=self.manifest.blocks,
            repeats=self.manifest.repeats,
            seed=self.manifest.seed,
            simulated=self.simulated,
        )

    @property
    def runs(self) -> list[Run]:
        """The run of every finished pair: by arm, task and repeat; frames and plots take these."""
        order = {outcome.run_id: place for place, outcome in enumerate(self.outcomes)}
        found = [run for pair in self.book.finished if (run := self.book.run(pair)) is not None]
        return sorted(found, key=lambda run: order[run.id])

    @property
    def df(self) -> pd.DataFrame:
        """`runs_df` of its runs."""
        from axislab.frames.runs import runs_df

        return runs_df(self)

    @property
    def set_aside(self) -> list[Run]:
        """Runs that do not count: broken off, or failed for a reason that is not the arm's.

        Their pairs are run anew; their traces are kept.
        """
        return self.book.set_aside()

    @property
    def independence(self) -> Independence:
        """Which runs count, and which are copies of others."""
        return self.values.independence

    @documented(SUMMARY)
    def summary(self) -> pd.DataFrame:
        """One row an arm: how many tasks, how often it was right, and what it took.

        Figures are of the pairs that are finished, copies left out. Tokens and cost are what the
        runs needed, so that a reply from the cache counts like one that was paid; `cached` and
        `spent_usd` say what was not.
        """
        from axislab.study.summary import summary_frame

        return summary_frame(self.values, baseline=self.baseline)

    def contrast(self, arm: str, *, minus: str | None = None, metric: str = "correct") -> Contrast:
        """One arm minus another on the tasks that both have run.

        One run a task, right or wrong: McNemar's mid-p with the exact p beside it, and Tango's
        interval. Several repeats, or clusters: t over tasks (clusters). Amounts: a ratio with a
        bootstrap-t interval. Look once, when the study is done; to look before, see `sequential`.

        Args:
            arm: Name of an arm.
            minus: The one it is held against; the baseline if it is not given.
            metric: correct, score, answered, turns, rollbacks, tokens, input_tokens,
                output_tokens, cost_usd or seconds.

        Raises:
            DataError: No such arm or metric.
        """
        from axislab.study.contrast import contrast_of

        other = self.baseline if minus is None else minus
        return contrast_of(self.values, arm, other, metric=metric)

    @documented(CONTRASTS)
    def contrasts(
        self, *, metric: str = "correct", correction: Correction = "holm"
    ) -> pd.DataFrame:
        """Every other arm minus the baseline; p is corrected for their number.

        Args:
            metric: As `contrast` takes it.
            correction: "holm" against even one false claim, "fdr" (Benjamini and Hochberg)
                against too large a share of them.
        """
        from axislab.study.contrast import contrasts_frame, contrasts_of

        found = contrasts_of(
            self.values, baseline=self.baseline, metric=metric, correction=correction
        )
        return contrasts_frame(found)

    def comparison(
        self, *, metrics: Sequence[str] = ("correct", "answered", "tokens", "cost_usd")
    ) -> pd.DataFrame:
        """Contrasts in several metrics, as `plot_comparison` shows them.

        Args:
            metrics: As `contrast` takes them; one of which nothing is known is left out.
        """
        from axislab.study.contrast import comparison_frame

        return comparison_frame(self.values, baseline=self.baseline, metrics=metrics)

    def sequential(
        self,
        arm: str,
        minus: str | None = None,
        *,
        metric: str = "correct",
        level: float = LEVEL,
        margin: float | None = None,
    ) -> Peek:
        """One arm minus another with an interval and a p that hold at every look.

        Args:
            arm: Name of an arm.
            minus: The one it is held against; the baseline if it is not given.
            metric: correct, score or answered.
            level: Confidence over all looks together.
            margin: Differences smaller than this count as none, which can be decided, too.

        Raises:
            DataError: No such arm or metric.
        """
        from axislab.study.peeking import peek

        other = self.baseline if minus is None else minus
        return peek(
            self.values,
            arm,
            other,
            finished=self._finished_blocks((arm, other)),
            metric=metric,
            level=level,
            margin=margin,
        )

    def _finished_blocks(self, arms: tuple[str, str]) -> list[list[str]]:
        """Tasks in the order of the plan, up to the first that is not finished in both arms."""
        to_do = {pair.task_id for pair in self.book.to_do if pair.arm in arms}
        return list(takewhile(lambda block: not to_do & {*block}, self.manifest.blocks))

    def __repr__(self) -> str:
        arms, tasks = len(self.arms), len(self.manifest.tasks)
        size = f"{_count(arms, 'arm')} × {_count(tasks, 'task')}"
        if self.manifest.repeats > 1:
            size += f" × {self.manifest.repeats} repeats"
        parts = [size, f"{len(self.book.finished)} of {len(self.book.pairs)} pairs finished"]
        if self.new_calls is not None:
            parts.append(_count(self.new_calls, "new call"))
        if not self.complete:
            parts.append(_ENDED.get(self.ended_by, "it was killed"))
        if broken := len(self.book.broken):
            parts.append(f"{_count(broken, 'run')} set aside")
        if self.shared:
            parts.append(f"shared prefix: {self.saving}")
        if self.simulated:
            parts.append("simulated")
        return f"<Study {self.name!r}: {' · '.join(parts)}>"

    def _repr_html_(self) -> str:
        shown = [
            "arm", "tasks", "runs", "accuracy", "accuracy_low", "accuracy_high", "answered_share",
            "tokens_per_run", "cost_usd",
        ]  # fmt: skip
        table = self.summary()[shown].to_html(index=False, na_rep="", float_format="{:.3g}".format)
        return f"<p>{html.escape(repr(self)[1:-1])}</p>{table}"


def book_of(manifest: Manifest, shelf: Shelf) -> Book:
    """What there is of every pair of a study."""
    made = plan(manifest.label, manifest.arm_names, manifest.blocks, repeats=manifest.repeats)
    return Book(made, shelf)


def load_study(folder: Any) -> Study:
    """Open a study that is on disk; it may be going on in another process.

    Args:
        folder: `<folder of the lab>/<name of the study>`.

    Raises:
        DataError: There is no study.

    Examples:
        >>> load_study("traces/demo")
        Traceback (most recent call last):
        axislab.errors.DataError: 'traces/demo' holds no study: there is no 'study.json' in it
    """
    place = user_path(folder)
    shelf = FolderShelf(place)
    manifest = shelf.read()
    if manifest is None:
        inside = sorted(path.parent.name for path in place.glob(f"*/{MANIFEST}"))
        hint = f"; there are studies below it: {', '.join(inside)}" if inside else ""
        raise DataError(f"{str(place)!r} holds no study: there is no {MANIFEST!r} in it{hint}")
    return Study(manifest, shelf)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
