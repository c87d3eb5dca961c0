"""The tries of a recorded run, for a run that goes on with them."""

from __future__ import annotations

from axislab.answers.stage import EarlierTry
from axislab.errors import ConfigError
from axislab.events import TryFinished
from axislab.recipe import Recipe
from axislab.tasks import Task
from axislab.trace.run import Run
from axislab.trace.trace import Trace


def earlier_tries(source: Run | Trace) -> tuple[EarlierTry, ...]:
    """The tries a recorded run made, for a run that goes on with them.

    A try that was cut off by the end of its process has no line and is made again.

    Args:
        source: The run, finished or killed.
    """
    trace = source.trace if isinstance(source, Run) else source
    return tuple(
        EarlierTry(
            number=record.data["number"],
            answer=record.data.get("answer"),
            failure_summary=record.data.get("failure_summary"),
        )
        for record in trace.of(TryFinished.kind)
    )


def check_same(run: Run, recipe: Recipe, task: Task) -> None:
    """A run can be gone on with only by its own recipe on its own task.

    Raises:
        ConfigError: The recipe or the task is another one.
    """
    if not isinstance(run, Run):
        raise ConfigError(f"after={run!r}: give a Run, for example load_run(path)")
    if run.recipe_fingerprint != recipe.fingerprint:
        raise ConfigError(
            f"run {run.id!r} was made by recipe {run.recipe_fingerprint}, not by "
            f"{recipe.fingerprint}: give the recipe it was made by"
        )
    if run.prompt != task.prompt:
        raise ConfigError(f"run {run.id!r} was asked {run.prompt!r}, not {task.prompt!r}")
