"""Lab: one run, many runs, background runs, stopping, and what is refused beforehand."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import threading
import time

import pytest

import axislab as al
from axislab.errors import ConfigError, DataError, ModelError, RunError, RunInterrupted, TraceError
from axislab.models.scripted import ScriptedModel

PLAIN = al.Recipe(name="plain")


def answers(*lines, **options):
    return ScriptedModel(list(lines) or [r"\boxed{4}"], after="repeat", **options)


def test_a_run_is_kept_in_one_file_and_reads_back_the_same(tmp_path):
    lab = al.Lab(answers(), folder=tmp_path)
    run = lab.run(PLAIN, al.Task("sum", "What is 2 + 2?", "4"))
    assert (run.status, run.answer, run.correct) == ("COMPLETED", "4", True)
    again = al.load_run(run.path)
    assert [r.kind for r in again.trace.records] == [r.kind for r in run.trace.records]
    assert al.fsck(run.path).ok
    assert list(tmp_path.iterdir()) == [run.path]


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = al.Lab(answers()).run(PLAIN, "What is 2 + 2?")
    assert run.answer == "4"
    assert list(tmp_path.iterdir()) == []


def test_run_works_where_a_loop_is_running():
    async def cell():
        return al.Lab(answers()).run(PLAIN, "x")

    assert asyncio.run(cell()).status == "COMPLETED"


def test_arun_awaits_on_the_callers_loop_and_many_loops_in_turn():
    lab = al.Lab(answers())
    for _ in range(3):
        assert asyncio.run(lab.arun(PLAIN, "x")).status == "COMPLETED"


def test_runs_of_one_lab_go_on_side_by_side():
    lab = al.Lab(answers(delay=0.2), concurrency=20)
    start = time.monotonic()
    runs = lab.run_many(PLAIN, [f"task {i}" for i in range(20)], progress=False)
    assert {run.status for run in runs} == {"COMPLETED"}
    assert time.monotonic() - start < 2.0


def test_a_blocking_tool_does_not_stall_other_runs():
    @al.tool
    def slow() -> str:
        """Take a while."""
        time.sleep(0.3)
        return "done"

    def line(request):
        last = request.messages[-1]
        return ScriptedModel.call("slow") if str(last.role) == "user" else "ok"

    lab = al.Lab(ScriptedModel(line), concurrency=8)
    start = time.monotonic()
    runs = lab.run_many(al.Recipe(tools=(slow,)), [str(i) for i in range(8)], progress=False)
    assert {run.output for run in runs} == {"ok"}
    assert time.monotonic() - start < 1.5


def test_start_returns_at_once_and_shows_status_and_phase():
    handle = al.Lab(answers(delay=0.3)).start(PLAIN, "x")
    assert not handle.done
    time.sleep(0.15)
    assert (handle.status, handle.phase) == ("RUNNING", "THINKING")
    run = handle.result(timeout=5)
    assert (handle.status, handle.phase, run.status) == ("COMPLETED", None, "COMPLETED")


def test_stop_ends_a_run_as_interrupted_with_all_its_events(tmp_path):
    lab = al.Lab(answers(ScriptedModel.call("nope"), delay=0.1), folder=tmp_path)
    handle = lab.start(PLAIN, "x")
    time.sleep(0.35)
    handle.stop()
    run = handle.result(timeout=5)
    assert run.status == "INTERRUPTED"
    assert run.steps >= 3
    again = al.load_run(run.path)
    assert again.status == "INTERRUPTED"
    assert len(again.trace.records) == len(run.trace.records)
    assert al.fsck(run.path).ok
    with pytest.raises(RunInterrupted):
        run.raise_for_status()


def test_stopping_before_it_begins_still_leaves_a_readable_trace(tmp_path):
    handle = al.Lab(answers(delay=5), folder=tmp_path).start(PLAIN, "x")
    handle.stop()
    run = handle.result(timeout=5)
    assert run.status == "INTERRUPTED"
    assert al.load_run(run.path).status == "INTERRUPTED"


def test_a_result_that_takes_too_long_raises_and_the_run_goes_on():
    handle = al.Lab(answers(delay=0.4)).start(PLAIN, "x")
    with pytest.raises(TimeoutError, match="still RUNNING"):
        handle.result(timeout=0.05)
    assert handle.result(timeout=5).status == "COMPLETED"


def test_cancelling_the_awaiting_code_stops_the_run(tmp_path):
    lab = al.Lab(answers(delay=30), folder=tmp_path)

    async def impatient():
        await asyncio.wait_for(lab.arun(PLAIN, "x"), timeout=0.3)

    with pytest.raises(TimeoutError):
        asyncio.run(impatient())
    (run,) = al.load_runs(tmp_path)
    assert run.status == "INTERRUPTED"


def test_ctrl_c_interrupts_a_script_and_keeps_its_events(tmp_path):
    import signal
    import subprocess
    import sys

    script = (
        "import axislab as al\n"
        "from axislab.models.scripted import ScriptedModel\n"
        "print('ready', flush=True)\n"
        "lab = al.Lab(ScriptedModel(['x'], delay=60), folder='traces')\n"
        "lab.run(al.Recipe(), 'x')\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    child.stdout.readline()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and not list(tmp_path.glob("traces/*task*.jsonl")):
        if list(tmp_path.glob("traces/*.jsonl")):
            break
        time.sleep(0.05)
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=20)
    assert b"KeyboardInterrupt" in errors
    (run,) = al.load_runs(tmp_path / "traces")
    assert run.status == "INTERRUPTED"
    assert run.trace.records[-1].data["reason"] == "stopped"


def test_many_tasks_and_arms_come_back_in_order_with_their_names():
    arms = {"a": PLAIN, "b": PLAIN.with_(max_turns=3)}
    runs = al.Lab(answers()).run_many(arms, ["one", "two"], repeats=2, progress=False)
    assert [(r.arm, r.prompt, r.repeat) for r in runs] == [
        (arm, prompt, repeat) for arm in "ab" for prompt in ("one", "two") for repeat in (0, 1)
    ]


def test_a_failed_run_is_a_run_and_not_an_exception():
    lab = al.Lab(ScriptedModel([ModelError("no", kind=al.ErrorKind.AUTH)]))
    run = lab.run(PLAIN, "x")
    assert (run.status, run.error_kind) == ("FAILED", "auth")
    with pytest.raises(RunError, match="no"):
        run.raise_for_status()


def test_one_bad_run_does_not_hold_up_the_others():
    def line(request):
        if "bad" in request.messages[-1].text:
            raise ValueError("bad task")
        return "ok"

    runs = al.Lab(ScriptedModel(line)).run_many(PLAIN, ["good", "bad", "fine"], progress=False)
    assert [r.status for r in runs] == ["COMPLETED", "FAILED", "COMPLETED"]


@pytest.mark.parametrize("kind", [RuntimeError, SystemExit, KeyboardInterrupt, BaseException])
def test_a_view_that_raises_is_taken_off_and_the_run_goes_on(caplog, kind):
    handle = al.Lab(answers(delay=0.1)).start(PLAIN, "x")

    def bad(record):
        raise kind("broken view")

    handle.on_record(bad)
    assert handle.result(5).status == "COMPLETED"
    assert "broken view" in caplog.text


def test_views_hear_of_a_record_only_after_it_is_on_disk(tmp_path):
    lab = al.Lab(answers(delay=0.1), folder=tmp_path)
    handle = lab.start(PLAIN, "x")
    seen = []

    def check(record):
        lines = handle.run.path.read_text("utf-8").splitlines()
        seen.append(json.loads(lines[-1])["seq"] == record.seq)

    handle.on_record(check)
    handle.result(5)
    assert seen
    assert all(seen)


@pytest.mark.parametrize("task", ["", "   ", {}])
def test_an_empty_task_is_refused_before_anything_runs(task, tmp_path):
    lab = al.Lab(answers(), folder=tmp_path)
    with pytest.raises(DataError):
        lab.run(PLAIN, task)
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_recipe_is_refused_with_advice():
    with pytest.raises(ConfigError, match="give a Recipe"):
        al.Lab(answers()).run("recipe", "x")


@pytest.mark.parametrize("value", [0, -1, 1.5, True])
def test_a_concurrency_that_is_no_number_of_runs_is_refused(value):
    with pytest.raises(ConfigError, match="concurrency"):
        al.Lab(answers(), concurrency=value)


def test_a_folder_that_cannot_be_written_is_found_before_the_first_request(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(TraceError, match="should be a folder is a file"):
        al.Lab(answers(), folder=blocked / "traces")
    with pytest.raises(TraceError, match="should be a folder is a file"):
        al.Lab(answers(), folder=blocked)


@pytest.mark.skipif(os.name == "nt", reason="sets a POSIX limit")
def test_more_runs_at_once_than_files_may_be_open_says_which_limit_to_change(tmp_path):
    import resource

    lab = al.Lab(answers(delay=0.3), folder=tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/dev/fd")) + 8, hard))
    try:
        with pytest.raises(TraceError, match=r"fewer at once \(concurrency=\)"):
            lab.run_many(PLAIN, [f"x{n}" for n in range(20)], concurrency=20, progress=False)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert lab.run(PLAIN, "x").status == "COMPLETED"


@pytest.mark.parametrize("folder", ["null\0byte", "a" * 300, "lone\ud800"], ids=ascii)
def test_a_folder_that_can_be_no_path_is_refused_as_such(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TraceError, match=r"cannot be a path|cannot write"):
        al.Lab(answers(), folder=folder)
    for read in (al.load_run, al.load_runs):
        with pytest.raises(TraceError, match=r"cannot be a path|cannot read"):
            read(folder)


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be deleted there")
def test_a_run_whose_file_is_deleted_ends_with_an_error_and_keeps_its_events_in_memory(tmp_path):
    gone = tmp_path / "gone"
    lab = al.Lab(answers(delay=0.2), folder=gone)
    handle = lab.start(PLAIN, "x")
    while not handle.run.trace.of("message"):
        time.sleep(0.01)
    shutil.rmtree(gone)
    with pytest.raises(TraceError, match="was deleted while it was being written") as caught:
        handle.result(5)
    assert (handle.status, handle.phase, handle.run.status) == ("INTERRUPTED", None, "INTERRUPTED")
    assert handle.run.cause is caught.value
    assert handle.run.trace.of("message")
    assert lab.run(PLAIN, "y").status == "COMPLETED"


def test_a_blocking_call_on_the_labs_own_loop_is_refused_instead_of_hanging():
    lab = al.Lab(answers())

    @al.tool
    async def nested() -> str:
        """Run a run."""
        return lab.run(PLAIN, "inner").output

    script = ScriptedModel([ScriptedModel.call("nested"), "ok"])
    run = al.Lab(script).run(al.Recipe(tools=(nested,)), "outer")
    (call,) = run.trace.of("tool.finished")
    assert call.data["status"] == "failed"
    assert "await lab.arun" in call.data["content"]


def test_a_key_and_an_address_go_to_the_provider_they_were_given_for_and_to_no_other(monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    lab = al.Lab("openai/gpt-4o", api_key="sk-for-openai-only", api_base="http://127.0.0.1:9/v1")
    elsewhere = al.Recipe(model="anthropic/claude-sonnet-4-5")
    with pytest.raises(ModelError, match="ANTHROPIC_API_KEY"):
        lab.start(elsewhere, "x")
    same = lab.start(al.Recipe(model="openai/gpt-4o-mini").with_(attempts=1), "x")
    assert same.result(30).error_kind == "connection"


def test_a_fork_gets_a_loop_of_its_own():
    lab = al.Lab(answers())
    lab.run(PLAIN, "x")
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write, lab.run(PLAIN, "y").status.encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        assert file.read() == b"COMPLETED"
    os.waitpid(pid, 0)


def test_the_repr_of_many_runs_says_what_came_of_them():
    runs = al.Lab(answers()).run_many(PLAIN, [al.Task(str(i), "x", "4") for i in range(3)])
    assert repr(runs) == "<3 runs: 3 COMPLETED · 3 of 3 right · simulated>"


def test_runs_may_be_started_from_many_threads():
    lab = al.Lab(answers())
    done = []
    threads = [
        threading.Thread(target=lambda: done.append(lab.run(PLAIN, "x").status)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert done == ["COMPLETED"] * 8


def test_no_runs_are_told_in_one_word():
    assert repr(al.Lab(al.ScriptedModel(["fine"])).last) == "<0 runs>"


@pytest.mark.parametrize("name", ["temperture", "cahce", "proifle", "max_token"])
def test_a_misspelt_option_does_not_go_to_the_provider(name):
    with pytest.raises(ConfigError, match="did you mean"):
        al.Lab("openai/x", api_key="k", **{name: 1})
