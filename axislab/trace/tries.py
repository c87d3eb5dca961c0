"""The tries of a recorded run, for a run that goes on with them."""

from __future__ import annotations

from axislab.answers.stage import EarlierTry
from axislab.events import TryFinished
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
