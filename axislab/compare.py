"""What a Lab does with arms: it runs them on the same tasks, as a study that can be taken up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from axislab.accounts import Accounts, ceiling
from axislab.crew import at_least_one, progress_of, several_tasks
from axislab.drive import Begun, Driver
from axislab.errors import ConfigError, did_you_mean
from axislab.handle import LiveTrace
from axislab.models.account import Account
from axislab.models.base import ChatModel
from axislab.models.cache import ReplyCache, open_cache
from axislab.models.meter import check_price, known_price
from axislab.orchestrator.task import RunIdentity, TaskOrchestrator
from axislab.recipe import Recipe
from axislab.running import Handle
from axislab.study.library import Library, check_name
from axislab.study.manifest import ArmEntry, Manifest, task_digests
from axislab.study.plan import Pair
from axislab.study.study import Study, book_of
from axislab.tasks import Task, TaskLike, TaskSet
from axislab.work import (
    Asked,
    Work,
    account_of,
    now,
    shared_groups,
    sharer,
    take_up,
    tape_of,
    used_up,
)

FREE: Final = frozenset(
    {"ollama", "ollama_chat", "hosted_vllm", "vllm", "lm_studio", "llamafile", "xinference"}
)
"""Providers of litellm that run on machines of one's own: their replies are not cached unasked."""


class Comparisons(Accounts):
    """What a Lab knows of studies; `Lab` is one."""

    concurrency: int
    seed: int
    coupling: str
    cache: ReplyCache | None

    if TYPE_CHECKING:
        _never_cached: bool

        def _prepare(
            self,
            recipe: Recipe,
            task: Task,
            identity: RunIdentity,
            *,
            folder: Path | None = None,
            cache: ReplyCache | None = None,
            ceiling: Account | None = None,
            wrap: Callable[[ChatModel], ChatModel] | None = None,
        ) -> tuple[TaskOrchestrator, LiveTrace]: ...

        def _identity(
            self,
            run_id: str,
            *,
            seed: int | None,
            arm: str | None,
            study: str | None,
            repeat: int = 0,
        ) -> RunIdentity: ...

    @cached_property
    def _library(self) -> Library:
        return Library(self.folder)

    def compare(
        self,
        arms: Mapping[str, Recipe],
        tasks: Iterable[TaskLike],
        *,
        name: str,
        baseline: str | None = None,
        repeats: int = 1,
        seed: int | None = None,
        concurrency: int | None = None,
        budget: Mapping[str, Any] | None = None,
        prefix: Literal["auto", "separate"] = "auto",
        stop_when: Literal["decided"] | None = None,
        new: bool = False,
        progress: bool = True,
    ) -> Study:
        """Run every arm on the same tasks, seeds and repeats, as a study that can be taken up.

        Call it again, in this process or another, and it goes on where it stopped: what is
        finished is never run again, and what was broken off is run anew. When all is finished it
        makes no call. Replies of a provider that is paid are cached, unless the Lab has
        `cache=False`.

        Args:
            arms: Recipes by name; `grid` makes them. Two or more.
            tasks: What they are asked. They are begun in an order drawn with the seed, all arms on
                a task before the next, so that the study is balanced wherever it stops.
            name: Names the study and its folder, `<folder of the lab>/<name>`.
            baseline: The arm that others are compared with; the first if it is not given.
            repeats: Runs of each arm on each task. More than before extends the study.
            seed: Instead of the Lab's.
            concurrency: Runs at once, instead of the Lab's.
            budget: `{"tokens": 200_000}`, `{"usd": 1.5}` or both, for the whole study: what it
                used before counts. Runs that find no room are set aside.
            prefix: "auto" makes one main loop a task and repeat for arms that differ only from the
                answer stage on, and each goes its own way from there: `study.shared` says which
                do, `study.saving` what that saved. "separate" makes every arm's own.
            stop_when: "decided" starts no more once every contrast is decided, by confidence
                sequences that hold however often one looks.
            new: Begin another study of that name, in a folder with a number.
            progress: Show a progress bar, in a notebook or a terminal.

        Returns:
            The study; `.ended_by` says what ended it.

        Raises:
            ConfigError: An argument is no good, or the study of that name was made of something
                else: other arms, tasks, seed, model or version. The message says what differs.
            DataError: No tasks, or two of one id.
            TraceLocked: Another process is running it; the message says which.
            KeyboardInterrupt: Stopped. What has finished is kept; the same call goes on.

        Examples:
            >>> import axislab as al
            >>> lab = al.Lab(al.ScriptedModel(["4"], after="repeat"))
            >>> arms = al.grid(al.Recipe(), max_turns=[2, 4])
            >>> lab.compare(arms, [al.Task("sum", "2 + 2?", "4")], name="turns")
            <Study 'turns': 2 arms × 1 task · 2 of 2 pairs finished · 2 new calls · simulated>
            >>> lab.compare(arms, [al.Task("sum", "2 + 2?", "4")], name="turns").new_calls
            0
        """
        asked = self._asked(
            arms,
            tasks,
            name=name,
            baseline=baseline,
            repeats=repeats,
            seed=seed,
            concurrency=concurrency,
            budget=budget,
            prefix=prefix,
            stop_when=stop_when,
            new=new,
        )
        with self._working(asked) as (work, driver):
            with progress_of(len(driver.to_do), progress) as bar:
                handle = Handle(driver.drive)
                handle.watch(lambda: bar.show(driver.ended))
                bar.show(driver.ended)
            handle.value()
        return work.study()

    async def acompare(
        self, arms: Mapping[str, Recipe], tasks: Iterable[TaskLike], *, name: str, **which: Any
    ) -> Study:
        """The same for code that awaits; takes what `compare` takes, but `progress`."""
        with self._working(self._asked(arms, tasks, name=name, **which)) as (work, driver):
            await Handle(driver.drive)
        return work.study()

    def _asked(
        self,
        arms: Mapping[str, Recipe],
        tasks: Iterable[TaskLike],
        *,
        name: str,
        baseline: str | None = None,
        repeats: int = 1,
        seed: int | None = None,
        concurrency: int | None = None,
        budget: Mapping[str, Any] | None = None,
        prefix: str = "auto",
        stop_when: str | None = None,
        new: bool = False,
    ) -> Asked:
        entries = self._entries(arms)
        first = next(iter(arms)) if baseline is None else baseline
        if first not in arms:
            raise ConfigError(f"baseline={baseline!r} is no arm: {did_you_mean(baseline, arms)}")
        asked = several_tasks(tasks)
        task_set = tasks if isinstance(tasks, TaskSet) else TaskSet(asked)
        identity = self._identity("check", seed=seed, arm=first, study=check_name(name))
        if prefix not in ("auto", "separate"):
            raise ConfigError(f"prefix={prefix!r}: give 'auto' or 'separate'")
        if stop_when not in (None, "decided"):
            raise ConfigError(f"stop_when={stop_when!r}: give 'decided', or nothing")
        if stop_when is not None and not any(task.answers for task in task_set):
            raise ConfigError("stop_when='decided' needs tasks with an expected answer")
        wanted = Manifest(
            name=name,
            label=name,
            version=axislab_version(),
            arms=entries,
            task_set=task_set.name,
            tasks_fingerprint=task_set.fingerprint,
            tasks=task_digests(task_set),
            clusters={task.id: task.cluster for task in task_set if task.cluster is not None},
            repeats=at_least_one("repeats", repeats),
            seed=identity.seed,
            coupling=self.coupling,
            baseline=first,
            shared=shared_groups(arms) if prefix == "auto" else (),
            created=now(),
        )
        return Asked(
            arms=dict(arms),
            tasks=task_set,
            manifest=wanted,
            at_once=at_least_one(
                "concurrency", self.concurrency if concurrency is None else concurrency
            ),
            budget=self._budget_of(budget, arms),
            stop_when=stop_when,
            new=bool(new),
        )

    def _entries(self, arms: Mapping[str, Recipe]) -> tuple[ArmEntry, ...]:
        if not isinstance(arms, Mapping) or len(arms) < 2:
            raise ConfigError(
                f"arms={_short(arms)}: give two or more recipes by name, such as "
                "grid(recipe, max_turns=[4, 8]) or {'a': recipe, 'b': recipe.with_(…)}"
            )
        entries = []
        for name, recipe in arms.items():
            if not isinstance(recipe, Recipe):
                raise ConfigError(f"arm {name!r} is {_short(recipe)}: give a Recipe")
            self._identity("check", seed=None, arm=name, study=None)
            model = self._model_of(recipe)
            check_price(self._ledger, model)
            entries.append(ArmEntry.of(name, recipe, model))
        if len({entry.simulated for entry in entries}) > 1:
            made_up = [entry.name for entry in entries if entry.simulated]
            raise ConfigError(
                f"arms {made_up} are simulated and the others are not: the two cannot be compared"
            )
        return tuple(entries)

    def _budget_of(
        self, budget: Mapping[str, Any] | None, arms: Mapping[str, Recipe]
    ) -> Mapping[str, float] | None:
        if budget is None:
            return None
        if not isinstance(budget, Mapping) or not budget or set(budget) - {"tokens", "usd"}:
            raise ConfigError(
                f"budget={_short(budget)}: give {{'tokens': 200_000}}, {{'usd': 1.5}} or both"
            )
        ceiling(**budget)
        if "usd" in budget:
            for recipe in arms.values():
                known_price(self._model_of(recipe))
        return dict(budget)

    @contextmanager
    def _working(self, asked: Asked) -> Iterator[tuple[Work, Driver]]:
        """A study that is found, locked and ready to go; at the end it is noted how it ended."""
        shelf = self._library.find(asked.manifest, new=asked.new)
        with shelf.lock():
            manifest = take_up(asked.manifest, shelf)
            work = Work(asked, manifest, shelf, book=book_of(manifest, shelf))
            driver = work.driver = self._driver(work)
            try:
                yield work, driver
            except Exception:
                work.note("error")
                raise
            except BaseException:  # Ctrl-C, a cancelled task
                work.note("stopped")
                raise
            finally:
                shelf.tape.close()
            work.note(driver.stopped_by or "complete")

    def _driver(self, work: Work) -> Driver:
        asked = work.asked
        account = account_of(asked.budget, work)
        cache = self._study_cache(asked.arms.values())

        tape = tape_of(work)

        def begin(pair: Pair, run_id: str) -> Begun:
            task = asked.tasks[pair.task_id]
            identity = self._identity(
                run_id,
                seed=work.manifest.seed,
                repeat=pair.repeat,
                arm=pair.arm,
                study=work.manifest.label,
            )
            orchestrator, live = self._prepare(
                asked.arms[pair.arm],
                task,
                identity,
                wrap=sharer(work.manifest, tape, identity, task),
                folder=work.shelf.folder,
                cache=cache,
                ceiling=account,
            )
            return Begun(orchestrator, live)

        decided = None
        if asked.stop_when == "decided":
            from axislab.study.peeking import Decider  # with scipy, which takes a while to load

            made = work.manifest
            decided = Decider(work.book, made.blocks, baseline=made.baseline, arms=made.arm_names)
        driver = Driver(work.book, work.shelf, begin=begin, at_once=asked.at_once, decided=decided)
        if decided is not None and decided():
            driver.stopped_by = "decided"
        elif used_up(account, work):
            driver.stopped_by = "budget"
        return driver

    def _study_cache(self, arms: Iterable[Recipe]) -> ReplyCache | None:
        """The Lab's cache; the user's own where somebody is paid and nobody said otherwise."""
        if self.cache is not None or self._never_cached:
            return self.cache
        paid = any(is_paid(self._model_of(recipe)) for recipe in arms)
        return open_cache(True) if paid else None


def is_paid(model: ChatModel) -> bool:
    """Whether a provider is likely to ask money for a model's replies."""
    from axislab.models.litellm_model import LiteLLMModel

    return isinstance(model, LiteLLMModel) and not (
        model.simulated or model.name.partition("/")[0] in FREE
    )


@cache
def axislab_version() -> str:
    """The version that is installed; looked up once, since every run's header has it."""
    try:
        return version("axislab")
    except PackageNotFoundError:  # a checkout that is not installed
        return "unknown"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
