"""`python -m tests.benchmarks.bench_snapshots`: what it takes to keep and restore 500 turns.

A turn is four transitions of a dialog: a step, its result of about 1,200 characters, and a plan.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from tests.fsm.dialog_turns import begun, turns


@dataclass(frozen=True)
class Measured:
    """What was found."""

    lines: int
    over_state: float
    """Bytes of all snapshots over those of the newest state."""
    write_ms: float
    """Milliseconds a transition, with all it takes."""
    worst_ms: float
    """Milliseconds to restore the slowest of some moments."""


def measure(count: int = 500, *, every: int = 50, moments: int = 41) -> Measured:
    """Keep so many turns, and restore moments spread over them."""
    history, machine = begun(every=every)
    start = time.process_time()
    turns(machine, count)
    written = time.process_time() - start
    last = len(history) - 1
    worst = max(_restored(history, last * i // (moments - 1)) for i in range(moments))
    return Measured(
        lines=len(history),
        over_state=history.size / history.state_size,
        write_ms=1000 * written / len(history),
        worst_ms=1000 * worst,
    )


def _restored(history, seq: int) -> float:
    times = []
    for _ in range(3):
        start = time.process_time()
        history.recover(at=seq)
        times.append(time.process_time() - start)
    return min(times)


if __name__ == "__main__":
    found = measure()
    print(
        f"{found.lines:,} lines, snapshots {found.over_state:.2f} times the state, "
        f"{found.write_ms:.2f} ms a transition, any moment restored in {found.worst_ms:.1f} ms"
    )
