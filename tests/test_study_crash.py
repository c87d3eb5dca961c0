"""A study that is killed goes on: no finished pair is run again, none is lost, none runs twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import axislab as al
from tests.studykit import arms, lasting, requests_by_pair, scripted, tasks

PAIRS = 200
SCRIPT = """
import sys, axislab as al
from tests.studykit import arms, scripted, tasks
lab = al.Lab(scripted(delay=0.004), folder=sys.argv[1])
made, asked = arms(), tasks(50)
print("ready", flush=True)
lab.compare(made, asked, name="s", repeats=2, concurrency=6, progress=False)
print("done", flush=True)
"""
ROOT = Path(__file__).parent.parent


def start(folder):
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert child.stdout.readline() == "ready\n"
    return child


def kill_at(folder, ended):
    """Kill the study once so many runs have ended; True if it was still going on."""
    child = start(folder)
    try:
        deadline = time.monotonic() + 60
        while child.poll() is None and time.monotonic() < deadline:
            if len(list((folder / "s").glob("*.jsonl"))) >= ended:
                break
            time.sleep(0.001)
        alive = child.poll() is None
        os.kill(child.pid, signal.SIGKILL)
    finally:
        child.wait()
        child.stdout.close()
    return alive


def go_on(folder):
    lab = al.Lab(scripted(), folder=folder)
    return lab.compare(arms(), tasks(50), name="s", repeats=2, concurrency=6, progress=False)


@cache
def uninterrupted():
    return lasting(al.Lab(scripted()).compare(arms(), tasks(50), name="s", repeats=2))


def finished_files(folder):
    found = {}
    for path in (folder / "s").glob("*.jsonl"):
        data = path.read_bytes()
        if b'"kind":"run.finished"' in data.splitlines()[-1] if data.strip() else False:
            found[path.name] = data
    return found


def check_after(folder, before):
    study = go_on(folder)
    assert study.complete
    assert len(study.runs) == PAIRS
    assert {run.status for run in study.runs} == {"COMPLETED"}
    now = finished_files(folder)
    assert all(now[name] == data for name, data in before.items())
    assert len(now) == PAIRS
    ran = requests_by_pair(folder / "s")
    assert len(ran) == PAIRS
    cells = Counter((run.arm, run.task_id, run.repeat) for run in study.runs)
    assert set(cells.values()) == {1}
    assert lasting(study).equals(uninterrupted())
    assert lasting(al.load_study(folder / "s")).equals(uninterrupted())
    again = go_on(folder)
    assert again.new_calls == again.new_runs == 0


@pytest.mark.parametrize("seed", range(10))
def test_a_study_killed_at_a_random_moment_goes_on(tmp_path, seed):
    assert kill_at(tmp_path, random.Random(seed).randrange(1, PAIRS - 30)), "it was over already"
    check_after(tmp_path, finished_files(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(50))
def test_a_study_killed_at_any_moment_goes_on(tmp_path, seed):
    rng = random.Random(1000 + seed)
    kill_at(tmp_path, rng.randrange(0, PAIRS))
    kept = finished_files(tmp_path)
    kill_at(tmp_path, rng.randrange(len(kept), PAIRS + 6))  # and once more while it goes on
    now = finished_files(tmp_path)
    assert all(now[name] == data for name, data in kept.items())
    check_after(tmp_path, now)


def test_a_killed_study_can_be_looked_at_and_says_so(tmp_path):
    assert kill_at(tmp_path, 40)
    study = al.load_study(tmp_path / "s")
    assert study.ended_by == "unfinished"
    assert 20 <= len(study.runs) < PAIRS
    assert "it was killed" in repr(study)
    assert {run.status for run in study.set_aside} <= {"INTERRUPTED"}


def test_broken_off_traces_are_kept_and_their_pairs_run_anew(tmp_path):
    assert kill_at(tmp_path, 60)
    broken = {
        path: path.read_bytes()
        for path in (tmp_path / "s").glob("*.jsonl")
        if path.name not in finished_files(tmp_path) and path.stat().st_size
    }
    assert broken, "six runs were in flight"
    study = go_on(tmp_path)
    whole = [path for path, data in broken.items() if b"\n" in data]
    assert sorted(run.id for run in study.set_aside) == sorted(path.stem for path in whole)
    assert all(path.read_bytes() == broken[path] for path in whole)
    for run in study.set_aside:
        assert run.status == "INTERRUPTED"
        assert f"{run.id}-2" in {one.id for one in study.runs}
