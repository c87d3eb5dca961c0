"""Loading tasks, corpora and recorded runs: those that ship with axislab, and the user's own."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from axislab.errors import DataError, did_you_mean
from axislab.paths import user_path
from axislab.tasks import RESERVED, Task, TaskSet, as_task, prompt_id

if TYPE_CHECKING:
    import pandas as pd

    from axislab.tools.corpus import Corpus
    from axislab.trace.run import Run

TASKS = ("atlas", "sums")
"""Task sets that ship with axislab."""
CORPORA = ("atlas",)
"""Corpora that ship with axislab."""

BAD_DAYS = (
    "scenario", "group", "way", "server", "request_timeout", "outcome", "requests", "text",
    "reasoning", "calls", "finish", "usage", "flags", "status", "ending", "answer",
    "answer_status", "error_kind", "tools", "run_requests", "why",
)  # fmt: skip
"""Columns of `load_bad_days`."""

_HERE = Path(__file__).parent
_OTHER_NAMES = {
    "prompt": ("question", "problem", "input", "query", "task", "instruction", "text"),
    "expected": ("answer", "target", "output", "solution", "gold", "label", "final_answer"),
}

Row: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """Which column holds what."""

    prompt: str
    expected: str | None
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """Rows as they were read."""

    rows: Sequence[Row | Task]
    name: str
    first: int = 0
    """Number of the first row, as its source counts."""


def load_tasks(
    source: Any,
    *,
    prompt: str = "prompt",
    expected: str | None = "expected",
    id: str = "id",
    name: str | None = None,
) -> TaskSet:
    """A set of tasks from a name, a file, a frame, a data set or a list.

    All further columns become metadata. Without an id column, a task's id comes from its prompt.

    Args:
        source: "atlas" or "sums", which ship with axislab; a path to .jsonl, .json (a list of
            objects) or .csv; a pandas DataFrame; a split of a Hugging Face data set; a list of
            dicts, texts or Tasks.
        prompt: Column of the question.
        expected: Column of the answer, or of a list of answers; None for tasks without.
        id: Column of the id, if there is one.
        name: What to call the set.

    Raises:
        DataError: There is no such name, file or column, or the rows are not tasks.

    Examples:
        >>> load_tasks([{"question": "1 + 1?", "answer": 2}], prompt="question", expected="answer")
        <TaskSet 'tasks': 1 tasks>
    """
    if isinstance(source, TaskSet):
        return TaskSet(source, name=name or source.name)
    table = _read(source)
    columns = _Columns(prompt=prompt, expected=expected, id=id)
    return TaskSet(_tasks(table, columns), name=name or table.name)


def load_corpus(source: str | Path, *, name: str | None = None) -> Corpus:
    """A corpus to search: "atlas", which ships with axislab, or a .jsonl path.

    Args:
        source: Each line of a file has a `text`, and may have an `id` and a `title`.
        name: What to call the corpus.

    Raises:
        DataError: There is no such name or file, or a line is no document.

    Examples:
        >>> load_corpus("atlas")
        Corpus('atlas', 362 documents)
    """
    from axislab.tools.corpus import Corpus

    if isinstance(source, str) and not Path(source).suffix:
        if source not in CORPORA:
            raise DataError(_unknown("corpus", source, CORPORA, "or give a .jsonl path"))
        path = data_folder() / source / "corpus.jsonl"
        return Corpus.from_jsonl(path, name=name or source)
    return Corpus.from_jsonl(_existing(user_path(source), (".jsonl",)), name=name)


def load_example_traces(name: str) -> list[Run]:
    """Recorded runs that ship with axislab, one folder of them.

    Raises:
        DataError: There is no folder of that name; the message lists those there are.
    """
    from axislab.trace.reader import load_runs

    folder = data_folder() / "traces"
    there = sorted(f.name for f in folder.iterdir() if f.is_dir()) if folder.is_dir() else []
    if name not in there:
        raise DataError(_unknown("folder of recorded runs", name, there))
    return load_runs(folder / name)


def load_bad_days() -> pd.DataFrame:
    """What axislab makes of each bad day of a provider: the table that its tests go through.

    A row is a scenario: what the server does, what one call comes to and in how many requests, how
    a run of a small agent ends, and why. `datasets/README.md` describes the columns.

    Examples:
        >>> table = load_bad_days().set_index("scenario")
        >>> table.loc["err_quota", "outcome"], int(table.loc["err_quota", "requests"])
        ('quota', 1)
    """
    import pandas as pd

    rows = _from_jsonl(data_folder() / "bad_days.jsonl").rows
    return pd.DataFrame(rows, columns=BAD_DAYS).convert_dtypes()


def data_folder() -> Path:
    """The folder of data sets: inside an installed package, else of the checkout.

    Raises:
        DataError: Neither is there.
    """
    # A folder `datasets` next to an installed package would be Hugging Face's library, so the
    # packaged place is looked at first and a file of ours must be in either.
    for folder in (_HERE / "_datasets", _HERE.parent / "datasets"):
        if (folder / "atlas" / "tasks.jsonl").is_file():
            return folder
    raise DataError("the data sets of axislab are not installed with it; install axislab again")


def _read(source: Any) -> _Table:
    if isinstance(source, str) and not Path(source).suffix:
        if source not in TASKS:
            rest = "or give a path that ends in .jsonl, .json or .csv"
            raise DataError(_unknown("task set", source, TASKS, rest))
        return _from_jsonl(data_folder() / source / "tasks.jsonl", name=source)
    if isinstance(source, str | Path):
        path = _existing(user_path(source), tuple(_READERS))
        return _READERS[path.suffix.lower()](path)
    if hasattr(source, "column_names"):
        return _from_dataset(source)
    if hasattr(source, "iloc") and hasattr(source, "columns"):
        return _from_frame(source)
    if isinstance(source, Iterable) and not isinstance(source, Mapping):
        return _from_list(source)
    raise DataError(
        f"cannot read tasks from {source!r:.200}; give a name ({', '.join(TASKS)}), a path to "
        ".jsonl, .json or .csv, a DataFrame, a split of a Hugging Face data set, or a list of dicts"
    )


def _unknown(what: str, name: str, there: Sequence[str], rest: str = "") -> str:
    ships = ", ".join(map(repr, there)) or "none"
    return f"no {what} {name!r} ships with axislab; there: {ships}" + (f"; {rest}" if rest else "")


def _existing(path: Path, suffixes: Sequence[str]) -> Path:
    if path.suffix.lower() not in suffixes:
        raise DataError(f"cannot read {str(path)!r}; allowed: {', '.join(suffixes)}")
    try:
        there = path.is_file()
    except OSError as problem:  # a name no file can have
        raise DataError(f"cannot look for {str(path)[:100]!r}: {problem.strerror}") from problem
    if not there:
        raise DataError(f"there is no file {str(path)!r} (looked from {str(Path.cwd())!r})")
    return path


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as problem:
        raise DataError(f"{str(path)!r} is not UTF-8: {problem}; save it as UTF-8") from problem


def _from_jsonl(path: Path, *, name: str | None = None) -> _Table:
    rows: list[Row] = []
    # Not splitlines(): JSON strings may hold line separators other than the newline.
    for number, line in enumerate(_text(path).split("\n"), 1):
        if not line.strip():
            continue
        row = _parsed(line, place=f"{str(path)!r}, line {number}")
        if not isinstance(row, dict):
            raise DataError(f"{str(path)!r}, line {number} is {row!r:.80}; it must be an object")
        rows.append(row)
    return _Table(rows=rows, name=name or path.stem, first=1)


def _parsed(text: str, *, place: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as problem:  # no JSON, or a number of more digits than Python reads
        raise DataError(f"{place} is not JSON: {problem}") from problem
    except RecursionError as problem:
        raise DataError(f"{place} is nested too deeply to be read") from problem


def _from_json(path: Path) -> _Table:
    rows = _parsed(_text(path), place=repr(str(path)))
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DataError(f"{str(path)!r} must hold a list of objects, not {str(rows)[:80]!r}")
    return _Table(rows=rows, name=path.stem, first=1)


def _from_csv(path: Path) -> _Table:
    try:
        reader = csv.DictReader(io.StringIO(_text(path), newline=""), strict=True)
        rows = list(reader)
    except csv.Error as problem:
        raise DataError(f"{str(path)!r} is not CSV: {problem}") from problem
    _require_unique(list(reader.fieldnames or ()), place=repr(str(path)))
    for number, row in enumerate(rows, 1):
        if None in row:
            raise DataError(f"{str(path)!r}, row {number} has more cells than there are columns")
    kept = [{key: value for key, value in row.items() if value is not None} for row in rows]
    return _Table(rows=[_typed(row) for row in kept], name=path.stem, first=1)


def _typed(row: dict[str, str]) -> Row:
    """Numbers of a CSV as numbers, where writing them again gives the same text."""
    return {key: value if key in RESERVED else _number(value) for key, value in row.items()}


def _number(text: str) -> str | int | float:
    for read in (int, float):
        try:
            if str(value := read(text)) == text and math.isfinite(value):
                return value
        except ValueError:
            continue
    return text


def _from_frame(source: Any) -> _Table:
    named = source.index.name
    frame = source.reset_index(drop=named in source.columns) if named else source
    _require_unique([str(column) for column in frame.columns], place="the frame")
    return _Table(rows=frame.to_dict("records"), name="frame")


def _require_unique(columns: Sequence[str], *, place: str) -> None:
    """Of two columns with one name, only one could be read."""
    if twice := sorted({name for name in columns if columns.count(name) > 1}):
        raise DataError(f"{place} has more than one column {twice[0]!r}; names must differ")


def _from_dataset(source: Any) -> _Table:
    if isinstance(source.column_names, Mapping):
        splits = sorted(map(str, source.column_names))
        raise DataError(
            f"this data set has the splits {splits}; give one, such as data[{splits[0]!r}]"
        )
    info = getattr(source, "info", None)
    name = getattr(info, "dataset_name", None) or getattr(source, "name", None)
    return _Table(rows=list(source), name=str(name or "dataset"))


def _from_list(source: Iterable[Any]) -> _Table:
    rows: list[Row | Task] = []
    for number, item in enumerate(source):
        if isinstance(item, str):
            rows.append(as_task(item))
        elif isinstance(item, Mapping | Task):
            rows.append(item)
        else:
            raise DataError(f"item {number} is {item!r:.80}; it must be a dict, a text or a Task")
    return _Table(rows=rows, name="tasks")


_READERS = {".jsonl": _from_jsonl, ".json": _from_json, ".csv": _from_csv}


def _tasks(table: _Table, columns: _Columns) -> Iterator[Task]:
    _check_columns(table, columns)
    empty = [
        number
        for number, row in enumerate(table.rows, table.first)
        if not isinstance(row, Task) and _absent(row.get(columns.prompt))
    ]
    if empty:
        more = f" and {len(empty) - 5} more" if len(empty) > 5 else ""
        rows = ", ".join(map(str, empty[:5]))
        raise DataError(f"{table.name!r}: no {columns.prompt!r} in row {rows}{more}")
    made: dict[str, int] = {}
    for number, row in enumerate(table.rows, table.first):
        if isinstance(row, Task):
            yield row
            continue
        task = _task(row, columns, place=f"row {number} of {table.name!r}")
        if _absent(row.get(columns.id)) and made.setdefault(task.id, number) != number:
            raise DataError(
                f"{table.name!r}: rows {made[task.id]} and {number} have the same prompt "
                f"and no id; drop one, or give each an id (id={columns.id!r})"
            )
        yield task


def _check_columns(table: _Table, columns: _Columns) -> None:
    rows = [row for row in table.rows if not isinstance(row, Task)]
    columns_there = dict.fromkeys(key for row in rows for key in row)
    there = list(map(str, columns_there))
    for argument, column in (("prompt", columns.prompt), ("expected", columns.expected)):
        if not rows or column is None or column in columns_there:
            continue
        other = [name for name in _OTHER_NAMES[argument] if name in there]
        hint = (
            f"; perhaps {argument}={other[0]!r}"
            if other
            else f"; {did_you_mean(str(column), there)}"
        )
        if argument == "expected":
            hint += "; expected=None for tasks without answers"
        raise DataError(f"{table.name!r} has no column {column!r}; it has {there}{hint}")
    if columns.id != "id" and rows and columns.id not in columns_there:
        raise DataError(f"{table.name!r} has no column {columns.id!r}; it has {there}")


def _task(row: Row, columns: _Columns, *, place: str) -> Task:
    prompt = row[columns.prompt]
    key = row.get(columns.id)
    own = {columns.prompt, columns.expected, columns.id}
    metadata = {
        (f"source_{name}" if name in RESERVED else str(name)): value
        for name, value in row.items()
        if name not in own and name != "metadata" and not _absent(value)
    }
    if isinstance(nested := row.get("metadata"), Mapping):
        metadata |= nested
    elif not _absent(nested):
        metadata["metadata"] = nested
    expected = row.get(columns.expected) if columns.expected else None
    try:
        return Task(
            prompt_id(str(prompt)) if _absent(key) else key,  # type: ignore[arg-type]
            prompt,
            None if _absent(expected) else expected,
            metadata,
        )
    except DataError as problem:
        raise DataError(f"{place}: {problem}") from problem


def _absent(value: object) -> bool:
    """None, a blank text, or what a frame puts where nothing is (NaN, NaT, NA)."""
    if value is None or isinstance(value, str):
        return not (value or "").strip()
    return type(value).__name__ in {"NAType", "NaTType"} or (
        isinstance(value, float) and value != value
    )
