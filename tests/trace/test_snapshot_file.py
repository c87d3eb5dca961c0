"""Snapshots on disk: one writer, torn ends cut, and a killed process loses nothing it was told."""

import os
import signal
import subprocess
import sys
import time

import pytest

from axislab.errors import TraceError, TraceLocked
from axislab.trace.snapshot_file import SnapshotFile, read_snapshots

SCRIPT = """
import sys
from enum import Enum
from axislab.fsm.machine import StateMachine, TransitionRule
from axislab.trace.snapshot_file import SnapshotFile

Light = Enum("Light", "OFF ON")
def count(context, payload):
    context["n"] += 1
    context["seen"].append("x" * (context["n"] % 50))
rules = [
    TransitionRule(Light.OFF, "press", Light.ON, None, count),
    TransitionRule(Light.ON, "press", Light.OFF, None, count),
]
start = {"n": 0, "seen": []}
file = SnapshotFile(sys.argv[1], every=10)
file.history.start(start, path=["OFF"])
machine = StateMachine(rules, Light.OFF, context=start, journal=file.history.journal)
while True:
    machine.fire("press")
    print(machine.context["n"], flush=True)
"""


def expected(n):
    return {"n": n, "seen": ["x" * (i % 50) for i in range(1, n + 1)]}


@pytest.mark.parametrize("lines", [1, 7, 40, 150])
def test_a_process_killed_at_any_moment_leaves_every_state_it_told_of(tmp_path, lines):
    path = tmp_path / "light.dialog"
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(path)], stdout=subprocess.PIPE, text=True
    )
    try:
        for _ in range(lines):
            told = int(child.stdout.readline())
        time.sleep(0.003)
    finally:
        os.kill(child.pid, signal.SIGKILL)
        rest = child.stdout.read().split()
        child.wait()
        child.stdout.close()
    told = max([told, *map(int, rest[:-1])])
    with SnapshotFile(path) as file:
        assert len(file.history) - 1 >= told
        for seq, moment in enumerate(file.history):
            assert moment.context == expected(seq)
            assert moment.path == (("OFF", "ON")[seq % 2],)


def filled(path, count=3):
    with SnapshotFile(path) as file:
        file.history.start({"n": 0}, path=["A"])
    return path


@pytest.mark.parametrize("cut", range(1, 30, 4))
def test_a_torn_last_line_is_cut_off_and_the_file_goes_on(tmp_path, cut):
    path = filled(tmp_path / "a.dialog")
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:cut])
    assert len(read_snapshots(path)) == 1
    assert path.read_bytes() == whole + whole[:cut]
    with SnapshotFile(path) as file:
        assert "cut off" in file.repaired
        assert file.history.recover().context == {"n": 0}
    assert path.read_bytes() == whole


def test_only_one_writes_and_whoever_reads_may(tmp_path):
    path = tmp_path / "a.dialog"
    with SnapshotFile(path) as file:
        file.history.start({"n": 0}, path=["A"])
        with pytest.raises(TraceLocked):
            SnapshotFile(path)
        assert read_snapshots(path).recover().context == {"n": 0}
    SnapshotFile(path, sync=True).close()


def test_what_is_no_history_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "a.dialog"
    path.write_text('{"seq":0,"time":"2026-11-30T12:00:00Z","kind":"status"}\n')
    with pytest.raises(TraceError, match="history"):
        SnapshotFile(path)
    assert path.read_text().endswith('"status"}\n')
    with pytest.raises(TraceError, match="cannot be read"):
        read_snapshots(tmp_path / "none.dialog")


def test_a_closed_file_takes_no_more(tmp_path):
    file = SnapshotFile(tmp_path / "a.dialog")
    file.close()
    file.close()
    with pytest.raises(TraceError, match="is closed"):
        file.history.start({"n": 0}, path=["A"])
    assert len(file.history) == 0
    assert "0 lines" in repr(file)


def test_bytes_that_an_interrupt_left_are_gone_before_the_next_line(tmp_path):
    path = tmp_path / "a.dialog"
    with SnapshotFile(path) as file:
        file.history.start({"n": 0}, path=["A"])
        with path.open("ab") as other:
            other.write(b'{"seq":1,"ti')
        file._write(b'{"seq":1}\n')
    assert path.read_bytes().endswith(b'\n{"seq":1}\n')


def test_what_cannot_be_written_is_said_and_the_history_stays_as_it_was(tmp_path):
    path = tmp_path / "a.dialog"
    with SnapshotFile(path) as file:
        fd = os.open(path, os.O_RDONLY)
        os.dup2(fd, file._fd)
        os.close(fd)
        with pytest.raises(TraceError, match="cannot write"):
            file.history.start({"n": 0}, path=["A"])
        assert len(file.history) == 0
