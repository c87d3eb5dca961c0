"""What a dialog answers: a text, where it is, and what a person has to decide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from axislab.fsm.dialog import DialogState
from axislab.fsm.dialog_values import DialogContext

_S = DialogState


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a dialog answers."""

    text: str
    state: str
    """Where it is now, as "EXECUTING/BETWEEN_STEPS"."""
    asks: str = ""
    """What a person has to decide: "operation", "change", or nothing."""

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"[{self.state}] {self.text}"

    def _repr_html_(self) -> str:
        from axislab.dialog.card import reply_card

        return reply_card(self)


def _listed(context: DialogContext) -> str:
    return "; ".join(f"{name}: {text}" for name, text in context.conclusions.items())


SENTENCES: dict[DialogState, Callable[[DialogContext], str]] = {
    _S.IDLE: lambda c: "Waiting for what you want.",
    _S.INTENT_PARSE: lambda c: "Reading what you said.",
    _S.TASK_PLAN: lambda c: "The plan waits: say what to do, or go_on().",
    _S.EXECUTING: lambda c: f"Next: {c.steps[0].name}; go_on()." if c.steps else "Working.",
    _S.CONFIRMING: lambda c: (
        f"{c.pending} is a key operation: {c.steps[0].prompt} confirm() or reject(reason)."
    ),
    _S.RECOVERING: lambda c: "Recovering; go_on().",
    _S.COMPLETED: lambda c: f"Done. {_listed(c)}",
    _S.FAILED: lambda c: f"Failed: {c.ending}.",
    _S.CANCELLED: lambda c: f"Cancelled: {c.ending or 'no reason given'}.",
}
"""Where a dialog is, in a sentence."""
