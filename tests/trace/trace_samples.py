"""Made-up traces: a ConversationRuntime driven by scripted replies, told as events."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from axislab.config import AgentConfig, ConversationConfig
from axislab.events import (
    SCHEMA_VERSION,
    Event,
    MessageAppended,
    ModelRequested,
    PhaseChanged,
    RunFinished,
    RunStarted,
    StatusChanged,
    StepTaken,
    ToolFinished,
    ToolStarted,
)
from axislab.messages import Message, ToolCall
from axislab.runtime.conversation import ConversationRuntime
from axislab.runtime.info import ConversationStepResult
from axislab.runtime.stages import StepAction
from axislab.trace.recorder import TraceRecorder, trace_path

CONFIG = ConversationConfig(
    max_turns=40,
    context_limit={"window": 100_000},
    assistant_rollback={"max_rollbacks": 2, "refusal_keywords": ("I cannot",)},
)


@dataclass
class Reply:
    """What the scripted model says: a text, calls (names), or an error before it."""

    text: str | None = None
    calls: Sequence[str] = ()
    finish: str = "stop"
    errors: int = 0
    tokens: int | None = 100
    undo: bool = False
    """The loop hides the calls instead of running them."""
    error: str | None = None
    """The call fails for good: context_limit or truncated."""


def answer(text: str = "It is \\boxed{42}.") -> Reply:
    return Reply(text)


def calls(*names: str) -> Reply:
    return Reply(None, names or ("search",), "tool_calls")


def refusal() -> Reply:
    return Reply("I cannot do that.")


def textual_call() -> Reply:
    return Reply('<tool_call>{"name": "search"}')


@dataclass
class Story:
    """One run in the telling."""

    runtime: ConversationRuntime
    events: list[Event] = field(default_factory=list)
    messages: int = 0
    steps: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    phase: str | None = None

    def tell(self, event: Event) -> None:
        self.events.append(event)

    def enter(self, phase: str | None) -> None:
        if phase == self.phase:
            return
        seconds = None if self.phase is None else 0.25
        self.tell(PhaseChanged(source=self.phase, target=phase, seconds=seconds))
        self.phase = phase

    def step(self, result: ConversationStepResult, *, reset: bool = False) -> None:
        for message in result.appended:
            row = message.to_dict()
            self.tell(MessageAppended(index=self.messages, message=row, step=self.steps))
            self.messages += 1
        step = step_event(self.steps, result, estimated=self.runtime.estimate())
        self.tell(replace(step, rollback_count=0, counter_reset=True) if reset else step)
        self.steps += 1


def step_event(number: int, result: ConversationStepResult, *, estimated: int) -> StepTaken:
    info = result.info
    return StepTaken(
        step=number,
        operation=result.operation,
        stage=str(result.stage),
        action=str(result.action),
        stage_path=list(info.stage_path),
        turn=info.assistant_turn_idx,
        visible_count=info.visible_message_count,
        raw_count=info.raw_message_count,
        rollback_count=result.rollback_count,
        pending=list(result.pending),
        rule=result.decision.rule if result.decision else None,
        level=result.decision.level if result.decision else None,
        rollback_reason=info.rollback_reason,
        rollback_message_count=info.rollback_message_count,
        finalization_trigger=info.finalization_trigger,
        done_reason=result.done_reason,
        estimated_tokens=estimated,
        calibration_ratio=1.0,
        info=info.conditional(),
    )


def recipe_dict(config: ConversationConfig) -> dict[str, Any]:
    """As `Recipe.to_dict()` has it, without what is a function."""
    return {"name": "demo", "config": AgentConfig(conversation=config).model_dump(mode="json")}


def header(run_id: str = "r1", **changes: Any) -> RunStarted:
    task = {"id": "t1", "prompt": "What is six times seven?", "expected": "42", "metadata": {}}
    fields: dict[str, Any] = {
        "run_id": run_id,
        "schema": SCHEMA_VERSION,
        "axislab_version": "0.1.0",
        "recipe": recipe_dict(CONFIG),
        "recipe_fingerprint": "f00d",
        "task": task,
        "model": "axislab/scripted",
        "simulated": True,
        "seed": 7,
    }
    return RunStarted(**{**fields, **changes})


def make_events(
    replies: Iterable[Reply] = (calls(), answer()),
    *,
    run_id: str = "r1",
    config: ConversationConfig = CONFIG,
    finish: bool = True,
    end: dict[str, Any] | None = None,
    **head: Any,
) -> list[Event]:
    """The events of a run; without `finish`, or if the replies run out, it has no end."""
    story = Story(ConversationRuntime(config))
    story.tell(header(run_id, **{"recipe": recipe_dict(config), **head}))
    story.tell(StatusChanged(source="READY", target="RUNNING", event="start"))
    result = story.runtime.initialize_conversation("What is six times seven?")
    story.step(result)
    script = iter(replies)
    while result.action is not StepAction.DONE:
        reply = next(script, None)
        if reply is None:
            return story.events
        result = _turn(story, reply)
    if finish:
        _end(story, result, end or {})
    return story.events


def _turn(story: Story, reply: Reply) -> ConversationStepResult:
    story.enter("THINKING")
    if reply.error is not None:
        return _recover(story, reply.error)
    _request(story, reply)
    made = [
        ToolCall(id=f"c{story.tool_calls + i}", name=name, arguments='{"q": "six"}')
        for i, name in enumerate(reply.calls)
    ]
    story.tool_calls += len(made)
    message = Message.assistant(reply.text, made)
    result = story.runtime.apply_assistant_message(message, reply.finish)
    story.step(result)
    if result.action is StepAction.EXECUTE_TOOLS:
        story.enter("TOOL_CALLING")
        result = _undo(story) if reply.undo else _run_tools(story)
    return result


def _recover(story: Story, error: str) -> ConversationStepResult:
    story.tell(ModelRequested(attempt=1, outcome=error, error="no", **_common(story)))
    story.model_calls += 1
    result = (
        story.runtime.rollback_latest_tool_exchange_and_force_finalize()
        if error == "truncated"
        else story.runtime.force_finalize_due_to_context_limit_after_error({"message": "no"})
    )
    assert result is not None
    story.step(result)
    return result


def _common(story: Story) -> dict[str, Any]:
    return {
        "call": story.model_calls,
        "purpose": "main_loop",
        "step": story.steps,
        "model": "axislab/scripted",
        "latency": 0.25,
        "estimated_prompt_tokens": story.runtime.estimate(),
    }


def _request(story: Story, reply: Reply) -> None:
    common = _common(story)
    for attempt in range(1, reply.errors + 1):
        failed = {"outcome": "server", "error": "HTTP 500", "retry_in": 0.5}
        story.tell(ModelRequested(attempt=attempt, **failed, **common))
    story.tell(
        ModelRequested(
            attempt=reply.errors + 1,
            outcome="ok",
            finish_reason=reply.finish,
            input_tokens=reply.tokens,
            output_tokens=reply.tokens and reply.tokens // 10,
            cost_missing="no price known",
            **common,
        )
    )
    story.model_calls += 1


def _run_tools(story: Story) -> ConversationStepResult:
    results = []
    for call in story.runtime.pending:
        common = {"call_id": call.id, "name": call.name, "step": story.steps}
        rejected = call.name == "forbidden"
        status = {"forbidden": "rejected", "broken": "failed"}.get(call.name, "success")
        if not rejected:
            story.tell(ToolStarted(arguments=call.arguments, **common))
        took = None if rejected else 0.01
        story.tell(ToolFinished(status=status, content="six", latency=took, **common))
        results.append(Message.tool("six", tool_call_id=call.id, name=call.name))
    story.enter("OBSERVING")
    result = story.runtime.apply_batch_tool_messages(
        results,
        tools_exhausted=any(m.name == "last" for m in results),
        rejected_ids=[m.tool_call_id or "" for m in results if m.name == "forbidden"],
    )
    story.runtime.reset_rollback_counter()
    story.step(result, reset=True)
    return result


def _undo(story: Story) -> ConversationStepResult:
    result = story.runtime.rollback_assistant_tool_calls()
    assert result is not None
    story.enter("OBSERVING")
    story.step(result)
    return result


def _end(story: Story, result: ConversationStepResult, changes: dict[str, Any]) -> None:
    good = result.done_reason != "terminated_token_exceed"
    status = "COMPLETED" if good else "FAILED"
    story.enter(None)
    event = "complete" if good else "fail"
    story.tell(StatusChanged(source="RUNNING", target=status, event=event))
    last = result.visible[-1]
    fields: dict[str, Any] = {
        "status": status,
        "done_reason": result.done_reason,
        "output": last.text,
        "answer": "42" if "42" in last.text else None,
        "answer_status": "ok" if "42" in last.text else "no_answer",
        "correct": "42" in last.text,
        "score": float("42" in last.text),
        "steps": story.steps,
        "turns": story.runtime.turn_idx,
        "seconds": 1.5,
    }
    story.tell(RunFinished(**{**fields, **changes}))


def ticking(start: float = 1_700_000_000.0, tick: float = 0.001) -> Iterator[float]:
    while True:
        yield start
        start += tick


def make_trace(
    folder: Path, events: Iterable[Event] | None = None, *, start: float = 1_700_000_000.0
) -> Path:
    """Write a run and give its file."""
    rows = list(make_events() if events is None else events)
    head = rows[0]
    run_id = head.run_id if isinstance(head, RunStarted) else "r1"
    times = ticking(start)
    path = trace_path(folder, run_id)
    with TraceRecorder(path, clock=lambda: next(times)) as recorder:
        for event in rows:
            recorder.record(event)
    return path


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The lines of a trace as JSON objects."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def write_rows(path: Path, rows: Iterable[dict[str, Any]], *, renumber: bool = False) -> Path:
    """Write lines by hand, as no recorder would."""
    kept = [{**row, "seq": n} if renumber else row for n, row in enumerate(rows)]
    path.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
    return path


def many_turns(turns: int) -> list[Reply]:
    """A long run in which a bit of everything happens."""
    script: list[Reply] = []
    for turn in range(turns):
        script.append(refusal() if turn % 7 == 3 else calls())
    return [*script, answer()]
