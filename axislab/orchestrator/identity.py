"""What tells one run from another, and the key of its random draws."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from axislab.borders import shown
from axislab.errors import ConfigError
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
