"""The figures of a study as statistics take them: tasks x repeats of every arm, copies left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from axislab.errors import DataError, did_you_mean
from axislab.stats.independence import Independence, check_independence
from axislab.stats.score import Array
from axislab.study.outcomes import Outcome

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Metric:
    """Something that arms are compared by."""

    name: str
    label: str
    value: Callable[[Outcome], float | None]
    kind: Literal["difference", "ratio"]
    """How two arms are held against each other."""
    bounds: tuple[float, float] | None = None
    """Ends of its scale; None if it has none."""


def _yes(value: bool | None) -> float | None:
    return None if value is None else float(value)


METRICS: Final[Mapping[str, Metric]] = {
    metric.name: metric
    for metric in (
        Metric("correct", "accuracy", lambda o: _yes(o.correct), "difference", (0.0, 1.0)),
        Metric("score", "score", lambda o: o.score, "difference", (0.0, 1.0)),
        Metric(
            "answered", "answered share", lambda o: _yes(o.end == "answered"), "difference", (0, 1)
        ),
        Metric("turns", "turns", lambda o: float(o.turns), "difference"),
        Metric("rollbacks", "rollbacks", lambda o: float(o.rollbacks), "difference"),
        Metric("tokens", "tokens", lambda o: o.tokens, "ratio"),
        Metric("input_tokens", "input tokens", lambda o: o.input_tokens, "ratio"),
        Metric("output_tokens", "output tokens", lambda o: o.output_tokens, "ratio"),
        Metric("cost_usd", "cost", lambda o: o.cost_usd, "ratio"),
        Metric("seconds", "time", lambda o: o.seconds, "ratio"),
    )
}
"""By name, as `study.contrast(…, metric=…)` takes it."""


def metric_of(name: str) -> Metric:
    """The metric of a name.

    Raises:
        DataError: There is none.
    """
    if name not in METRICS:
        raise DataError(f"metric={name!r}: {did_you_mean(name, METRICS)}")
    return METRICS[name]


class Values:
    """What came of the finished pairs of a study.

    Args:
        outcomes: Of all finished pairs.
        arms: Names, in order.
        blocks: Tasks in the order of the plan, those of a cluster together.
        repeats: Runs of a pair.
        seed: Of the study; the draws are told by it.
        simulated: No real language model answered.
    """

    def __init__(
        self,
        outcomes: Sequence[Outcome],
        *,
        arms: Sequence[str],
        blocks: Sequence[Sequence[str]],
        repeats: int,
        seed: int,
        simulated: bool,
    ) -> None:
        self.outcomes = tuple(outcomes)
        self.arms = tuple(arms)
        self.blocks = [list(block) for block in blocks]
        self.repeats = repeats
        self.seed = seed
        self.simulated = simulated
        self.tasks = [task_id for block in self.blocks for task_id in block]
        self._place = {task_id: place for place, task_id in enumerate(self.tasks)}

    @cached_property
    def independence(self) -> Independence:
        """Which runs count, and which are copies of others."""
        return check_independence(self._requests())

    @cached_property
    def counted(self) -> list[Outcome]:
        """Those that are no copies."""
        return [o for o in self.outcomes if o.run_id in self.independence.counted]

    def of_arm(self, arm: str) -> list[Outcome]:
        """The counted ones of an arm.

        Raises:
            DataError: No such arm.
        """
        self.check_arm(arm)
        return [outcome for outcome in self.counted if outcome.arm == arm]

    def check_arm(self, arm: str) -> None:
        """Find out whether there is such an arm.

        Raises:
            DataError: There is none.
        """
        if arm not in self.arms:
            raise DataError(f"no arm {arm!r}: {did_you_mean(arm, self.arms)}")

    def matrix(self, arm: str, metric: Metric) -> Array:
        """Tasks x repeats of an arm; NaN where a run or its value is not there."""
        found = np.full((len(self.tasks), self.repeats), np.nan)
        for outcome in self.of_arm(arm):
            if (value := metric.value(outcome)) is not None:
                found[self._place[outcome.task_id], outcome.repeat] = value
        return found

    @cached_property
    def clusters(self) -> list[str | None] | None:
        """Cluster of each task; None where no two belong together."""
        if all(len(block) == 1 for block in self.blocks):
            return None
        return [block[0] if len(block) > 1 else None for block in self.blocks for _ in block]

    @cached_property
    def _no_ids(self) -> frozenset[str]:
        """Request ids that runs of several tasks have: a server that gives all the same one."""
        owners: dict[str, str] = {}
        pairs = [(i, o.task_id) for o in self.outcomes for i in o.request_ids]
        return frozenset(i for i, task_id in pairs if owners.setdefault(i, task_id) != task_id)

    def _requests(self) -> pd.DataFrame:
        import pandas as pd

        names = ("run_id", "task_id", "arm", "repeat", "cache_key", "request_id", "draw")
        rows = [row for outcome in self.outcomes for row in self._marks(outcome)]
        return pd.DataFrame(
            {name: pd.array([row.get(name) for row in rows], dtype="object") for name in names}
        )

    def _marks(self, outcome: Outcome) -> Iterator[Mapping[str, object]]:
        """A row for each mark of a run, or one without any."""
        about = {
            "run_id": outcome.run_id,
            "task_id": outcome.task_id,
            "arm": outcome.arm,
            "repeat": outcome.repeat,
        }
        if self.simulated:  # the provider draws by these, and by nothing else
            about["draw"] = f"{self.seed}/{outcome.task_id}/{outcome.repeat}"
        marks = [{"cache_key": key} for key in outcome.cache_keys]
        told = [i for i in outcome.request_ids if i not in self._no_ids]
        marks += [{"request_id": request_id} for request_id in told]
        for mark in marks or [{}]:
            yield {**about, **mark}
