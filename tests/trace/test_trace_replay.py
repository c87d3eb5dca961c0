import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_samples import (
    CONFIG,
    Reply,
    Story,
    answer,
    calls,
    header,
    make_events,
    make_trace,
    refusal,
    rows_of,
    textual_call,
    write_rows,
)

from axislab import Lab
from axislab.config import ConversationConfig
from axislab.errors import TraceError
from axislab.events import Event
from axislab.messages import Message
from axislab.models.scripted import ScriptedModel
from axislab.orchestrator.task import RunIdentity, TaskOrchestrator
from axislab.recipe import Recipe
from axislab.runtime.conversation import ConversationRuntime
from axislab.runtime.markers import Compaction, DiscardAll
from axislab.runtime.rules import CHAIN
from axislab.tasks import Task
from axislab.tools.base import tool
from axislab.trace.fsck import fsck
from axislab.trace.memory import MemoryRecorder
from axislab.trace.reader import load_run, read_trace
from axislab.trace.recorder import TraceRecorder
from axislab.trace.replay import replay
from axislab.trace.run import Run
from axislab.trace.trace import Trace


@tool
def search(query: str) -> str:
    """Look something up."""
    return "Verren" if query else "nothing"


EVERYTHING = [
    refusal(),
    Reply(None, ["search", "forbidden", "forbidden"], "tool_calls", errors=1),
    textual_call(),
    Reply(None, ["search"], "tool_calls", undo=True),
    calls("search", "search"),
    answer(),
]


def trace_of(folder: Path, script: list[Reply], **options: Any) -> Trace:
    return read_trace(make_trace(folder, make_events(script, **options)), strict=True)


@pytest.mark.parametrize(
    "script",
    [
        EVERYTHING,
        [calls(), Reply(error="context_limit"), answer()],
        [calls(), calls(), Reply(error="truncated"), answer()],
        [calls("last"), answer()],
        [Reply(None, finish="length")],
        [calls(), calls()],
        [],
    ],
)
def test_a_recorded_run_comes_out_the_same(tmp_path: Path, script: list[Reply]) -> None:
    trace = trace_of(tmp_path, script)
    assert fsck(trace).ok, str(fsck(trace))
    report = replay(trace)
    assert report.ok, str(report)
    assert report.steps == len(trace.of("step"))
    assert str(report) == f"{report.steps} steps the same"
    assert replay(Run(trace)) == report


@pytest.mark.parametrize(
    "config",
    [
        CONFIG.model_copy(update={"agg_reject_tool_message": True}),
        CONFIG.model_copy(update={"max_turns": 3, "final_response_prompt": "Sum up."}),
        CONFIG.model_copy(update={"system_prompt": None, "detector": "structured"}),
        ConversationConfig(
            context_limit={"window": 170, "warning_threshold": 60, "min_tokens_for_generation": 10}
        ),
    ],
)
def test_the_config_of_the_header_decides(tmp_path: Path, config: ConversationConfig) -> None:
    script = [calls("search", "forbidden", "forbidden"), calls(), answer(), answer()]
    trace = trace_of(tmp_path, script, config=config)
    assert replay(trace).ok, str(replay(trace))


def test_markers_and_a_reopening_are_replayed(tmp_path: Path) -> None:
    story = Story(ConversationRuntime(CONFIG))
    runtime = story.runtime
    story.tell(header())
    story.step(runtime.initialize_conversation("What is six times seven?"))
    for number in range(3):
        event: Any = next(e for e in make_events([calls()]) if getattr(e, "index", 0) == 2)
        row = event.message | {
            "tool_calls": [{"id": f"c{number}", "name": "search", "arguments": "{}"}]
        }
        story.step(runtime.apply_assistant_message(Message.from_dict(row), None))
        result = Message.tool("six", tool_call_id=f"c{number}")
        story.step(runtime.apply_batch_tool_messages([result]))
    story.step(runtime.append_marker(Compaction("so far: six", 2, 2)))
    story.step(runtime.append_marker(DiscardAll(2)))
    story.step(runtime.reopen_after_context_reset())
    trace = read_trace(make_trace(tmp_path, story.events))
    assert fsck(trace).ok, str(fsck(trace))
    assert replay(trace).ok, str(replay(trace))


@pytest.mark.parametrize(
    ("edit", "step", "field"),
    [
        (lambda step: step.update(stage_path=["not_initialized"]), 0, "stage_path"),
        (lambda step: step.update(visible_count=9), 2, "visible_count"),
        (lambda step: step.update(rule="refusal"), 2, "rule"),
        (lambda step: step.update(turn=9), 3, "turn"),
        (lambda step: step.update(estimated_tokens=1), 3, "estimated_tokens"),
        (lambda step: step.update(done_reason="tired"), 4, "done_reason"),
    ],
)
def test_the_first_step_that_comes_out_otherwise_is_named(
    tmp_path: Path, edit: Callable[[dict[str, Any]], None], step: int, field: str
) -> None:
    path = make_trace(tmp_path, make_events([refusal(), calls(), answer()]))
    rows = rows_of(path)
    edit(next(r for r in rows if r["kind"] == "step" and r["step"] == step))
    report = replay(read_trace(write_rows(path, rows)))
    assert not report.ok
    assert report.difference is not None
    assert (report.steps, report.difference.step, report.difference.field) == (step, step, field)
    assert f"step {step}, {field}: " in str(report)


def test_a_changed_reply_leads_elsewhere(tmp_path: Path) -> None:
    path = make_trace(tmp_path, make_events([refusal(), answer()]))
    rows = rows_of(path)
    next(r for r in rows if r["kind"] == "message" and r["index"] == 2)["message"]["content"] = "6"
    report = replay(read_trace(write_rows(path, rows)))
    assert report.difference is not None
    assert (report.difference.step, report.difference.field) == (1, "stage_path")


def test_a_changed_prompt_of_the_runtime_is_a_difference_in_messages(tmp_path: Path) -> None:
    path = make_trace(tmp_path, make_events([textual_call(), answer()]))
    rows = rows_of(path)
    last = next(r for r in rows if r["kind"] == "message" and r["index"] == 3)["message"]
    last["content"] = last["content"][:-1] + "!"
    report = replay(read_trace(write_rows(path, rows)))
    assert report.difference is not None
    assert report.difference.field == "messages"


def test_an_operation_the_conversation_refuses_is_a_difference(tmp_path: Path) -> None:
    path = make_trace(tmp_path, make_events([calls(), answer()]))
    rows = rows_of(path)
    next(r for r in rows if r["kind"] == "step" and r["step"] == 2)["operation"] = "assistant"
    report = replay(read_trace(write_rows(path, rows)))
    assert report.difference is not None
    assert (report.difference.step, report.difference.field) == (2, "refused")


def test_an_operation_that_would_do_nothing_is_a_difference(tmp_path: Path) -> None:
    script = [Reply(None, ["search"], "tool_calls", undo=True), answer()]
    trace = trace_of(tmp_path, script)
    report = replay(trace, recipe=Recipe().with_(conversation=CONFIG, max_rollbacks=0))
    assert report.difference is not None
    assert report.difference.replayed == "nothing to do"


def test_an_operation_nobody_knows_raises(tmp_path: Path) -> None:
    path = make_trace(tmp_path, make_events([answer()]))
    rows = rows_of(path)
    next(r for r in rows if r["kind"] == "step")["operation"] = "meditate"
    with pytest.raises(TraceError, match="'meditate', which is no operation"):
        replay(read_trace(write_rows(path, rows)))


@pytest.mark.parametrize(
    ("recipe", "why"),
    [
        ({"name": "x"}, "holds no config"),
        ({"config": {"colour": "blue"}}, "not one of this version"),
        ({"config": {}, "direct_answer": {"name": "m.f", "code": "1"}}, "direct_answer is a func"),
        ({"config": {}, "wants_final_prompt": {"name": "m.f"}}, "wants_final_prompt is a func"),
        ({"config": {}, "tools": [{"name": "m.make", "code": "1"}]}, "made by a function"),
        ({"config": {}, "chain": [{"rule": "mine", "level": "L4"}]}, "rule of its own"),
        ({"config": {}, "chain": [{"rule": CHAIN[0].name, "code": "1"}]}, "rule of its own"),
    ],
)
def test_a_header_that_does_not_hold_enough_says_what_to_pass(
    tmp_path: Path, recipe: dict[str, Any], why: str
) -> None:
    trace = trace_of(tmp_path, [answer()], recipe=recipe)
    with pytest.raises(TraceError, match=why) as caught:
        replay(trace)
    assert "pass recipe=" in str(caught.value)
    assert replay(trace, recipe=Recipe().with_(conversation=CONFIG)).ok


def test_tools_told_in_the_header_count_in_the_budget(tmp_path: Path) -> None:
    specs = [search.spec.to_dict()]
    story = Story(ConversationRuntime(CONFIG, tools=specs))
    story.tell(header(tools=specs))
    story.step(story.runtime.initialize_conversation("What is six times seven?"))
    told = read_trace(make_trace(tmp_path / "told", story.events))
    assert replay(told).ok
    story.events[0] = header()
    report = replay(read_trace(make_trace(tmp_path / "untold", story.events)))
    assert report.difference is not None
    assert report.difference.field == "estimated_tokens"


@pytest.mark.parametrize("entry", [{"type": "function"}, 7, None, {"function": {"name": 7}}])
def test_tools_that_are_not_described_are_refused(tmp_path: Path, entry: object) -> None:
    trace = trace_of(tmp_path, [answer()], tools=[entry])
    with pytest.raises(TraceError, match="as a tool"):
        replay(trace)


@settings(max_examples=25, deadline=None)
@given(
    script=st.lists(
        st.sampled_from(
            [
                ScriptedModel.call("search", query="Osk"),
                ScriptedModel.call("search", query=""),
                ScriptedModel.call("dig", depth=3),
                "I cannot do that.",
                '<tool_call>{"name": "search"}</tool_call>',
                "",
                r"It is \boxed{Verren}.",
            ]
        ),
        max_size=6,
    ),
    max_turns=st.sampled_from([None, 1, 3]),
    window=st.sampled_from([None, 400, 4000]),
)
def test_whatever_the_orchestrator_records_passes_every_check_and_replays(
    tmp_path_factory: pytest.TempPathFactory,
    script: list[Any],
    max_turns: int | None,
    window: int | None,
) -> None:
    recipe = Recipe(name="test", tools=(search,)).with_(
        max_turns=max_turns,
        window=window,
        warning_threshold=50,
        max_rollbacks=2,
        refusal_keywords=("I cannot",),
        max_reprompts=2,
        final_response_prompt="Sum up.",
    )
    recorder = TraceRecorder(tmp_path_factory.mktemp("t") / "r1.jsonl")
    memory, events = MemoryRecorder(clock=lambda: 0.0), list[Event]()

    def emit(event: Event) -> None:
        recorder(event)
        events.append(event)

    orchestrator = TaskOrchestrator(
        recipe,
        Task("t1", "Where is Osk?", "Verren"),
        model=ScriptedModel([*script, r"\boxed{Osk}"], after="repeat"),
        identity=RunIdentity(run_id="r1"),
        emit=emit,
    )
    asyncio.run(orchestrator.run())
    recorder.close()
    report = fsck(recorder.path)
    assert report.ok, str(report)
    assert report.notes == ()
    run = load_run(recorder.path, strict=True)
    assert replay(run).ok, str(replay(run))
    assert replay(run, recipe=recipe).ok
    assert run.trace.visible() == tuple(orchestrator.runtime.visible)
    kept = [memory.record(event) for event in events]
    assert [(r.seq, r.kind, r.data) for r in kept] == [
        (r.seq, r.kind, r.data) for r in run.trace.records
    ]


@pytest.mark.parametrize("chain", [5, True, 1.5, "CHAIN", {"rule": "x"}])
def test_a_header_with_an_odd_chain_asks_for_the_recipe(chain):
    run = Lab(ScriptedModel(["fine"])).run(Recipe(), "Why?")
    header = run.trace.records[0]
    recipe = {**header.data["recipe"], "chain": chain}
    odd = replace(header, data={**header.data, "recipe": recipe})
    with pytest.raises(TraceError, match="pass recipe="):
        replay(Trace([odd, *run.trace.records[1:]]))
