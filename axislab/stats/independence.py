"""Which repeats are draws of their own, and which are copies that must not be counted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from axislab.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

Evidence: TypeAlias = Literal["cache_key", "request_id", "draw"]

EVIDENCE: tuple[Evidence, ...] = ("cache_key", "request_id", "draw")
"""What tells one draw from another: cache entry, the provider's request id, key of the draw."""
NEEDED = ("run_id", "task_id", "arm", "repeat")


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """A run whose replies are another run's replies."""

    run_id: str
    of: str
    """The run counted in its place."""
    task_id: str
    arm: str | None
    repeat: int | None
    by: Evidence
    """What they have in common."""
    shared: int
    """Requests in common."""
    requests: int
    """Requests of the run that have such a mark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SameText:
    """Runs of one task and arm that answered with the same text: remarked on, and counted."""

    task_id: str
    arm: str | None
    runs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Independence:
    """What of a study's runs counts, and what n is."""

    runs: int
    """Runs given."""
    tasks: int
    """Tasks with a counted run."""
    clusters: int | None
    """Clusters they form; None where no two tasks share one."""
    copies: tuple[Copy, ...]
    """Not counted."""
    partial: tuple[Copy, ...]
    """Runs that share some replies with another, counted: n is tasks, so they do no harm."""
    same_text: tuple[SameText, ...]
    unmarked: int
    """Runs without cache entry, request id or draw key: nothing can be said of them."""
    counted: frozenset[str] = field(repr=False)
    """Ids of the runs that count."""

    @property
    def n(self) -> int:
        """What the statistics count: clusters where there are some, else tasks, never runs."""
        return self.tasks if self.clusters is None else self.clusters

    @property
    def dropped(self) -> int:
        """Runs that are not counted."""
        return len(self.copies)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know, a sentence each; empty if all is well."""
        notes = []
        if self.copies:
            ways = sorted({_WAYS[copy.by] for copy in self.copies})
            notes.append(
                f"{self.dropped:,} of {self.runs:,} runs are copies of another run "
                f"({', '.join(ways)}) and are not counted"
            )
        if self.partial:
            notes.append(f"{len(self.partial):,} runs share some of their replies with another run")
        if self.same_text:
            found = sum(len(same.runs) for same in self.same_text)
            notes.append(
                f"{found:,} runs answered with the same text as another repeat of their task, "
                "each by a draw of its own: counted"
            )
        if self.unmarked:
            notes.append(
                f"{self.unmarked:,} runs have no cache entry, request id or draw key: "
                "whether they are copies is not known"
            )
        return tuple(notes)

    def frame(self) -> pd.DataFrame:
        """One row a run that is a copy, wholly or in part."""
        import pandas as pd

        rows = [(c, False) for c in self.copies] + [(c, True) for c in self.partial]
        names = ("run_id", "of", "task_id", "arm", "repeat", "by", "shared", "requests")
        columns: dict[str, list[Any]] = {n: [getattr(c, n) for c, _ in rows] for n in names}
        return pd.DataFrame(columns | {"counted": [part for _, part in rows]})


_WAYS: Mapping[Evidence, str] = {
    "cache_key": "same cache entry",
    "request_id": "same request id",
    "draw": "same draw key",
}


@dataclass(slots=True)
class _Run:
    """One run of the frame, which may have several rows."""

    run_id: str
    task_id: str
    arm: str | None
    repeat: int | None
    cluster: str | None
    marks: dict[Evidence, set[str]] = field(default_factory=lambda: {e: set() for e in EVIDENCE})
    texts: list[str] = field(default_factory=list)


def check_independence(frame: pd.DataFrame) -> Independence:
    """Tell runs that are draws of their own from copies.

    Within an arm, a run all of whose requests have a cache entry, a provider request id or a draw
    key that an earlier run (by task and repeat) has as well is a copy of it and does not count;
    so it is if the two runs are of different tasks. Between arms nothing is compared: a shared
    prefix and common draws are what makes pairs. Equal text alone is no evidence, since a sure
    model says the same again; it is only remarked on. n is tasks, or clusters.

    Args:
        frame: A row a request (or a run), with run_id, task_id, arm, repeat, and those there are
            of cache_key, request_id, draw, text, cluster; NA where there is none.

    Raises:
        DataError: A column is missing, or a run is given two tasks, arms or repeats.

    Examples:
        >>> import pandas as pd
        >>> rows = {"run_id": ["a", "b"], "task_id": "t", "arm": "x", "repeat": [0, 1]}
        >>> check_independence(pd.DataFrame(rows | {"cache_key": "k"})).dropped
        1
    """
    missing = [name for name in NEEDED if name not in frame.columns]
    if missing:
        raise DataError(f"the frame has no {', '.join(missing)}; it needs {', '.join(NEEDED)}")
    runs = _runs(frame)
    arms: dict[str | None, list[_Run]] = defaultdict(list)
    for run in runs:
        arms[run.arm].append(run)
    found = [copy for members in arms.values() for copy in _copies(members)]
    whole = tuple(c for c in found if c.shared == c.requests)
    dropped = {copy.run_id for copy in whole}
    kept = [run for run in runs if run.run_id not in dropped]
    tasks = {run.task_id: run.cluster for run in kept}
    clusters = {("cluster", c) if c is not None else ("task", t) for t, c in tasks.items()}
    return Independence(
        runs=len(runs),
        tasks=len(tasks),
        clusters=None if len(clusters) == len(tasks) else len(clusters),
        copies=whole,
        partial=tuple(c for c in found if c.shared < c.requests),
        same_text=tuple(_same_texts(kept)),
        unmarked=sum(not any(run.marks.values()) for run in runs),
        counted=frozenset(run.run_id for run in kept),
    )


def _text(value: object) -> str | None:
    """A mark as text; None for what frames put where nothing is."""
    if value is None or type(value).__name__ in {"NAType", "NaTType"} or value != value:
        return None
    return str(value) if str(value).strip() else None


def _runs(frame: pd.DataFrame) -> list[_Run]:
    names = [n for n in (*NEEDED, *EVIDENCE, "text", "cluster") if n in frame.columns]
    runs: dict[str, _Run] = {}
    # Cell by cell: a mask of NA has no truth value that could be compared.
    for cells in zip(*(frame[name].tolist() for name in names), strict=True):
        row = {
            name: None if _text(cell) is None else cell
            for name, cell in zip(names, cells, strict=True)
        }
        if row["run_id"] is None or row["task_id"] is None:
            raise DataError("a row has no run_id or no task_id: give both")
        _add(runs, row)
    # Tasks in the order given; repeats of one by number, so that the first is the one that counts.
    place = {task: i for i, task in enumerate(dict.fromkeys(r.task_id for r in runs.values()))}
    return sorted(runs.values(), key=lambda r: (place[r.task_id], r.repeat or 0))


def _add(runs: dict[str, _Run], row: Mapping[str, Any]) -> None:
    about = (
        str(row["task_id"]),
        _text(row["arm"]),
        None if row["repeat"] is None else int(row["repeat"]),
    )
    run = runs.setdefault(
        str(row["run_id"]), _Run(str(row["run_id"]), *about, cluster=_text(row.get("cluster")))
    )
    if (run.task_id, run.arm, run.repeat) != about:
        raise DataError(
            f"run {run.run_id!r} is given as task, arm, repeat {about!r} and as "
            f"{(run.task_id, run.arm, run.repeat)!r}: give every run its own id"
        )
    for kind in EVIDENCE:
        if (mark := _text(row.get(kind))) is not None:
            run.marks[kind].add(mark)
    if (text := _text(row.get("text"))) is not None:
        run.texts.append(text)


def _copies(members: Iterable[_Run]) -> Iterable[Copy]:
    """Runs that share marks with earlier ones of their arm that are no copies themselves."""
    owners: dict[tuple[Evidence, str], str] = {}
    for run in members:
        best: Copy | None = None
        for kind in EVIDENCE:
            shared = [mark for mark in run.marks[kind] if (kind, mark) in owners]
            if not shared:
                continue
            share = Copy(
                run_id=run.run_id,
                of=min(owners[kind, mark] for mark in shared),
                task_id=run.task_id,
                arm=run.arm,
                repeat=run.repeat,
                by=kind,
                shared=len(shared),
                requests=len(run.marks[kind]),
            )
            if best is None or share.shared / share.requests > best.shared / best.requests:
                best = share
        if best is not None:
            yield best
        if best is None or best.shared < best.requests:
            for kind in EVIDENCE:
                for mark in run.marks[kind]:
                    owners.setdefault((kind, mark), run.run_id)


def _same_texts(runs: Iterable[_Run]) -> Iterable[SameText]:
    groups: dict[tuple[str, str | None, tuple[str, ...]], list[str]] = defaultdict(list)
    for run in runs:
        if run.texts:
            groups[run.task_id, run.arm, tuple(run.texts)].append(run.run_id)
    for (task, arm, _), ids in groups.items():
        if len(ids) > 1:
            yield SameText(task_id=task, arm=arm, runs=tuple(ids))
