"""Runs the notebooks from scratch and saves them with their outputs: python -m tests.run_notebooks.

Names, or parts of names, choose some of them; `--check` runs them and saves nothing. A notebook
runs in a copy of its folder, so all it writes is gone afterwards. What would differ at every
run (ids and times of runs, widget views, timing metadata) does not make a difference in git.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "notebooks"
CELL_SECONDS = 120
"""A cell that takes longer fails."""
MOST_PICTURE = 100_000
"""Bytes a picture may have."""

_LIVE = 'class="axl-live'
_VIEW = "application/vnd.jupyter.widget-view+json"
_RESULTS = ("display_data", "execute_result")
_LEFT_BEHIND = shutil.ignore_patterns("traces", "*.csv", ".ipynb_checkpoints")
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_CHANGING = re.compile(
    r"\d{8}T\d{6}-[\w-]+?-[0-9a-f]{8}"  # run ids
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.]*(?:Z|\+00:00)?"
    r"|\b\d+\.\d+ (?:s|ms)\b"
)
_UNWANTED = {
    "a path of one machine": re.compile(
        r"(?<![\w.~])/(?:root|tmp|home|work|var|private|mnt|Users)/|[A-Z]:\\+Users\\"
    ),
    "an ANSI code": re.compile("\x1b"),
    "an address in memory": re.compile(r"\bat 0x[0-9a-fA-F]{6,}"),
}


def notebooks(names: Sequence[str] = ()) -> list[Path]:
    """The notebooks whose name holds one of these, or all.

    Raises:
        FileNotFoundError: A name that fits none.
    """
    known = sorted(FOLDER.glob("*.ipynb"))
    if not names:
        return known
    parts = [Path(name).name for name in names]
    for part in parts:
        if not any(part in path.name for path in known):
            raise FileNotFoundError(f"no notebook {part!r}; there are {[p.stem for p in known]}")
    return [path for path in known if any(part in path.name for part in parts)]


def execute(path: Path) -> NotebookNode:
    """Run a notebook from scratch in a copy of its folder; it comes back normalised.

    Raises:
        CellExecutionError: A cell raised and does not say that it would.
    """
    notebook = nbformat.read(path, as_version=4)
    for cell in _code(notebook):
        cell.outputs, cell.execution_count = [], None
    with tempfile.TemporaryDirectory(prefix="notebook-") as home:
        folder = shutil.copytree(path.parent, Path(home, "notebooks"), ignore=_LEFT_BEHIND)
        client = NotebookClient(
            notebook,
            timeout=CELL_SECONDS,
            kernel_name="python3",
            resources={"metadata": {"path": str(folder)}},
            coalesce_streams=True,
            record_timing=False,
            store_widget_state=False,
        )
        client.execute(env=_environment(Path(home)))
    return normalise(notebook)


def _environment(home: Path) -> dict[str, str]:
    """Nothing of the user's, no keys, no network, and matplotlib as notebooks have it."""
    own = {
        "IPYTHONDIR": str(home / "ipython"),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
    }
    kept = {n: v for n, v in os.environ.items() if n != "MPLBACKEND" and not n.endswith("_API_KEY")}
    return kept | own


def normalise(notebook: NotebookNode) -> NotebookNode:
    """Leave out what a reader cannot use or what names this machine; the notebook itself."""
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    for number, cell in enumerate(notebook.cells):
        cell.setdefault("id", f"cell-{number:02}")
        for name in ("execution", "ExecuteTime", "collapsed", "scrolled"):
            cell.metadata.pop(name, None)
    for cell in _code(notebook):
        cell.outputs = [kept for output in cell.outputs if (kept := _kept(output)) is not None]
    return notebook


def _kept(output: NotebookNode) -> NotebookNode | None:
    """An output without its widget view; None if it was nothing else, as a progress bar is."""
    if output.output_type in _RESULTS and output.data.pop(_VIEW, None) is not None:
        return output if set(output.data) - {"text/plain"} else None
    if output.output_type == "error":
        output.traceback = [f"{output.ename}: {output.evalue}"]
    return output


def shape(notebook: NotebookNode) -> list[list[str]]:
    """Kinds of the outputs of each code cell, mime types included."""
    return [[_kind(output) for output in cell.outputs] for cell in _code(notebook)]


def _kind(output: NotebookNode) -> str:
    if output.output_type in _RESULTS:
        return f"{output.output_type} {' '.join(sorted(output.data))}"
    return f"{output.output_type} {output.get('name') or output.get('ename')}"


def complaints(notebook: NotebookNode) -> list[str]:
    """What a saved notebook must not hold, each with the number of its cell."""
    found = [f"metadata has {name!r}" for name in notebook.metadata if name == "widgets"]
    counts = [cell.execution_count for cell in _code(notebook)]
    if counts != list(range(1, len(counts) + 1)):
        found.append(f"cells were not run once each from top to bottom: {counts}")
    for number, cell in enumerate(notebook.cells):
        for text in _texts(cell):
            found += [
                f"cell {number} shows {what}: {text[max(0, hit.start() - 40) : hit.end() + 40]!r}"
                for what, pattern in _UNWANTED.items()
                if (hit := pattern.search(text))
            ]
        for output in cell.get("outputs", []):
            found += [f"cell {number}: {what}" for what in _output_complaints(output)]
    return found


def _output_complaints(output: NotebookNode) -> Iterator[str]:
    if output.output_type == "stream" and output.name == "stderr":
        yield f"writes to standard error: {output.text[:300]!r}"
    for mime, data in output.get("data", {}).items():
        if mime.startswith("image/") and len(data) * 3 // 4 > MOST_PICTURE:
            yield f"a picture of {len(data) * 3 // 4:,} bytes; at most {MOST_PICTURE:,} are allowed"


def _texts(cell: NotebookNode) -> Iterator[str]:
    for output in cell.get("outputs", []):
        yield from (output.get(name, "") for name in ("text", "evalue"))
        yield "\n".join(output.get("traceback", []))
        for mime, data in output.get("data", {}).items():
            if not mime.startswith("image/") or mime == "image/svg+xml":
                yield data if isinstance(data, str) else json.dumps(data)


def keep_unchanged(notebook: NotebookNode, saved: NotebookNode) -> NotebookNode:
    """Take the saved outputs of each cell where only ids and times differ; the notebook itself."""
    old = {cell.id: cell for cell in _code(saved)}
    for cell in _code(notebook):
        before = old.get(cell.id)
        if before is not None and _steady(before) == _steady(cell):
            cell.outputs = before.outputs
    return notebook


def _steady(cell: NotebookNode) -> tuple[str, list[str]]:
    return cell.source, [_steady_output(output) for output in cell.outputs]


def _steady_output(output: NotebookNode) -> str:
    if _LIVE in output.get("data", {}).get("text/html", ""):
        return _kind(output)  # a picture of some moment
    return _CHANGING.sub("…", json.dumps(output, sort_keys=True))


def _code(notebook: NotebookNode) -> Iterator[NotebookNode]:
    return (cell for cell in notebook.cells if cell.cell_type == "code")


def _run(path: Path, *, check: bool) -> bool:
    """Run a notebook, say how it went, and save it; True if all is well."""
    start = time.monotonic()
    try:
        notebook = execute(path)
    except CellExecutionError as error:
        print(f"{path.name}: {_ANSI.sub('', str(error))}", file=sys.stderr)
        return False
    found = complaints(notebook)
    print(f"{path.name}: {time.monotonic() - start:.1f} s", *found, sep="\n  ")
    if not (found or check):
        saved = normalise(nbformat.read(path, as_version=4))
        nbformat.write(keep_unchanged(notebook, saved), path)
    return not found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the notebooks that were asked for; 1 if one of them is not fit to be saved."""
    parser = argparse.ArgumentParser(prog="python -m tests.run_notebooks", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of their names; all by default")
    parser.add_argument("--check", action="store_true", help="save nothing")
    asked = parser.parse_args(arguments)
    results = [_run(path, check=asked.check) for path in notebooks(asked.names)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
