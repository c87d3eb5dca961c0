"""Lab: a model, a folder of traces and a limit on concurrency; it runs recipes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from itertools import product
from pathlib import Path
from typing import Any, Literal

from axislab.answers.stage import EarlierTry
from axislab.compare import Comparisons, axislab_version
from axislab.crew import Crew, Job, at_least_one, progress_of, several_tasks
from axislab.dialog.recipe import DialogRecipe
from axislab.dialog.session import Dialog
from axislab.dialogs import ModelDesk, agent_of, open_dialog
from axislab.errors import ConfigError, did_you_mean
from axislab.handle import LiveTrace, Recorder, RunHandle
from axislab.models.account import Account
from axislab.models.base import ChatModel
from axislab.models.cache import ReplyCache, open_cache
from axislab.models.cached_model import with_cache
from axislab.models.meter import Meter, check_price
from axislab.models.resolve import require_model, resolve_model
from axislab.orchestrator.identity import new_run_id
from axislab.orchestrator.task import RunIdentity, TaskOrchestrator
from axislab.paths import user_path
from axislab.recipe import Recipe
from axislab.running import Handle
from axislab.runs import Runs
from axislab.tasks import Task, TaskLike, as_task
from axislab.trace.memory import MemoryRecorder
from axislab.trace.recorder import TraceRecorder, check_writable, trace_path
from axislab.trace.run import Run
from axislab.trace.tries import check_same, earlier_tries
from axislab.widgets.streaming import StreamPrinter, in_notebook, shown_live

_OWN = (
    "folder", "concurrency", "seed", "durability", "coupling", "api_key", "api_base", "price",
    "cache", "profile", "temperature", "top_p", "max_tokens",
)  # fmt: skip
"""Options a misspelt name is compared with; any other goes to the provider."""


class Lab(Comparisons):
    r"""Runs recipes with one model and keeps what happens.

    Args:
        model: A litellm model string ("openai/…", "anthropic/…", "ollama/…"), "axislab/simulated",
            "axislab-local/…", or any object with the ChatModel protocol.
        folder: Where traces go, one file a run; None keeps them in memory only.
        concurrency: Runs of `run_many` at once.
        seed: Base of every run's random draws.
        durability: "process" survives a killed process; "disk" also syncs to the disk.
        coupling: Whether arms draw independently from the simulated provider, or in "common".
        api_key: The key of the model's provider; by default litellm looks in the environment.
            A recipe's own model of another provider does not get it.
        api_base: The provider's address, for self-hosted models.
        cache: Keeps replies, so that a cell that runs again pays nothing: True for the user's own
            file, a path, or None. Not for simulated or scripted models. Arms need names.
        **options: Further options of the model: `price`, `profile`, and what litellm takes.

    Raises:
        ModelError: The model string is unknown, or its key is missing.
        TraceError: The folder cannot be written.

    Examples:
        >>> import axislab as al
        >>> lab = al.Lab(al.ScriptedModel(["It is \\boxed{4}."]))
        >>> lab.run(al.recipes.boxed_math(), "What is 2 + 2?").answer
        '4'
    """

    def __init__(
        self,
        model: str | ChatModel = "axislab/simulated",
        *,
        folder: str | Path | None = None,
        concurrency: int = 8,
        seed: int = 0,
        durability: Literal["process", "disk"] = "process",
        coupling: Literal["independent", "common"] = "independent",
        api_key: str | None = None,
        api_base: str | None = None,
        cache: ReplyCache | str | Path | bool | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self.concurrency = at_least_one("concurrency", concurrency)
        if coupling not in ("independent", "common"):
            raise ConfigError(f"coupling={coupling!r}: allowed is 'independent' or 'common'")
        if durability not in ("process", "disk"):
            raise ConfigError(f"durability={durability!r}: allowed is 'process' or 'disk'")
        for name in options:
            if name not in _OWN and get_close_matches(name, _OWN, n=1, cutoff=0.75):
                raise ConfigError(f"Lab has no option {name!r}: {did_you_mean(name, _OWN)}")
        self._options = {"api_key": api_key, "api_base": api_base, **options}
        self._options = {k: v for k, v in self._options.items() if v is not None}
        if self._options and not isinstance(model, str):
            raise ConfigError(
                f"{sorted(self._options)} cannot be set on {model!r}, which is made already: set "
                "them there"
            )
        self._models: dict[str, ChatModel] = {}
        self._provider = _provider(model) if isinstance(model, str) else None
        self.model = self._resolve(model)
        self.cache = open_cache(cache)
        self._never_cached = cache is False
        self.folder = None if folder is None else user_path(folder, error=ConfigError)
        self.seed = RunIdentity(run_id="check", seed=seed).seed
        self.durability = durability
        self.coupling = coupling
        self.last: Runs = Runs()
        """The runs of the newest `run_many`, finished or not; kept when it is interrupted."""
        if self.folder is not None:
            check_writable(self.folder)

    def __repr__(self) -> str:
        where = f"folder={str(self.folder)!r}" if self.folder else "in memory"
        label = ", simulated" if self.model.simulated else ""
        return f"Lab({self.model.name!r}, {where}{label})"

    # One run ---------------------------------------------------------------------------------

    def start(
        self,
        recipe: Recipe,
        task: TaskLike,
        *,
        seed: int | None = None,
        repeat: int = 0,
        arm: str | None = None,
        study: str | None = None,
        after: Run | None = None,
        stream: bool = False,
    ) -> RunHandle:
        """Start a run in the background and return at once.

        Args:
            recipe: The agent.
            task: A Task, a prompt, or a mapping that becomes "key: value" lines.
            seed: Instead of the Lab's.
            repeat: Number of the repeat; each has draws of its own.
            arm: Name of the arm the run belongs to.
            study: Name of the study it belongs to.
            after: A run of the same recipe on the same task, finished or killed, whose tries
                are not made again: what they learnt is told to those that are left.
            stream: Show the replies while they come: in the live view of a notebook, else on
                standard output. The run and its trace are the same.

        Raises:
            ConfigError: Not a recipe, one that cannot be run, or a budget in usd and a model
                whose price is not known.
            DataError: An empty task.
            ModelError: The model is unknown, or its key is missing.
            TraceError: The trace cannot be written.
        """
        if not isinstance(recipe, Recipe):
            raise ConfigError(f"recipe={recipe!r}: give a Recipe, for example recipes.boxed_math()")
        asked = as_task(task)
        identity = self._identity(new_run_id(asked), seed=seed, repeat=repeat, arm=arm, study=study)
        earlier: tuple[EarlierTry, ...] = ()
        if after is not None:
            check_same(after, recipe, asked)
            earlier, identity = earlier_tries(after), replace(identity, parent=after.id)
        orchestrator, live = self._prepare(recipe, asked, identity, earlier, stream=stream)
        if stream and not in_notebook():  # before it starts, else the first words are missed
            live.add_listener(StreamPrinter(label=_label(orchestrator.model)))
        return RunHandle(orchestrator, live)

    def run(self, recipe: Recipe, task: TaskLike, **which: Any) -> Run:
        """Run a recipe on a task and wait for it: in a script, a cell or nbclient.

        Takes what `start` takes and raises what `start` raises. Whatever goes wrong later gives
        a run with status FAILED; see `run.error` and `run.raise_for_status()`.
        """
        handle = self.start(recipe, task, **which)
        with shown_live(handle, wanted=bool(which.get("stream"))):
            return handle.result()

    async def arun(self, recipe: Recipe, task: TaskLike, **which: Any) -> Run:
        """The same for code that awaits; the run itself is on axislab's own loop."""
        handle = self.start(recipe, task, **which)
        with shown_live(handle, wanted=bool(which.get("stream"))):
            return await handle

    def dialog(self, recipe: DialogRecipe | Recipe, **options: Any) -> Dialog:
        """A session to talk to, `.say("…")`, whose steps are runs; takes `open_dialog`'s options.

        `session="name"` goes on with one that is in the folder, `intents="model"` asks the model
        what is wanted, and an agent alone needs `skills=[…]`.
        """
        model = self._model_of(agent_of(recipe))
        desk = ModelDesk(model=with_cache(model, self.cache), meter=Meter(self._ledger, model))
        sync = self.durability == "disk"
        return open_dialog(
            recipe, run=self.run, desk=desk, folder=self.folder, sync=sync, **options
        )

    # Many runs -------------------------------------------------------------------------------

    def run_many(
        self,
        recipe: Recipe | Mapping[str, Recipe],
        tasks: Iterable[TaskLike],
        *,
        repeats: int = 1,
        seed: int | None = None,
        concurrency: int | None = None,
        arm: str | None = None,
        study: str | None = None,
        progress: bool = True,
    ) -> Runs:
        """Run a recipe, or each arm of a mapping, on every task, and wait for all.

        Args:
            recipe: The agent, or agents by arm name.
            tasks: What they are asked.
            repeats: Runs of each task, each with draws of its own.
            seed: Instead of the Lab's.
            concurrency: Runs at once, instead of the Lab's.
            arm: Name of the arm, where one recipe is given.
            study: Name of the study they belong to; a column of every frame.
            progress: Show a progress bar, in a notebook or a terminal.

        Returns:
            The runs, by arm, task and repeat. What failed is a FAILED run among them. Once a
            budget is used up no more are started; `.not_started` says how many.

        Raises:
            KeyboardInterrupt: Stopped; what there is stands in `lab.last` and in the folder.
        """
        crew = self._crew(recipe, tasks, repeats=repeats, seed=seed, arm=arm, study=study)
        at_once = at_least_one(
            "concurrency", self.concurrency if concurrency is None else concurrency
        )
        # The bar comes first: while it is made warnings are off, those of runs must not be.
        with progress_of(len(crew), progress) as bar:
            handle = Handle(lambda: crew.drive(self._start_job, at_once))
            try:
                handle.watch(lambda: bar.show(crew.done))
            finally:
                self.last = crew.runs()
            bar.show(crew.done)
        handle.value()
        crew.warn()
        return self.last

    async def arun_many(
        self,
        recipe: Recipe | Mapping[str, Recipe],
        tasks: Iterable[TaskLike],
        *,
        repeats: int = 1,
        seed: int | None = None,
        concurrency: int | None = None,
        arm: str | None = None,
        study: str | None = None,
    ) -> Runs:
        """The same for code that awaits."""
        crew = self._crew(recipe, tasks, repeats=repeats, seed=seed, arm=arm, study=study)
        at_once = at_least_one(
            "concurrency", self.concurrency if concurrency is None else concurrency
        )
        try:
            await Handle(lambda: crew.drive(self._start_job, at_once))
        finally:
            self.last = crew.runs()
        crew.warn()
        return self.last

    def _crew(
        self,
        recipe: Recipe | Mapping[str, Recipe],
        tasks: Iterable[TaskLike],
        *,
        repeats: int,
        seed: int | None,
        arm: str | None,
        study: str | None,
    ) -> Crew:
        arms = recipe if isinstance(recipe, Mapping) else {arm: recipe}
        if not arms:
            raise ConfigError("no arms: give a recipe, or a mapping of arm names to recipes")
        asked = several_tasks(tasks)
        for name in arms:  # found now, not when the runs of other arms are paid for
            self._identity("check", seed=seed, arm=name, study=study)
        for each in arms.values():
            if not isinstance(each, Recipe):
                raise ConfigError(f"recipe={each!r}: give a Recipe, or a mapping of names to them")
            check_price(self._ledger, self._model_of(each))
        numbers = range(at_least_one("repeats", repeats))
        return Crew(
            [
                Job(recipe=each, task=task, seed=seed, repeat=number, arm=name, study=study)
                for (name, each), task, number in product(arms.items(), asked, numbers)
            ]
        )

    def _start_job(self, job: Job) -> RunHandle:
        return self.start(
            job.recipe,
            job.task,
            seed=job.seed,
            repeat=job.repeat,
            arm=job.arm,
            study=job.study,
        )

    # Inside ----------------------------------------------------------------------------------

    def _identity(
        self,
        run_id: str,
        *,
        seed: int | None,
        arm: str | None,
        study: str | None,
        repeat: int = 0,
    ) -> RunIdentity:
        return RunIdentity(
            run_id=run_id,
            seed=self.seed if seed is None else seed,
            repeat=repeat,
            arm=arm,
            study=study,
            coupling=self.coupling,
        )

    def _resolve(self, model: str | ChatModel) -> ChatModel:
        """The model, checked before its first request."""
        if not isinstance(model, str):
            require_model(model)
            model.check()
            return model
        if model not in self._models:
            # A key or address goes to the provider it was given for, and to no other.
            ours = _provider(model) == self._provider
            made = resolve_model(model, **(self._options if ours else {}))
            made.check()
            self._models[model] = made
        return self._models[model]

    def _model_of(self, recipe: Recipe) -> ChatModel:
        return self.model if recipe.model is None else self._resolve(recipe.model)

    def _prepare(
        self,
        recipe: Recipe,
        task: Task,
        identity: RunIdentity,
        earlier: tuple[EarlierTry, ...] = (),
        *,
        stream: bool = False,
        folder: Path | None = None,
        cache: ReplyCache | None = None,
        ceiling: Account | None = None,
        wrap: Callable[[ChatModel], ChatModel] | None = None,
    ) -> tuple[TaskOrchestrator, LiveTrace]:
        model = self._model_of(recipe)
        meter = Meter(self._ledger, model, own=ceiling)
        recorder: Recorder = MemoryRecorder()
        if (where := folder or self.folder) is not None:
            path = trace_path(where, identity.run_id)
            recorder = TraceRecorder(path, durability=self.durability)
        live = LiveTrace(recorder)
        asked = with_cache(model, cache or self.cache)
        try:
            orchestrator = TaskOrchestrator(
                recipe,
                task,
                model=asked if wrap is None else wrap(asked),
                identity=identity,
                emit=live.emit,
                meter=meter,
                on_delta=live.tell if stream else None,
                version=axislab_version(),
                earlier=earlier,
            )
        except BaseException:
            live.close()
            raise
        return orchestrator, live


def _provider(model: str) -> str:
    return model.partition("/")[0]


def _label(model: ChatModel) -> str:
    return "simulated" if model.simulated else ""
