"""Main-loop cases of an answer file: the recipe miroflow() on the one orchestrator."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from typing import Any

from axislab.errors import ErrorKind, ModelError
from axislab.events import AnswerTried, Event, ModelRequested, ToolStarted, TryFinished
from axislab.messages import Message, Role, ToolCall, Usage
from axislab.models.base import ModelReply
from axislab.models.scripted import ScriptedModel
from axislab.orchestrator.task import RunIdentity, TaskOrchestrator
from axislab.recipes.miroflow import miroflow, miroflow_tool
from axislab.runtime.transcript import replay_visible
from axislab.tasks import Task
from axislab.tools.base import Tool, ToolFailure

STRICT = (
    "boxed_answer",
    "failure_summary",
    "executed",
    "calls",
    "turn_count",
    "reached_max_turns",
    "intermediate",
    "history_before_answer",
    "history_end",
)
PROMPT_TOKENS = 667
CUSHION = 1000


def rows(messages: Iterable[Message]) -> list[str]:
    """Messages as the case files write them; tool results are user messages there."""
    out = []
    for message in messages:
        role = "user" if message.role is Role.TOOL else str(message.role)
        calls = f"<{len(message.tool_calls)} call(s)>" if message.tool_calls else ""
        out.append(f"{role}: {message.text or calls}")
    return out


def tool_calls(given: Iterable[dict[str, Any]]) -> tuple[ToolCall, ...]:
    """Parsed calls of a case."""
    return tuple(
        ToolCall(id="", name=call["tool"], arguments=json.dumps(call["args"])) for call in given
    )


def first_difference(got: dict[str, Any], want: dict[str, Any], keys: Sequence[str]) -> str | None:
    """The first field that differs, among those the case gives."""
    for key in keys:
        if key in want and got[key] != want[key]:
            return f"{key}: got {got[key]!r}, expected {want[key]!r}"
    return None


def _said(given: dict[str, Any]) -> ModelReply | ModelError:
    if "api_error" in given:
        return ModelError(given["api_error"], kind=ErrorKind.SERVER)
    tokens = given.get("tokens")
    return ModelReply(
        text=given.get("text"),
        tool_calls=tool_calls(given.get("calls", ())),
        finish_reason=given.get("finish", "tool_calls" if given.get("calls") else "stop"),
        usage=Usage(input_tokens=tokens[0], output_tokens=tokens[1]) if tokens else None,
    )


def _tools(case: dict[str, Any]) -> list[Tool]:
    results = iter(case.get("tool_results", ()))
    names = {c["tool"] for answer in case["answers"] for c in answer.get("calls", ())}

    def result(name: str) -> Any:
        given = next(results, {"result": "ok"})
        if (error := given.get("error", given.get("raise"))) is not None:
            return ToolFailure(f"<tool_error {name}: {error}>")
        value = given["result"]
        return value if isinstance(value, str) else json.dumps(value)

    return [miroflow_tool(name, lambda *, _name=name, **_: result(_name)) for name in sorted(names)]


def check(case: dict[str, Any], prompts: dict[str, str]) -> str | None:
    """Run one case and compare."""
    recipe = miroflow(
        tools=_tools(case),
        context_compress_limit=case["context_compress_limit"],
        keep_tool_result=case["keep_tool_result"],
        retry_with_summary=case["retry_with_summary"],
        system_prompt=None,
        max_turns=case["max_turns"] + 1,  # ours counts the final answer
        window=case["max_context_length"],
        safety_margin=CUSHION + PROMPT_TOKENS,
        max_output_tokens=case["max_tokens"],
        backoff=0.0,
        **prompts,
    )
    events: list[Event] = []
    orchestrator = TaskOrchestrator(
        recipe,
        Task("t", case["task"]),
        model=ScriptedModel([_said(given) for given in case["answers"]]),
        identity=RunIdentity(run_id="r"),
        emit=events.append,
    )
    asyncio.run(orchestrator.run())
    right = case.get("right", "upstream") if case["disputed"] else "upstream"
    want = case["expect"] if right == "upstream" else right
    return first_difference(_record(case, events, orchestrator), want, STRICT)


def _record(
    case: dict[str, Any], events: list[Event], orchestrator: TaskOrchestrator
) -> dict[str, Any]:
    first_try = next(e for e in events if isinstance(e, TryFinished))
    return {
        "boxed_answer": first_try.answer,
        "failure_summary": first_try.failure_summary,
        "executed": [
            {"tool": e.name, "args": json.loads(e.arguments)}
            for e in events
            if isinstance(e, ToolStarted)
        ],
        "calls": _calls(events),
        "turn_count": case["max_turns"] if first_try.cut_off else first_try.main_turns,
        "reached_max_turns": first_try.cut_off,
        "intermediate": first_try.intermediate,
        "history_before_answer": _before_answer(events),
        "history_end": rows(orchestrator.runtime.visible),
    }


def _calls(events: list[Event]) -> list[str]:
    """One label a request: the turn it is for, or its purpose."""
    labels, turns = [], 0
    for event in events:
        if event.kind == "step":
            turns = event.turn
        elif isinstance(event, ModelRequested):
            main = event.purpose == "main_loop"
            labels.append(f"turn {turns + 1}" if main else event.purpose)
    return labels


def _before_answer(events: list[Event]) -> list[str]:
    """What was visible when the main loop ended."""
    messages: list[Message] = []
    pending: list[Message] = []
    for event in events:
        if event.kind == "message":
            pending.append(Message.from_dict(event.message))
        elif event.kind == "step":
            if event.operation == "ask_for_answer":
                break
            messages += pending
            pending = []
        elif isinstance(event, AnswerTried | TryFinished):
            break
    return rows(replay_visible(messages))
