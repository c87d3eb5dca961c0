import gc
import json
import pickle
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from trace_samples import answer, calls, make_events, make_trace, refusal, rows_of, write_rows

from axislab.errors import RunError, RunInterrupted, TraceCorrupt, TraceError
from axislab.events import ModelRequested, StatusChanged
from axislab.messages import Message
from axislab.runtime.transcript import replay_visible
from axislab.trace.reader import load_run, load_runs, open_trace, read_trace
from axislab.trace.recorder import TraceRecorder
from axislab.trace.run import Run
from axislab.trace.trace import Record, Trace


def test_what_was_recorded_is_read_back(tmp_path: Path) -> None:
    events = make_events([refusal(), calls(), answer()])
    with TraceRecorder(tmp_path / "r1.jsonl") as recorder:
        written = [recorder.record(event) for event in events]
    trace = read_trace(tmp_path / "r1.jsonl", strict=True)
    assert list(trace.records) == written
    assert trace.notes == ()
    assert trace.header["run_id"] == "r1"
    assert trace.path == tmp_path / "r1.jsonl"
    assert [r.kind for r in trace.of("step")] == ["step"] * 5


def spoil(path: Path, line: int, content: bytes) -> Path:
    rows = path.read_bytes().split(b"\n")
    rows[line - 1] = content
    path.write_bytes(b"\n".join(rows))
    return path


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"seq":3,', "is not JSON"),
        (b'{"seq":3} trailing', "is not JSON"),
        (b"[" * 100_000, "is not JSON we can read"),
        (b'{"seq":' + b"9" * 5000 + b"}", "is not JSON we can read"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"", "is not JSON"),
        (b"[1]", "not an object"),
        (b'{"seq":3,"time":"x"}', "lacks a whole number seq"),
        (b'{"seq":3,"time":"x","kind":"step"}', "step lacks 'step'"),
        (b'{"seq":3,"time":"x","kind":"message","index":0,"message":{},"step":0}', "role None"),
    ],
)
def test_a_bad_line_is_left_out_and_named_or_refused(
    tmp_path: Path, content: bytes, said: str
) -> None:
    path = make_trace(tmp_path)
    count = len(read_trace(path))
    spoil(path, 4, content)
    trace = read_trace(path)
    assert len(trace) == count - 1
    assert trace.notes[0].startswith("line 4 ")
    assert said in trace.notes[0]
    with pytest.raises(TraceCorrupt, match="line 4") as caught:
        read_trace(path, strict=True)
    assert said in str(caught.value)


def test_a_torn_last_line_is_noted_or_refused_with_what_to_do(tmp_path: Path) -> None:
    path = make_trace(tmp_path)
    path.write_bytes(path.read_bytes() + b'{"seq":')
    assert any("cut off after 7 bytes" in note for note in read_trace(path).notes)
    with pytest.raises(TraceCorrupt, match=r"repair\(path\) cuts it off"):
        read_trace(path, strict=True)


def test_a_missing_line_is_noted_with_what_it_means(tmp_path: Path) -> None:
    path = make_trace(tmp_path)
    rows = rows_of(path)
    place = next(i for i, row in enumerate(rows) if row["kind"] == "message")
    write_rows(path, [*rows[:place], *rows[place + 1 :]])
    notes = read_trace(path).notes
    assert "lines are missing" in notes[0]
    assert "what the model saw is uncertain" in notes[1]


def test_two_runs_in_one_file_give_the_first_and_one_note(tmp_path: Path) -> None:
    path = make_trace(tmp_path)
    count = len(read_trace(path))
    path.write_bytes(path.read_bytes() * 2)
    trace = read_trace(path)
    assert len(trace) == count
    assert len(trace.notes) == 1
    assert trace.notes[0].startswith(f"lines {count + 1}-{2 * count}")


def test_a_second_header_is_left_out_and_noted(tmp_path: Path) -> None:
    path = make_trace(tmp_path)
    rows = rows_of(path)
    write_rows(path, [*rows, rows[0]], renumber=True)
    trace = read_trace(path)
    assert len(trace) == len(rows)
    assert trace.notes == (f"line {len(rows) + 1} is a second run.started",)


def test_a_hundred_bad_lines_give_a_bounded_number_of_notes(tmp_path: Path) -> None:
    path = make_trace(tmp_path)
    path.write_bytes(path.read_bytes() + b'no\n{"no": 1}\n' * 100)
    notes = read_trace(path).notes
    assert len(notes) == 21
    assert notes[-1] == "and 180 more; fsck lists them"


def test_a_newer_schema_is_noted_for_viewing_and_refused_for_going_on(tmp_path: Path) -> None:
    path = make_trace(tmp_path)
    rows = rows_of(path)
    write_rows(path, [{**rows[0], "schema": 99, "surprise": 1}, *rows[1:]])
    assert "schema 99" in read_trace(path).notes[0]
    with pytest.raises(TraceCorrupt, match="update axislab"):
        read_trace(path, strict=True)


def test_windows_line_ends_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    path = make_trace(tmp_path)
    count = len(read_trace(path))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert len(read_trace(path, strict=True)) == count


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (b'{"seq":0', "its only line is cut off"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "line 1 is not UTF-8"),
        (b'{"id": "t1"}\n', "line 1 lacks"),
        (b'{"seq":0,"time":"x","kind":"remark"}\n', "line 1 is of kind 'remark'"),
    ],
)
def test_what_is_no_trace_is_refused_with_the_reason(
    tmp_path: Path, content: bytes, said: str
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    for read in (read_trace, load_run, open_trace):
        with pytest.raises(TraceError) as caught:
            read(path)
        assert said in str(caught.value)
        assert repr(str(path)) in str(caught.value)


def test_a_missing_file_or_a_folder_is_refused_with_what_to_do(tmp_path: Path) -> None:
    make_trace(tmp_path)
    with pytest.raises(TraceError, match=r"traces there: r1\.jsonl"):
        read_trace(tmp_path / "r2.jsonl")
    with pytest.raises(TraceError, match="use load_runs"):
        read_trace(tmp_path)
    with pytest.raises(TraceError, match="use load_runs"):
        open_trace(tmp_path)


def test_the_collector_is_on_again_after_reading_even_if_reading_failed(tmp_path: Path) -> None:
    read_trace(make_trace(tmp_path))
    assert gc.isenabled()
    with pytest.raises(TraceError):
        read_trace(tmp_path / "no")
    assert gc.isenabled()
    gc.disable()
    try:
        read_trace(tmp_path / "r1.jsonl")
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_run_that_is_still_being_written_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "r1.jsonl"
    events = make_events()
    with TraceRecorder(path) as recorder:
        for number, event in enumerate(events, 1):
            recorder.record(event)
            assert len(read_trace(path)) == number
        assert load_run(path).status == "COMPLETED"


# Folders -------------------------------------------------------------------------------------


def test_runs_of_a_folder_come_in_the_order_they_started(tmp_path: Path) -> None:
    for number, run_id in enumerate(("b", "c", "a")):
        folder = tmp_path / ("study" if number else "")
        make_trace(folder, make_events(run_id=run_id), start=1_700_000_000.0 + number)
    (tmp_path / ".ipynb_checkpoints").mkdir()
    make_trace(tmp_path / ".ipynb_checkpoints", make_events(run_id="copy"))
    assert [run.id for run in load_runs(tmp_path)] == ["b", "c", "a"]
    assert [run.id for run in load_runs(str(tmp_path / "study"))] == ["c", "a"]
    assert [run.id for run in load_runs(tmp_path / "b.jsonl")] == ["b"]
    paths = [tmp_path / "study" / "a.jsonl", tmp_path, tmp_path / "b.jsonl"]
    assert [run.id for run in load_runs(paths)] == ["b", "c", "a"]


def test_files_that_are_no_traces_are_left_out_with_a_warning_or_refused(tmp_path: Path) -> None:
    make_trace(tmp_path)
    (tmp_path / "tasks.jsonl").write_text('{"id": "t1"}\n')
    with pytest.warns(UserWarning, match=r"left out: .*tasks\.jsonl.* is no trace") as caught:
        runs = load_runs(tmp_path)
    assert [run.id for run in runs] == ["r1"]
    assert len(caught) == 1
    assert "\n" not in str(caught[0].message)
    with pytest.raises(TraceError, match=r"tasks\.jsonl"):
        load_runs(tmp_path, strict=True)


def test_a_copy_of_a_run_does_not_count_as_a_second_run(tmp_path: Path) -> None:
    whole = make_trace(tmp_path)
    rows = whole.read_bytes().splitlines(keepends=True)
    (tmp_path / "backup.jsonl").write_bytes(b"".join(rows[:5]))
    with pytest.warns(UserWarning, match="left out: .*backup"):
        runs = load_runs(tmp_path)
    assert [run.path for run in runs] == [whole]


def test_a_folder_without_traces_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="is it the right folder"):
        load_runs(tmp_path)
    with pytest.raises(TraceError, match="no file"):
        load_runs(tmp_path / "missing")
    (tmp_path / "x.jsonl").write_text("")
    with pytest.raises(TraceError, match="the file is empty"):
        load_runs(tmp_path)
    with pytest.raises(TraceError, match="nothing"):
        load_runs([])


def view(run: Run) -> dict[str, Any]:
    names = [n for n in dir(Run) if isinstance(getattr(Run, n), property)]
    return {n: getattr(run, n) for n in names} | {"repr": repr(run), "html": run._repr_html_()}


def test_a_run_read_lazily_is_the_run_read_whole(tmp_path: Path) -> None:
    for finish in (True, False):
        events = make_events([refusal(), calls(), answer()], finish=finish, run_id=f"r{finish}")
        path = make_trace(tmp_path, events)
        assert view(load_runs(path)[0]) == view(load_run(path))


def test_a_lazy_trace_knows_the_end_without_reading_the_middle(tmp_path: Path) -> None:
    path = make_trace(tmp_path)
    spoil(path, 5, b"not read yet")
    run = load_runs(path)[0]
    assert (run.status, run.answer, run.steps, run.turns) == ("COMPLETED", "42", 4, 2)
    assert "not read yet" in repr(run.trace)
    assert "line 5" in run.trace.notes[0]


def test_a_lazy_trace_shows_the_file_as_it_stood_when_it_was_opened(tmp_path: Path) -> None:
    events = make_events()
    path = make_trace(tmp_path, events[:8])
    run = load_runs(path)[0]
    with TraceRecorder(path) as recorder:
        for event in events[8:]:
            recorder.record(event)
    assert len(run.trace) == 8
    assert run.status == "INTERRUPTED"


def test_a_lazy_trace_whose_file_went_away_says_so(tmp_path: Path) -> None:
    path = make_trace(tmp_path)
    gone, cut = load_runs(path)[0], load_runs(path)[0]
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(TraceError, match="became shorter"):
        _ = cut.stage_path
    path.unlink()
    with pytest.raises(TraceError, match="no file"):
        _ = gone.stage_path


def test_a_last_line_longer_than_the_first_look_is_read(tmp_path: Path) -> None:
    path = make_trace(tmp_path, make_events(end={"output": "long " * 50_000}))
    assert len(load_runs(path)[0].output) == 250_000


def test_a_thousand_runs_are_listed_far_faster_than_read(tmp_path: Path) -> None:
    rows = make_trace(tmp_path, make_events([calls() for _ in range(10)] + [answer()])).read_bytes()
    for number in range(100):
        name = f"n{number}"
        (tmp_path / f"{name}.jsonl").write_bytes(
            rows.replace(b'"run_id":"r1"', f'"run_id":"{name}"'.encode())
        )
    start = time.process_time()
    runs = load_runs(tmp_path)
    listed = time.process_time() - start
    assert [run.correct for run in runs] == [True] * 101
    start = time.process_time()
    assert sum(len(run.trace) for run in runs) > 101 * 100
    assert listed < (time.process_time() - start) / 2


# Traces --------------------------------------------------------------------------------------


def test_a_trace_that_grows_gives_at_every_moment_what_a_whole_one_gives(tmp_path: Path) -> None:
    whole = read_trace(make_trace(tmp_path, make_events([refusal(), calls(), answer()])))
    growing = Trace()
    assert (growing.header, growing.full, growing.visible(), growing.last) == ({}, (), (), None)
    for record in whole:
        growing.append(record)
        again = Trace(growing.records)
        assert growing.full == again.full
        assert growing.visible() == again.visible() == replay_visible(again.full)
        assert growing.last == record
        assert [list(growing.of(k)) for k in ("step", "message")] == [
            list(again.of(k)) for k in ("step", "message")
        ]
    assert growing.finished == whole.records[-1]


def test_what_the_model_saw_after_each_step_is_what_the_step_says(tmp_path: Path) -> None:
    trace = read_trace(make_trace(tmp_path, make_events([refusal(), calls(), answer()])))
    seen: list[Message] = []
    for step in trace.of("step"):
        number = step.data["step"]
        seen += trace.messages_at(number)
        assert len(seen) == step.data["raw_count"]
        assert trace.visible(number) == replay_visible(seen)
        assert len(trace.visible(number)) == step.data["visible_count"]
    assert trace.full == tuple(seen)


@pytest.mark.parametrize("step", [-1, 99])
def test_a_step_that_is_not_there_is_refused(tmp_path: Path, step: int) -> None:
    trace = read_trace(make_trace(tmp_path))
    with pytest.raises(TraceError, match=f"no step {step} in r1; steps: 0 to 3"):
        trace.visible(step)
    with pytest.raises(TraceError, match="no step"):
        trace.messages_at(step)
    with pytest.raises(TraceError, match="none yet"):
        Trace().visible(0)


def test_a_message_that_is_none_is_named() -> None:
    record = Record(3, "t", "message", {"index": 0, "message": {"role": "robot"}, "step": 0})
    with pytest.raises(TraceCorrupt, match="seq 3"):
        _ = Trace([record]).full


def test_traces_and_runs_can_be_copied_between_processes(tmp_path: Path) -> None:
    run = load_runs(make_trace(tmp_path))[0]
    again = pickle.loads(pickle.dumps(run))
    assert view(again) == view(run)


# Runs ----------------------------------------------------------------------------------------


def test_a_run_tells_what_its_trace_holds(tmp_path: Path) -> None:
    script = [refusal(), calls("search", "broken", "forbidden"), answer()]
    events = make_events(script, arm="a", study="s", repeat=2, parent="r0", fork_step=3)
    run = load_run(make_trace(tmp_path, events))
    assert (run.id, run.task_id, run.prompt) == ("r1", "t1", "What is six times seven?")
    assert (run.expected, run.answer, run.correct, run.score) == ("42", "42", True, 1.0)
    assert (run.status, run.phase, run.answer_status) == ("COMPLETED", None, "ok")
    assert (run.arm, run.study, run.seed, run.repeat) == ("a", "s", 7, 2)
    assert (run.parent, run.fork_step, run.recipe_fingerprint) == ("r0", 3, "f00d")
    assert (run.done_reason, run.model) == ("assistant_final_answer", "axislab/scripted")
    assert (run.steps, run.turns, run.seconds, run.requests) == (5, 2, 1.5, 3)
    assert run.simulated
    assert run.started == "2023-11-14T22:13:20.000000Z"
    assert run.stage_path[0] == "not_initialized"
    assert run.stage_path[-1] == "assistant_completed"
    assert all(a != b for a, b in zip(run.stage_path, run.stage_path[1:], strict=False))
    assert run.phase_seconds == {"THINKING": 0.5, "TOOL_CALLING": 0.25, "OBSERVING": 0.25}
    (rollback,) = run.rollbacks
    assert (rollback.step, rollback.reason, rollback.count) == (1, "assistant_refusal", 1)
    assert rollback.hidden == ("assistant: I cannot do that.",)
    assert [(t.name, t.calls, t.failed, t.rejected) for t in run.tools] == [
        ("search", 1, 0, 0),
        ("broken", 1, 1, 0),
        ("forbidden", 1, 0, 1),
    ]
    assert run.raise_for_status() is run


def test_unknown_tokens_and_prices_stay_unknown_and_failed_requests_do_not_make_them_so(
    tmp_path: Path,
) -> None:
    from trace_samples import Reply

    known = [Reply("6", finish="stop", errors=2, tokens=100)]
    run = load_run(make_trace(tmp_path, make_events(known)))
    assert (run.usage.input_tokens, run.usage.output_tokens) == (100, 10)
    assert run.usage.cached_tokens is None
    assert run.cost_usd is None
    assert run.requests == 3
    unknown = [calls(), Reply("6", tokens=None)]
    run = load_run(make_trace(tmp_path, make_events(unknown, run_id="r2")))
    assert run.usage.input_tokens is None


def test_parts_of_the_input_are_summed_and_still_add_up(tmp_path: Path) -> None:
    from trace_samples import Reply

    events = list(make_events([calls(), Reply("6", errors=1, tokens=100)]))
    parts = {"uncached_tokens": 60, "cached_tokens": 30, "cache_write_tokens": 10}
    told = [
        replace(event, **parts)
        if isinstance(event, ModelRequested) and event.input_tokens
        else event
        for event in events
    ]
    usage = load_run(make_trace(tmp_path, told)).usage
    assert (usage.input_tokens, usage.cached_tokens, usage.cache_write_tokens) == (200, 60, 20)
    assert usage.uncached_tokens == 120


def test_a_failed_request_that_was_billed_counts_and_hides_no_part(tmp_path: Path) -> None:
    from trace_samples import Reply

    events = [
        replace(event, input_tokens=50, output_tokens=1)
        if isinstance(event, ModelRequested) and event.outcome != "ok"
        else replace(event, cached_tokens=30, cache_write_tokens=0)
        if isinstance(event, ModelRequested)
        else event
        for event in make_events([Reply("6", errors=1, tokens=100)])
    ]
    run = load_run(make_trace(tmp_path, events))
    assert (run.usage.input_tokens, run.usage.output_tokens) == (150, 11)
    # How much of the failed request came from the cache is not known, so the sum is not, either.
    assert (run.usage.cached_tokens, run.usage.uncached_tokens, run.cost_usd) == (None, None, None)


def test_a_run_without_an_end_is_interrupted_unless_it_is_live(tmp_path: Path) -> None:
    path = make_trace(tmp_path, make_events([calls()]))
    run = load_run(path)
    assert (run.status, run.answer, run.seconds, run.correct) == ("INTERRUPTED", None, None, None)
    assert (run.steps, run.turns, run.phase, run.done_reason) == (3, 1, "OBSERVING", None)
    with pytest.raises(RunInterrupted, match="run 'r1' is INTERRUPTED"):
        run.raise_for_status()
    live = Run(read_trace(path), live=True)
    assert live.status == "RUNNING"
    assert "RUNNING" in repr(live)
    with pytest.raises(RunError, match="is RUNNING"):
        live.raise_for_status()
    assert Run(Trace(), live=True).status == "READY"


def test_a_failed_run_raises_on_request_with_reason_error_and_kind(tmp_path: Path) -> None:
    end = {
        "status": "FAILED",
        "done_reason": "model_error: HTTP 401",
        "error": "the key was rejected",
        "error_kind": "auth",
        "answer": None,
        "correct": None,
    }
    run = load_run(make_trace(tmp_path, make_events(end=end)))
    with pytest.raises(RunError, match="FAILED: model_error: HTTP 401: the key was rejected") as e:
        run.raise_for_status()
    assert not isinstance(e.value, RunInterrupted)
    assert "kind auth" in str(e.value)
    assert "model_error" in repr(run)


def test_an_error_that_is_in_the_reason_is_said_once(tmp_path: Path) -> None:
    end = {"status": "FAILED", "done_reason": "model_error: no key", "error": "no key"}
    run = load_run(make_trace(tmp_path, make_events(end=end)))
    with pytest.raises(RunError, match=r"FAILED: model_error: no key$"):
        run.raise_for_status()


def test_a_cancelled_run_counts_as_stopped(tmp_path: Path) -> None:
    run = load_run(make_trace(tmp_path, make_events(end={"status": "CANCELLED"})))
    with pytest.raises(RunInterrupted, match="CANCELLED"):
        run.raise_for_status()


def test_a_resumed_run_that_was_killed_again_is_interrupted(tmp_path: Path) -> None:
    stopped = make_events(end={"status": "INTERRUPTED"})
    resume = StatusChanged(source="INTERRUPTED", target="RUNNING", event="resume")
    path = make_trace(tmp_path, stopped)
    with TraceRecorder(path, resume=True) as recorder:
        recorder.record(resume)
    run = load_run(path)
    assert run.trace.finished is None
    assert (run.status, run.answer) == ("INTERRUPTED", None)


def test_a_run_is_one_line_that_says_simulated(tmp_path: Path) -> None:
    run = load_run(make_trace(tmp_path, make_events(end={"answer": "line\nline " * 20})))
    assert "\n" not in repr(run)
    assert "simulated" in repr(run)
    real = load_run(make_trace(tmp_path, make_events(simulated=False, run_id="r2")))
    assert "simulated" not in repr(real)
    assert (
        repr(real)
        == "Run('r2', task 't1': COMPLETED, answer '42' (correct), 4 steps, 2 turns, 1.5 s)"
    )


def test_reading_prints_nothing_and_warns_of_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make_trace(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_runs(path)
    assert capsys.readouterr() == ("", "")
    assert json.loads(path.read_bytes().splitlines()[0])["seq"] == 0
