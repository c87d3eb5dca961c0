"""The card of a dialog: static HTML for a notebook, everything anybody wrote escaped."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from axislab.fsm.log import Outcome
from axislab.trace.card import esc

if TYPE_CHECKING:
    from axislab.dialog.replies import Reply
    from axislab.dialog.session import Dialog

MOST_EVENTS = 12
"""Newest events that are shown; it says of how many."""
_MOST_TEXT = 300

_STYLE = """
.axl-dialog{font:13px/1.45 var(--jp-ui-font-family,system-ui,sans-serif);color:inherit;
 border:1px solid var(--jp-border-color2,rgba(128,128,128,.45));border-radius:6px;
 padding:10px 14px;max-width:960px;background:transparent;overflow-wrap:break-word}
.axl-dialog .t{unicode-bidi:isolate;white-space:pre-wrap}
.axl-dialog .dim{opacity:.72}
.axl-dialog .chip{display:inline-block;border:1px solid currentColor;border-radius:4px;
 padding:0 6px;margin:1px 4px 1px 0}
.axl-dialog .asks{border-color:var(--jp-warn-color1,#d9822b);border-style:dashed;border-width:2px}
.axl-dialog dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 12px;margin:8px 0 0}
.axl-dialog dt{opacity:.72;font-weight:400}
.axl-dialog dt,.axl-dialog dd{margin:0;float:none;width:auto}
"""


def reply_card(reply: Reply) -> str:
    """A reply: where the dialog is, what it says, and whether it waits for a decision."""
    return _box(f'<span class="chip">{esc(reply.state)}</span>{_asks(reply)} {_text(reply.text)}')


def dialog_card(chat: Dialog) -> str:
    """A session: state, goals, plan, conclusions, what was dropped and kept, newest events."""
    context = chat.context
    goals = [f"{i.name} {i.about}".strip() + f" ({i.confidence:.2f})" for i in context.intents]
    plan = [step.name + (" (key)" if step.key else "") for step in context.steps]
    rows = [
        ("goals", _chips(reversed(goals))),
        ("plan", _chips(plan)),
        ("known", "<br>".join(_text(f"{k}: {v}") for k, v in context.conclusions.items())),
        ("dropped", _chips(context.dropped)),
        ("kept", _chips(context.kept)),
        ("failures", "<br>".join(_text(text) for text in context.failures[-3:])),
        ("events", _events(chat)),
    ]
    facts = "".join(f"<dt>{name}</dt><dd>{what}</dd>" for name, what in rows if what)
    label = ' <span class="chip">simulated</span>' if any(r.simulated for r in chat.runs) else ""
    place = "/".join(state.name for state in chat.machine.path)
    head = f'<b>{esc(chat.id)}</b> <span class="chip">{esc(place)}</span>{label}{_asks(chat.last)}'
    return _box(f"{head}<br>{_text(chat.last.text)}<dl>{facts}</dl>")


def _asks(reply: Reply) -> str:
    if not reply.asks:
        return ""
    return f' <span class="chip asks">asks about the {esc(reply.asks)}</span>'


def _events(chat: Dialog) -> str:
    newest = chat.transitions[-MOST_EVENTS:]
    signs = {str(Outcome.FIRED): "", str(Outcome.REFUSED): "✗ ", str(Outcome.FAILED): "! "}
    shown = _chips(f"{signs.get(t.outcome, '')}{t.event} → {t.target}" for t in newest if t.event)
    total = len(chat.transitions)
    return f'{shown}<span class="dim">({len(newest)} of {total:,})</span>'


def _chips(texts: Iterable[str]) -> str:
    return "".join(f'<span class="chip t">{_cut(text)}</span>' for text in texts)


def _text(text: str) -> str:
    return f'<span class="t" dir="auto">{_cut(text)}</span>'


def _cut(text: str) -> str:
    return esc(text) if len(text) <= _MOST_TEXT else f"{esc(text[:_MOST_TEXT])}…"


def _box(inner: str) -> str:
    kinds = "axl-dialog tex2jax_ignore mathjax_ignore"
    return f'<style>{_STYLE}</style><div class="{kinds}">{inner}</div>'
