"""Many calls to a server that fails often: all are accounted for, and nothing is left of them."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SEED = 20261201
OUTCOMES = {
    "ok": ("tool", "answer", "empty"),
    "malformed_reply": ("html", "broken"),
    "connection": ("reset", "closed", "half"),
    "rate_limit": ("status-429",),
    "server": ("status-500",),
    "overloaded": ("status-503",),
    "timeout": ("slow",),
}
"""What each treatment is told as."""


@contextlib.contextmanager
def rough(seed: int) -> Iterator[str]:
    """The address of a server that fails often."""
    program = [sys.executable, "-m", "tests.models.rough_server", str(seed)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def many(calls: int, folder: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """What so many calls came to, as their traces have it and as the server has it."""
    with rough(SEED) as url:
        program = [sys.executable, "-W", "error", "-m", "tests.models.many_calls"]
        done = subprocess.run(
            [*program, url, str(calls), str(folder)],
            capture_output=True,
            text=True,
            timeout=1800,
            cwd=ROOT,
        )
        with urllib.request.urlopen(f"{url}/count", timeout=10) as answer:
            counted = json.load(answer)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout), counted


@pytest.mark.parametrize("calls", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_many_calls_are_all_accounted_for_and_leave_nothing_behind(
    calls: int, tmp_path: Path
) -> None:
    told, counted = many(calls, tmp_path)

    assert told["rows"] >= calls
    assert told["rows"] == sum(counted.values())
    expected = {kind: sum(counted[t] for t in how) for kind, how in OUTCOMES.items()}
    assert told["outcomes"] == expected
    assert set(told["statuses"]) == {"COMPLETED", "FAILED"}
    assert told["files"] == told["runs"]

    assert len(told["tasks"]) <= 1, told["tasks"]
    assert all("LoggingWorker" in task for task in told["tasks"])  # litellm's, one a process
    own = told["sockets"]
    assert own["end"] == own["start"] + own["loop"]
    assert own["open"] <= own["end"] + told["at_once"]

    first, last = told["weights"][0], told["weights"][-1]
    more = last["rows"] - first["rows"]
    assert last["objects"] - first["objects"] < more / 2
    assert last["bytes"] - first["bytes"] < 8_000_000 + 1_000 * more
