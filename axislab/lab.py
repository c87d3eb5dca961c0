"""Lab: a model, a folder of traces and a limit on concurrency; it runs recipes."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from axislab.errors import ConfigError
from axislab.handle import LiveTrace, Recorder, RunHandle
from axislab.models.base import ChatModel
from axislab.models.resolve import resolve_model
from axislab.orchestrator.task import RunIdentity, TaskOrchestrator
from axislab.progress import progress_of
from axislab.recipe import Recipe
from axislab.running import Handle
from axislab.tasks import Task, TaskLike, as_task
from axislab.trace.memory import MemoryRecorder
from axislab.trace.recorder import TraceRecorder, trace_path
from axislab.trace.run import Run
from axislab.widgets.streaming import StreamPrinter, in_notebook, shown_live

if TYPE_CHECKING:
    import pandas as pd


class Runs(list[Run]):
    """A list of runs that says in one line what came of them."""

    @property
    def df(self) -> pd.DataFrame:
        """`runs_df` of these runs."""
        from axislab.frames.runs import runs_df

        return runs_df(self)

    def __repr__(self) -> str:
        known = [run for run in self if run.correct is not None]
        right = sum(bool(run.correct) for run in known)
        states = {s: sum(run.status == s for run in self) for s in sorted({r.status for r in self})}
        parts = [", ".join(f"{n} {s}" for s, n in states.items())]
        if known:
            parts.append(f"{right} of {len(known)} right")
        if simulated := sum(run.simulated for run in self):
            parts.append("simulated" if simulated == len(self) else f"{simulated} simulated")
        return f"<{len(self)} runs: {' · '.join(p for p in parts if p)}>"


class Lab:
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
        **options: Further options of the model.

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
        **options: Any,
    ) -> None:
        self.concurrency = _at_least_one("concurrency", concurrency)
        if coupling not in ("independent", "common"):
            raise ConfigError(f"coupling={coupling!r}: allowed is 'independent' or 'common'")
        self._options = {"api_key": api_key, "api_base": api_base, **options}
        self._options = {k: v for k, v in self._options.items() if v is not None}
        self._models: dict[str, ChatModel] = {}
        self._provider = _provider(model) if isinstance(model, str) else None
        self.model = self._resolve(model)
        self.folder = None if folder is None else Path(folder)
        self.seed = seed
        self.durability = durability
        self.coupling = coupling
        self.last: Runs = Runs()
        """The runs of the newest `run_many`, finished or not; kept when it is interrupted."""
        if self.folder is not None:
            _check_writable(self.folder)

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
            stream: Show the replies while they come: in the live view of a notebook, else on
                standard output. The run and its trace are the same.

        Raises:
            ConfigError: Not a recipe, or one that cannot be run.
            DataError: An empty task.
            ModelError: The model is unknown, or its key is missing.
            TraceError: The trace cannot be written.
        """
        if not isinstance(recipe, Recipe):
            raise ConfigError(f"recipe={recipe!r}: give a Recipe, for example recipes.boxed_math()")
        asked = as_task(task)
        orchestrator, live = self._prepare(
            recipe,
            asked,
            RunIdentity(
                run_id=_run_id(asked),
                seed=self.seed if seed is None else seed,
                repeat=repeat,
                arm=arm,
                study=study,
                coupling=self.coupling,
            ),
            stream=stream,
        )
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
            progress: Show a progress bar, in a notebook or a terminal.

        Returns:
            The runs, by arm, task and repeat. What failed is a FAILED run among them.

        Raises:
            KeyboardInterrupt: Stopped; what there is stands in `lab.last` and in the folder.
        """
        crew = self._crew(recipe, tasks, repeats=repeats, seed=seed, arm=arm)
        at_once = self.concurrency if concurrency is None else concurrency
        handle = Handle(lambda: self._drive(crew, _at_least_one("concurrency", at_once)))
        with progress_of(len(crew), wanted=progress) as show:
            try:
                handle.watch(lambda: show(crew.done))
            finally:
                self.last = crew.runs()
            show(crew.done)
        handle.value()
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
    ) -> Runs:
        """The same for code that awaits."""
        crew = self._crew(recipe, tasks, repeats=repeats, seed=seed, arm=arm)
        at_once = self.concurrency if concurrency is None else concurrency
        try:
            await Handle(lambda: self._drive(crew, _at_least_one("concurrency", at_once)))
        finally:
            self.last = crew.runs()
        return self.last

    def _crew(
        self,
        recipe: Recipe | Mapping[str, Recipe],
        tasks: Iterable[TaskLike],
        *,
        repeats: int,
        seed: int | None,
        arm: str | None,
    ) -> _Crew:
        arms = recipe if isinstance(recipe, Mapping) else {arm: recipe}
        if not arms:
            raise ConfigError("no arms: give a recipe, or a mapping of arm names to recipes")
        asked = [as_task(task) for task in tasks]
        for each in arms.values():
            if not isinstance(each, Recipe):
                raise ConfigError(f"recipe={each!r}: give a Recipe, or a mapping of names to them")
            self._resolve(each.model) if each.model is not None else None
        numbers = range(_at_least_one("repeats", repeats))
        return _Crew(
            [
                _Job(each, task, seed=seed, repeat=number, arm=name)
                for (name, each), task, number in product(arms.items(), asked, numbers)
            ]
        )

    async def _drive(self, crew: _Crew, at_once: int) -> None:
        """Start the jobs in order, no more than `at_once` unfinished."""
        places = iter(range(len(crew)))

        async def work() -> None:
            for place in places:
                job = crew.jobs[place]
                handle = self.start(
                    job.recipe, job.task, seed=job.seed, repeat=job.repeat, arm=job.arm
                )
                crew.handles[place] = handle
                await handle

        workers = [asyncio.create_task(work()) for _ in range(min(at_once, len(crew)))]
        try:
            await asyncio.gather(*workers)
        except BaseException:
            for worker in workers:
                worker.cancel()
            await asyncio.wait(workers)
            raise

    # Inside ----------------------------------------------------------------------------------

    def _resolve(self, model: str | ChatModel) -> ChatModel:
        """The model, checked before its first request."""
        if not isinstance(model, str):
            model.check()
            return model
        if model not in self._models:
            # A key or address goes to the provider it was given for, and to no other.
            ours = _provider(model) == self._provider
            made = resolve_model(model, **(self._options if ours else {}))
            made.check()
            self._models[model] = made
        return self._models[model]

    def _prepare(
        self, recipe: Recipe, task: Task, identity: RunIdentity, *, stream: bool = False
    ) -> tuple[TaskOrchestrator, LiveTrace]:
        model = self.model if recipe.model is None else self._resolve(recipe.model)
        recorder: Recorder = MemoryRecorder()
        if self.folder is not None:
            path = trace_path(self.folder, identity.run_id)
            recorder = TraceRecorder(path, durability=self.durability)
        live = LiveTrace(recorder)
        try:
            orchestrator = TaskOrchestrator(
                recipe,
                task,
                model=model,
                identity=identity,
                emit=live.emit,
                on_delta=live.tell if stream else None,
                version=_version(),
            )
        except BaseException:
            live.close()
            raise
        return orchestrator, live


class _Job:
    """One run to be made."""

    __slots__ = ("arm", "recipe", "repeat", "seed", "task")

    def __init__(
        self, recipe: Recipe, task: Task, *, seed: int | None, repeat: int, arm: str | None
    ) -> None:
        self.recipe, self.task = recipe, task
        self.seed, self.repeat, self.arm = seed, repeat, arm


class _Crew:
    """Jobs, and the handles of those that have started."""

    def __init__(self, jobs: list[_Job]) -> None:
        self.jobs = jobs
        self.handles: list[RunHandle | None] = [None] * len(jobs)

    def __len__(self) -> int:
        return len(self.jobs)

    @property
    def done(self) -> int:
        return sum(handle is not None and handle.done for handle in self.handles)

    def runs(self) -> Runs:
        return Runs(handle.run for handle in self.handles if handle is not None)


def _at_least_one(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f"{name}={value!r}: give a whole number, 1 or more")
    return value


def _provider(model: str) -> str:
    return model.partition("/")[0]


def _label(model: ChatModel) -> str:
    return "simulated" if model.simulated else ""


def _run_id(task: Task) -> str:
    slug = re.sub(r"[^A-Za-z0-9]+", "-", task.id).strip("-")[:40] or "task"
    now = datetime.now(UTC)
    return f"{now:%Y%m%dT%H%M%S}-{slug}-{secrets.token_hex(4)}"


def _check_writable(folder: Path) -> None:
    """Find out now, not at the first event."""
    probe = trace_path(folder, f"probe-{secrets.token_hex(4)}")
    recorder = TraceRecorder(probe)
    recorder.close()
    probe.unlink(missing_ok=True)


def _version() -> str:
    try:
        return version("axislab")
    except PackageNotFoundError:  # a checkout that is not installed
        return "unknown"
