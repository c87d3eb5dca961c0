"""The manifest of a study: what it is made of, and what came of each time it was run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from axislab.config import KNOBS
from axislab.errors import DataError
from axislab.models.base import ChatModel
from axislab.recipe import Recipe
from axislab.study.plan import drawn_blocks
from axislab.tasks import TaskSet

SCHEMA = 1
"""Of the manifest; another one is refused."""

_SHOWN = 8
"""Differences a message lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmEntry:
    """One arm: a recipe and the model it asks."""

    name: str
    fingerprint: str
    recipe: Mapping[str, Any]
    model: str
    model_info: Mapping[str, Any]
    simulated: bool

    @classmethod
    def of(cls, name: str, recipe: Recipe, model: ChatModel) -> Self:
        """The entry of a recipe with its model."""
        return cls(
            name=name,
            fingerprint=recipe.fingerprint,
            recipe=_as_json(recipe.to_dict()),
            model=model.name,
            model_info=_as_json(dict(model.info)),
            simulated=model.simulated,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One time that a study was run."""

    started: str
    """UTC, ISO 8601."""
    ended: str
    ended_by: str
    """complete, decided, budget, stopped or error."""
    runs: int
    """Pairs that were finished."""
    calls: int
    """Requests sent to a model."""
    repeats: int
    budget: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a study is made of."""

    name: str
    """As it was asked for."""
    label: str
    """Its own: the name of its folder, with a number from the second of that name on."""
    version: str
    """Of axislab."""
    arms: tuple[ArmEntry, ...]
    task_set: str
    tasks_fingerprint: str
    tasks: Mapping[str, str]
    """Id of each task, in order, and a digest of what it holds."""
    clusters: Mapping[str, str]
    """Of the tasks that have one."""
    repeats: int
    seed: int
    coupling: str
    baseline: str
    shared: tuple[tuple[str, ...], ...]
    """Arms that share one main loop a task and repeat, group by group."""
    created: str
    sessions: tuple[Session, ...] = ()

    @property
    def simulated(self) -> bool:
        """No real language model answers; arms are never of both sorts."""
        return self.arms[0].simulated

    @property
    def arm_names(self) -> tuple[str, ...]:
        """In order."""
        return tuple(arm.name for arm in self.arms)

    @property
    def blocks(self) -> list[list[str]]:
        """Tasks in the order they are run: those of a cluster together."""
        return drawn_blocks({task: self.clusters.get(task) for task in self.tasks}, seed=self.seed)

    def to_json(self) -> str:
        """The text of `study.json`."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, ensure_ascii=False, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of `to_json`.

        Raises:
            DataError: It is something else, or was written by a newer axislab.
        """
        try:
            data = json.loads(text)
            schema = data.pop("schema")
            if schema != SCHEMA:
                raise ValueError(f"schema {schema!r}, and this axislab knows {SCHEMA}: update it")
            data["arms"] = tuple(ArmEntry(**arm) for arm in data["arms"])
            data["shared"] = tuple(tuple(group) for group in data["shared"])
            data["sessions"] = tuple(Session(**session) for session in data["sessions"])
            return cls(**data)
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            raise DataError(f"no manifest of a study: {problem}") from problem


def task_digests(tasks: TaskSet) -> dict[str, str]:
    """Id of each task, in order, and a digest of what it holds."""
    return {task.id: _digest(task.to_dict()) for task in tasks}


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as it was."""

    what: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.what}: {self.old} → {self.new}"


def differences(old: Manifest, new: Manifest) -> list[Difference]:
    """What makes another study of it; more repeats do not, nor does another baseline."""
    found = [*_arms(old, new), *_tasks(old, new)]
    for field in ("seed", "coupling", "version"):
        was, is_now = getattr(old, field), getattr(new, field)
        if was != is_now:
            what = "axislab version" if field == "version" else field
            found.append(Difference(what, _short(was), _short(is_now)))
    if {*map(frozenset, old.shared)} != {*map(frozenset, new.shared)}:
        found.append(Difference("arms with a shared prefix", str(old.shared), str(new.shared)))
    if new.repeats < old.repeats:
        found.append(Difference("repeats", str(old.repeats), str(new.repeats)))
    return found


def listed(found: Sequence[Difference]) -> str:
    """The differences as one line."""
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return "; ".join(map(str, found[:_SHOWN])) + more


def _arms(old: Manifest, new: Manifest) -> Iterator[Difference]:
    before, after = ({arm.name: arm for arm in m.arms} for m in (old, new))
    for name in dict.fromkeys((*before, *after)):
        if name not in after:
            yield Difference(f"arm {name!r}", "there", "gone")
        elif name not in before:
            yield Difference(f"arm {name!r}", "none", "new")
        else:
            yield from _one_arm(before[name], after[name])


def _one_arm(old: ArmEntry, new: ArmEntry) -> Iterator[Difference]:
    place = f"arm {old.name!r}"
    if old.fingerprint != new.fingerprint:
        parts = list(_parts(_flat(old.recipe), _flat(new.recipe), place))
        yield from parts or [Difference(f"{place}, recipe", old.fingerprint, new.fingerprint)]
    if old.model != new.model:
        yield Difference(f"{place}, model", old.model, new.model)
    elif old.model_info != new.model_info:
        yield from _parts(_flat(old.model_info), _flat(new.model_info), f"{place}, model")


def _parts(old: Mapping[str, Any], new: Mapping[str, Any], place: str) -> Iterator[Difference]:
    for key in dict.fromkeys((*old, *new)):
        was, is_now = old.get(key), new.get(key)
        if was != is_now:
            yield Difference(f"{place}, {key}", _short(was), _short(is_now))


def _tasks(old: Manifest, new: Manifest) -> Iterator[Difference]:
    if old.tasks_fingerprint == new.tasks_fingerprint:
        return
    gone = [t for t in old.tasks if t not in new.tasks]
    come = [t for t in new.tasks if t not in old.tasks]
    other = [t for t in new.tasks if old.tasks.get(t, new.tasks[t]) != new.tasks[t]]
    named = (("gone", gone), ("new", come), ("changed", other))
    detail = "; ".join(f"{word} {_some(ids)}" for word, ids in named if ids)
    yield Difference("tasks", f"{len(old.tasks)} tasks", f"{len(new.tasks)} tasks ({detail})")


def _flat(nested: Any, path: str = "") -> dict[str, Any]:
    """Leaves by their path; a knob goes by the flat name that `with_` takes."""
    items: list[tuple[str, Any]] = []
    if isinstance(nested, Mapping):
        items = [(f"{path}.{key}" if path else str(key), value) for key, value in nested.items()]
    elif isinstance(nested, list):
        items = [(f"{path}[{place}]", value) for place, value in enumerate(nested)]
    if not items:
        last = path.rpartition(".")[2]
        return {last if path.startswith("config.") and last in KNOBS else path: nested}
    out: dict[str, Any] = {}
    for key, value in items:
        out |= _flat(value, key)
    return out


def _as_json(value: Any) -> Any:
    """As it reads back from a file."""
    return json.loads(json.dumps(value, ensure_ascii=False, default=repr))


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _some(ids: Sequence[str]) -> str:
    shown = ", ".join(map(repr, ids[:3]))
    return f"{shown} and {len(ids) - 3} more" if len(ids) > 3 else shown


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
