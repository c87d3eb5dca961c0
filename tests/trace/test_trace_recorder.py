import errno
import math
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_samples import (
    answer,
    calls,
    header,
    make_events,
    make_trace,
    many_turns,
    refusal,
    rows_of,
    write_rows,
)

from axislab.errors import TraceCorrupt, TraceError, TraceLocked
from axislab.events import Event, PhaseChanged, RunFinished, StatusChanged
from axislab.trace.fsck import fsck
from axislab.trace.reader import read_trace
from axislab.trace.recorder import TraceRecorder, trace_path


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark(Event):
    """An event of no known kind, with anything in it."""

    kind: ClassVar[str] = "remark"

    value: Any


def test_every_event_is_a_whole_line_before_record_returns(tmp_path: Path) -> None:
    path = tmp_path / "r1.jsonl"
    with TraceRecorder(path) as recorder:
        for number, event in enumerate(make_events()):
            record = recorder.record(event)
            data = path.read_bytes()
            assert data.endswith(b"\n")
            assert data.count(b"\n") == number + 1
            assert record.seq == number
            last = rows_of(path)[-1]
            assert {k: last.pop(k) for k in ("seq", "time", "kind")} == {
                "seq": record.seq,
                "time": record.time,
                "kind": event.kind,
            }
            assert last == record.data


def test_a_record_is_what_a_reader_will_see_whatever_happens_to_the_event(tmp_path: Path) -> None:
    value = {"rows": [(1, 2)]}
    with TraceRecorder(tmp_path / "r1.jsonl") as recorder:
        recorder.record(header())
        record = recorder.record(Remark(value=value))
        value["rows"].append((3, 4))
    assert record.data == {"value": {"rows": [[1, 2]]}}
    assert read_trace(tmp_path / "r1.jsonl").records[-1] == record


def test_time_is_utc_with_microseconds(tmp_path: Path) -> None:
    with TraceRecorder(tmp_path / "r1.jsonl", clock=lambda: 1_700_000_000.0) as recorder:
        assert recorder.record(header()).time == "2023-11-14T22:13:20.000000Z"


def test_the_folder_is_made(tmp_path: Path) -> None:
    with TraceRecorder(tmp_path / "a" / "b" / "r1.jsonl") as recorder:
        recorder.record(header())
    assert (tmp_path / "a" / "b" / "r1.jsonl").exists()


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (math.nan, None),
        ([1.0, math.inf, -math.inf], [1.0, None, None]),
        (MappingProxyType({"a": (1, 2)}), {"a": [1, 2]}),
        ("雪 🎿\u2028\x00\r\n", "雪 🎿\u2028\x00\r\n"),
        ("lone \ud83d end", "lone \ufffd end"),
        ("pair \ud83d\ude00", "pair 😀"),
        ({"\udc80": 1}, {"\ufffd": 1}),
    ],
)
def test_what_json_cannot_hold_but_means_something_is_written_as_what_it_means(
    tmp_path: Path, value: Any, read: Any
) -> None:
    with TraceRecorder(tmp_path / "r1.jsonl") as recorder:
        recorder.record(header())
        recorder.record(Remark(value={"v": value}))
    assert read_trace(tmp_path / "r1.jsonl", strict=True).records[-1].data == {"value": {"v": read}}


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"rows": [1, {2, 3}]}, "remark.value.rows[1] is {2, 3}, a set"),
        (b"raw", "remark.value is b'raw', a bytes"),
        ({"x": object}, "remark.value.x is <class 'object'>"),
        ({"x": math.nan, 7: "seven"}, "remark.value has the key 7"),
        ([10**5000], "a number of more than 4000 digits"),
        (nested(100_000), "nested too deeply"),
    ],
    ids=["set", "bytes", "class", "key", "number", "depth"],
)
def test_what_json_cannot_hold_is_refused_with_its_place_and_writes_nothing(
    tmp_path: Path, value: Any, place: str
) -> None:
    path = tmp_path / "r1.jsonl"
    with TraceRecorder(path) as recorder:
        recorder.record(header())
        before = path.read_bytes()
        with pytest.raises(TraceError) as caught:
            recorder.record(Remark(value=value))
        assert place in str(caught.value)
        assert path.read_bytes() == before
        assert recorder.record(Remark(value=1)).seq == 1


def test_an_event_that_holds_itself_is_refused(tmp_path: Path) -> None:
    value: dict[str, Any] = {}
    value["self"] = value
    with TraceRecorder(tmp_path / "r1.jsonl") as recorder:
        recorder.record(header())
        with pytest.raises(TraceError, match="holds itself"):
            recorder.record(Remark(value=value))


def test_an_event_with_a_field_of_the_wrong_type_is_refused(tmp_path: Path) -> None:
    with TraceRecorder(tmp_path / "r1.jsonl") as recorder:
        recorder.record(header())
        wrong: Any = 3
        with pytest.raises(TraceError, match="status has source=3, not str"):
            recorder.record(StatusChanged(source=wrong, target="RUNNING", event="start"))


def test_the_header_comes_first_and_once(tmp_path: Path) -> None:
    with TraceRecorder(tmp_path / "r1.jsonl") as recorder:
        with pytest.raises(TraceError, match=r"run\.started is the first event"):
            recorder.record(PhaseChanged(source=None, target="THINKING"))
        recorder.record(header())
        with pytest.raises(TraceError, match="is not empty"):
            recorder.record(header())


@pytest.mark.parametrize(
    "run_id", ["", "../up", "a/b", "a\\b", ".hidden", "con", "NUL.x", "x" * 181, "a b", "ü", "x."]
)
def test_a_run_id_that_is_no_safe_file_name_is_refused(tmp_path: Path, run_id: str) -> None:
    with pytest.raises(TraceError, match="no safe file name"):
        trace_path(tmp_path, run_id)
    with (
        TraceRecorder(tmp_path / "r1.jsonl") as recorder,
        pytest.raises(TraceError, match="no safe file name"),
    ):
        recorder.record(header(run_id))


def test_a_second_recorder_is_refused_until_the_first_one_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "r1.jsonl"
    with TraceRecorder(path) as first:
        first.record(header())
        with pytest.raises(TraceLocked, match=r"r1\.jsonl"):
            TraceRecorder(path)
    with TraceRecorder(path) as second:
        assert second.seq == 1


_TRY = """
import sys
from axislab.errors import TraceLocked
from axislab.trace.recorder import TraceRecorder
try:
    TraceRecorder(sys.argv[1])
except TraceLocked:
    sys.exit(7)
"""


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )


def test_another_process_is_refused_while_one_records(tmp_path: Path) -> None:
    path = tmp_path / "r1.jsonl"
    with TraceRecorder(path) as recorder:
        recorder.record(header())
        assert run_python(_TRY, str(path)).returncode == 7
    assert run_python(_TRY, str(path)).returncode == 0


_KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
from trace_samples import make_events
from axislab.trace.recorder import TraceRecorder
recorder = TraceRecorder(sys.argv[1])
for event in make_events()[:7]:
    recorder.record(event)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_a_killed_process_leaves_every_event_it_recorded_and_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "r1.jsonl"
    done = run_python(_KILLED, str(path), str(Path(__file__).parent))
    assert done.returncode == -9, done.stderr
    assert len(read_trace(path, strict=True)) == 7
    with TraceRecorder(path) as recorder:
        assert recorder.seq == 7


_FULL = """
import resource, sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from trace_samples import make_events
from axislab.errors import TraceError
from axislab.trace.recorder import TraceRecorder
path = Path(sys.argv[1])
events = make_events()
recorder = TraceRecorder(path)
for event in events[:5]:
    recorder.record(event)
good = path.read_bytes()
resource.setrlimit(resource.RLIMIT_FSIZE, (len(good) + 20, resource.RLIM_INFINITY))
for _ in range(2):
    try:
        recorder.record(events[5])
    except TraceError as problem:
        assert "Free space" in str(problem), problem
    else:
        raise SystemExit("the full disk was not noticed")
    assert path.read_bytes() == good, "a part of a line was left"
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
for event in events[5:]:
    recorder.record(event)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="file size limits")
def test_a_full_disk_leaves_the_earlier_lines_and_no_part_of_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "r1.jsonl"
    done = run_python(_FULL, str(path), str(Path(__file__).parent))
    assert done.returncode == 0, done.stderr
    assert fsck(path).ok
    assert len(read_trace(path, strict=True)) == len(make_events())


def test_a_folder_that_cannot_be_written_raises_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(TraceError, match="choose another folder"):
        TraceRecorder(tmp_path / "file" / "r1.jsonl")
    with pytest.raises(TraceError, match="is a folder"):
        TraceRecorder(tmp_path)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="/dev/full")
def test_a_device_is_no_trace() -> None:
    with pytest.raises(TraceError, match="no regular file"):
        TraceRecorder("/dev/full")


def test_a_torn_last_line_is_cut_off_kept_beside_and_the_numbers_go_on(tmp_path: Path) -> None:
    path = make_trace(tmp_path, make_events()[:6])
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"seq":6,"time":"20')
    with TraceRecorder(path) as recorder:
        assert recorder.repaired is not None
        assert "19 bytes" in recorder.repaired
        assert path.read_bytes() == whole
        assert recorder.record(make_events()[6]).seq == 6
    assert (tmp_path / "r1.jsonl.torn").read_bytes() == b'{"seq":6,"time":"20\n'
    assert len(read_trace(path, strict=True)) == 7


def test_a_last_line_that_only_lacks_its_newline_is_kept(tmp_path: Path) -> None:
    path = make_trace(tmp_path, make_events()[:6])
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    with TraceRecorder(path) as recorder:
        assert recorder.repaired == "the last line lacked its newline"
        assert recorder.record(make_events()[6]).seq == 6
    assert len(read_trace(path, strict=True)) == 7
    assert not (tmp_path / "r1.jsonl.torn").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"some notes of mine",
        b'{"id": "t1", "prompt": "no trace"}\n{"id": "t2"',
        b"\x89PNG\r\n\x1a\n",
    ],
)
def test_a_file_that_is_no_trace_is_refused_and_left_as_it_is(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(content)
    with pytest.raises(TraceCorrupt, match="line 1"):
        TraceRecorder(path)
    assert path.read_bytes() == content


def test_a_trace_with_a_bad_line_in_the_middle_is_not_appended_to(tmp_path: Path) -> None:
    path = make_trace(tmp_path, make_events()[:6])
    rows = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*rows[:3], *rows[4:]]))
    with pytest.raises(TraceCorrupt, match="line 4 has seq 4, expected 3"):
        TraceRecorder(path)


def test_a_trace_of_a_newer_schema_is_not_appended_to(tmp_path: Path) -> None:
    path = make_trace(tmp_path, make_events([calls()]))
    rows = rows_of(path)
    write_rows(path, [{**rows[0], "schema": 99}, *rows[1:]])
    with pytest.raises(TraceCorrupt, match="update axislab"):
        TraceRecorder(path)


def test_nothing_follows_the_end_of_a_run(tmp_path: Path) -> None:
    path = tmp_path / "r1.jsonl"
    events = make_events()
    with TraceRecorder(path) as recorder:
        for event in events:
            recorder.record(event)
        with pytest.raises(TraceError, match="has ended with status COMPLETED"):
            recorder.record(events[2])
    for resume in (False, True):
        with pytest.raises(TraceError, match="only an INTERRUPTED run goes on"):
            TraceRecorder(path, resume=resume)


def test_an_interrupted_run_goes_on_only_when_it_is_resumed(tmp_path: Path) -> None:
    stop = RunFinished(status="INTERRUPTED", done_reason="stopped", output="")
    path = make_trace(tmp_path, [*make_events([calls()]), stop])
    with pytest.raises(TraceError, match="open it with resume=True"):
        TraceRecorder(path)
    with TraceRecorder(path, resume=True) as recorder:
        recorder.record(StatusChanged(source="INTERRUPTED", target="RUNNING", event="resume"))
        recorder.record(stop)
        with pytest.raises(TraceError, match="has ended"):
            recorder.record(stop)


def test_a_closed_recorder_refuses(tmp_path: Path) -> None:
    recorder = TraceRecorder(tmp_path / "r1.jsonl")
    recorder.close()
    recorder.close()
    with pytest.raises(TraceError, match="is closed"):
        recorder.record(header())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
def test_a_forked_child_may_not_record_and_leaves_the_lock_to_its_parent(tmp_path: Path) -> None:
    code = """
import os, sys
sys.path.insert(0, sys.argv[2])
from trace_samples import header
from axislab.errors import TraceError, TraceLocked
from axislab.trace.recorder import TraceRecorder
recorder = TraceRecorder(sys.argv[1])
recorder.record(header())
child = os.fork()
if child == 0:
    try:
        recorder.record(header())
    except TraceError as problem:
        assert "forked" in str(problem), problem
        recorder.close()
        sys.exit(0)
    sys.exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
try:
    TraceRecorder(sys.argv[1])
except TraceLocked:
    sys.exit(0)
sys.exit("the lock was lost")
"""
    done = run_python(code, str(tmp_path / "r1.jsonl"), str(Path(__file__).parent))
    assert done.returncode == 0, done.stderr


def test_threads_do_not_mix_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "r1.jsonl"
    with TraceRecorder(path) as recorder:
        recorder.record(header())
        threads = [
            threading.Thread(target=lambda: [recorder(Remark(value=i)) for i in range(200)])
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [r.seq for r in read_trace(path, strict=True)] == list(range(801))


def test_disk_durability_syncs_what_must_not_be_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(fd), real(fd))[1])
    seen = {}
    with TraceRecorder(tmp_path / "r1.jsonl", durability="disk") as recorder:
        for event in make_events():
            before = len(synced)
            recorder.record(event)
            seen[event.kind] = len(synced) > before
    assert {kind for kind, did in seen.items() if did} == {
        "run.started",
        "status",
        "step",
        "tool.started",
        "tool.finished",
        "run.finished",
    }


def test_an_unknown_durability_is_refused(tmp_path: Path) -> None:
    wrong: Any = "paper"
    with pytest.raises(TraceError, match="allowed is 'process' or 'disk'"):
        TraceRecorder(tmp_path / "r1.jsonl", durability=wrong)


def test_an_interrupt_in_the_middle_of_a_write_loses_nothing_and_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r1.jsonl"
    real = os.write
    with TraceRecorder(path) as recorder:
        recorder.record(header())
        for share in (0, 10, None):

            def broken_off(fd: int, data: bytes, share: int | None = share) -> int:
                real(fd, data if share is None else data[:share])
                raise KeyboardInterrupt

            with monkeypatch.context() as patch:
                patch.setattr(os, "write", broken_off)
                with pytest.raises(KeyboardInterrupt):
                    recorder.record(Remark(value="broken off"))
            recorder.record(Remark(value="after"))
    values = [r.data["value"] for r in read_trace(path, strict=True).of("remark")]
    assert values == ["after", "after", "broken off", "after"]


SCRIPT = st.lists(
    st.sampled_from([calls(), calls("search", "broken", "forbidden"), refusal()]), max_size=6
)


@settings(max_examples=60, deadline=None)
@given(script=SCRIPT, finish=st.booleans(), data=st.data())
def test_a_run_killed_at_any_byte_opens_checks_and_goes_on(
    tmp_path_factory: pytest.TempPathFactory,
    script: list[Any],
    finish: bool,
    data: st.DataObject,
) -> None:
    events = make_events([*script, answer()], finish=finish)
    path = make_trace(tmp_path_factory.mktemp("t"), events)
    whole, rows = path.read_bytes(), rows_of(path)
    first = whole.index(b"\n")
    size = data.draw(st.integers(first, len(whole)))
    path.write_bytes(whole[:size])
    kept = whole[:size].count(b"\n") + (size < len(whole) and whole[size : size + 1] == b"\n")
    torn = not whole[:size].endswith(b"\n") and whole[size : size + 1] != b"\n"

    trace = read_trace(path)
    assert len(trace) == kept
    assert any("cut off" in note for note in trace.notes) == torn
    report = fsck(path)
    assert report.ok, report
    assert any(note.code == "torn" for note in report.notes) == torn

    if kept == len(events) and finish:
        return
    with TraceRecorder(path) as recorder:
        assert recorder.seq == kept
        for event in events[kept:]:
            recorder.record(event)
    assert fsck(path).ok
    assert [(r.kind, r.data) for r in read_trace(path, strict=True)] == [
        (r["kind"], {k: v for k, v in r.items() if k not in ("seq", "time", "kind")}) for r in rows
    ]


def test_recording_costs_the_same_at_the_end_of_a_long_run(tmp_path: Path) -> None:
    with TraceRecorder(tmp_path / "r1.jsonl") as recorder:
        for event in make_events(many_turns(30), finish=False):
            recorder.record(event)
        size = recorder.path.stat().st_size
        recorder.record(Remark(value="x"))
        assert recorder.path.stat().st_size - size < 200


@pytest.mark.skipif(sys.platform == "win32", reason="flock")
def test_a_file_system_without_locks_is_warned_about_and_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    def no_locks(fd: int, what: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with pytest.warns(UserWarning, match="no file locks here"):
        recorder = TraceRecorder(tmp_path / "r1.jsonl")
    recorder.record(header())
    recorder.close()
    assert len(read_trace(tmp_path / "r1.jsonl", strict=True)) == 1

    def broken(fd: int, what: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(fcntl, "flock", broken)
    with pytest.raises(TraceError, match="Input/output error"):
        TraceRecorder(tmp_path / "r2.jsonl")


def test_a_part_of_a_line_that_could_not_be_cut_off_is_cut_off_before_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r1.jsonl"
    real = os.write

    def half(fd: int, data: bytes) -> int:
        if len(data) < 50:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, data[: len(data) - 10])

    def stuck(fd: int, size: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with TraceRecorder(path) as recorder:
        recorder.record(header())
        whole = path.read_bytes()
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", half)
            patch.setattr(os, "ftruncate", stuck)
            with pytest.raises(TraceError, match="No space left"):
                recorder.record(Remark(value="lost"))
            assert len(path.read_bytes()) > len(whole)
            with pytest.raises(TraceError, match="Input/output error"):
                recorder.record(Remark(value="lost"))
        recorder.record(Remark(value="kept"))
    assert [r.data for r in read_trace(path, strict=True)][1:] == [{"value": "kept"}]


def test_a_disk_that_does_not_sync_raises_and_closing_still_closes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r1.jsonl"
    recorder = TraceRecorder(path, durability="disk")

    def no_sync(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", no_sync)
    with pytest.raises(TraceError, match="Input/output error"):
        recorder.record(header())
    with pytest.raises(TraceError, match="Input/output error"):
        recorder.close()
    assert "closed" in repr(recorder)
    with TraceRecorder(path) as again:
        assert again.seq == 1
        assert "1 lines, open" in repr(again)


def test_a_payload_may_not_use_the_names_of_the_line_itself(tmp_path: Path) -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Sly(Event):
        kind: ClassVar[str] = "sly"

        seq: int = 99

    with TraceRecorder(tmp_path / "r1.jsonl") as recorder:
        recorder.record(header())
        with pytest.raises(TraceError, match="has a field 'seq'"):
            recorder.record(Sly())
