"""The examples of the docstrings run as they stand."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import axislab
from axislab.events import RunStarted
from axislab.tools.base import tool
from axislab.trace.reader import read_trace

ROOT = Path(axislab.__file__).parent
MODULES = [
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
    for path in sorted(ROOT.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@tool
def lookup(name: str) -> str:
    """Look a place up.

    Args:
        name: What to look up.
    """
    return f"{name} is a harbour in Verren."


def surroundings(folder: Path) -> dict[str, object]:
    """What examples take for granted: a trace in `traces/demo`, a lab and a recipe."""
    script = [axislab.ScriptedModel.call("lookup", name="Osk"), r"It is \boxed{Osk}."]
    recipe = axislab.Recipe(tools=(lookup,)).with_(max_reprompts=3)
    demo = axislab.Lab(axislab.ScriptedModel(script), folder=folder / "traces/demo")
    run = demo.run(recipe, axislab.Task("osk", "Which harbour is in Verren?", "Osk"))
    run.path.rename(run.path.with_name("osk.jsonl"))
    header = RunStarted(
        **{**run.trace.header, "run_id": "r1"},
    )
    return {
        "al": axislab,
        "header": header,
        "lab": axislab.Lab(axislab.ScriptedModel(["Osk"], after="repeat")),
        "load_run": axislab.load_run,
        "read_trace": read_trace,
        "recipe": recipe,
    }


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_the_module_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    given = surroundings(tmp_path)
    done = doctest.testmod(module, extraglobs=given, optionflags=doctest.ELLIPSIS)
    assert done.attempted > 0
    assert done.failed == 0
