"""The card of a run: static HTML for a notebook, everything a model or tool wrote escaped."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from axislab.events import ModelRequested, StepTaken
from axislab.runtime.stages import STAGE_KIND, ConversationStage
from axislab.trace.lines import clean_text
from axislab.trace.trace import Record

if TYPE_CHECKING:
    from axislab.trace.run import Run

MOST_STAGES = 60
"""Longer stage paths are folded in the middle."""
MOST_OUTPUT = 2000
"""Characters of the output that are shown."""
_MOST_TEXT = 400
_MOST_ROWS = 30
_PROMPT_TOKENS = ("input_tokens", "estimated_prompt_tokens")

_S = ConversationStage

STAGE_LABEL: Mapping[str, str] = {
    _S.NOT_INITIALIZED: "start",
    _S.SYSTEM_MESSAGE_SET: "system",
    _S.INITIAL_USER: "task",
    _S.TOOL_MESSAGES: "results",
    _S.RECEIVED: "reply",
    _S.TOOL_CALLS: "calls",
    _S.FINAL_PROMPT: "summary asked",
    _S.REPROMPT: "reprompt",
    _S.ROLLBACK: "rollback",
    _S.CONTEXT_ROLLBACK: "context rollback",
    _S.FORCE_FINAL: "answer forced",
    _S.COMPLETED: "completed",
    _S.FORCE_COMPLETED: "completed, forced",
    _S.CALLS_REJECTED: "calls rejected",
    _S.TOKEN_EXCEEDED: "out of tokens",
}
"""A short name of each stage; the full one is in the chip's title."""

_BAD_ENDS = frozenset({_S.CALLS_REJECTED, _S.TOKEN_EXCEEDED})
_KIND_SIGN = {
    "setup": "○",
    "normal": "▸",
    "recovery": "↩",
    "finalization": "⚑",
    "end": "✓",
    "bad end": "✗",
    "unknown": "?",
}

_STYLE = """
.axl-card{font:13px/1.45 var(--jp-ui-font-family,system-ui,sans-serif);color:inherit;
 border:1px solid var(--jp-border-color2,rgba(128,128,128,.45));border-radius:6px;
 padding:10px 14px;max-width:960px;background:transparent;overflow-wrap:break-word}
.axl-card .t{unicode-bidi:isolate;white-space:pre-wrap}
.axl-card .dim{opacity:.72}
.axl-card .badge,.axl-card .chip{display:inline-block;border:1px solid currentColor;
 border-radius:4px;padding:0 6px;margin:1px 4px 1px 0;white-space:nowrap}
.axl-card .answer{font-size:1.25em;font-weight:600}
.axl-card dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 12px;margin:8px 0}
.axl-card dt{opacity:.72;font-weight:400}
.axl-card dt,.axl-card dd{margin:0;float:none;width:auto}
.axl-card .setup{border-color:var(--jp-ui-font-color3,#888)}
.axl-card .normal{border-color:var(--jp-info-color1,#3b82c4)}
.axl-card .recovery{border-color:var(--jp-warn-color1,#d9822b);border-style:dashed}
.axl-card .finalization{border-color:#9a6fc4;border-style:dotted;border-width:2px}
.axl-card .good{border-color:var(--jp-success-color1,#3a9d5d);border-width:2px}
.axl-card .bad{border-color:var(--jp-error-color1,#d04848);border-width:2px}
.axl-card .meter{height:6px;border:1px solid currentColor;border-radius:3px;max-width:320px;
 opacity:.72}
.axl-card .meter div{height:100%;background:currentColor}
.axl-card table{border-collapse:collapse;background:transparent;color:inherit;font-size:1em;
 margin:8px 0}
.axl-card th,.axl-card td{border-bottom:1px solid var(--jp-border-color2,rgba(128,128,128,.45));
 padding:1px 12px 1px 0;text-align:left;background:transparent;color:inherit}
.axl-card td.n,.axl-card th.n{text-align:right}
.axl-card pre{white-space:pre-wrap;max-height:22em;overflow:auto;margin:4px 0 0;padding:6px 8px;
 border:1px solid var(--jp-border-color2,rgba(128,128,128,.45));background:transparent;
 color:inherit;unicode-bidi:isolate}
"""


def run_card(run: Run) -> str:
    """A self-contained card: answer, status, stage path, budget, rollbacks, tools, output.

    Examples:
        >>> "Osk" in run_card(load_run("traces/demo/osk.jsonl"))
        True
    """
    parts = [
        f"<style>{_STYLE}</style>",
        '<div class="axl-card tex2jax_ignore mathjax_ignore">',
        _head(run),
        _facts(run),
        _path(run.stage_path),
        _tools(run),
        _output(run.output),
        _notes(run.trace.notes),
        "</div>",
    ]
    return "".join(part for part in parts if part)


def esc(value: object) -> str:
    """Text made safe to stand in HTML: escaped, encodable, without control characters."""
    text = str(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = clean_text(text)
    return html.escape(text.translate(_CONTROLS), quote=True)


_CONTROLS = {code: "\ufffd" for code in (*range(32), *range(127, 160)) if code not in (9, 10, 13)}


def _shown(text: str, most: int) -> str:
    """Escaped text, cut if it is long, which is said."""
    if len(text) <= most:
        return esc(text)
    return f"{esc(text[:most])}… <span class='dim'>({most:,} of {len(text):,} characters)</span>"


def _text(text: object, most: int = _MOST_TEXT) -> str:
    return f'<span class="t" dir="auto">{_shown(str(text), most)}</span>'


def _badge(text: str, kind: str = "") -> str:
    return f'<span class="badge {kind}">{esc(text)}</span>'


def _head(run: Run) -> str:
    good = {"COMPLETED": "good", "FAILED": "bad", "CANCELLED": "bad", "INTERRUPTED": "bad"}
    badges = [_badge(run.status, good.get(run.status, "normal"))]
    if run.simulated:
        badges.append(_badge("SIMULATED: no real model answered", "recovery"))
    who = f"<b>Run</b> {_text(run.id)} <span class='dim'>task</span> {_text(run.task_id)}"
    answer = run.answer
    shown = _text(answer) if answer is not None else '<span class="dim">no answer</span>'
    return f'<div>{" ".join(badges)} {who}</div><div class="answer">{shown} {_verdict(run)}</div>'


def _verdict(run: Run) -> str:
    if run.correct is None:
        return '<span class="badge">not judged</span>'
    return _badge("✓ correct", "good") if run.correct else _badge("✗ wrong", "bad")


def _facts(run: Run) -> str:
    rows = [
        ("question", _text(run.prompt)),
        ("expected", _expected(run.expected)),
        ("model", _text(run.model) + _arm(run)),
        ("end", _end(run)),
        ("effort", _effort(run)),
        ("budget", _budget(run)),
        ("rollbacks", _rollbacks(run)),
    ]
    cells = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows)
    return f"<dl>{cells}</dl>"


def _expected(expected: object) -> str:
    if expected is None:
        return _dim("not given")
    answers = expected if isinstance(expected, list | tuple) else [expected]
    return " or ".join(map(_text, answers))


def _dim(text: str) -> str:
    return f'<span class="dim">{esc(text)}</span>'


def _arm(run: Run) -> str:
    named = [("arm", run.arm), ("study", run.study)]
    return "".join(f" {_dim(name)} {_text(value)}" for name, value in named if value is not None)


def _end(run: Run) -> str:
    parts = [_text(run.done_reason) if run.done_reason else _dim("not ended")]
    if run.error_kind or run.error:
        parts.append(_text(": ".join(p for p in (run.error_kind, run.error) if p)))
    return " · ".join(parts)


def _effort(run: Run) -> str:
    usage, cost, seconds = run.usage, run.cost_usd, run.seconds
    cached = run.cached_requests
    mark = " (counted by us)" if usage.estimated else ""
    parts = [
        _counted(run.steps, "step"),
        _counted(run.turns, "turn"),
        _counted(run.requests, "request")
        + (f" ({cached:,} from the reply cache)" if cached else ""),
        f"{_number(usage.input_tokens)} tokens in, {_number(usage.output_tokens)} out{mark}",
        "cost unknown" if cost is None else f"{cost:.4f} USD",
        "time unknown" if seconds is None else f"{seconds:.1f} s",
    ]
    return esc(" · ".join(parts))


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _number(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"


def _budget(run: Run) -> str:
    """The largest prompt: estimated, observed, and how much of the window it takes."""
    largest = _largest_prompt(run.trace.of(ModelRequested.kind))
    if largest is None:
        return _dim("no prompt was measured")
    observed, estimated = (largest.data.get(name) for name in _PROMPT_TOKENS)
    window = context_window(run)
    told = f"largest prompt: {_number(observed)} tokens observed, {_number(estimated)} estimated"
    if observed and estimated:
        told += f" ({(estimated - observed) / observed:+.0%})"
    if window is None:
        return esc(f"{told}; window not set")
    share = (observed or estimated or 0) / window
    width = f"{100 * min(share, 1.0):.1f}%"
    meter = f'<div class="meter"><div style="width:{width}"></div></div>'
    return esc(f"{told}; {share:.1%} of the window of {window:,}") + meter


def _largest_prompt(rows: Iterable[Record]) -> Record | None:
    def size(row: Record) -> tuple[int, int]:
        observed, estimated = (row.data.get(name) or 0 for name in _PROMPT_TOKENS)
        return int(observed), int(estimated)

    return max((row for row in rows if any(size(row))), key=size, default=None)


def context_window(run: Run) -> int | None:
    """Tokens the context holds, from the recipe, else from a step's budget record."""
    if (window := _find_window(run.recipe)) is not None:
        return window
    for step in reversed(run.trace.of(StepTaken.kind)):
        if (window := _find_budget_window(step.data.get("info"))) is not None:
            return window
    return None


def _find_budget_window(info: object) -> int | None:
    record = info.get("context_limit_estimate") if isinstance(info, Mapping) else None
    window = record.get("context_window") if isinstance(record, Mapping) else None
    return window if isinstance(window, int) else None


def _find_window(value: object) -> int | None:
    if not isinstance(value, Mapping):
        return None
    limit = value.get("context_limit")
    if isinstance(limit, Mapping) and isinstance(limit.get("window"), int):
        return int(limit["window"]) or None
    return next((found for v in value.values() if (found := _find_window(v))), None)


def _rollbacks(run: Run) -> str:
    rollbacks = run.rollbacks
    if not rollbacks:
        return _dim("none")
    times = Counter(r.reason for r in rollbacks)
    hidden: Counter[str] = Counter()
    for rollback in rollbacks:
        hidden[rollback.reason] += rollback.count
    listed = (f"{_text(reason)} × {n} ({hidden[reason]} hidden)" for reason, n in times.items())
    return ", ".join(listed)


def stage_kind(stage: str) -> str:
    """setup, normal, recovery, finalization, end or bad end; unknown for a foreign stage."""
    if stage not in STAGE_LABEL:
        return "unknown"
    known = ConversationStage(stage)
    kind = STAGE_KIND[known]
    if kind != "terminal":
        return kind
    return "bad end" if known in _BAD_ENDS else "end"


def _path(path: list[str]) -> str:
    if not path:
        return ""
    folded = len(path) - MOST_STAGES
    if folded > 0:
        half = MOST_STAGES // 2
        chips = [
            *map(_chip, path[:half]),
            f'<span class="chip dim">… {folded:,} more …</span>',
            *map(_chip, path[-half:]),
        ]
        size = f"{len(path):,} stages, {MOST_STAGES} shown"
    else:
        chips, size = [*map(_chip, path)], f"{len(path)} stages"
    kinds = Counter(map(stage_kind, path))
    legend = " · ".join(f"{_KIND_SIGN[k]} {k} {kinds[k]:,}" for k in _KIND_SIGN if kinds[k])
    return f"<div><span class='dim'>{size}: {legend}</span></div><div>{' '.join(chips)}</div>"


def _chip(stage: str) -> str:
    kind = stage_kind(stage)
    css = {"end": "good", "bad end": "bad"}.get(kind, kind)
    label = STAGE_LABEL.get(stage, stage)
    title = esc(f"{kind}: {stage}")
    return f'<span class="chip {css}" title="{title}">{_KIND_SIGN[kind]} {esc(label)}</span>'


def _tools(run: Run) -> str:
    tallies = run.tools
    if not tallies:
        return ""
    head = '<tr><th>tool</th><th class="n">calls</th><th class="n">failed</th>'
    head += '<th class="n">not run</th></tr>'
    rows = "".join(
        f'<tr><td>{_text(t.name, 80)}</td><td class="n">{t.calls:,}</td>'
        f'<td class="n">{t.failed:,}</td><td class="n">{t.rejected:,}</td></tr>'
        for t in tallies[:_MOST_ROWS]
    )
    more = len(tallies) - _MOST_ROWS
    rest = f"<div class='dim'>{_MOST_ROWS} of {len(tallies)} tools shown</div>" if more > 0 else ""
    return f"<table>{head}{rows}</table>{rest}"


def _output(output: str) -> str:
    if not output:
        return "<div class='dim'>the last reply is empty</div>"
    return f"<div class='dim'>last reply</div><pre dir='auto'>{_shown(output, MOST_OUTPUT)}</pre>"


def _notes(notes: tuple[str, ...]) -> str:
    if not notes:
        return ""
    rows = "".join(f"<li>{esc(note)}</li>" for note in notes)
    return f"<div class='dim'>while reading this trace:</div><ul>{rows}</ul>"
