import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_samples import (
    CONFIG,
    Reply,
    answer,
    calls,
    make_events,
    make_trace,
    many_turns,
    refusal,
    rows_of,
    textual_call,
    write_rows,
)

from axislab.errors import TraceError, TraceLocked
from axislab.events import RunFinished, StatusChanged
from axislab.runtime.markers import Compaction, DiscardAll, Rollback
from axislab.trace.fsck import fsck, repair
from axislab.trace.reader import load_run, read_trace
from axislab.trace.recorder import TraceRecorder
from axislab.trace.trace import Record, Trace

STORY = [
    refusal(),
    Reply(None, ["search", "broken", "forbidden"], "tool_calls", errors=2),
    textual_call(),
    Reply(None, ["search"], "tool_calls", undo=True),
    calls("search", "search"),
    answer(),
]
Rows = list[dict[str, Any]]
Edit = Callable[[Rows], Any]


def codes(path: Path) -> set[str]:
    return {problem.code for problem in fsck(path).problems}


def notes(path: Path) -> set[str]:
    return {note.code for note in fsck(path).notes}


def edited(tmp_path: Path, edit: Edit, *, renumber: bool = False) -> Path:
    path = make_trace(tmp_path, make_events(STORY))
    rows = rows_of(path)
    edit(rows)
    return write_rows(path, rows, renumber=renumber)


def find(rows: Rows, kind: str, number: int = 0, **fields: Any) -> dict[str, Any]:
    fits = [r for r in rows if r["kind"] == kind and fields.items() <= r.items()]
    return fits[number]


def test_a_run_in_which_everything_happened_is_ok_without_notes(tmp_path: Path) -> None:
    path = make_trace(tmp_path, make_events(STORY))
    report = fsck(path)
    assert report.ok, str(report)
    assert report.notes == ()
    assert report.steps == len(read_trace(path).of("step"))
    assert str(report) == f"ok, {report.steps} steps"


def test_a_trace_or_run_in_memory_is_checked_as_its_file_is(tmp_path: Path) -> None:
    path = edited(tmp_path, lambda rows: find(rows, "step", 2).update(visible_count=99))
    assert fsck(read_trace(path)).problems == fsck(path).problems
    assert fsck(load_run(path)).problems == fsck(path).problems


def test_a_trace_in_memory_that_no_reader_made_is_checked_for_shape() -> None:
    report = fsck(Trace([Record(0, "2023-11-14T22:13:20Z", "run.started", {})], notes=["hm"]))
    assert {p.code for p in report.problems} == {"bad_field", "no_header"}
    assert [n.message for n in report.notes] == ["hm"]


def swap_last_two(rows: Rows) -> None:
    rows[-1], rows[-2] = rows[-2], rows[-1]


def repeat_call_id(rows: Rows) -> None:
    messages = [r["message"] for r in rows if r["kind"] == "message"]
    found = [c for m in messages for c in m.get("tool_calls", ())]
    found[-1]["id"] = found[0]["id"]


def cross_stage(rows: Rows) -> None:
    find(rows, "step", 1)["stage_path"].insert(1, "assistant_completed")


def move_tool_result(rows: Rows) -> None:
    find(rows, "message", message=find(rows, "message", 5)["message"])["message"][
        "tool_call_id"
    ] = "nobody"


def widen_rollback(rows: Rows) -> None:
    marker = next(r for r in rows if r["kind"] == "message" and r["message"].get("name"))
    marker["message"]["content"] = json.dumps({"rollback_message_count": 9, "reason": "x"})


def spoil_marker(rows: Rows) -> None:
    marker = next(r for r in rows if r["kind"] == "message" and r["message"].get("name"))
    marker["message"]["content"] = json.dumps({"rollback_message_count": True, "reason": "x"})


@pytest.mark.parametrize(
    ("code", "edit"),
    [
        ("seq_gap", lambda rows: rows.pop(3)),
        ("seq_repeat", lambda rows: rows.insert(4, rows[3])),
        ("no_header", lambda rows: rows.pop(0)),
        ("second_header", lambda rows: rows.append(rows[0])),
        ("bad_time", lambda rows: rows[3].update(time="yesterday")),
        ("bad_time", lambda rows: rows[3].update(time="2023-11-14T22:13:20")),
        ("bad_field", lambda rows: find(rows, "step").pop("stage")),
        ("bad_field", lambda rows: find(rows, "step").update(turn="1")),
        ("bad_field", lambda rows: find(rows, "step").update(turn=True)),
        ("bad_field", lambda rows: find(rows, "step").update(pending=[["c1"]])),
        ("bad_field", lambda rows: find(rows, "message")["message"].update(role="robot")),
        ("bad_field", lambda rows: find(rows, "message")["message"].update(role=["user"])),
        ("not_an_event", lambda rows: rows[3].update(seq="3")),
        ("not_an_event", lambda rows: rows[3].pop("kind")),
        ("after_end", swap_last_two),
        ("status_source", lambda rows: find(rows, "status", 1).update(source="READY")),
        ("status_move", lambda rows: find(rows, "status", 1).update(target="READY")),
        ("status_move", lambda rows: find(rows, "status", 1).update(event="shrug")),
        ("end_status", lambda rows: rows[-1].update(status="FAILED")),
        ("phase_source", lambda rows: find(rows, "phase", 1).update(source="OBSERVING")),
        ("phase_move", lambda rows: find(rows, "phase", 1).update(target="OBSERVING")),
        ("phase_move", lambda rows: find(rows, "phase", 2).update(target="DREAMING")),
        ("message_index", lambda rows: find(rows, "message", 3).update(index=7)),
        ("message_step", lambda rows: find(rows, "message", 3).update(step=7)),
        ("message_order", lambda rows: find(rows, "message", 2)["message"].update(role="system")),
        ("call_id", repeat_call_id),
        ("marker", spoil_marker),
        ("marker_range", widen_rollback),
        ("step_number", lambda rows: find(rows, "step", 2).update(step=5)),
        ("stage", lambda rows: find(rows, "step", 1)["stage_path"].insert(1, "dreaming")),
        ("stage", lambda rows: find(rows, "step", 1).update(stage_path=[])),
        ("stage", lambda rows: find(rows, "step", 1).update(stage="dreaming")),
        ("stage", lambda rows: find(rows, "step", 1)["stage_path"].pop()),
        ("stage_joint", lambda rows: find(rows, "step", 1)["stage_path"].pop(0)),
        ("stage_move", cross_stage),
        ("action", lambda rows: find(rows, "step", 1).update(action="done")),
        ("done_reason", lambda rows: find(rows, "step", 1).update(done_reason="tired")),
        ("done_reason", lambda rows: find(rows, "step", -1).pop("done_reason")),
        ("visible_count", lambda rows: find(rows, "step", 2).update(visible_count=99)),
        ("raw_count", lambda rows: find(rows, "step", 2).update(raw_count=99)),
        ("pending", lambda rows: find(rows, "step", 2).update(pending=[])),
        ("pending", lambda rows: find(rows, "step", 1).update(pending=["c1"])),
        ("pairing", move_tool_result),
        ("request_step", lambda rows: find(rows, "model.request", 1).update(step=9)),
        ("request_number", lambda rows: find(rows, "model.request", 2).update(attempt=1)),
        ("request_number", lambda rows: find(rows, "model.request", 2).update(call=9)),
        ("tokens", lambda rows: find(rows, "model.request").update(input_tokens=-1)),
        ("tokens", lambda rows: find(rows, "model.request").update(cached_tokens=101)),
        ("tokens", lambda rows: find(rows, "model.request").update(cache_write_tokens=101)),
        ("tokens", lambda rows: find(rows, "model.request").update(**split(60, 30, 11))),
        ("tokens", lambda rows: find(rows, "model.request").update(**split(-10, 100, 10))),
        ("tool_call", lambda rows: find(rows, "tool.started").update(call_id="nobody")),
        ("tool_step", lambda rows: find(rows, "tool.started").update(step=9)),
        ("tool_start", lambda rows: rows.remove(find(rows, "tool.started"))),
        ("tool_unfinished", lambda rows: rows.remove(find(rows, "tool.finished"))),
        ("tool_twice", lambda rows: rows.insert(30, find(rows, "tool.finished"))),
        ("totals", lambda rows: rows[-1].update(steps=99)),
        ("totals", lambda rows: rows[-1].update(turns=99)),
        ("totals", lambda rows: rows[-1].update(input_tokens=99)),
    ],
)
def test_each_broken_rule_is_found(tmp_path: Path, code: str, edit: Edit) -> None:
    path = edited(tmp_path, edit)
    report = fsck(path)
    assert code in {problem.code for problem in report.problems}, str(report)
    assert not report.ok
    assert code in str(report)


def split(uncached: int, cached: int, written: int) -> dict[str, int]:
    return {"uncached_tokens": uncached, "cached_tokens": cached, "cache_write_tokens": written}


def test_tokens_that_add_up_are_no_problem(tmp_path: Path) -> None:
    path = edited(tmp_path, lambda rows: find(rows, "model.request").update(**split(60, 30, 10)))
    assert fsck(path).ok


def test_totals_of_parts_are_checked_where_every_request_tells_them(tmp_path: Path) -> None:
    def tell(rows: Rows) -> None:
        for row in rows:
            if row["kind"] == "model.request" and "input_tokens" in row:
                row.update(**split(row["input_tokens"], 0, 0))
        rows[-1].update(cached_tokens=1)

    assert "totals" in codes(edited(tmp_path, tell))


def test_a_problem_names_its_line(tmp_path: Path) -> None:
    path = edited(tmp_path, lambda rows: find(rows, "step", 2).update(visible_count=99))
    line = 1 + rows_of(path).index(find(rows_of(path), "step", 2))
    (problem,) = fsck(path).problems
    assert (problem.line, problem.code) == (line, "visible_count")
    assert "visible_count 99, but the replay gives" in problem.message


def test_a_model_called_while_tools_are_awaited_is_found(tmp_path: Path) -> None:
    def call_early(rows: Rows) -> None:
        place = rows.index(find(rows, "tool.started"))
        step = find(rows, "tool.started")["step"]
        rows.insert(place, {**find(rows, "model.request"), "step": step, "call": 2})

    assert {"request_stage", "pairing"} <= codes(edited(tmp_path, call_early, renumber=True))


def test_a_tool_started_twice_without_a_resume_is_found(tmp_path: Path) -> None:
    def start_again(rows: Rows) -> None:
        started = find(rows, "tool.started")
        rows.insert(rows.index(started), started)

    assert codes(edited(tmp_path, start_again, renumber=True)) == {"tool_twice"}


def test_a_clock_that_went_back_is_only_noted(tmp_path: Path) -> None:
    path = edited(tmp_path, lambda rows: rows[5].update(time="2020-01-01T00:00:00.000000Z"))
    assert fsck(path).ok
    assert notes(path) == {"time_back"}


def test_events_of_another_kind_are_noted_once_and_may_follow_the_end(tmp_path: Path) -> None:
    def remark(rows: Rows) -> None:
        rows += [{**rows[-1], "kind": "remark"}] * 2

    path = edited(tmp_path, remark, renumber=True)
    assert fsck(path).ok
    assert [note.code for note in fsck(path).notes] == ["other_kind"]
    assert load_run(path).status == "COMPLETED"


def test_a_newer_schema_is_noted(tmp_path: Path) -> None:
    path = edited(tmp_path, lambda rows: rows[0].update(schema=99))
    assert fsck(path).ok
    assert notes(path) == {"newer_schema"}


def test_a_run_killed_in_a_tool_call_is_ok_and_names_the_call(tmp_path: Path) -> None:
    events = make_events([calls()])
    started = next(i for i, event in enumerate(events) if event.kind == "tool.started")
    path = make_trace(tmp_path, events[: started + 1])
    assert fsck(path).ok
    assert notes(path) == {"unfinished", "in_flight"}


def test_a_run_killed_between_a_message_and_its_step_is_ok_and_says_so(tmp_path: Path) -> None:
    events = make_events()
    place = max(i for i, event in enumerate(events) if event.kind == "message")
    path = make_trace(tmp_path, events[: place + 1])
    assert fsck(path).ok
    assert notes(path) == {"unfinished", "step_cut"}


def test_an_interrupted_run_that_was_resumed_is_ok(tmp_path: Path) -> None:
    whole = make_events([calls(), answer()])
    cut = next(i for i, event in enumerate(whole) if event.kind == "tool.started") + 1
    tool = whole[cut - 1]
    resumed = [
        StatusChanged(source="RUNNING", target="INTERRUPTED", event="interrupt"),
        RunFinished(status="INTERRUPTED", done_reason="stopped", output="", steps=2, turns=1),
        StatusChanged(source="INTERRUPTED", target="RUNNING", event="resume"),
        tool,
    ]
    rest = [e for e in whole[cut:] if e.kind != "phase"]
    path = make_trace(tmp_path, [*whole[:cut], *resumed[:2]])
    with TraceRecorder(path, resume=True) as recorder:
        for event in [*resumed[2:], *rest]:
            recorder.record(event)
    report = fsck(path)
    assert report.ok, str(report)
    assert load_run(path).status == "COMPLETED"


def test_a_killed_run_may_be_resumed_though_nobody_wrote_that_it_was_interrupted(
    tmp_path: Path,
) -> None:
    whole = make_events([calls(), answer()])
    cut = next(i for i, event in enumerate(whole) if event.kind == "tool.finished") + 1
    resume = StatusChanged(source="INTERRUPTED", target="RUNNING", event="resume")
    rest = [e for e in whole[cut:] if e.kind != "phase"]
    path = make_trace(tmp_path, [*whole[:cut], resume, *rest])
    assert fsck(path).ok, str(fsck(path))


@pytest.mark.parametrize(
    ("marker", "fine"),
    [
        (Rollback(2, "x"), True),
        (Rollback(0, "x"), True),
        (Rollback(99, "x"), False),
        (Compaction("so far", 2, 2), True),
        (Compaction("so far", 2, 99), False),
        (DiscardAll(2), True),
        (DiscardAll(99), False),
    ],
)
def test_markers_are_replayed_and_held_against_their_range(
    tmp_path: Path, marker: Rollback | Compaction | DiscardAll, fine: bool
) -> None:
    from trace_samples import Story, header

    from axislab.messages import Message
    from axislab.runtime.conversation import ConversationRuntime

    story = Story(ConversationRuntime(CONFIG))
    story.tell(header())
    runtime = story.runtime
    story.step(runtime.initialize_conversation("x"))
    reply = make_events([calls()])
    message = next(e for e in reply if e.kind == "message" and e.step == 1)  # type: ignore[attr-defined]
    asked = Message.from_dict(message.message)  # type: ignore[attr-defined]
    story.step(runtime.apply_assistant_message(asked, "tool_calls"))
    story.step(runtime.apply_batch_tool_messages([Message.tool("six", tool_call_id="c0")]))
    story.step(runtime.append_raw_marker(marker.to_message()))
    report = fsck(make_trace(tmp_path, story.events))
    assert {p.code for p in report.problems} == (set() if fine else {"marker_range"}), str(report)


def test_lines_that_cannot_be_read_are_named_and_the_rest_is_checked(tmp_path: Path) -> None:
    path = make_trace(tmp_path, make_events(STORY))
    rows = path.read_bytes().split(b"\n")
    rows[4] = b"\xff\xfe"
    rows[6] = b"[1, 2]"
    rows[8] = b"{" * 10
    rows[9] = b""
    path.write_bytes(b"\n".join(rows))
    found = {p.line: p.code for p in fsck(path).problems}
    assert found[5] == "not_utf8"
    assert found[7] == "not_an_event"
    assert found[9] == "not_json"
    assert found[10] == "not_json"


@pytest.mark.parametrize("content", [b"", b"\n", b"\x00" * 500, b"\x89PNG\r\n\x1a\n\xff", b"hello"])
def test_what_is_no_trace_is_reported_not_raised(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    report = fsck(path)
    assert not report.ok
    assert "no_header" in {p.code for p in report.problems}


def test_a_file_that_is_not_there_raises(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no file"):
        fsck(tmp_path / "r1.jsonl")


def test_of_many_problems_of_a_kind_the_first_are_listed_and_the_rest_counted(
    tmp_path: Path,
) -> None:
    def rename(rows: Rows) -> None:
        for row in rows[1:]:
            row["time"] = "never"

    path = make_trace(tmp_path, make_events(many_turns(20)))
    rows = rows_of(path)
    rename(rows)
    report = fsck(write_rows(path, rows))
    assert len(report.problems) == 51
    assert report.problems[-1].message == f"{len(rows) - 51} more of this kind"


def test_repair_cuts_off_a_torn_line_and_nothing_else(tmp_path: Path) -> None:
    path = make_trace(tmp_path, make_events(STORY, finish=False))
    whole = path.read_bytes()
    assert repair(path) is None
    path.write_bytes(whole + b'{"seq":99,')
    done = repair(path)
    assert done is not None
    assert "10 bytes are kept in" in done
    assert path.read_bytes() == whole
    assert (tmp_path / "r1.jsonl.torn").read_bytes() == b'{"seq":99,\n'
    path.write_bytes(whole[:-1])
    assert repair(path) == "the last line lacked its newline"
    assert path.read_bytes() == whole


def test_repair_leaves_alone_what_is_no_trace_or_is_being_written(tmp_path: Path) -> None:
    other = tmp_path / "tasks.jsonl"
    other.write_bytes(b'{"id": 1}\n{"id"')
    with pytest.raises(TraceError, match="nothing was changed"):
        repair(other)
    assert other.read_bytes() == b'{"id": 1}\n{"id"'
    path = make_trace(tmp_path, make_events(STORY, finish=False))
    with TraceRecorder(path), pytest.raises(TraceLocked):
        repair(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), value=JSON, depth=st.integers(1, 3))
def test_whatever_a_line_holds_nothing_but_our_errors_comes_out(
    tmp_path_factory: pytest.TempPathFactory, seed: int, value: Any, depth: int
) -> None:
    draw = random.Random(seed)
    path = tmp_path_factory.mktemp("t") / "r1.jsonl"
    rows = [dict(row) for row in SAMPLE_ROWS]
    place: Any = draw.choice(rows)
    for _ in range(depth):
        key = draw.choice(list(place)) if isinstance(place, dict) and place else None
        if key is None:
            break
        if depth == 1 or not isinstance(place[key], dict):
            place[key] = value
            break
        place[key] = dict(place[key])
        place = place[key]
    write_rows(path, rows)
    assert isinstance(str(fsck(path)), str)
    try:
        run = load_run(path)
    except TraceError:
        return
    assert isinstance(run._repr_html_(), str)
    assert isinstance(repr(run), str)
    assert isinstance(run.stage_path, list)
    assert run.trace.visible() is not None


def _sample_rows() -> Rows:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return rows_of(make_trace(Path(folder), make_events(STORY)))


SAMPLE_ROWS = _sample_rows()


def seconds(check: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        check()
        best = min(best, time.process_time() - start)
    return best


@pytest.mark.parametrize("check", [fsck, read_trace])
def test_ten_times_the_events_take_about_ten_times_as_long(
    tmp_path: Path, check: Callable[[Path], object]
) -> None:
    config = CONFIG.model_copy(update={"max_turns": None})
    short, long = (
        make_trace(tmp_path, make_events(many_turns(n), run_id=f"r{n}", config=config))
        for n in (60, 600)
    )
    assert len(read_trace(long)) > 9 * len(read_trace(short))
    assert seconds(lambda: check(long)) <= 15 * seconds(lambda: check(short))
