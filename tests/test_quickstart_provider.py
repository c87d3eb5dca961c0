"""The quickstart, unchanged but for its model, runs against an OpenAI-shaped server."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

import axislab as al
from tests.models.fake_server import FakeServer
from tests.run_notebooks import execute

QUICKSTART = Path(__file__).parents[1] / "notebooks" / "00_quickstart.ipynb"


@pytest.fixture
def server():
    fake = FakeServer()
    yield fake
    fake.stop()


def test_the_quickstart_runs_against_another_provider_and_nobody_else_retries(server, tmp_path):
    notebook = nbformat.read(QUICKSTART, as_version=4)
    for cell in notebook.cells:
        cell.source = cell.source.replace(
            'al.Lab("axislab/simulated", folder="traces/quickstart")',
            f'al.Lab("openai/ok", api_base="{server.url}", api_key="sk-planted-key", '
            f'folder="{tmp_path / "traces"}")',
        )
    path = tmp_path / "00_quickstart.ipynb"
    nbformat.write(notebook, path)
    done = execute(path)
    runs = [run for run in al.load_runs(tmp_path / "traces") if not run.simulated]
    assert {run.model for run in runs} == {"openai/ok"}
    assert {run.status for run in runs} == {"COMPLETED"}
    assert server.count("ok") == sum(run.requests for run in runs) >= 42
    assert "sk-planted-key" not in "".join(run.path.read_text("utf-8") for run in runs)
    outputs = nbformat.v4.new_notebook(cells=[c for c in done.cells if c.cell_type == "code"])
    for cell in outputs.cells:
        assert "sk-planted-key" not in str(cell.get("outputs"))
