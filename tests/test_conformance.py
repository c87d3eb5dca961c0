"""The conformance runner counts what holds, names what does not, and says so by its exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conformance.__main__ import main

CASES = Path(__file__).parent / "cases"


@pytest.mark.parametrize("name", ["axis_cases", "tool_cases", "boxed_cases", "answer_cases"])
def test_every_case_of_a_file_holds(name, capsys):
    assert main([str(CASES / f"{name}.json")]) == 0
    assert capsys.readouterr().out.strip().endswith(" passed, 0 failed")


def test_a_case_that_does_not_hold_is_named_with_the_field_that_differs(tmp_path, capsys):
    data = json.loads((CASES / "axis_cases.json").read_text("utf-8"))
    case = next(c for c in data["cases"] if not c["disputed"])
    case["expect"][0]["turn_idx"] = 7
    data["cases"] = [case]
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(data), "utf-8")
    assert main([str(path)]) == 1
    out = capsys.readouterr().out
    assert f"{case['name']}: operation 0 (init): turn_idx: got 0, expected 7" in out
    assert out.strip().endswith("0 passed, 1 failed")


def test_a_file_of_no_known_format_is_refused(tmp_path):
    path = tmp_path / "other.json"
    path.write_text("{}", "utf-8")
    with pytest.raises(SystemExit, match="not a case file"):
        main([str(path)])
