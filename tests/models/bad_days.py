"""Runs on bad days, and what they came to as rows that compare with the table of bad days."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misbehaving.server import MisbehavingServer

import axislab as al

KEY = "sk-planted-0123456789abcdef"
TASK = "What is axis?"
PATIENT = 60.0
"""Seconds a request may take where the table does not say."""
FACADES = ("run", "arun")
_SHOWN = 60


@al.tool
def search(query: str) -> str:
    """Search the encyclopedia.

    Args:
        query: What to look for.
    """
    return f"Nothing new about {query}."


def recipe(seconds: float | None = None) -> al.Recipe:
    """The agent of the table: one tool, few turns, and the ways of recovery that recipes have."""
    retry = al.RetryPolicy(backoff=0.01, request_timeout=seconds or PATIENT)
    return al.Recipe(name="bad_days", tools=(search,)).with_(
        system_prompt="Answer in \\boxed{...}.",
        detector="structured",
        on_empty_reply="retry",
        max_turns=3,
        max_rollbacks=1,
        max_reprompts=1,
        retry=retry,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """A scenario seen through both facades at once, plain or streamed."""

    runs: Mapping[str, al.Run]
    bodies: Mapping[str, list[Mapping[str, Any]]]
    """What the server was asked, by facade."""
    seconds: float | None
    """The longer of the two runs."""


def spend(
    server: MisbehavingServer, scenario: str, *, way: str, seconds: float | None, folder: Path
) -> Day:
    """Run the agent in a thread with `run`, and in a loop with `arun`."""
    head, colon, rest = scenario.partition(":")
    models = {facade: f"{head}@{way}-{facade}{colon}{rest}" for facade in FACADES}
    options: dict[str, Any] = {"stream": True} if way == "streamed" else {}
    agent = recipe(seconds)

    def lab(facade: str) -> al.Lab:
        model = f"openai/{models[facade]}"
        return al.Lab(model, api_base=server.url, api_key=KEY, folder=folder)

    async def awaited() -> al.Run:
        return await lab("arun").arun(agent, TASK, **options)

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(lambda: asyncio.run(awaited()))
        runs = {"run": lab("run").run(agent, TASK, **options)}
        runs["arun"] = other.result()
    return Day(
        runs=runs,
        bodies={facade: server.asked(model) for facade, model in models.items()},
        seconds=max(run.seconds or 0.0 for run in runs.values()),
    )


def observed(run: al.Run) -> dict[str, Any]:
    """The cells of a run, without those that are empty."""
    requests = [record.data for record in run.trace.of("model.request")]
    first = [request for request in requests if request["call"] == 0]
    row: dict[str, Any] = {"outcome": first[-1]["outcome"], "requests": len(first)}
    if row["outcome"] == "ok":
        row |= _reply(run, first[-1])
    row |= {
        "status": run.status,
        "ending": (run.done_reason or "").partition(":")[0],
        "answer_status": run.answer_status,
        "answer": run.answer,
        "error_kind": run.error_kind,
        "tools": " + ".join(_tool(record.data) for record in run.trace.of("tool.finished")) or None,
        "run_requests": len(requests),
    }
    return {name: value for name, value in row.items() if value is not None}


def _reply(run: al.Run, request: Mapping[str, Any]) -> dict[str, Any]:
    said = next(message for message in run.messages if message.role == "assistant")
    known = [request.get(name) is not None for name in ("input_tokens", "output_tokens")]
    flags = [name for name in ("thinking_only", "possibly_truncated") if request.get(name)]
    return {
        "text": _short(said.text) or None,
        "reasoning": _short(said.reasoning or "") or None,
        "calls": " + ".join(f"{call.name}({call.arguments})" for call in said.tool_calls) or None,
        "finish": request.get("finish_reason"),
        "usage": "known" if all(known) else "partial" if any(known) else None,
        "flags": ", ".join(flags) or None,
    }


def _tool(finished: Mapping[str, Any]) -> str:
    """What became of a call: its status, and what was repaired or found wrong."""
    notes = [finished.get("reason"), *(finished.get("repairs") or ())]
    told = ", ".join(note for note in notes if note)
    return f"{finished['status']} ({told})" if told else str(finished["status"])


def _short(text: str) -> str:
    if len(text) <= _SHOWN:
        return text
    return f"{text[: _SHOWN - 20].rstrip()}… ({len(text):,} characters)"


def wire_faults(body: Mapping[str, Any]) -> list[str]:
    """What a strict server would not take of a request."""
    found: list[str] = []
    open_ids: list[str] = []
    for message in body["messages"]:
        if extra := message.keys() - {"role", "content", "tool_calls", "tool_call_id"}:
            found.append(f"unknown keys {sorted(extra)}")
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_ids:
                found.append(f"a result of no call: {message['tool_call_id']!r}")
            else:
                open_ids.remove(message["tool_call_id"])
            continue
        found += [f"a call without a result: {name!r}" for name in open_ids]
        open_ids = [call["id"] for call in message.get("tool_calls") or ()]
        found += _call_faults(message)
    return found + [f"a call without a result: {name!r}" for name in open_ids]


def _call_faults(message: Mapping[str, Any]) -> list[str]:
    calls = message.get("tool_calls") or ()
    found = [f"a call of {call['function']['name']!r}" for call in calls if not _is_sound(call)]
    if len({call["id"] for call in calls}) < len(calls):
        found.append("two calls with one id")
    return found


def _is_sound(call: Mapping[str, Any]) -> bool:
    function = call["function"]
    arguments = json.loads(function["arguments"])
    return bool(call["id"] and function["name"] and isinstance(arguments, dict))
