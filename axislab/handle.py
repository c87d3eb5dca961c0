"""RunHandle: one run in the background, the same object in a cell, a script and a widget."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, Protocol

from axislab.borders import shown
from axislab.errors import ConfigError
from axislab.events import Event
from axislab.models.deltas import Delta, DeltaKind, OnDelta
from axislab.orchestrator.task import TaskOrchestrator
from axislab.running import Handle
from axislab.trace.run import Run
from axislab.trace.trace import Record, Trace

RecordView = Callable[[Record], None]
"""Hears of every record after it was written."""

_OVER = (DeltaKind.END, DeltaKind.DISCARDED)

_logger = logging.getLogger("axislab")


class Recorder(Protocol):
    """Writes events down."""

    @property
    def path(self) -> Path | None:
        """Where it writes, if anywhere."""

    def record(self, event: Event) -> Record:
        """Write an event; the record that came of it."""

    def close(self) -> None:
        """Release what is open."""


class LiveTrace:
    """Records events, keeps them in the run, and tells views: in this order."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._views: list[RecordView] = []
        self._listeners: list[OnDelta] = []
        self._pieces: list[Delta] = []
        self._telling = threading.RLock()
        self.trace = Trace([], path=recorder.path)
        self.run = Run(self.trace, live=True)

    def emit(self, event: Event) -> None:
        """An `Emit`: written whole before any view hears of it."""
        record = self._recorder.record(event)
        self.trace.append(record)
        for view in list(self._views):
            try:
                view(record)
            # A view's fault must not end the run it shows, nor the loop that other runs are on;
            # on this thread nothing comes from outside while a view is called.
            except BaseException:
                self._views.remove(view)
                _logger.exception("a view of run %s raised and was taken off", self.run.id)

    def add_view(self, view: RecordView) -> None:
        """Tell a function of every record from now on."""
        self._views.append(view)

    def tell(self, delta: Delta) -> None:
        """An `OnDelta`: pieces of replies are passed on, and kept until their reply is whole."""
        with self._telling:
            if delta.kind in _OVER:
                self._pieces.clear()
            else:
                self._pieces.append(delta)
            for listener in list(self._listeners):
                self._tell_one(listener, delta)

    def add_listener(self, listener: OnDelta) -> None:
        """Tell a function of every piece from now on, and of the reply that is under way."""
        with self._telling:
            self._listeners.append(listener)
            for delta in self._pieces:
                self._tell_one(listener, delta)

    def _tell_one(self, listener: OnDelta, delta: Delta) -> None:
        if listener not in self._listeners:
            return
        try:
            listener(delta)
        except Exception:  # as above
            self._listeners.remove(listener)
            _logger.exception("a view of run %s raised and was taken off", self.run.id)

    def close(self) -> None:
        """The run is over: the recorder lets go of its file."""
        try:
            self._recorder.close()
        finally:
            self.run.live = False


async def see_to_the_end(orchestrator: TaskOrchestrator, live: LiveTrace) -> Run:
    """Await a run on the loop that is there, and let go of its trace.

    Raises:
        asyncio.CancelledError: It was stopped; the run says so.
        TraceError: An event could not be recorded.
    """
    try:
        ending = await orchestrator.run()
        live.run.cause = ending.cause
    except asyncio.CancelledError:
        raise
    except BaseException as problem:
        live.run.cause = problem
        raise
    finally:
        live.close()
    return live.run


class RunHandle:
    """A run that goes on in the background.

    Show it as the last line of a cell to see it live. `result()` blocks until it is done,
    `await handle` does the same where a loop runs, and `stop()` ends it as INTERRUPTED.
    """

    def __init__(self, orchestrator: TaskOrchestrator, live: LiveTrace) -> None:
        self._orchestrator = orchestrator
        self._live = live
        self._view: Any = None
        self._handle: Handle[Run] = Handle(self._drive)

    async def _drive(self) -> Run:
        try:
            return await see_to_the_end(self._orchestrator, self._live)
        except asyncio.CancelledError:
            # Stopped from outside: the run says so, and is a result like any other.
            return self.run

    @property
    def run(self) -> Run:
        """The run as it stands; it grows while it goes on."""
        return self._live.run

    @property
    def status(self) -> str:
        """One of READY, RUNNING, WAITING_APPROVAL, COMPLETED, FAILED, CANCELLED, INTERRUPTED."""
        # Where a run was broken off before it could say so, only its trace knows that it is over.
        return self.run.status if self.done else str(self._orchestrator.lifecycle.status)

    @property
    def phase(self) -> str | None:
        """THINKING, TOOL_CALLING or OBSERVING while it runs."""
        phase = None if self.done else self._orchestrator.lifecycle.phase
        return None if phase is None else str(phase)

    @property
    def done(self) -> bool:
        """Nothing more will happen."""
        return self._handle.done

    def stop(self) -> None:
        """End it cleanly as INTERRUPTED; everything it said so far is kept."""
        self._handle.stop()

    def result(self, timeout: float | None = None) -> Run:
        """Block until it is done.

        Args:
            timeout: Seconds to wait; None waits for ever.

        Raises:
            TimeoutError: It is not done by then; it goes on.
            KeyboardInterrupt: Ctrl-C or the Stop button; the run is INTERRUPTED.
            TraceError: Its trace could not be written.
            ConfigError: No number of seconds.
        """
        _check_seconds(timeout)
        if not self._handle.wait(timeout):
            raise TimeoutError(f"run {self.run.id} is still {self.status} after {timeout} s")
        return self._handle.value()

    def on_record(self, view: RecordView) -> None:
        """Tell a function of every record from now on; it is called on the run's own thread.

        Raises:
            ConfigError: Not a function.
        """
        if not callable(view):
            raise ConfigError(f"on_record({shown(view)}): give a function of a Record")
        self._live.add_view(view)

    def on_delta(self, view: OnDelta) -> None:
        """Tell a function of every piece of a reply from now on, on the run's own thread.

        What has come of a reply that is under way is told at once.

        There are pieces only in a run that was started with `stream=True`.
        """
        self._live.add_listener(view)

    def when_done(self, call: Callable[[], None]) -> None:
        """Call a function when the run is done."""
        self._handle.when_done(call)

    def __await__(self) -> Generator[Any, None, Run]:
        return self._handle.__await__()

    def __repr__(self) -> str:
        phase = f" ({self.phase})" if self.phase else ""
        label = " · simulated" if self.run.simulated else ""
        return f"<RunHandle {self.run.id} {self.status}{phase}{label}>"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        from axislab.widgets.live import LiveRun

        if self._view is None:  # one view, however often the handle is shown
            self._view = LiveRun(self)
        bundle: dict[str, Any] = self._view.mimebundle()
        return bundle


def _check_seconds(timeout: object) -> None:
    if timeout is None:
        return
    number = isinstance(timeout, int | float) and not isinstance(timeout, bool) and timeout >= 0
    if not number:
        raise ConfigError(f"timeout={shown(timeout)}: give a number of seconds, 0 or more, or None")
