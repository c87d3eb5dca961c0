"""Every notebook runs from scratch without a warning and is committed with its outputs."""

from __future__ import annotations

import re
import time

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tests.run_notebooks import (
    FOLDER,
    complaints,
    execute,
    keep_unchanged,
    main,
    normalise,
    notebooks,
    shape,
)

MOST_SECONDS = 240
"""For all notebooks together."""

MINE = {"name": "mine", "display_name": "Mine"}
VIEW = "application/vnd.jupyter.widget-view+json"
NOTEBOOKS = notebooks()
every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
took: list[float] = []


@every_notebook
def test_a_notebook_is_committed_as_it_was_run_and_free_of_what_only_one_machine_has(path):
    assert complaints(nbformat.read(path, as_version=4)) == []


@every_notebook
def test_a_notebook_runs_from_scratch_and_shows_what_its_committed_copy_shows(path):
    files = sorted(FOLDER.rglob("*"))
    start = time.monotonic()
    executed = execute(path)
    took.append(time.monotonic() - start)
    assert complaints(executed) == []
    saved = normalise(nbformat.read(path, as_version=4))
    assert shape(saved) == shape(executed), f"run: python -m tests.run_notebooks {path.stem}"
    assert sorted(FOLDER.rglob("*")) == files


def test_all_notebooks_together_stay_within_four_minutes():
    assert sum(took) < MOST_SECONDS


# The runner itself -------------------------------------------------------------------------------


def written(folder, *sources):
    path = folder / "small.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell(source) for source in sources]), path)
    return path


def shown(*outputs, **metadata):
    cell = new_code_cell("x", id="a", execution_count=1, outputs=list(outputs))
    return new_notebook(cells=[cell], metadata=metadata)


def result(**data):
    data = {name.replace("_", "/"): value for name, value in data.items()}
    return new_output("execute_result", data, execution_count=1)


def test_a_cell_that_raises_fails_its_notebook(tmp_path):
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        execute(written(tmp_path, "1 / 0"))


def test_a_notebook_gets_no_keys_and_so_spends_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    notebook = execute(written(tmp_path, "import os; 'OPENAI_API_KEY' in os.environ"))
    assert notebook.cells[0].outputs[0].data["text/plain"] == "False"


def test_a_run_gives_pictures_html_and_text_but_no_bars_and_views_and_complains_of_warnings(
    tmp_path,
):
    path = written(
        tmp_path,
        "from matplotlib import pyplot as plt\nplt.plot([1, 2]);",
        "import axislab as al\n"
        "lab = al.Lab(al.ScriptedModel(['4'], after='repeat'), folder='traces')\n"
        "recipe = al.recipes.boxed_math()\n"
        "lab.run_many(recipe, ['a', 'b'])",
        "lab.start(recipe, 'x')",
        "import warnings; warnings.warn('old')",
        "import os; os.getcwd()",
    )
    notebook = execute(path)
    text = "execute_result text/plain"
    assert shape(notebook) == [
        ["display_data image/png text/plain"],
        ["execute_result text/html text/plain"],
        ["execute_result text/html text/plain"],
        ["stream stderr"],
        [text],
    ]
    found = complaints(notebook)
    assert any(re.match(r"cell 3: writes to standard error: .*UserWarning: old", f) for f in found)
    assert any(re.match(r"cell 4 shows a path of one machine: ", f) for f in found)
    assert not any(re.match(r"cell [012]", f) for f in found)
    assert list(tmp_path.iterdir()) == [path]


def test_a_notebook_is_saved_the_same_when_only_ids_and_times_differ():
    old = "<b>20261130T230337-sum-0e73e4f9</b> took 0.3 s, ended 2026-11-30T23:03:37.5Z"
    new = "<b>20261201T010203-sum-aaaaaaaa</b> took 12.4 s, ended 2026-12-01T01:02:03.123Z"
    saved = shown(result(text_html=old))
    assert keep_unchanged(shown(result(text_html=new)), saved).cells[0].outputs[0].data == {
        "text/html": old
    }
    other = new.replace("took", "lasted")
    assert keep_unchanged(shown(result(text_html=other)), saved).cells[0].outputs[0].data == {
        "text/html": other
    }


def test_a_live_view_of_another_moment_is_no_change():
    old, new = (shown(result(text_html=f'<p class="axl-live">{n}</p>')) for n in "12")
    assert "1" in keep_unchanged(new, old).cells[0].outputs[0].data["text/html"]


def test_normalising_leaves_out_views_timing_and_tracebacks_and_keeps_ids():
    error = new_output("error", ename="E", evalue="bad", traceback=["\x1b[31m/root/x.py\x1b[0m"])
    bar = new_output("display_data", {VIEW: {}, "text/plain": "0%"})
    card = new_output("display_data", {VIEW: {}, "text/html": "<b>", "text/plain": "run"})
    notebook = shown(error, bar, card, widgets={"state": {}}, kernelspec=MINE)
    notebook.cells[0].metadata.execution = {"iopub.execute_input": "2026"}
    assert normalise(notebook).cells[0].outputs == [
        new_output("error", ename="E", evalue="bad", traceback=["E: bad"]),
        new_output("display_data", {"text/html": "<b>", "text/plain": "run"}),
    ]
    assert (notebook.cells[0].id, notebook.cells[0].metadata) == ("a", {})
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.kernelspec.name == "python3"


@pytest.mark.parametrize(
    ("notebook", "complaint"),
    [
        (shown(result(text_plain="'/tmp/traces/x'")), "a path of one machine"),
        (shown(result(text_html='File "/home/me/axislab/lab.py"')), "a path of one machine"),
        (shown(result(text_plain="C:\\Users\\me")), "a path of one machine"),
        (shown(result(text_plain="<Axes at 0x7f0011223344>")), "an address in memory"),
        (shown(result(text_plain="\x1b[31mred")), "an ANSI code"),
        (shown(result(image_png="A" * 140_000)), "a picture of 105,000 bytes"),
        (shown(new_output("stream", name="stderr", text="hm")), "standard error"),
        (shown(widgets={}), "metadata has 'widgets'"),
        (new_notebook(cells=[new_code_cell("x")]), "not run once each"),
    ],
)
def test_what_may_not_be_committed_is_named(notebook, complaint):
    (found,) = complaints(notebook)
    assert complaint in found


@pytest.mark.parametrize(
    "text", ["https://example.org/home/x", "traces/tmp/run.jsonl", "a </b>/ b", "~/work/x"]
)
def test_what_is_no_path_of_a_machine_is_fine(text):
    assert complaints(shown(result(text_plain=text))) == []


def test_a_name_that_fits_no_notebook_is_refused():
    with pytest.raises(FileNotFoundError, match="no notebook 'nonsense'"):
        main(["nonsense"])
