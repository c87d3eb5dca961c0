"""What came of one pair: the few figures of a run that comparisons are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from axislab.events import ModelRequested
from axislab.messages import Role
from axislab.models.prefix import MARK
from axislab.runtime.markers import Rollback, parse_marker
from axislab.runtime.refusals import even, find_refusals
from axislab.trace.run import Run

ENDS = ("answered", "format_error", "refused", "exhausted", "failed")
"""What may have come of a run; each run is one of them."""

_EXHAUSTED = frozenset(
    {
        "terminated_token_exceed",
        "terminated_loop_safety_limit",
        "assistant_tool_calls_rejected_due_to_force_finalization",
    }
)
"""Done reasons of a run that a limit ended, whatever its last reply was."""

_NO_COST = "what its replies, or those it got from the cache, had cost is not known"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One finished run, in figures. None is not known, never zero."""

    run_id: str
    arm: str
    task_id: str
    repeat: int
    kind: str | None
    cluster: str | None
    status: str
    end: str
    """answered, format_error, refused, exhausted or failed."""
    correct: bool | None
    """The scorer's verdict; a run without an answer is wrong, one that nobody can judge is NA."""
    score: float | None
    turns: int
    rollbacks: int
    requests: int
    cached_requests: int
    """Those that the reply cache answered."""
    shared_requests: int
    """Those of a main loop that arms share."""
    shared_tokens: int | None
    """Tokens of those, whoever sent them."""
    given_requests: int
    """Those of them that another arm sent."""
    input_tokens: int | None
    """Tokens the run needed, those of the reply cache included; so the other two."""
    output_tokens: int | None
    cached_tokens: int | None
    """Input that the provider read from its own cache."""
    cost_usd: float | None
    """US dollars the run needed, those that the reply cache saved included."""
    spent_usd: float | None
    cost_missing: str | None
    seconds: float | None
    """What the run would have taken without cache and sharing."""
    error: str | None
    request_ids: tuple[str, ...]
    """Of the provider; none of a simulated model, whose ids begin anew in every process."""
    cache_keys: tuple[str, ...]
    """Of the reply cache; replies of one key are copies."""

    @property
    def tokens(self) -> int | None:
        """Input and output together."""
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens


def outcome_of(run: Run) -> Outcome:
    """The figures of a run that is over."""
    rows = [record.data for record in run.trace.of(ModelRequested.kind)]
    shared = [row for row in rows if _is_shared(row)]
    given = sum(bool(row.get("cached")) for row in shared)
    usage, saved = run.usage, run.saved_usage
    spent = run.cost_usd
    cost = _sum(spent, run.saved_usd)
    why = next((row["cost_missing"] for row in rows if row.get("cost_missing")), None)
    return Outcome(
        run_id=run.id,
        arm=run.arm or "",
        task_id=run.task_id,
        repeat=run.repeat,
        kind=_of_task(run, "kind"),
        cluster=_of_task(run, "cluster"),
        status=run.status,
        end=end_of(run),
        correct=_correct(run),
        score=_score(run),
        turns=run.turns,
        rollbacks=sum(isinstance(parse_marker(m), Rollback) for m in run.messages),
        requests=len(rows),
        cached_requests=run.cached_requests - given,
        shared_requests=len(shared),
        shared_tokens=_tokens_of(shared),
        given_requests=given,
        input_tokens=_total(usage.input_tokens, saved.input_tokens),
        output_tokens=_total(usage.output_tokens, saved.output_tokens),
        cached_tokens=_total(usage.cached_tokens, saved.cached_tokens),
        cost_usd=cost,
        spent_usd=spent,
        cost_missing=None if cost is not None else why or _NO_COST,
        seconds=_seconds(run, rows),
        error=run.error,
        request_ids=() if run.simulated else _named(rows, "request_id"),
        cache_keys=_named(rows, "cache_key"),
    )


def end_of(run: Run) -> str:
    """Which of the five ends a run came to."""
    if run.answer is not None and run.status == "COMPLETED":
        return "answered"
    if run.answer_status in ("refused", "exhausted"):
        return run.answer_status
    if run.error_kind == "content_policy" or _refuses(run):
        return "refused"
    reason = run.done_reason or ""
    forced = reason.startswith("terminated_") and run.answer_status != "format_error"
    if forced or reason in _EXHAUSTED or run.error_kind == "context_limit":
        return "exhausted"
    if run.status == "FAILED":
        return "failed"
    return "format_error"


def _refuses(run: Run) -> bool:
    """Its last reply, hidden or not, was a refusal."""
    for message in reversed(run.messages):
        if message.role is Role.ASSISTANT:
            return not message.tool_calls and any(find_refusals(even(message.text)))
    return False


def _correct(run: Run) -> bool | None:
    if run.correct is not None:
        return run.correct
    if run.expected is None or run.error_kind == "scorer":
        return None
    return False  # it failed before it could be judged


def _score(run: Run) -> float | None:
    if run.score is not None:
        return run.score
    return 0.0 if _correct(run) is False else None


def _of_task(run: Run, key: str) -> str | None:
    value = (run.task.get("metadata") or {}).get(key)
    return None if value is None else str(value)


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def _total(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _is_shared(row: Mapping[str, Any]) -> bool:
    return str(row.get("cache_key") or "").startswith(MARK)


def _tokens_of(rows: Sequence[Mapping[str, Any]]) -> int | None:
    given = [(row.get("input_tokens"), row.get("output_tokens")) for row in rows]
    if any(tokens is None for pair in given for tokens in pair):
        return None
    return sum(tokens or 0 for pair in given for tokens in pair)


def _seconds(run: Run, rows: Sequence[Mapping[str, Any]]) -> float | None:
    if run.seconds is None:
        return None
    cached = [row for row in rows if row.get("cached")]
    saved = sum((row.get("saved_seconds") or 0.0) - (row.get("latency") or 0.0) for row in cached)
    return max(run.seconds + saved, 0.0) if cached else run.seconds


def _named(rows: Sequence[Mapping[str, Any]], key: str) -> tuple[str, ...]:
    return tuple(str(row[key]) for row in rows if row.get(key))
