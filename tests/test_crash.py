"""A run that is killed: its trace opens, passes fsck up to its last step, and says INTERRUPTED."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import pytest

import axislab as al

SCRIPT = """
import sys, axislab as al
from axislab.models.scripted import ScriptedModel

@al.tool
def count(n: int) -> str:
    "Count."
    return "x" * 200

def line(request):
    return [ScriptedModel.call("count", n=i) for i in range(3)]

print("ready", flush=True)
lab = al.Lab(ScriptedModel(line, delay=0.001), folder=sys.argv[1])
lab.run(al.Recipe(tools=count).with_(max_turns=None), "Count for ever")
"""


def kill_after(seconds, folder):
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout.readline() == "ready\n"
        deadline = time.monotonic() + 20
        while not list(folder.glob("*.jsonl")) and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(seconds)
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()


def check(folder):
    for run in al.load_runs(folder):
        report = al.fsck(run.path)
        assert report.ok, report.problems
        assert run.status == "INTERRUPTED"
        assert run.trace.header["task"]["prompt"] == "Count for ever"
        steps = [r.data["step"] for r in run.trace.of("step")]
        assert steps == list(range(len(steps)))


@pytest.mark.parametrize("seed", range(4))
def test_a_killed_run_opens_and_says_interrupted(tmp_path, seed):
    kill_after(random.Random(seed).uniform(0.01, 0.4), tmp_path)
    check(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_a_run_killed_at_any_moment_opens_and_says_interrupted(tmp_path, seed):
    kill_after(random.Random(1000 + seed).uniform(0.0, 1.0), tmp_path)
    check(tmp_path)
