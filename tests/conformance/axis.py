"""Axis case files: operations on a conversation, and the record after each."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

from axislab.config import (
    AssistantRollbackConfig,
    ContextLimitConfig,
    ConversationConfig,
    FormatErrorConfig,
)
from axislab.errors import AxislabError
from axislab.messages import Message, Role
from axislab.runtime.conversation import ConversationRuntime
from axislab.runtime.info import ConversationStepResult
from axislab.runtime.markers import parse_marker
from axislab.runtime.transcript import replay_visible

ABSENT = {"pending": [], "info": {}, "calibration_ratio": 1.0}
STRICT = (
    "stage",
    "action",
    "visible",
    "raw_count",
    "turn_idx",
    "rollback_count",
    "pending",
    "returned_none",
    "done_reason",
    "replay_equals_live",
    "state_unchanged",
    "budget",
    "calibration_ratio",
    "info",
    "stage_path",
    "appended",
)
IF_PRESENT = ("stage_path", "appended", "returned_none", "replay_equals_live", "budget")


def accepts(data: dict[str, Any]) -> bool:
    """True for axis files: cases with a list of operations."""
    found = data.get("cases") or []
    return bool(found) and "ops" in found[0]


def cases(data: dict[str, Any]) -> Iterator[tuple[str, Callable[[], str | None]]]:
    """Name and check of each case."""
    for case in data["cases"]:
        yield case["name"], lambda case=case: _check(case, {**data["defaults"], **case["config"]})


class Estimator:
    """The case files' own token count."""

    def __init__(self, *, additive: bool, includes_tools: bool) -> None:
        self.additive = additive
        self.includes_tools = includes_tools

    def count(self, messages: Any) -> int:
        return sum(4 + len(m.text) // 4 + 8 * len(m.tool_calls) for m in messages)


def _build(config: dict[str, Any]) -> ConversationRuntime:
    conversation = ConversationConfig(
        system_prompt=config["system_prompt"],
        user_prompt_template=config["user_prompt_template"],
        early_stop_prompt=config["early_stop_prompt"],
        final_response_prompt=config["final_response_prompt"],
        max_turns=config["max_turns"],
        context_limit=ContextLimitConfig(
            window=config["window"],
            safety_margin=config["safety_margin"],
            min_tokens_for_generation=config["min_tokens"],
            warning_threshold=config["warning_threshold"],
            preflight=config["preflight"],
        ),
        format_error=FormatErrorConfig(
            strategy=config["format_strategy"],
            format_keywords=config["format_keywords"],
            reprompt=config["format_reprompt"],
        ),
        assistant_rollback=AssistantRollbackConfig(
            refusal_keywords=config["refusal_keywords"], max_rollbacks=config["max_rollbacks"]
        ),
        agg_reject_tool_message=config["agg_reject"],
    )
    return ConversationRuntime(
        conversation,
        max_output_tokens=config["max_output_tokens"],
        estimator=Estimator(
            additive=config["estimator_additive"],
            includes_tools=config["estimator_includes_tools"],
        ),
        tools=config["tools"],
        direct_answer=_hook(config["direct_answer_prefix"], config["hook_raises_on"]),
        wants_final_prompt=lambda _: config["prompt_for_final"],
    )


def _hook(prefix: str | None, raises_on: str | None) -> Any:
    if prefix is None and raises_on is None:
        return None

    def hook(message: Message) -> str | None:
        if raises_on is not None and raises_on in message.text:
            raise RuntimeError(f"the hook raises on {raises_on!r}")
        if prefix is not None and message.text.startswith(prefix):
            return message.text[len(prefix) :].strip() or None
        return None

    return hook


class Session:
    """One case being run."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.runtime: ConversationRuntime | None = None
        self.problem: AxislabError | None = None
        try:
            self.runtime = _build(config)
        except AxislabError as problem:
            self.problem = problem
        self.last_visible: list[str] | None = None

    def run(self, op: dict[str, Any]) -> dict[str, Any]:
        before = self.state()
        record: dict[str, Any] = {}
        try:
            if self.runtime is None:
                raise self.problem or AxislabError("no conversation")
            result = self.call(op["op"], op)
            record |= _reported(op["op"], result)
        except AxislabError as problem:
            record["raised"] = type(problem).__name__
            record["state_unchanged"] = self.state() == before
        return record | self.state()

    def call(self, name: str, op: dict[str, Any]) -> Any:
        if name == "clone":
            self.runtime = self.runtime.clone()
            return None
        return OPERATIONS[name](self.runtime, op)

    def state(self) -> dict[str, Any]:
        rt = self.runtime
        if rt is None:
            return {
                "stage": "not_initialized",
                "action": None,
                "visible": [],
                "raw_count": 0,
                "turn_idx": 0,
                "rollback_count": 0,
                "pending": [],
                "calibration_ratio": 1.0,
            }
        return {
            "stage": str(rt.stage),
            "action": None if rt.action is None else str(rt.action),
            "visible": [_row(m) for m in rt.visible],
            "raw_count": len(rt.full),
            "turn_idx": rt.turn_idx,
            "rollback_count": rt.rollback_count,
            "pending": [c.id for c in rt.pending],
            "calibration_ratio": rt.calibration_ratio,
        }


def _observe(rt: ConversationRuntime, op: dict[str, Any]) -> bool:
    view = rt.visible
    sent = view if op["view"] == "current" else list(view)[:-1]
    return rt.record_observed_prompt_tokens(sent, op["n"])


def _tools(rt: ConversationRuntime, op: dict[str, Any]) -> ConversationStepResult:
    return rt.apply_batch_tool_messages(
        [_result(r) for r in op["results"]],
        tools_exhausted=op.get("tools_exhausted", False),
        rejected_ids=op.get("rejected"),
    )


OPERATIONS: dict[str, Callable[[ConversationRuntime, dict[str, Any]], Any]] = {
    "init": lambda rt, op: rt.initialize_conversation(op["task"]),
    "assistant": lambda rt, op: rt.apply_assistant_message(_assistant(op), op.get("finish_reason")),
    "tools": _tools,
    "rollback_tool_calls": lambda rt, op: rt.rollback_assistant_tool_calls(op["reason"]),
    "reset_rollback_counter": lambda rt, op: rt.reset_rollback_counter(),
    "rollback_latest_exchange": lambda rt, op: rt.rollback_latest_tool_exchange_and_force_finalize(
        **({"reason": op["reason"]} if "reason" in op else {})
    ),
    "force_finalize_after_error": lambda rt, op: rt.force_finalize_due_to_context_limit_after_error(
        op.get("error_info")
    ),
    "observe": _observe,
    "marker": lambda rt, op: rt.append_raw_marker(_marker(op)),
    "replay": lambda rt, op: list(replay_visible(rt.full)) == list(rt.visible),
    "set_max_turns": lambda rt, op: setattr(rt, "max_turns", op["n"]),
    "budget": lambda rt, op: rt.budget(),
    "reopen": lambda rt, op: rt.reopen_after_context_reset(),
    "reset": lambda rt, op: rt.reset(),
}


def _reported(name: str, result: Any) -> dict[str, Any]:
    if name in ("rollback_tool_calls", "rollback_latest_exchange"):
        base: dict[str, Any] = {"returned_none": result is None}
    else:
        base = {}
    if name == "replay":
        base["replay_equals_live"] = result
    elif name == "budget":
        base["budget"] = result.to_dict()
    if not isinstance(result, ConversationStepResult) or name in ("marker", "reopen"):
        return base
    info = json.loads(json.dumps(result.info.conditional()))
    return base | {
        "stage_path": list(result.stage_path),
        "appended": [_appended(m) for m in result.appended],
        "info": info,
        "done_reason": result.done_reason,
    }


def _appended(message: Message) -> Any:
    marker = parse_marker(message)
    if marker is None:
        return _row(message)
    return {"marker": marker.name, "payload": marker.payload()}


def _row(message: Message) -> str:
    digest = hashlib.sha1(message.text.encode()).hexdigest()[:10]
    tail = ""
    if message.tool_calls:
        tail = "calls=" + ",".join(c.id for c in message.tool_calls)
    elif message.role is Role.TOOL:
        tail = f"for={message.tool_call_id};name={message.name}"
    return f"{message.role}|{digest}|{tail}"


def _assistant(op: dict[str, Any]) -> Message:
    keys = ("content", "tool_calls", "reasoning_content")
    return Message.from_dict({"role": op.get("role", "assistant"), **{k: op.get(k) for k in keys}})


def _result(row: dict[str, Any]) -> Message:
    return Message.from_dict(
        {
            "role": row.get("role", "tool"),
            "content": row.get("content"),
            "tool_call_id": row.get("id"),
            "name": row.get("name"),
        }
    )


def _marker(op: dict[str, Any]) -> Message:
    if op["kind"] == "raw":
        return Message(role=Role.RUNTIME, name=op.get("name"), content=op.get("content"))
    payload = {k: v for k, v in op.items() if k not in ("op", "kind")}
    return Message(role=Role.RUNTIME, name=op["kind"], content=json.dumps(payload))


def _check(case: dict[str, Any], config: dict[str, Any]) -> str | None:
    right = case.get("right")
    expected = right if case.get("disputed") and isinstance(right, list) else case["expect"]
    session = Session(config)
    previous: list[str] | None = None
    for number, (op, want) in enumerate(zip(case["ops"], expected, strict=True)):
        got = session.run(op)
        visible = previous if want.get("visible") == "same" else want.get("visible")
        for key in STRICT:
            difference = _differs(key, want, got, visible)
            if difference is not None:
                return f"operation {number} ({op['op']}): {difference}"
        if ("raised" in want) != ("raised" in got):
            return (
                f"operation {number} ({op['op']}): raised {got.get('raised')!r}, "
                f"expected {want.get('raised')!r}"
            )
        previous = visible
    return None


def _differs(
    key: str, want: dict[str, Any], got: dict[str, Any], visible: list[str] | None
) -> str | None:
    if key in IF_PRESENT and key not in want:
        return None
    expected = visible if key == "visible" else want.get(key, ABSENT.get(key))
    actual = got.get(key, ABSENT.get(key))
    close = key == "calibration_ratio" and abs(expected - actual) <= 1e-9
    same = close or expected == actual
    return None if same else f"{key}: got {actual!r}, expected {expected!r}"
