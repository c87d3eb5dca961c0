"""The background loop: what stops it, and how it ends with the interpreter."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading

import pytest

import axislab as al
from axislab.running import Handle, LoopThread


def sleeper(ended):
    async def work():
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    return work


def test_an_interrupt_that_strikes_while_progress_is_shown_stops_the_work_as_well():
    ended = threading.Event()

    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Handle(sleeper(ended)).watch(interrupted)
    assert ended.wait(2)


def test_progress_is_told_about_ten_times_a_second_and_not_after_the_end():
    told = []
    handle = Handle(lambda: asyncio.sleep(0.55, "done"))
    assert handle.watch(lambda: told.append(handle.done))
    assert 3 <= len(told) <= 7
    assert handle.value() == "done"


def test_a_wait_of_no_time_only_looks():
    handle = Handle(lambda: asyncio.sleep(0.2))
    assert not handle.wait(0)
    assert handle.wait()
    assert handle.wait(0)


@pytest.mark.parametrize("problem", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_would_end_the_loop_ends_only_the_work_that_raised_it(problem):
    async def work():
        await asyncio.sleep(0)
        raise problem

    async def cell():
        with pytest.raises(problem):
            await Handle(work)

    other = Handle(lambda: asyncio.sleep(0.3, "done"))
    handle = Handle(work)
    assert handle.wait(5)
    with pytest.raises(problem):
        handle.value()
    asyncio.run(cell())
    assert other.wait(5)
    assert other.value() == "done"


@pytest.mark.skipif(os.name == "nt", reason="sends a POSIX signal")
def test_the_handler_that_was_set_before_is_called_once_and_is_set_again_afterwards():
    ended, calls = threading.Event(), []
    before = signal.signal(signal.SIGINT, lambda number, frame: calls.append(number))
    calling = []

    async def cell():
        waiting = asyncio.create_task(_awaited(Handle(sleeper(ended))))
        await asyncio.sleep(0.05)
        # A kernel sets its own handler for the next cell, and that one calls ours in turn.
        ours = signal.getsignal(signal.SIGINT)
        calling.append(lambda number, frame: (calls.append("next"), ours(number, frame)))
        signal.signal(signal.SIGINT, calling[0])
        second = asyncio.create_task(_awaited(Handle(sleeper(threading.Event()))))
        await asyncio.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)
        return await asyncio.gather(waiting, second)

    try:
        assert asyncio.run(cell()) == ["stopped", "stopped"]
        assert calls == ["next"]
        assert ended.is_set()
        assert signal.getsignal(signal.SIGINT) is calling[0]
    finally:
        signal.signal(signal.SIGINT, before)


async def _awaited(handle):
    try:
        await handle
    except asyncio.CancelledError:
        return "stopped"


SCRIPT = """
import sys, time, threading
import axislab as al
from axislab.models.scripted import ScriptedModel
started = threading.Event()

@al.tool
def slow() -> str:
    "Block for a while."
    started.set()
    time.sleep(2)
    return "done"

model = ScriptedModel([ScriptedModel.call("slow")], after="repeat")
recipe = al.recipes.boxed_math(tools=(slow,), max_turns=None)
handle = al.Lab(model, folder="traces").start(recipe, "x")
started.wait(10)
{end}
"""


@pytest.mark.parametrize("end", ["", "sys.exit(3)", "raise ValueError('x')"])
def test_a_script_that_ends_in_the_middle_of_a_tool_leaves_an_interrupted_run(tmp_path, end):
    child = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(end=end)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (child.stderr == "") == ("raise" not in end)
    (run,) = al.load_runs(tmp_path / "traces")
    assert run.status == "INTERRUPTED"
    assert run.trace.records[-1].data["target"] == "INTERRUPTED"
    assert run.tools[0].failed == 0
    assert run.trace.of("tool.finished") == ()
    assert al.fsck(run.path).ok


@pytest.mark.parametrize("problem", [SystemExit(3), KeyboardInterrupt()], ids=repr)
def test_the_loop_outlives_a_callback_that_would_end_it(problem):
    def ends_it():
        raise problem

    slow = Handle(lambda: asyncio.sleep(0.2, "done"))
    LoopThread.current().loop.call_soon_threadsafe(ends_it)
    assert slow.wait(5)
    assert slow.value() == "done"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_waiting_for_what_another_process_runs_is_refused_instead_of_waiting_for_ever():
    handle = Handle(lambda: asyncio.sleep(60))
    child = os.fork()
    if child == 0:
        try:
            with pytest.raises(RuntimeError, match=f"belongs to the process {os.getppid()}"):
                handle.wait()
            with pytest.raises(RuntimeError, match="start what this process is to run"):
                asyncio.run(handle._wait())
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    handle.stop()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_process_forked_while_a_thread_asks_for_the_loop_does_not_wait_for_that_thread():
    with LoopThread._guard:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                asker = threading.Thread(target=LoopThread.current, daemon=True)
                asker.start()
                asker.join(5)
                code = int(asker.is_alive())
            finally:
                os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_an_error_that_comes_while_its_waiter_is_being_cancelled_is_not_complained_of(caplog):
    async def breaks():
        try:
            await asyncio.sleep(60)
        finally:
            raise OSError("no space")

    async def give_up():
        waiting = asyncio.ensure_future(Handle(breaks)._wait())
        await asyncio.sleep(0.1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(give_up())
    gc.collect()
    assert "never retrieved" not in caplog.text
