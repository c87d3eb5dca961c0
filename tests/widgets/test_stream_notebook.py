"""A streamed run in a kernel: a live view that ends as a card, and nothing printed."""

from __future__ import annotations

import nbclient
import nbformat

CELLS = (
    "import axislab as al\n"
    "lab = al.Lab(al.ScriptedModel(['one two three'], after='repeat', delay=0.3))\n"
    "recipe = al.recipes.boxed_math(max_turns=1)",
    "run = lab.run(recipe, 'What?', stream=True)",
    "run = await lab.arun(recipe, 'What?', stream=True)",
    "handle = lab.start(recipe, 'What?', stream=True)\nhandle.result(10).status",
)


def test_a_notebook_shows_a_live_view_that_ends_as_a_card_and_prints_nothing():
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in CELLS])
    nbclient.NotebookClient(notebook, timeout=60).execute()
    _, blocking, awaited, started = (cell.outputs for cell in notebook.cells)
    for (output,) in (blocking, awaited):
        assert output.output_type == "display_data"
        assert "application/vnd.jupyter.widget-view+json" in output.data
        assert "one two three" in output.data["text/html"]
        assert "simulated" in output.data["text/html"].lower()
        assert "As it stood" not in output.data["text/html"]
    (output,) = started
    assert output.output_type == "execute_result"
