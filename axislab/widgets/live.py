"""LiveRun: a run as it happens, with a Stop button and static HTML beside it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from axislab.models.deltas import Delta, OnDelta
from axislab.trace.card import run_card
from axislab.trace.run import Run
from axislab.trace.trace import Record
from axislab.widgets.live_html import live_html
from axislab.widgets.streaming import GrowingReply

UPDATES_PER_SECOND = 10
_STILL = "As it stood when this was shown; the live view needs a running kernel."


class RunLike(Protocol):
    """What a view needs of a run in the background: `lab.start` returns one."""

    @property
    def run(self) -> Run:
        """The run as it stands."""

    @property
    def status(self) -> str:
        """Its status now."""

    @property
    def phase(self) -> str | None:
        """Its phase now."""

    @property
    def done(self) -> bool:
        """Nothing more will happen."""

    def stop(self) -> None:
        """End it."""

    def on_record(self, view: Callable[[Record], None]) -> None:
        """Tell a function of every record from now on."""

    def on_delta(self, view: OnDelta) -> None:
        """Tell a function of every piece of a streamed reply from now on."""

    def when_done(self, call: Callable[[], None]) -> None:
        """Call a function when it is done."""


class LiveRun:
    """Shows a run while it goes on, and how it ended.

    Stage, turn, budget, rollbacks, last tool and answer change as they happen, at most ten times
    a second; a run started with `stream=True` also shows the reply that is coming. The Stop
    button ends the run and keeps its events.

    Args:
        handle: What `lab.start` returned.

    Examples:
        >>> view = LiveRun(lab.start(recipe, "Where is Osk?"))
        >>> view.stop()
    """

    def __init__(self, handle: RunLike) -> None:
        from ipywidgets import HTML, Button, VBox

        self.handle = handle
        self.view = HTML()
        self.button = Button(
            description="Stop", icon="stop", tooltip="End the run; its events are kept"
        )
        self.button.on_click(self._on_click)
        self.box = VBox([self.view, self.button])
        self._lock = threading.Lock()
        self._shown = 0.0
        self._waiting = False
        self._reply = GrowingReply()
        # First listen, then look: what happens in between is shown twice rather than never.
        handle.on_record(lambda _: self._update())
        handle.on_delta(self._on_delta)
        self._show()
        handle.when_done(self._on_done)

    def html(self) -> str:
        """What is shown now, all text escaped."""
        handle = self.handle
        coming = "" if handle.done else self._reply.html()
        return live_html(handle.run, status=handle.status, phase=handle.phase, coming=coming)

    def stop(self) -> None:
        """What the Stop button does."""
        self.button.disabled = True
        self.handle.stop()

    def _on_delta(self, delta: Delta) -> None:
        self._reply.hear(delta)
        self._update()

    def _update(self) -> None:
        """Update now or in a moment; called on the run's own loop."""
        if self._waiting:
            return  # an update is on its way, and will show this as well
        wait = self._shown + 1 / UPDATES_PER_SECOND - time.monotonic()
        if wait <= 0:
            self._show()
        else:
            self._waiting = True
            asyncio.get_running_loop().call_later(wait, self._show)

    def _show(self) -> None:
        with self._lock:  # a cell and the run's loop may both be at it
            self._waiting = False
            self._shown = time.monotonic()
            self.view.value = self.html()

    def _on_click(self, button: object) -> None:
        self.stop()

    def _on_done(self) -> None:
        self.button.disabled = True
        # ipywidgets keeps every widget as long as the kernel lives; what it shows need not stay.
        self.button.on_click(self._on_click, remove=True)
        self._show()

    def mimebundle(self) -> dict[str, Any]:
        """The widget, and static HTML for where no widget lives (the web, a reopened file)."""
        bundle = dict(self.box._repr_mimebundle_() or {})
        bundle["text/html"] = self.static_html()
        bundle["text/plain"] = repr(self.handle)
        return bundle

    def static_html(self) -> str:
        """What stays in the notebook: the card of a run that is done, else how it stands."""
        handle = self.handle
        if handle.done:
            return run_card(handle.run)
        return live_html(handle.run, status=handle.status, phase=handle.phase, note=_STILL)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return self.mimebundle()

    def __repr__(self) -> str:
        return f"LiveRun({self.handle!r})"
