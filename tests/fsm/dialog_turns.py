"""A dialog machine with a history, and as many turns of a task as one likes."""

from __future__ import annotations

import random

from axislab.fsm.dialog import dialog_machine
from axislab.fsm.dialog_values import DialogContext, Intent, PlanStep, StepResult
from axislab.fsm.snapshots import Snapshots

DEPLOY = Intent(name="deploy", text="deploy v2", confidence=0.95)


def begun(**options):
    """A history, and a machine that writes it."""
    history = Snapshots(**options)
    history.start(DialogContext(session_id="s"), path=["IDLE"])
    machine = dialog_machine(DialogContext(session_id="s"), journal=history.journal)
    return history, machine


def turns(machine, count, *, size=1200, seen=lambda: None):
    """So many turns of a task, each with a step whose result has about `size` characters."""
    chance = random.Random(1)
    machine.fire("user_input", text="look after the cluster")
    seen()
    machine.fire("intent_resolved", intent=DEPLOY)
    seen()
    steps = [PlanStep(name="watch", prompt="Watch")]
    machine.fire("steps_confirmed", steps=steps)
    seen()
    for number in range(count):
        words = (chance.choice(["node", "pod", "节点", "down", "up"]) for _ in range(size // 5))
        output = f"{number} {' '.join(words)} {chance.random()}"
        events = [
            ("step_started", {}),
            ("step_finished", {"result": StepResult(step=f"watch {number}", output=output)}),
            ("intent_changed", {"intent": DEPLOY}),
            ("steps_confirmed", {"steps": steps}),
        ]
        for event, payload in events:
            machine.fire(event, **payload)
            seen()
