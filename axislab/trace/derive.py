"""Small values derived from a trace: rollbacks, tool tallies, token totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from axislab.events import (
    MessageAppended,
    ModelRequested,
    PhaseChanged,
    StepTaken,
    ToolFinished,
    ToolStarted,
)
from axislab.messages import Message, Role, ToolStatus, Usage
from axislab.runtime.markers import Rollback as RollbackMarker
from axislab.runtime.markers import parse_marker
from axislab.trace.trace import Record, Trace

_PREVIEW = 240


@dataclass(frozen=True, slots=True)
class Rollback:
    """One time that messages were hidden from the model."""

    step: int
    reason: str
    count: int
    """Messages hidden."""
    hidden: tuple[str, ...]
    """A short preview of each, oldest first."""


@dataclass(frozen=True, slots=True)
class ToolTally:
    """How often one tool was called, and how it went."""

    name: str
    calls: int
    failed: int
    """It ran, or its arguments were read, and it did not work."""
    rejected: int
    """It was not run: unknown tool, limit, policy or person."""


def stage_path(trace: Trace) -> list[str]:
    """All stages of a run in order; where two steps join, the stage stands once."""
    path: list[str] = []
    for step in trace.of(StepTaken.kind):
        stages = step.data["stage_path"]
        path += stages[1:] if path and stages and stages[0] == path[-1] else stages
    return path


def phase_seconds(trace: Trace) -> dict[str, float]:
    """Seconds spent in each phase, as far as they were measured."""
    seconds: dict[str, float] = {}
    for change in trace.of(PhaseChanged.kind):
        source, took = change.data.get("source"), change.data.get("seconds")
        if source is not None and took is not None:
            seconds[source] = seconds.get(source, 0.0) + took
    return seconds


def rollbacks(trace: Trace) -> list[Rollback]:
    """Each time that messages were hidden, with what was hidden."""
    found = []
    for place, record in enumerate(trace.of(MessageAppended.kind)):
        if record.data["message"].get("role") != Role.RUNTIME:
            continue
        marker = parse_marker(Message.from_dict(record.data["message"]))
        if isinstance(marker, RollbackMarker):
            before, after = trace.transcripts[place : place + 2]
            hidden = tuple(map(preview, before.visible[after.visible_count :]))
            found.append(Rollback(record.data["step"], marker.reason, len(hidden), hidden))
    return found


def tool_tallies(trace: Trace) -> list[ToolTally]:
    """How often each tool was called, in order of first use; calls in flight count as calls."""
    finished = trace.of(ToolFinished.kind)
    answered = {record.data["call_id"] for record in finished}
    in_flight = [r for r in trace.of(ToolStarted.kind) if r.data["call_id"] not in answered]
    calls: Counter[str] = Counter()
    statuses: Counter[tuple[str, str]] = Counter()
    for record in (*finished, *in_flight):
        calls[record.data["name"]] += 1
        statuses[record.data["name"], record.data.get("status", "")] += 1
    return [
        ToolTally(name, n, statuses[name, ToolStatus.FAILED], statuses[name, ToolStatus.REJECTED])
        for name, n in calls.items()
    ]


def usage(trace: Trace) -> Usage:
    """Tokens of all requests that were sent; None where an answered one did not report them."""
    return _usage([row for row in agent_requests(trace) if not row.data.get("cached")])


def saved_usage(trace: Trace) -> Usage:
    """Tokens of the replies that came from the reply cache; None likewise."""
    return _usage(cached_requests(trace))


def cached_requests(trace: Trace) -> list[Record]:
    """The requests that were not sent, because the reply cache had the reply."""
    return [row for row in agent_requests(trace) if row.data.get("cached")]


def saved_usd(trace: Trace) -> float | None:
    """What the cached replies had cost; None where that of one is not known."""
    values = _known(cached_requests(trace), "saved_usd")
    return None if values is None else float(sum(values))


def _usage(rows: Sequence[Record]) -> Usage:
    return Usage(
        input_tokens=_tokens(rows, "input_tokens"),
        output_tokens=_tokens(rows, "output_tokens"),
        cached_tokens=_tokens(rows, "cached_tokens"),
        cache_write_tokens=_tokens(rows, "cache_write_tokens"),
        reasoning_tokens=_tokens(rows, "reasoning_tokens"),
        estimated=any(row.data.get("usage_estimated") for row in rows),
    )


def cost_usd(trace: Trace) -> float | None:
    """US dollars of all requests; None where the price of an answered one is not known."""
    return _cost(agent_requests(trace))


def grading_usd(trace: Trace) -> float | None:
    """The same of the requests to a grading model, which are no part of what the agent cost."""
    return _cost([r for r in trace.of(ModelRequested.kind) if _grades(r)])


def agent_requests(trace: Trace) -> list[Record]:
    """The agent's own requests: those of a grading model measure it, and are not counted."""
    return [row for row in trace.of(ModelRequested.kind) if not _grades(row)]


def _grades(row: Record) -> bool:
    return str(row.data["purpose"]).startswith("grading")


def _cost(rows: Sequence[Record]) -> float | None:
    values = _known(rows, "cost_usd")
    return None if values is None else sum(values)


def _tokens(rows: Sequence[Record], name: str) -> int | None:
    values = _known(rows, name)
    return None if values is None else int(sum(values))


def _known(rows: Sequence[Record], name: str) -> list[float] | None:
    """The numbers of all requests; one that used nothing known may lack it, no other may."""
    values = []
    for row in rows:
        if (value := row.data.get(name)) is not None:
            values.append(value)
        elif row.data["outcome"] == "ok" or _used_some(row):
            return None  # answered, or billed all the same
    return values


def _used_some(row: Record) -> bool:
    return any(row.data.get(name) is not None for name in ("input_tokens", "output_tokens"))


def preview(message: Message) -> str:
    """One short line of a message: its role, its text or its calls."""
    calls = "; ".join(f"{call.name}({call.arguments})" for call in message.tool_calls)
    text = " ".join(f"{message.text[: 4 * _PREVIEW]} {calls[: 4 * _PREVIEW]}".split())
    short = text if len(text) <= _PREVIEW else text[:_PREVIEW] + "…"
    return f"{message.role!s}: {short}"
