"""Every axis case holds."""

import json
from pathlib import Path

import pytest

from tests.conformance import axis

DATA = json.loads((Path(__file__).parents[1] / "cases" / "axis_cases.json").read_text("utf-8"))


@pytest.mark.parametrize("name", [case["name"] for case in DATA["cases"]])
def test_the_case_holds(name):
    checks = dict(axis.cases(DATA))
    assert checks[name]() is None
