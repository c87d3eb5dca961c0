"""Tasks and sets of tasks: what a run is asked, and what is known about the answer."""

from __future__ import annotations

import hashlib
import html
import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, cast, overload

from axislab.errors import DataError, did_you_mean
from axislab.tools.results import clean_text

if TYPE_CHECKING:
    import pandas as pd

RESERVED = ("id", "prompt", "expected")
"""Names of a task's own fields; metadata may not use them."""

TaskLike: TypeAlias = "Task | str | Mapping[str, Any]"
"""What `as_task` takes."""


@dataclass(frozen=True, slots=True)
class Task:
    """One question with what is known about its answer.

    Args:
        id: Unique in a set.
        prompt: What the model is asked.
        expected: The answer, or all answers that count; None (or blank) if it is not known.
        metadata: Anything JSON can hold. `kind` and `cluster` have a meaning: tasks of one
            cluster are not independent of each other (they share facts, say).

    Examples:
        >>> Task("t1", "What is 2 + 2?", "4", {"kind": "add"}).kind
        'add'
    """

    id: str
    prompt: str
    expected: str | tuple[str, ...] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        name = _id(self.id)
        if not isinstance(self.prompt, str) or not self.prompt.strip():
            raise DataError(f"task {name!r}: the prompt is {self.prompt!r}; it must be a text")
        object.__setattr__(self, "id", name)
        object.__setattr__(self, "prompt", clean_text(self.prompt))
        object.__setattr__(self, "expected", _answers(self.expected, task=name))
        object.__setattr__(self, "metadata", _metadata(self.metadata, task=name))

    def __reduce__(self) -> tuple[type[Task], tuple[Any, ...]]:
        return Task, (self.id, self.prompt, self.expected, _thaw(self.metadata))

    @property
    def kind(self) -> str | None:
        """What sort of task it is, if the metadata say."""
        return _name(self.metadata.get("kind"))

    @property
    def cluster(self) -> str | None:
        """The group of tasks it is not independent of, if the metadata say."""
        return _name(self.metadata.get("cluster"))

    @property
    def answers(self) -> tuple[str, ...]:
        """All answers that count; empty if none is known."""
        if self.expected is None:
            return ()
        return (self.expected,) if isinstance(self.expected, str) else self.expected

    def to_dict(self) -> dict[str, Any]:
        """The task as JSON: id, prompt, expected, metadata."""
        expected = list(self.expected) if isinstance(self.expected, tuple) else self.expected
        return {
            "id": self.id,
            "prompt": self.prompt,
            "expected": expected,
            "metadata": _thaw(self.metadata),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Task:
        """The inverse of `to_dict`.

        Raises:
            DataError: A field is absent, unknown or not as described.
        """
        fields = {*RESERVED, "metadata"}
        if unknown := sorted(map(str, data.keys() - fields)):
            raise DataError(f"{unknown[0]!r} is no field of a task: allowed: {sorted(fields)}")
        if missing := [name for name in ("id", "prompt") if name not in data]:
            raise DataError(f"a task needs {missing[0]!r}; there are only {sorted(data)}")
        return cls(data["id"], data["prompt"], data.get("expected"), data.get("metadata") or {})

    def _repr_html_(self) -> str:
        return TaskSet([self], name=self.id)._repr_html_()


class TaskSet(Sequence[Task]):
    """Tasks in order, with a name and a fingerprint.

    `tasks[0]` and `tasks["some id"]` give a Task, `tasks[:20]` a TaskSet.

    Args:
        tasks: The tasks; their ids must differ.
        name: What the set is called in studies and reprs.

    Examples:
        >>> tasks = TaskSet([Task("a", "1 + 1?", "2"), Task("b", "2 + 2?", "4")], name="tiny")
        >>> tasks["b"].expected, len(tasks[:1])
        ('4', 1)
    """

    __slots__ = ("_fingerprint", "_places", "_tasks", "name")

    def __init__(self, tasks: Iterable[Task], *, name: str = "tasks") -> None:
        self._tasks = tuple(tasks)
        self.name = name
        for place, task in enumerate(self._tasks):
            if not isinstance(task, Task):
                raise DataError(f"item {place} of {name!r} is {task!r}; use as_task or load_tasks")
        counts = Counter(task.id for task in self._tasks)
        if twice := [key for key, n in counts.items() if n > 1]:
            raise DataError(
                f"{name!r} has more than one task with id {_some(twice)}; ids must differ"
            )
        self._places = {task.id: place for place, task in enumerate(self._tasks)}
        self._fingerprint: str | None = None

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids, in order."""
        return tuple(self._places)

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the content of all tasks; neither name nor order counts."""
        if self._fingerprint is None:
            rows = [task.to_dict() for task in sorted(self._tasks, key=lambda task: task.id)]
            text = json.dumps(rows, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
            self._fingerprint = hashlib.sha256(text.encode()).hexdigest()
        return self._fingerprint

    @property
    def df(self) -> pd.DataFrame:
        """One row per task: id, prompt, expected, then a column for each metadata key."""
        import pandas as pd

        rows = [
            {"id": t.id, "prompt": t.prompt, "expected": t.expected, **_thaw(t.metadata)}
            for t in self._tasks
        ]
        return pd.DataFrame(rows, columns=[*RESERVED, *self._keys()])

    @overload
    def __getitem__(self, key: int | str) -> Task: ...
    @overload
    def __getitem__(self, key: slice) -> TaskSet: ...
    def __getitem__(self, key: int | str | slice) -> Task | TaskSet:
        if isinstance(key, slice):
            return TaskSet(self._tasks[key], name=self.name)
        if not isinstance(key, str):
            return self._tasks[key]
        if key not in self._places:
            near = did_you_mean(key, self.ids[:1000]) if len(self) else "it is empty"
            raise DataError(f"{self.name!r} has no task {key!r}: {near[:300]}")
        return self._tasks[self._places[key]]

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self._tasks)

    def __contains__(self, item: object) -> bool:
        return item in self._places if isinstance(item, str) else item in self._tasks

    def __eq__(self, other: object) -> bool:
        return self._tasks == other._tasks if isinstance(other, TaskSet) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._tasks)

    def sample(self, n: int, *, seed: int = 0) -> TaskSet:
        """Draw n tasks, in random order; a smaller n with the same seed is a part of it.

        Raises:
            DataError: There are fewer than n tasks.
        """
        if not hasattr(n, "__index__") or not 0 <= n <= len(self):
            raise DataError(f"cannot draw {n!r} tasks from {len(self)}; take 0 to {len(self)}")

        def lot(task: Task) -> bytes:
            return hashlib.sha256(f"{seed}\n{task.id}".encode()).digest()

        return TaskSet(sorted(self._tasks, key=lot)[:n], name=self.name)

    def where(self, test: Callable[[Task], bool] | None = None, /, **wanted: Any) -> TaskSet:
        """The tasks that fit: by a function of the task, by metadata, or both.

        Args:
            test: Keeps the tasks for which it is true.
            **wanted: Metadata key (or `id`) and what to look for: a value, a list, set or range
                of values, or a function of the value. A task without the key never fits.

        Raises:
            DataError: No task has such a key.

        Examples:
            >>> tasks = TaskSet([Task("a", "p", metadata={"hops": 1}), Task("b", "q")])
            >>> tasks.where(hops=[1, 2]).ids
            ('a',)
        """
        known = {"id", *self._keys()}
        if len(self) and (unknown := [key for key in wanted if key not in known]):
            near = did_you_mean(unknown[0], known)
            raise DataError(f"no task of {self.name!r} has {unknown[0]!r} in its metadata: {near}")
        kept = (
            task
            for task in self._tasks
            if (test is None or test(task)) and all(_fits(task, k, w) for k, w in wanted.items())
        )
        return TaskSet(kept, name=self.name)

    def map(self, function: Callable[[Task], Task]) -> TaskSet:
        """A set with the function's result in place of each task.

        Examples:
            >>> from dataclasses import replace
            >>> tasks = TaskSet([Task("a", "1 + 1?")])
            >>> tasks.map(lambda task: replace(task, prompt=task.prompt + " Think."))[0].prompt
            '1 + 1? Think.'
        """
        return TaskSet((function(task) for task in self._tasks), name=self.name)

    def _keys(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(key for task in self._tasks for key in task.metadata))

    def __repr__(self) -> str:
        kinds = Counter(task.kind for task in self._tasks if task.kind)
        detail = ", ".join(f"{n} {kind}" for kind, n in kinds.most_common(6))
        more = f" ({detail}{', …' if len(kinds) > 6 else ''})" if detail else ""
        return f"<TaskSet {self.name!r}: {len(self)} tasks{more}>"

    def _repr_html_(self) -> str:
        shown = self._tasks[:8]
        rows = "".join(
            "<tr>"
            + "".join(f"<td style='text-align:left'>{_cell(c)}</td>" for c in cells)
            + "</tr>"
            for cells in ((t.id, t.prompt, " | ".join(t.answers), t.kind or "") for t in shown)
        )
        rest = f"<div>… and {len(self) - 8} more; <code>.df</code> has all</div>"
        head = "".join(f"<th style='text-align:left'>{name}</th>" for name in (*RESERVED, "kind"))
        title = f"<div><b>{html.escape(self.name)}</b>: {len(self)} tasks</div>"
        return f"{title}<table><tr>{head}</tr>{rows}</table>{rest if len(self) > 8 else ''}"


def as_task(obj: TaskLike) -> Task:
    r"""A task from a Task, a text, or a dict.

    A dict with a `prompt` and otherwise only a task's fields is that task. Any other dict is an
    input: the model reads it as "key: value" lines. A task without an id gets one from its prompt.

    Raises:
        DataError: It is empty, of another type, or would show the model its expected answer.

    Examples:
        >>> as_task({"city": "Brell", "year": 1912}).prompt
        'city: Brell\nyear: 1912'
    """
    if isinstance(obj, Task):
        return obj
    if isinstance(obj, str):
        return _from_text(obj)
    if not isinstance(obj, Mapping):
        raise DataError(f"a task is a Task, a text or a dict, got {obj!r}")
    if "prompt" in obj and obj.keys() <= {*RESERVED, "metadata"}:
        return Task.from_dict({"id": prompt_id(str(obj["prompt"])), **obj})
    if "expected" in obj:
        raise DataError(
            f"a dict with the keys {sorted(map(str, obj))} would be shown to the model, `expected` "
            "included; give `prompt` and `expected`, and put the rest under `metadata`"
        )
    return _from_text("\n".join(f"{key}: {_line(value)}" for key, value in obj.items()))


def prompt_id(prompt: str) -> str:
    """The id of a task that was given none: the same for the same prompt."""
    return "task-" + hashlib.sha256(clean_text(prompt).encode()).hexdigest()[:10]


def _from_text(text: str) -> Task:
    if not text.strip():
        raise DataError(f"the task is empty ({text!r}); it must be a text for the model")
    return Task(prompt_id(text), text)


def _line(value: object) -> str:
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(_thaw(value), ensure_ascii=False, default=str)
    return str(value)


def _id(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise DataError(f"a task's id is {value!r}; it must be a text that is not blank")
    return clean_text(str(value).strip())


def _answers(value: object, *, task: str) -> str | tuple[str, ...] | None:
    place = f"task {task!r}: expected"
    plain = _plain(value, place=place)
    if isinstance(plain, Mapping):
        raise DataError(f"{place} is {value!r}; it must be a text or a list of texts")
    if not isinstance(plain, tuple):
        return _answer(plain, task=task)
    answers = (_answer(part, task=task) for part in plain)
    return tuple(dict.fromkeys(a for a in answers if a is not None)) or None


def _answer(value: object, *, task: str) -> str | None:
    if value is None or isinstance(value, str):
        return value.strip() or None if value else None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # a frame turns whole numbers into floats where one is missing
    if isinstance(value, int | float):
        return str(value)
    raise DataError(f"task {task!r}: {value!r} is no answer; it must be a text or a number")


def _metadata(value: object, *, task: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise DataError(f"task {task!r}: metadata is {value!r}; it must be a mapping")
    if taken := [key for key in RESERVED if key in value]:
        raise DataError(f"task {task!r}: metadata may not have {taken[0]!r}, a field of the task")
    return cast(Mapping[str, Any], _plain(value, place=f"task {task!r}: metadata"))


def _plain(value: Any, *, place: str, depth: int = 0) -> Any:
    """The value as frozen JSON; numpy's scalars and arrays, and dates, as what they stand for."""
    if depth > 100:
        raise DataError(f"{place:.200} is nested more than 100 levels deep, or holds itself")
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, str):
        return clean_text(value)
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, Mapping):
        pairs = ((clean_text(str(key)), part) for key, part in value.items())
        out = {key: _plain(part, place=f"{place}.{key}", depth=depth + 1) for key, part in pairs}
        return MappingProxyType(out)
    if isinstance(value, list | tuple):
        return tuple(_plain(part, place=place, depth=depth + 1) for part in value)
    if hasattr(value, "tolist"):
        return _plain(value.tolist(), place=place, depth=depth + 1)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    name = type(value).__name__
    raise DataError(f"{place} holds a {name} ({value!r:.80}); JSON has no such thing")


def _thaw(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _thaw(part) for key, part in value.items()}
    return [_thaw(part) for part in value] if isinstance(value, list | tuple) else value


def _fits(task: Task, key: str, wanted: Any) -> bool:
    if key != "id" and key not in task.metadata:
        return False
    value = task.id if key == "id" else task.metadata[key]
    if callable(wanted):
        return bool(wanted(value))
    wanted = wanted.tolist() if hasattr(wanted, "tolist") else wanted  # a column of a frame
    several = isinstance(wanted, Collection) and not isinstance(wanted, str | Mapping)
    return bool(value == wanted or (several and value in wanted))


def _name(value: object) -> str | None:
    return None if value is None else str(value)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:5]))
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown


def _cell(text: str) -> str:
    return html.escape(text if len(text) <= 120 else text[:119] + "…")
