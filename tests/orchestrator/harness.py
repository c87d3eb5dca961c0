"""Runs a recipe against a script and keeps every event, without lab, recorder or files."""

from __future__ import annotations

import asyncio
from typing import Any

from axislab.events import Event
from axislab.models.scripted import ScriptedModel
from axislab.orchestrator.finish import Ending
from axislab.orchestrator.task import RunIdentity, TaskOrchestrator
from axislab.recipe import Recipe
from axislab.tasks import Task

call = ScriptedModel.call
QUICK = {"backoff": 0.0, "max_backoff": 0.0, "jitter": 0.0}


class Played:
    """What came of a script."""

    def __init__(self, orchestrator: TaskOrchestrator, ending: Ending, events: list[Event]) -> None:
        self.orchestrator = orchestrator
        self.ending = ending
        self.events = events

    def of(self, kind: str) -> list[Any]:
        return [e for e in self.events if e.kind == kind]

    @property
    def finished(self) -> Any:
        return self.events[-1]

    @property
    def reasons(self) -> list[str]:
        return [s.rollback_reason for s in self.of("step") if s.rollback_reason]

    @property
    def visible(self) -> list[str]:
        return [m.text for m in self.orchestrator.runtime.visible]


def play(
    script: list[Any] | ScriptedModel,
    *,
    tools: tuple[Any, ...] = (),
    task: Task | None = None,
    recipe: Recipe | None = None,
    max_rounds: int = 10_000,
    **knobs: Any,
) -> Played:
    """Run a script to its end."""
    model = script if isinstance(script, ScriptedModel) else ScriptedModel(script)
    base = recipe or Recipe(name="test", tools=tools)
    events: list[Event] = []
    orchestrator = TaskOrchestrator(
        base.with_(**{**QUICK, **knobs}),
        task or Task("t1", "Where is Osk?", "Verren"),
        model=model,
        identity=RunIdentity(run_id="r1"),
        emit=events.append,
        max_rounds=max_rounds,
    )
    return Played(orchestrator, asyncio.run(orchestrator.run()), events)
