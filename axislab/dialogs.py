"""Opening a dialog: its file, its classifier, and the way its steps become runs."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from weakref import WeakValueDictionary

from axislab.config import RetryPolicy
from axislab.dialog.model_intents import ModelIntents
from axislab.dialog.recipe import DialogRecipe
from axislab.dialog.session import KEY_STATES, TYPES, Dialog, HasHistory
from axislab.errors import ConfigError
from axislab.events import Event
from axislab.fsm.dialog_values import DialogContext
from axislab.fsm.intents import IntentClassifier, KeywordIntents, Skill
from axislab.fsm.snapshots import Snapshots
from axislab.models.base import ChatModel, ModelReply, ModelRequest
from axislab.models.call import call_model
from axislab.models.meter import Meter
from axislab.recipe import Recipe
from axislab.running import Handle
from axislab.trace.recorder import check_run_id
from axislab.trace.run import Run
from axislab.trace.snapshot_file import SUFFIX, SnapshotFile

_OPEN: WeakValueDictionary[Path, SnapshotFile[DialogContext]] = WeakValueDictionary()
"""Files of the sessions that are open in this process."""


def dialog_recipe(
    recipe: Recipe | DialogRecipe, skills: Iterable[Skill] | None = None
) -> DialogRecipe:
    """The recipe of a dialog; a plain one becomes one by its skills.

    Raises:
        ConfigError: A plain recipe without skills, or skills given twice.
    """
    if isinstance(recipe, DialogRecipe):
        return recipe if skills is None else recipe.with_(skills=tuple(skills))
    if not isinstance(recipe, Recipe) or skills is None:
        raise ConfigError(
            f"recipe={recipe!r}: give a DialogRecipe, such as recipes.ops_dialog(), or a Recipe "
            "and skills=[Skill(…)]"
        )
    return DialogRecipe(name=recipe.name, agent=recipe, skills=skills)


def agent_of(recipe: Recipe | DialogRecipe) -> Recipe:
    """The agent that executes the steps.

    Raises:
        ConfigError: It is no recipe.
    """
    agent = recipe.agent if isinstance(recipe, DialogRecipe) else recipe
    if not isinstance(agent, Recipe):
        raise ConfigError(f"recipe={recipe!r}: give a DialogRecipe, or a Recipe and skills=[…]")
    return agent


@dataclass(slots=True, kw_only=True)
class ModelDesk:
    """Asks a model outside any run, through the same exit as runs."""

    model: ChatModel
    meter: Meter
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    events: list[Event] = field(default_factory=list)
    """One ModelRequested for each request."""

    def ask(self, request: ModelRequest) -> ModelReply:
        """Send a request and wait for the reply.

        Raises:
            ModelError: There is none.
        """
        handle = Handle(lambda: self._ask(request))
        handle.wait()
        return handle.value()

    async def _ask(self, request: ModelRequest) -> ModelReply:
        return await call_model(
            self.model,
            request,
            retry=self.retry,
            emit=self.events.append,
            call=len(self.events),
            step=0,
            meter=self.meter,
        )


@dataclass(slots=True)
class _InMemory:
    history: Snapshots[DialogContext]

    def close(self) -> None:
        """Nothing is open."""


def open_dialog(
    recipe: DialogRecipe | Recipe,
    *,
    run: Callable[..., Run],
    desk: ModelDesk,
    folder: Path | None,
    skills: Iterable[Skill] | None = None,
    session: str | None = None,
    intents: str | IntentClassifier = "keywords",
    sync: bool = False,
) -> Dialog:
    """A new session, or one that goes on.

    Args:
        recipe: What it can do; or the agent alone, with `skills`.
        run: `lab.run`.
        desk: Where a model is asked about intents.
        folder: Where its file is; None keeps it in memory.
        skills: What it can do.
        session: Its name; that of an earlier session in the folder goes on with it, and one that
            is still open in this process is closed.
        intents: "keywords", "model", or a function.
        sync: Wait for the disk.

    Raises:
        ConfigError: No such classifier, or a plain recipe without skills.
        TraceError: The file cannot be written or read.
    """
    made = dialog_recipe(recipe, skills)
    name = check_run_id(_session_id(made) if session is None else session)
    classify = _classifier(made, intents, desk)
    keeper: HasHistory
    if folder is None:
        keeper = _InMemory(Snapshots(every=made.snapshot_every, key_states=KEY_STATES))
    else:
        path = (folder / f"{name}{SUFFIX}").resolve()
        if (former := _OPEN.get(path)) is not None:
            former.close()  # the cell runs again: this session takes over from that one
        keeper = _OPEN[path] = SnapshotFile(
            path, every=made.snapshot_every, key_states=KEY_STATES, types=TYPES, sync=sync
        )
    try:
        return Dialog(
            made,
            run_step=lambda task: run(made.agent, task, study=name),
            classify=classify,
            keeper=keeper,
            session_id=name,
        )
    except BaseException:
        keeper.close()
        raise


def _session_id(recipe: DialogRecipe) -> str:
    slug = re.sub(r"[^A-Za-z0-9]+", "-", recipe.name).strip("-")[:40] or "dialog"
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{slug}-{secrets.token_hex(4)}"


def _classifier(
    recipe: DialogRecipe, intents: str | IntentClassifier, desk: ModelDesk
) -> IntentClassifier:
    if intents == "keywords":
        return KeywordIntents(recipe.skills)
    if intents == "model":
        return ModelIntents(recipe.skills, desk.ask)
    if isinstance(intents, str) or not callable(intents):
        raise ConfigError(
            f"intents={intents!r}: 'keywords', 'model', or a function of the text and the goal"
        )
    return intents
