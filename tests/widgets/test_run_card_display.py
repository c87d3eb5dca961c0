"""What a Run shows as the last line of a cell."""

from __future__ import annotations

import axislab as al
from axislab.models.scripted import ScriptedModel


def test_a_run_has_html_that_is_static_and_loads_nothing():
    run = al.Lab(ScriptedModel([r"\boxed{4}"])).run(al.Recipe(), al.Task("sum", "2+2?", "4"))
    page = run._repr_html_()
    for part in ("✓ correct", "SIMULATED", "COMPLETED", "2+2?"):
        assert part in page
    for outside in ("<script", "http://", "https://", "src="):
        assert outside not in page


def test_a_run_that_still_goes_on_has_html_too():
    handle = al.Lab(ScriptedModel(["ok"], delay=0.3)).start(al.Recipe(), "x")
    assert "not ended" in handle.run._repr_html_()
    handle.result(5)
    assert "COMPLETED" in handle.run._repr_html_()
