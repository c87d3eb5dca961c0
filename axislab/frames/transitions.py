"""transitions_df: one row for each edge of the stage graph a run took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from axislab.events import StepTaken
from axislab.frames.columns import Column, Table, documented
from axislab.frames.source import RunsLike, runs_of
from axislab.runtime.stages import STAGE_KIND, ConversationStage
from axislab.trace.run import Run

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Why:
    """What made a run take an edge."""

    reason: str | None = None
    kind: str | None = None
    """rollback, trigger or rule."""


@dataclass(frozen=True, slots=True)
class TransitionRow:
    """One edge taken."""

    order: int
    step: int | None
    source: str
    target: str
    why: Why


_KINDS: Mapping[str, str] = {str(stage): kind for stage, kind in STAGE_KIND.items()}


def kind_of(stage: str) -> str | None:
    """setup, normal, recovery, finalization or terminal; None for a stage that is none of ours."""
    return _KINDS.get(stage)


def why(source: str, target: str, step: Mapping[str, Any]) -> Why:
    """The reason a step gives for one of its edges."""
    rollback, trigger = step.get("rollback_reason"), step.get("finalization_trigger")
    if target == ConversationStage.ROLLBACK:
        return Why(rollback, "rollback" if rollback else None)
    if target == ConversationStage.CONTEXT_ROLLBACK and (rollback or trigger):
        return Why(rollback or trigger, "rollback" if rollback else "trigger")
    if target == ConversationStage.FORCE_FINAL and trigger:
        return Why(trigger, "trigger")
    if source == ConversationStage.RECEIVED and step.get("rule"):
        return Why(step["rule"], "rule")
    return Why()


def transition_rows(run: Run) -> list[TransitionRow]:
    """The edges a run took, in order."""
    rows: list[TransitionRow] = []
    for record in list(run.trace.of(StepTaken.kind)):
        step = record.data
        path = [str(stage) for stage in step.get("stage_path") or ()]
        for source, target in pairwise(path):
            reason = why(source, target, step)
            rows.append(TransitionRow(len(rows), step.get("step"), source, target, reason))
    return rows


TRANSITIONS: Table[TransitionRow] = Table(
    "transitions",
    (
        Column(
            "order", "Int64", "Number of the transition, from 0 in each run.", lambda r: r.order
        ),
        Column("step", "Int64", "Step that made it.", lambda r: r.step),
        Column("source", "string", "Stage it left.", lambda r: r.source),
        Column("target", "string", "Stage it entered.", lambda r: r.target),
        Column("source_kind", "string", "Kind of the stage it left.", lambda r: kind_of(r.source)),
        Column(
            "target_kind", "string", "Kind of the stage it entered.", lambda r: kind_of(r.target)
        ),
        Column(
            "reason",
            "string",
            "Rollback reason, finalization trigger or rule.",
            lambda r: r.why.reason,
        ),
        Column(
            "reason_kind", "string", "Which of them: rollback, trigger, rule.", lambda r: r.why.kind
        ),
    ),
    transition_rows,
)


@documented(TRANSITIONS)
def transitions_df(data: RunsLike) -> pd.DataFrame:
    """One row for each edge of the stage graph a run took.

    Args:
        data: A run, runs, a study, or the path of a trace or folder.

    Examples:
        >>> transitions_df([]).value_counts(["source", "target"]).empty
        True
    """
    return TRANSITIONS.frame(runs_of(data))
