"""What a live view says about a run: a few rows of escaped HTML, cheap enough for ten a second."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import islice
from typing import Any

from axislab.events import MessageAppended, ModelRequested, StepTaken, ToolFinished, ToolStarted
from axislab.messages import Role
from axislab.trace.card import STAGE_LABEL, context_window, esc, stage_kind
from axislab.trace.run import Run
from axislab.trace.trace import Record

MOST_TEXT = 200
"""Characters shown of a question, a tool result, a reply, an answer or an error."""
NEWEST_STAGES = 8
"""Stages of the path that are shown, the newest last."""

_STYLE = """
.axl-live{font:13px/1.5 var(--jp-ui-font-family,system-ui,sans-serif);color:inherit;
 color:var(--jp-ui-font-color1,inherit);max-width:960px;overflow-wrap:break-word}
.axl-live .t{unicode-bidi:isolate}
.axl-live .dim{opacity:.75}
.axl-live .chip{display:inline-block;border:1px solid currentColor;border-radius:4px;
 padding:0 6px;margin:1px 4px 1px 0;white-space:nowrap}
.axl-live .now{font-weight:700;border-width:2px}
.axl-live .recovery{border-color:var(--jp-warn-color1,#d9822b);border-style:dashed}
.axl-live .finalization{border-color:#9a6fc4;border-style:dotted;border-width:2px}
.axl-live .good{border-color:var(--jp-success-color1,#3a9d5d);border-width:2px}
.axl-live .bad{border-color:var(--jp-error-color1,#d04848);border-width:2px}
.axl-live .meter{height:6px;border:1px solid currentColor;border-radius:3px;width:320px;
 max-width:100%;opacity:.75}
.axl-live .meter div{height:100%;background:currentColor}
.axl-live dl{display:grid;grid-template-columns:max-content 1fr;gap:1px 12px;margin:4px 0}
.axl-live dt{opacity:.75;font-weight:400}
.axl-live dt,.axl-live dd{margin:0;float:none;width:auto}
"""

_STATUS_KIND = {
    "COMPLETED": "good",
    "FAILED": "bad",
    "CANCELLED": "bad",
    "INTERRUPTED": "bad",
    "WAITING_APPROVAL": "recovery",
}
_STAGE_CSS = {"end": "good", "bad end": "bad"}


def live_html(run: Run, *, status: str, phase: str | None, note: str = "", coming: str = "") -> str:
    """A run as it stands, which may still go on; all text in it is escaped.

    Args:
        run: The run.
        status: Its status now, which may be a moment ahead of its trace.
        phase: Its phase now.
        note: A remark below it.
        coming: The reply that is being streamed, as HTML.
    """
    rows = [
        ("question", _text(run.prompt)),
        ("stages", _stages(run)),
        ("turn", _turn(run)),
        ("budget", _budget(run)),
        ("rollbacks", _rollbacks(run)),
        ("last tool", _last_tool(run)),
        ("last reply", _last_reply(run)),
        ("reply now", coming),
        ("answer", _answer(run)),
        ("error", _error(run)),
    ]
    facts = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows if value)
    below = f'<div class="dim">{esc(note)}</div>' if note else ""
    return (
        f"<style>{_STYLE}</style>"
        '<div class="axl-live tex2jax_ignore mathjax_ignore" role="group" aria-label="live run">'
        f"{_head(run, status, phase)}<dl>{facts}</dl>{below}</div>"
    )


def _head(run: Run, status: str, phase: str | None) -> str:
    parts = [_chip(status, f"now {_STATUS_KIND.get(status, '')}".strip())]
    if run.simulated:
        parts.append(_chip("SIMULATED: no real model answered", "recovery"))
    if phase:
        parts.append(f"<span>{esc(phase.lower().replace('_', ' '))}</span>")
    parts.append(f'<span class="dim">task</span> {_text(run.task_id)}')
    parts.append(f'<span class="dim">model</span> {_text(run.model)}')
    return f"<div>{' '.join(parts)}</div>"


def _chip(text: str, css: str, title: str = "") -> str:
    hint = f' title="{esc(title)}"' if title else ""
    return f'<span class="chip {css}"{hint}>{esc(text)}</span>'


def _text(text: object) -> str:
    whole = str(text)
    cut = ""
    if len(whole) > MOST_TEXT:
        cut = f'… <span class="dim">({MOST_TEXT} of {len(whole):,} characters)</span>'
    return f'<span class="t" dir="auto">{esc(whole[:MOST_TEXT])}</span>{cut}'


def _stages(run: Run) -> str:
    """The newest stages; read from the newest steps only, however long the run is."""
    newest: list[str] = []
    for step in reversed(run.trace.of(StepTaken.kind)):
        stages = list(step.data["stage_path"])
        newest = (stages[:-1] if newest and stages[-1:] == newest[:1] else stages) + newest
        if len(newest) > NEWEST_STAGES:
            break
    if not newest:
        return ""
    dots = "… " if len(newest) > NEWEST_STAGES else ""
    *past, now = newest[-NEWEST_STAGES:]
    return dots + " ".join([*map(_stage, past), _stage(now, now=True)])


def _stage(stage: str, *, now: bool = False) -> str:
    kind = stage_kind(stage)
    css = _STAGE_CSS.get(kind, kind.replace(" ", "-")) + (" now" if now else "")
    return _chip(STAGE_LABEL.get(stage, stage), css, f"{kind}: {stage}")


def _turn(run: Run) -> str:
    most = _number_at(run.recipe, "config", "conversation", "max_turns")
    of = f" of at most {most:,}" if most else ""
    kept = f" ({run.cached_requests:,} from the reply cache)" if run.cached_requests else ""
    return esc(f"{run.turns:,}{of} · {run.steps:,} steps · {run.requests:,} requests{kept}")


def _number_at(value: object, *names: str) -> int | None:
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, int) else None


def _newest(run: Run, kind: str, name: str) -> Any:
    rows = (row.data.get(name) for row in reversed(run.trace.of(kind)))
    return next((value for value in rows if value is not None), None)


def _budget(run: Run) -> str:
    """What the next prompt is estimated to take, and what the provider counted last."""
    estimate = _newest(run, StepTaken.kind, "estimated_tokens")
    if estimate is None:
        return ""
    counted = _newest(run, ModelRequested.kind, "input_tokens")
    parts = [f"about {estimate:,} prompt tokens next"]
    if counted is not None:
        parts.append(f"{counted:,} counted last")
    window = context_window(run)
    if window is None:
        return esc(" · ".join([*parts, "window not set"]))
    share = estimate / window
    parts.append(f"{share:.0%} of the window of {window:,}")
    width = f"{100 * min(max(share, 0.0), 1.0):.1f}%"
    return (
        esc(" · ".join(parts)) + '<div class="meter" role="img" aria-label="share of the window">'
        f'<div style="width:{width}"></div></div>'
    )


def _rollbacks(run: Run) -> str:
    """How many of each reason, and the newest; read from the steps, which say so."""
    rows = [r for r in run.trace.of(StepTaken.kind) if r.data.get("rollback_reason") is not None]
    if not rows:
        return '<span class="dim">none</span>'
    times = Counter(str(row.data["rollback_reason"]) for row in rows)
    newest = rows[-1].data
    hidden = newest.get("rollback_message_count") or 0
    counted = ", ".join(f"{esc(reason)} × {n}" for reason, n in times.items())
    last = f"last at step {newest['step']}, {hidden} message{'s' * (hidden != 1)} hidden"
    return f'{counted} <span class="dim">({esc(last)})</span>'


def _last_tool(run: Run) -> str:
    """The newest tool call; one that is running now counts."""
    started, finished = run.trace.of(ToolStarted.kind), run.trace.of(ToolFinished.kind)
    answered = {row.data["call_id"] for row in islice(reversed(finished), 50)}
    newest: Record | None = finished[-1] if finished else None
    if started and started[-1].data["call_id"] not in answered:
        newest = started[-1]
    if newest is None:
        return ""
    data = newest.data
    if newest.kind == ToolStarted.kind:
        return f'{_text(data["name"])} <span class="dim">running</span> {_text(data["arguments"])}'
    state = f'<span class="dim">{esc(data["status"])}</span>'
    return f"{_text(data['name'])} {state} {_text(data['content'])}"


def _last_reply(run: Run) -> str:
    for row in reversed(run.trace.of(MessageAppended.kind)):
        message = row.data["message"]
        if message.get("role") == Role.ASSISTANT and isinstance(message.get("content"), str):
            return _text(message["content"]) if message["content"] else ""
    return ""


def _answer(run: Run) -> str:
    if run.answer is None:
        return ""
    judged = {True: _chip("✓ correct", "good"), False: _chip("✗ wrong", "bad"), None: ""}
    expected = f' <span class="dim">expected</span> {_text(run.expected)}'
    wrong = expected if run.correct is False else ""
    return f"<b>{_text(run.answer)}</b> {judged[run.correct]}{wrong}"


def _error(run: Run) -> str:
    if not (run.error or run.error_kind):
        return ""
    return _text(": ".join(part for part in (run.error_kind, run.error) if part))
