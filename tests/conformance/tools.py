"""Tool case files: runs each case on `ToolExecutor` and names the first field that differs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from axislab.config import ToolPolicy
from axislab.messages import ToolCall, ToolResult
from axislab.tools.base import Tool, ToolFailure
from axislab.tools.calls import PreparedCall
from axislab.tools.executor import ToolExecutor
from axislab.tools.session import Round, ToolSession

TEXT_SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}
MESSAGES = {
    "step_limit_message": "<step>",
    "task_limit_message": "<task>",
    "tool_limit_message": "<tool>",
    "same_args_message": "<same>",
}
ANY_WORDING = {"<unknown tool>", "<schema error>"}
NO_CALLS: dict[str, Any] = {
    "requested": 0,
    "success": 0,
    "failed": 0,
    "rejected": 0,
    "rejections": {},
    "failures": {},
}


def accepts(data: dict[str, Any]) -> bool:
    """Whether these are tool cases: rounds of calls, and metrics expected of them."""
    found = data.get("cases")
    return isinstance(found, list) and all(
        isinstance(case, dict) and "rounds" in case and "metrics" in case.get("expect", {})
        for case in found[:1] or [None]
    )


def cases(data: dict[str, Any]) -> Iterator[tuple[str, Callable[[], str | None]]]:
    """Name and check of each case; a check says what differs, or None."""
    for case in data["cases"]:
        yield case["name"], lambda case=case: check(case)


def check(case: Mapping[str, Any]) -> str | None:
    """Run one case and compare."""
    wanted = case["expect"]
    if case.get("disputed") and case.get("right") not in (None, "upstream"):
        wanted = case["right"]
    return asyncio.run(_Case(case).compare(wanted))


class _Case:
    def __init__(self, case: Mapping[str, Any]) -> None:
        self.rounds = case["rounds"]
        self.hook_calls = 0
        repair = dict(case.get("repair", {}))
        policy = ToolPolicy(
            **{
                **MESSAGES,
                **case.get("config", {}),
                "repair_arguments": repair.pop("enabled", False),
                **repair,
            }
        )
        self.executor = ToolExecutor(
            [_tool(given) for given in case.get("tools", [{"name": "ok"}])],
            policy,
            argument_hook=self._mark if case.get("hook") == "mark" else None,
        )

    def _mark(self, _name: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
        self.hook_calls += 1
        text = arguments.get("text")
        return {**arguments, "text": f"{text}!"} if isinstance(text, str) else None

    async def compare(self, wanted: Mapping[str, Any]) -> str | None:
        session = self.executor.begin_task()
        number = 0
        for place, (calls, expected) in enumerate(zip(self.rounds, wanted["rounds"], strict=True)):
            if calls == "reset":
                session = self.executor.begin_task()
                continue
            prepared = []
            for call in calls:
                number += 1
                prepared.append(session.prepare(_call(call, number)))
            came = await session.run_round(prepared)
            if difference := _differs_round(prepared, came, expected):
                return f"rounds[{place}].{difference}"
        if difference := _differs_metrics(session, wanted):
            return difference
        calls_wanted = wanted.get("hook_calls", self.hook_calls)
        if self.hook_calls != calls_wanted:
            return f"hook_calls: {self.hook_calls!r}, expected {calls_wanted!r}"
        return None


def _tool(given: Mapping[str, Any]) -> Tool:
    limits = {
        "max_calls": "max_calls",
        "max_same": "max_consecutive_same_args",
        "budget_message": "max_calls_message",
        "same_message": "same_args_message",
        "strict": "strict",
    }
    return Tool(
        given["name"],
        given.get("schema", TEXT_SCHEMA),
        {"ok": _ok, "fail": _fail, "boom": _boom}[given.get("does", given["name"])],
        **{ours: given[theirs] for theirs, ours in limits.items() if theirs in given},
    )


async def _ok(**arguments: Any) -> Any:
    return arguments


async def _fail(**_arguments: Any) -> ToolFailure:
    return ToolFailure("failed")


async def _boom(**_arguments: Any) -> None:
    raise RuntimeError("boom")


def _call(given: Mapping[str, Any], number: int) -> ToolCall:
    text = json.dumps(given.get("args", {}))
    return ToolCall(id=given.get("id", f"c{number}"), name=given["tool"], arguments=text)


def _differs_round(prepared: list[PreparedCall], came: Round, expected: Any) -> str | None:
    if "raised" in expected:
        return f"raised: nothing, expected {expected['raised']!r}"
    if len(came.results) != len(expected["results"]):
        return f"results: {len(came.results)}, expected {len(expected['results'])}"
    for place, (one, result, row) in enumerate(
        zip(prepared, came.results, expected["results"], strict=True)
    ):
        got = _row(one, result)
        for name in sorted(got.keys() | row.keys()):
            if not _same(got.get(name), row.get(name), name):
                return f"results[{place}].{name}: {got.get(name)!r}, expected {row.get(name)!r}"
    for name, got_value in (("task_total", came.total_calls), ("exhausted", came.exhausted)):
        if got_value != expected[name]:
            return f"{name}: {got_value!r}, expected {expected[name]!r}"
    return None


def _row(one: PreparedCall, result: ToolResult) -> dict[str, Any]:
    row = {
        "id": result.call_id,
        "status": str(result.status),
        "reason": None if result.reason is None else str(result.reason),
        "content": result.content,
    }
    if one.repairs:
        row["repaired"] = one.arguments
        row["rules"] = list(one.repairs)
    return row


def _same(got: Any, wanted: Any, name: str) -> bool:
    if name == "content" and wanted in ANY_WORDING:
        return bool(got)
    if name == "content" and str(wanted).startswith("{"):
        got, wanted = json.loads(got), json.loads(wanted)  # however non-ASCII letters are written
    return json.dumps(got, sort_keys=True) == json.dumps(wanted, sort_keys=True)


def _differs_metrics(session: ToolSession, wanted: Mapping[str, Any]) -> str | None:
    got = {name: metrics.to_dict() for name, metrics in session.metrics.items()}
    for name in sorted(got.keys() | wanted["metrics"].keys()):
        mine, theirs = got.get(name, NO_CALLS), wanted["metrics"].get(name, NO_CALLS)
        if mine != theirs:
            return f"metrics.{name}: {mine!r}, expected {theirs!r}"
    if session.unknown != wanted["unknown"]:
        return f"unknown: {session.unknown!r}, expected {wanted['unknown']!r}"
    return None
