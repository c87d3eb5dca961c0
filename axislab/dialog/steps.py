"""A step of a dialog as a run: what the run is asked, and whether its answer will do."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from axislab.fsm.dialog_values import DialogContext, PlanStep, StepResult
from axislab.tasks import Task
from axislab.trace.run import Run

RunStep = Callable[[Task], Run]
"""Executes one step and waits for it."""

_LATEST = 3
_SHORT = 40
_MOST = 4000
"""Characters of a run's output that are kept."""


def task_of(step: PlanStep, context: DialogContext) -> Task:
    """What the run of a step is asked: the step, and what is known so far.

    Conclusions of earlier steps are told, so that nothing is found out twice, and so are failures
    of this one, so that nothing is tried twice in the same way.
    """
    parts = [step.prompt or step.name]
    if known := context.conclusions:
        lines = "\n".join(f"- {name}: {text}" for name, text in known.items())
        parts.append(f"Already known, not to be found out again:\n{lines}")
    failed = [text for text in context.failures if text.startswith(f"{step.name}: ")]
    if failed:
        lines = "\n".join(f"- {text}" for text in failed[-_LATEST:])
        parts.append(f"Failed before:\n{lines}")
    number = len(context.executed) + len(context.failures) + 1
    return Task(
        id=f"{context.session_id}-{number}-{step.name}",
        prompt="\n\n".join(parts),
        metadata={"kind": "step", "step": step.name, "goal": step.goal},
    )


@dataclass(frozen=True, slots=True)
class Judged:
    """What a run came to: a result, or why it is none."""

    result: StepResult | None
    why: str = ""


def judge(step: PlanStep, run: Run) -> Judged:
    """Whether a run did what its step wants."""
    if run.status != "COMPLETED":
        return Judged(None, f"the run is {run.status}: {run.error or run.done_reason or ''}")
    conclusion = run.answer or run.output
    if not conclusion.strip():
        return Judged(None, "the run ended without an answer")
    if step.expect is not None and not re.search(step.expect, conclusion):
        wanted = f" ({step.expect!r})" if len(step.expect) <= _SHORT else ""
        return Judged(None, f"{conclusion[:200]!r} is not what the step expects{wanted}")
    result = StepResult(
        step=step.name,
        output=run.output[:_MOST] if run.output != conclusion else "",
        conclusion=conclusion[:_MOST],
        asked=step.prompt,
        goal=step.goal,
        key=step.key,
        run_id=run.id,
    )
    return Judged(result)
