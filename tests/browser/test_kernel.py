"""axislab in a real kernel: cells that run, await, start, and the Stop button."""

from __future__ import annotations

import json

import nbformat
import pytest
from kernel import Kernel, kernel_environment
from nbclient import NotebookClient

import axislab as al

SETUP = """
import warnings
warnings.simplefilter("default")
import axislab as al
from axislab.models.scripted import ScriptedModel

@al.tool
def look(query: str) -> str:
    "Look something up."
    return "found " + query

call = ScriptedModel.call("look", query="x")
quick = al.Lab(ScriptedModel(lambda r: call if len(r.messages) < 4 else r"\\boxed{4}"))
endless = al.Lab(ScriptedModel([call], after="repeat", delay=0.05), folder="traces")
stuck = al.Lab(ScriptedModel(["late"], after="repeat", delay=60), folder="traces")
recipe = al.recipes.boxed_math(tools=(look,), max_turns=None)
"""


@pytest.fixture
def kernel(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    with Kernel(work, tmp_path / "home") as fresh:
        ready = fresh.run(SETUP, timeout=60)
        assert ready.silent, ready
        yield fresh


@pytest.fixture
def traces(tmp_path):
    return tmp_path / "work" / "traces"


def assert_interrupted(kernel, traces, cell):
    """The cell ended soon, the trace says so and holds all that happened, the kernel works."""
    assert cell.stopped_after is not None
    assert cell.stopped_after < 3
    assert cell.streams == []
    for run in al.load_runs(traces):
        assert run.status == "INTERRUPTED"
        assert run.trace.records[-1].data["reason"] == "stopped"
        assert al.fsck(run.path).ok
    after = kernel.run("quick.run(recipe, 'x').answer")
    assert (after.error, after.displays[0]["text/plain"]) == (None, "'4'")


def test_a_run_in_a_cell_shows_its_card_and_prints_nothing(kernel):
    cell = kernel.run("quick.run(recipe, al.Task('t', 'x', '4'))")
    assert (cell.streams, cell.error) == ([], None)
    (shown,) = cell.displays
    assert "✓ correct" in shown["text/html"]
    assert "simulated" in shown["text/plain"]
    cell = kernel.run("run = await quick.arun(recipe, 'x')\nrun.status")
    assert (cell.streams, cell.error) == ([], None)
    assert cell.displays[0]["text/plain"] == "'COMPLETED'"


def test_a_started_run_goes_on_while_other_cells_run(kernel):
    cell = kernel.run("handle = endless.start(recipe, 'x')\nhandle")
    assert (cell.streams, cell.error) == ([], None)
    (shown,) = cell.displays
    assert set(shown) >= {"application/vnd.jupyter.widget-view+json", "text/html", "text/plain"}
    first = int(kernel.value("handle.run.steps"))
    kernel.run("import time; time.sleep(0.5)")
    assert int(kernel.value("handle.run.steps")) > first + 2
    cell = kernel.run("handle.stop(); run = handle.result(); run.status")
    assert (cell.streams, cell.error) == ([], None)
    assert cell.displays[0]["text/plain"] == "'INTERRUPTED'"


@pytest.mark.parametrize("lab", ["endless", "stuck"])
@pytest.mark.parametrize(
    ("code", "errors"),
    [
        ("LAB.run(recipe, 'x')", {"KeyboardInterrupt"}),
        ("await LAB.arun(recipe, 'x')", {"KeyboardInterrupt", "CancelledError"}),
    ],
    ids=["run", "arun"],
)
def test_stop_ends_a_run_quickly_and_keeps_its_events(kernel, traces, lab, code, errors):
    cell = kernel.run(code.replace("LAB", lab), stop_at=f"{traces}/*.jsonl")
    assert cell.error in errors
    assert_interrupted(kernel, traces, cell)
    (run,) = al.load_runs(traces)
    assert len(run.trace.records) > (15 if lab == "endless" else 4)


def test_stop_ends_runs_that_are_awaited_together(kernel, traces):
    code = "import asyncio\nawait asyncio.gather(*(stuck.arun(recipe, str(i)) for i in range(3)))"
    cell = kernel.run(code, stop_at=f"{traces}/*.jsonl")
    assert cell.error in {"KeyboardInterrupt", "CancelledError"}
    assert_interrupted(kernel, traces, cell)
    assert len(al.load_runs(traces)) == 3


@pytest.mark.parametrize("code", ["M.run_many", "await M.arun_many"])
def test_stop_keeps_what_many_runs_have_done_so_far(kernel, tmp_path, code):
    kernel.run(
        "from pathlib import Path\n"
        "def say(request):\n"
        "    n = int(request.messages[-1].text)\n"
        "    if n == 5: Path('sign').touch()\n"
        "    return r'\\boxed{4}' if n < 5 else ScriptedModel.call('nap')\n"
        "import asyncio\n"
        "@al.tool\n"
        "async def nap() -> str:\n"
        "    'Sleep.'\n"
        "    await asyncio.sleep(60)\n"
        "M = al.Lab(ScriptedModel(say), concurrency=2)\n"
        "many = al.recipes.boxed_math(tools=(nap,))\n"
    )
    sign = tmp_path / "work" / "sign"
    cell = kernel.run(f"{code}(many, [str(i) for i in range(50)])", stop_at=str(sign))
    assert cell.error in {"KeyboardInterrupt", "CancelledError"}
    assert cell.stopped_after < 3
    assert cell.streams == []
    states = kernel.value("[r.status for r in M.last]")
    assert states == str(["COMPLETED"] * 5 + ["INTERRUPTED"] * 2)


def test_many_runs_show_a_bar_and_warn_of_nothing(kernel):
    cell = kernel.run("runs = quick.run_many(recipe, [str(i) for i in range(30)])")
    assert (cell.streams, cell.error) == ([], None)
    (bar,) = cell.displays
    assert "application/vnd.jupyter.widget-view+json" in bar
    assert "30" in bar["text/plain"]
    assert kernel.run("runs = quick.run_many(recipe, ['a', 'b'], progress=False)").silent
    cell = kernel.run("runs")
    assert cell.displays[0]["text/plain"] == "<2 runs: 2 COMPLETED · simulated>"


def test_the_view_of_a_run_is_updated_from_its_own_thread_without_a_word(kernel):
    kernel.run("live = al.LiveRun(endless.start(recipe, 'x'))\nlive")
    first = kernel.value("live.view.value")
    kernel.run("import time; time.sleep(0.4)")
    assert kernel.value("live.view.value") != first
    cell = kernel.run("live.button.click(); live.handle.result().status")
    assert (cell.streams, cell.error) == ([], None)
    assert "INTERRUPTED" in kernel.value("live.view.value")


def test_a_run_that_the_last_cell_of_a_notebook_started_ends_as_interrupted(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    cells = [SETUP, "quick.run(recipe, 'x')", "await quick.arun(recipe, 'x')"]
    cells += ["endless.start(recipe, 'x')"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    client = NotebookClient(
        notebook,
        timeout=60,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
        store_widget_state=False,
    )
    client.execute(env=kernel_environment(tmp_path))
    outputs = [output for cell in notebook.cells for output in cell.outputs]
    assert [output.output_type for output in outputs] == ["execute_result"] * 3, outputs
    assert "text/html" in outputs[-1].data
    (path,) = (tmp_path / "traces").glob("*.jsonl")
    last = json.loads(path.read_text("utf-8").splitlines()[-1])
    assert (last["kind"], last["target"]) == ("status", "INTERRUPTED")
