"""LiveRun: a run as it happens (stage, budget, rollbacks, answer, Stop), with a static fallback."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from axislab.trace.card import esc, run_card, stage_kind
from axislab.trace.run import Run
from axislab.trace.trace import Record

UPDATES_PER_SECOND = 10
SHOWN_RESULT = 200

_STYLE = (
    "<style>.axl-live{font:13px/1.5 var(--jp-ui-font-family,system-ui,sans-serif);"
    "color:var(--jp-ui-font-color1,currentColor)}"
    ".axl-live td{padding:1px 10px 1px 0;vertical-align:top;text-align:left}"
    ".axl-live td:first-child{opacity:.7;white-space:nowrap}"
    ".axl-live b.axl-chip{border:1px solid currentColor;border-radius:9px;padding:0 7px;"
    "font-weight:600}</style>"
)


class LiveRun:
    """Shows a run while it goes on, and stays as a record of it.

    Args:
        handle: What `lab.start` returned.

    Examples:
        >>> al.LiveRun(lab.start(recipe, task))  # doctest: +SKIP
    """

    def __init__(self, handle: Any) -> None:
        from ipywidgets import HTML, Button, VBox

        self.handle = handle
        self.view = HTML(value=self.html())
        self.button = Button(
            description="Stop", icon="stop", tooltip="End the run; keep its events"
        )
        self.button.on_click(lambda _: self.stop())
        self.button.disabled = handle.done
        self.box = VBox([self.view, self.button])
        self._shown = 0.0
        self._waiting = False
        handle.on_record(self._on_record)
        handle.when_done(self._on_done)

    def html(self) -> str:
        """What is shown now, all text escaped."""
        return live_html(self.handle.run, status=self.handle.status, phase=self.handle.phase)

    def stop(self) -> None:
        """What the Stop button does."""
        self.button.disabled = True
        self.handle.stop()

    def _on_record(self, record: Record) -> None:
        """Update at most ten times a second; the last record of a burst is always shown."""
        now = time.monotonic()
        wait = self._shown + 1 / UPDATES_PER_SECOND - now
        if wait <= 0:
            self._show()
        elif not self._waiting:
            self._waiting = True
            asyncio.get_running_loop().call_later(wait, self._show)

    def _show(self) -> None:
        self._waiting = False
        self._shown = time.monotonic()
        self.view.value = self.html()

    def _on_done(self) -> None:
        self.button.disabled = True
        self._show()

    def mimebundle(self) -> dict[str, Any]:
        """The widget, and static HTML for where widgets do not live (the web, a reopened file)."""
        bundle = dict(self.box._repr_mimebundle_() or {})
        run = self.handle.run
        bundle["text/html"] = run_card(run) if self.handle.done else self.html()
        bundle["text/plain"] = repr(self.handle)
        return bundle

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return self.mimebundle()

    def __repr__(self) -> str:
        return f"LiveRun({self.handle!r})"


def live_html(run: Run, *, status: str, phase: str | None) -> str:
    """A few escaped lines about a run that may still be going on."""
    rows = [("status", _status(status, phase)), *_progress(run), *_last_tool(run)]
    if run.answer is not None:
        rows.append(("answer", f"<b>{esc(run.answer)}</b>{_verdict(run)}"))
    if run.error:
        rows.append(("error", esc(run.error[:SHOWN_RESULT])))
    table = "".join(f"<tr><td>{name}</td><td>{value}</td></tr>" for name, value in rows)
    label = " · <b>simulated</b>" if run.simulated else ""
    head = f"<div>{esc(run.task_id)} · {esc(run.model)}{label}</div>"
    return f"{_STYLE}<div class='axl-live'>{head}<table>{table}</table></div>"


def _status(status: str, phase: str | None) -> str:
    return f"<b class='axl-chip'>{esc(status)}</b>" + (f" {esc(phase.lower())}" if phase else "")


def _progress(run: Run) -> list[tuple[str, str]]:
    rows = []
    if steps := run.trace.of("step"):
        data = steps[-1].data
        stage = str(data["stage"])
        rows.append(("stage", f"{esc(stage)} <small>({esc(stage_kind(stage))})</small>"))
        rows.append(("turn", f"{esc(data['turn'])} · {esc(len(steps))} steps"))
        rows.append(("budget", _budget(run)))
    rows.append(("rollbacks", _rollbacks(run)))
    return rows


def _budget(run: Run) -> str:
    seen = [r.data.get("input_tokens") for r in run.trace.of("model.request")]
    observed = next((tokens for tokens in reversed(seen) if tokens is not None), None)
    estimate = run.trace.of("step")[-1].data.get("estimated_tokens")
    limits = run.recipe.get("config", {}).get("conversation", {}).get("context_limit", {})
    window = limits.get("window")
    parts = [f"about {esc(estimate)} prompt tokens next"]
    if observed is not None:
        parts.append(f"{esc(observed)} counted last")
    parts.append(f"window {esc(window)}" if window else "no window set")
    return " · ".join(parts)


def _rollbacks(run: Run) -> str:
    counts: dict[str, int] = {}
    for rollback in run.rollbacks:
        counts[rollback.reason] = counts.get(rollback.reason, 0) + 1
    return ", ".join(f"{esc(reason)} {n}" for reason, n in counts.items()) or "none"


def _last_tool(run: Run) -> list[tuple[str, str]]:
    done = run.trace.of("tool.finished")
    if not done:
        return []
    data = done[-1].data
    text = str(data.get("content", ""))
    cut = f" … ({len(text)} characters)" if len(text) > SHOWN_RESULT else ""
    shown = f"{esc(data['name'])} ({esc(data['status'])}): {esc(text[:SHOWN_RESULT])}{cut}"
    return [("last tool", shown)]


def _verdict(run: Run) -> str:
    if run.correct is None:
        return ""
    return " · right" if run.correct else f" · wrong, expected {esc(run.expected)}"
