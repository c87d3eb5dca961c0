"""What tells one run from another, the key of its random draws, and the header of its trace."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from axislab.borders import shown
from axislab.errors import ConfigError
from axislab.events import SCHEMA_VERSION, RunStarted
from axislab.messages import ToolSpec
from axislab.models.base import ChatModel
from axislab.recipe import Recipe
from axislab.tasks import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class RunIdentity:
    """What tells one run from another.

    Raises:
        ConfigError: A seed or repeat that is no whole number, or a name that is no text.
    """

    run_id: str
    seed: int = 0
    repeat: int = 0
    arm: str | None = None
    study: str | None = None
    parent: str | None = None
    """Run that this one goes on with."""
    coupling: str = "independent"
    """Whether the arm is part of the simulated provider's draws: "independent" or "common"."""

    def __post_init__(self) -> None:
        for name, least in (("seed", None), ("repeat", 0)):
            object.__setattr__(self, name, _whole(name, getattr(self, name), least=least))
        for name in ("arm", "study"):
            if (given := getattr(self, name)) is not None and not _is_name(given):
                raise ConfigError(f"{name}={shown(given)}: give text that is not blank, or None")

    def draw_key(self, task: Task) -> str:
        """The opaque key of this run's random draws; it tells nothing about the task."""
        arm = (self.arm or "") if self.coupling == "independent" else ""
        parts = (str(self.seed), task.id, str(self.repeat), arm)
        text = "\x1f".join(parts).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(text, digest_size=12).hexdigest()


def _whole(name: str, given: Any, *, least: int | None) -> int:
    """A whole number, numpy's included, as Python's own."""
    number = None if isinstance(given, bool) or not hasattr(given, "__index__") else int(given)
    if number is None or (least is not None and number < least):
        rest = "" if least is None else f", {least} or more"
        raise ConfigError(f"{name}={shown(given)}: give a whole number{rest}")
    return number


def _is_name(given: object) -> bool:
    return isinstance(given, str) and bool(given.strip())


def started_event(
    identity: RunIdentity,
    *,
    recipe: Recipe,
    task: Task,
    model: ChatModel,
    specs: Sequence[ToolSpec],
    estimator: str,
    version: str,
) -> RunStarted:
    """The header of a run's trace.

    Args:
        identity: Which run it is.
        recipe: The agent.
        task: What it is asked.
        model: Who answers.
        specs: What the model is told about tools.
        estimator: How prompts are counted before they are sent.
        version: axislab's.
    """
    return RunStarted(
        run_id=identity.run_id,
        schema=SCHEMA_VERSION,
        axislab_version=version,
        recipe=recipe.to_dict(),
        recipe_fingerprint=recipe.fingerprint,
        task=task.to_dict(),
        model=model.name,
        simulated=model.simulated,
        seed=identity.seed,
        repeat=identity.repeat,
        arm=identity.arm,
        study=identity.study,
        parent=identity.parent,
        model_info=dict(model.info) or None,
        tools=[spec.to_dict() for spec in specs] or None,
        estimator=estimator,
    )


def new_run_id(task: Task) -> str:
    """The id of a new run: when, on which task, and eight random hex digits."""
    slug = re.sub(r"[^A-Za-z0-9]+", "-", task.id).strip("-")[:40] or "task"
    now = datetime.now(UTC)
    return f"{now:%Y%m%dT%H%M%S}-{slug}-{secrets.token_hex(4)}"
