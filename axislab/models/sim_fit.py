"""Counting failures in recorded runs: how often each happened, of how often it could have."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from axislab.messages import Message, Role


class RecordLike(Protocol):
    """A line of a trace."""

    @property
    def data(self) -> Mapping[str, Any]:
        """The payload of the event."""


class TraceLike(Protocol):
    """What a trace must offer."""

    def of(self, kind: str, /) -> Sequence[RecordLike]:
        """The lines of one kind."""


class RunLike(Protocol):
    """What a run must offer."""

    @property
    def trace(self) -> TraceLike:
        """Its record."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Rates and what there is to say about them."""

    rates: dict[str, float]
    notes: tuple[str, ...]


@dataclass(slots=True)
class _Counts:
    seen: dict[str, int] = field(default_factory=dict)
    chances: dict[str, int] = field(default_factory=dict)
    words: list[int] = field(default_factory=list)
    facts: list[int] = field(default_factory=list)

    def add(self, name: str, happened: bool, *, times: int = 1) -> None:
        self.chances[name] = self.chances.get(name, 0) + times
        self.seen[name] = self.seen.get(name, 0) + (times if happened else 0)

    def rate(self, name: str) -> float | None:
        chances = self.chances.get(name, 0)
        if not chances:
            return None
        return (self.seen.get(name, 0) + PRIOR * WEIGHT) / (chances + WEIGHT)


PRIOR, WEIGHT = 0.01, 1.0
"""The pseudo observation of the smoothing: its rate and how much it counts."""
WORDS = 400
"""Extra words of a reply at verbosity 1."""

_UNSEEN = {
    "guess": "whether an answer had evidence cannot be seen in a trace",
    "parallel_calls": "whether two things were to be looked up cannot be seen in a trace",
}
_OUTCOMES = {
    "rate_limit": "rate_limit",
    "timeout": "timeout",
    "context_error": "context_limit",
    "truncation_error": "truncated",
}
_REFUSAL = re.compile(
    r"^\W*(?:i['’]?m sorry|i am sorry|sorry|i apologi[sz]e|unfortunately)?\W*(?:but )?"
    r"(?:i (?:can['’]?t|cannot|can not|won['’]?t|am unable to|['’]?m unable to|am not able to)) "
    r"(?:\w+ )?(?:help|assist|comply|do|solve|provide|fulfil\w*|continue|answer|work on)\b",
    re.I,
)
_FENCED = re.compile(r"```(?:json)?\s*\{[^`]*\"(?:name|tool|function)\"", re.S)
_BARE = re.compile(r"^\s*\w+\((?:\w+\s*=\s*)?[\"'].*\)\s*$", re.S)
_MARKS: Mapping[str, Callable[[str], bool]] = {
    "text_call_hermes": lambda text: "<tool_call>" in text or "<use_mcp_tool>" in text,
    "text_call_fenced": lambda text: bool(_FENCED.search(text)),
    "text_call_bare": lambda text: bool(_BARE.match(text)),
}
TEXT_CALLS = tuple(_MARKS)


def fit_rates(runs: Iterable[RunLike]) -> Fit:
    """Rates per opportunity, smoothed; see `FailureProfile.from_traces`."""
    counts = _Counts()
    runs = list(runs)
    for run in runs:
        _count_requests(run.trace, counts)
        _count_replies(run.trace, counts)
        _count_calls(run.trace, counts)
        _count_end(run.trace, counts)
    rates, notes = {}, [f"fitted to {len(runs)} runs"]
    for name in _NAMES:
        value = counts.rate(name)
        if value is None:
            notes.append(f"{name}: {_UNSEEN.get(name, 'no opportunity in these runs')}; left at 0")
        else:
            rates[name] = value
    if counts.words:
        rates["verbosity"] = min(1.0, sum(counts.words) / len(counts.words) / WORDS)
    if "slip" in rates and counts.facts:
        steps = max(1.0, sum(counts.facts) / len(counts.facts))
        rates["slip"] = 1.0 - (1.0 - rates["slip"]) ** (1.0 / steps)
        notes.append(
            f"slip: from wrong and missing answers in final replies of good form, spread over "
            f"{steps:.1f} facts a run"
        )
    return Fit(rates, tuple(notes))


_NAMES = (
    "slip", "guess", "refuse", "refuse_persistent", "empty", "cut_by_length", *TEXT_CALLS,
    "broken_arguments", "misnamed_argument", "wrong_tool", "repeat_query", "forget_box",
    "open_box", *_OUTCOMES, "parallel_calls",
)  # fmt: skip


def _count_requests(trace: TraceLike, counts: _Counts) -> None:
    calls_before = _first_call_step(trace)
    for record in trace.of("model.request"):
        outcome = record.data.get("outcome")
        for name, word in _OUTCOMES.items():
            if name != "truncation_error" or calls_before < int(record.data.get("step", 0)):
                counts.add(name, outcome == word)
        if outcome == "ok" and record.data.get("finish_reason") is not None:
            counts.add("cut_by_length", record.data["finish_reason"] == "length")


def _first_call_step(trace: TraceLike) -> float:
    steps = [int(r.data.get("step", 0)) for r in trace.of("tool.started")]
    return min(steps, default=float("inf"))


def _replies(trace: TraceLike) -> list[Message]:
    messages = [Message.from_dict(r.data["message"]) for r in trace.of("message")]
    return [m for m in messages if m.role is Role.ASSISTANT]


def _count_replies(trace: TraceLike, counts: _Counts) -> None:
    refused = {int(r.data["step"]) for r in trace.of("step") if _by_refusal(r.data)}
    declined: list[bool] = []
    for record in trace.of("message"):
        message = Message.from_dict(record.data["message"])
        if message.role is not Role.ASSISTANT:
            continue
        text = message.text.strip()
        hit = int(record.data.get("step", -1)) in refused or bool(_REFUSAL.match(text))
        declined.append(hit and not message.tool_calls)
        counts.add("empty", not text and not message.tool_calls)
        if text:
            counts.words.append(len(text.split()))
        kinds = [name for name, mark in _MARKS.items() if not message.tool_calls and mark(text)]
        if message.tool_calls or kinds:
            for name in TEXT_CALLS:
                counts.add(name, name in kinds[:1])
    persistent = len(declined) > 1 and all(declined)
    if declined:
        counts.add("refuse_persistent", persistent)
    for one in declined if not persistent else ():
        counts.add("refuse", one)


def _by_refusal(step: Mapping[str, Any]) -> bool:
    return step.get("rollback_reason") == "assistant_refusal"


def _count_calls(trace: TraceLike, counts: _Counts) -> None:
    asked: set[str] = set()
    for message in _replies(trace):
        for call in message.tool_calls:
            arguments = _arguments(call.arguments)
            counts.add("broken_arguments", arguments is None)
            key = f"{call.name} {json.dumps(arguments, sort_keys=True)}"
            if asked:
                counts.add("repeat_query", arguments is not None and key in asked)
            asked.add(key)
    for record in trace.of("tool.finished"):
        reason = record.data.get("reason")
        raw = record.data.get("raw_arguments", record.data.get("arguments"))
        counts.add("wrong_tool", reason == "unknown_tool")
        wrong = reason == "parameter_error" or bool(record.data.get("repairs"))
        counts.add("misnamed_argument", wrong and _arguments(raw) is not None)


def _arguments(text: Any) -> dict[str, Any] | None:
    try:
        data = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


def _count_end(trace: TraceLike, counts: _Counts) -> None:
    finishes = [r.data.get("finish_reason") for r in trace.of("model.request")]
    for record in trace.of("run.finished"):
        output, correct = str(record.data.get("output") or ""), record.data.get("correct")
        whole = (not finishes or finishes[-1] != "length") and _is_answer(output)
        if whole and correct is not None:
            counts.add("slip", not correct)
            counts.facts.append(_facts_needed(trace))
        if whole and _wants_box(trace):
            boxed = "\\boxed" in output
            counts.add("forget_box", not boxed)
            counts.add("open_box", boxed and not _closed(output))


def _facts_needed(trace: TraceLike) -> int:
    """Facts an answer rests on: the hops of the task, else the tool calls that worked."""
    for record in trace.of("run.started"):
        hops = (record.data.get("task", {}).get("metadata") or {}).get("hops")
        if isinstance(hops, int) and hops > 0:
            return hops
    return sum(1 for r in trace.of("tool.finished") if r.data.get("status") == "success")


def _is_answer(output: str) -> bool:
    if not output.strip() or _REFUSAL.match(output.strip()):
        return False
    return not any(mark(output) for mark in _MARKS.values())


def _wants_box(trace: TraceLike) -> bool:
    for record in trace.of("message"):
        message = Message.from_dict(record.data["message"])
        if message.role in (Role.SYSTEM, Role.USER) and "\\boxed" in message.text:
            return True
    return False


def _closed(output: str) -> bool:
    depth = 0
    for char in output[output.rindex("\\boxed") :]:
        depth += {"{": 1, "}": -1}.get(char, 0)
        if char == "}" and depth == 0:
            return True
    return False
