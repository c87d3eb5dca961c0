"""What a dialog remembers: goals, steps, results, and the context that its machine guards."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self


class Frozen:
    """A value that never changes and holds only such values: a copy of it is itself."""

    __slots__ = ()

    def __deepcopy__(self, _memo: object) -> Self:
        return self


class Relation(StrEnum):
    """How a goal stands to the one being worked on."""

    NEW = "new"
    """There is none, or it is the first."""
    SAME = "same"
    """It is the same goal, said again."""
    CHANGED = "changed"
    """It takes the other's place."""
    ADDED = "added"
    """It comes after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent(Frozen):
    """What somebody wants, as it was understood."""

    name: str
    """Empty if nothing was recognised."""
    text: str = ""
    """The words it was read from."""
    confidence: float = 1.0
    """From 0 to 1."""
    relation: Relation = Relation.NEW
    about: str = ""
    """What it is about: a version, a node; `{about}` in a step's prompt."""
    why: str = ""
    """What it was recognised by, or why it was not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep(Frozen):
    """One step towards a goal; a run executes it."""

    name: str
    prompt: str = ""
    """What the run is asked; the conclusions so far are added."""
    key: bool = False
    """A key operation: a person confirms it first, every time."""
    expect: str | None = None
    """Regular expression that the answer must hold; another answer is a failure of the step."""
    goal: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult(Frozen):
    """A step that was executed, and what came of it."""

    step: str
    output: str = ""
    """All that the run said."""
    conclusion: str = ""
    """Its answer: what later steps are told, so that nothing is found out twice."""
    asked: str = ""
    """The step's prompt: another goal goes on with the result only if it would ask the same."""
    goal: str = ""
    key: bool = False
    run_id: str | None = None


@dataclass(slots=True, kw_only=True)
class DialogContext:
    """Everything a dialog remembers; each transition sees a copy and commits it or nothing."""

    session_id: str = ""
    intents: list[Intent] = field(default_factory=list)
    """The goals; the last one is being worked on, those before it come after."""
    steps: list[PlanStep] = field(default_factory=list)
    """What is left of the plan."""
    executed: list[StepResult] = field(default_factory=list)
    failure_count: int = 0
    """Failures in a row; back to 0 after a success, a recovery and for a new task."""
    failures: list[str] = field(default_factory=list)
    recoveries: int = 0
    running: str | None = None
    """Name of the step a run works at."""
    pending: str | None = None
    """Name of the key operation a person is asked about."""
    confirmed: str | None = None
    """Name of the one that may start now; used up by its start, void once the plan changes."""
    change: Intent | None = None
    """A changed goal that a person is asked about."""
    dropped: list[str] = field(default_factory=list)
    """Steps that the latest change of the plan gave up."""
    kept: list[str] = field(default_factory=list)
    """Steps whose results it goes on with."""
    refusals: list[str] = field(default_factory=list)
    """Key operations a person refused since the last plan."""
    ending: str = ""
    """Why it failed or was cancelled."""
    heard: list[str] = field(default_factory=list)
    """What the user said."""
    min_confidence: float = 0.8
    """An intent must be surer than this."""
    max_failures: int = 3
    """This many in a row lead into recovery."""
    max_recoveries: int = 2
    """After that many a task fails."""

    @property
    def conclusions(self) -> dict[str, str]:
        """What each step found out, by its name."""
        return {result.step: result.conclusion or result.output for result in self.executed}

    @property
    def goal(self) -> Intent | None:
        """What is being worked on."""
        return self.intents[-1] if self.intents else None
