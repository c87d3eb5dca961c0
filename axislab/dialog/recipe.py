"""DialogRecipe: what a dialog can do, how sure it must be, and the agent that does its steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from axislab.errors import ConfigError
from axislab.fsm.dialog import DialogRule, DialogTable, dialog_table
from axislab.fsm.dialog_values import DialogContext
from axislab.fsm.intents import Skill, skills_by_name
from axislab.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class DialogRecipe:
    """The skills of a dialog, its limits, and the agent behind it.

    Raises:
        ConfigError: No agent, no skills, or a limit out of range.
        MachineError: Its own rules make no state machine.
    """

    name: str = "dialog"
    agent: Recipe = field(default_factory=Recipe)
    """Executes the steps, each as a run of its own."""
    skills: Iterable[Skill] = ()
    min_confidence: float = 0.8
    """An intent must be surer than this."""
    max_failures: int = 3
    """So many failures in a row lead into recovery."""
    max_recoveries: int = 2
    """After so many recoveries a task fails."""
    rules: Iterable[DialogRule] = ()
    """Rules of your own, above those of the dialog machine."""
    snapshot_every: int = 50

    def __post_init__(self) -> None:
        object.__setattr__(self, "skills", tuple(self.skills))
        object.__setattr__(self, "rules", tuple(self.rules))
        if not isinstance(self.agent, Recipe):
            raise ConfigError(f"agent={self.agent!r}: give a Recipe; it executes the steps")
        skills_by_name(self.skills)
        if not 0 <= self.min_confidence < 1:
            raise ConfigError(f"min_confidence={self.min_confidence!r}: from 0 to below 1")
        for name, least in (("max_failures", 1), ("max_recoveries", 0), ("snapshot_every", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ConfigError(f"{name}={value!r}: give a whole number, {least} or more")
        self.table()

    def with_(self, **fields: object) -> DialogRecipe:
        """The same with some fields set; names that are none of its own go to the agent's."""
        own = {name: value for name, value in fields.items() if name in self.__dataclass_fields__}
        agent = {name: value for name, value in fields.items() if name not in own}
        made: DialogRecipe = replace(self, **own)  # type: ignore[arg-type]
        return replace(made, agent=made.agent.with_(**agent)) if agent else made

    def table(self) -> DialogTable:
        """The rules of its machine, checked."""
        return dialog_table(self.rules)

    def by_name(self) -> Mapping[str, Skill]:
        """Its skills by their names."""
        return skills_by_name(self.skills)

    def context(self, session_id: str) -> DialogContext:
        """What a new session starts from."""
        return DialogContext(
            session_id=session_id,
            min_confidence=self.min_confidence,
            max_failures=self.max_failures,
            max_recoveries=self.max_recoveries,
        )

    def __repr__(self) -> str:
        names = ", ".join(self.by_name())
        return f"DialogRecipe({self.name!r}, skills {names}; agent {self.agent.name!r})"
