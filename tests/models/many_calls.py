"""`python -m tests.models.many_calls URL CALLS FOLDER`: many calls, and what they leave behind.

Prints one line of JSON. The runs go in four parts, so that what grows with the calls is seen.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import stat
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import axislab as al
from axislab.models._litellm import load_litellm
from axislab.running import Handle

PARTS = 4
AT_ONCE = 32
CALLS_A_RUN = 3.9
"""How many requests a run comes to, more or less; a part goes on until there are enough."""
LOOP = 2
"""Sockets with which an event loop wakes itself."""
RETRIES = {"attempts": 4, "backoff": 0.002, "max_backoff": 0.01, "request_timeout": 3.0}


def sockets() -> int:
    """Open sockets of this process."""
    found = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            found += stat.S_ISSOCK(os.stat(f"/proc/self/fd/{name}").st_mode)
        except FileNotFoundError:  # the folder's own, closed meanwhile
            continue
    return found


def resident() -> int:
    """Bytes of memory in use."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


async def _tasks() -> list[str]:
    own = asyncio.current_task()
    return sorted(repr(task.get_coro()) for task in asyncio.all_tasks() if task is not own)


def on_loop(work: Any) -> Any:
    """What a coroutine gives on axislab's own loop."""
    handle: Handle[Any] = Handle(work)
    handle.wait(30)
    return handle.value()


def weigh() -> dict[str, int]:
    """What is alive now."""
    gc.collect()
    return {"objects": len(gc.get_objects()), "bytes": resident()}


class Totals:
    """What the runs came to, counted in their traces."""

    def __init__(self) -> None:
        self.rows = 0
        self.outcomes: Counter[str] = Counter()
        self.statuses: Counter[str] = Counter()

    def add(self, runs: al.Runs) -> None:
        """Count these."""
        for run in runs:
            self.statuses[run.status] += 1
            for record in run.trace.of("model.request"):
                self.rows += 1
                self.outcomes[record.data["outcome"]] += 1


def go(url: str, calls: int, folder: Path) -> dict[str, Any]:
    """Make so many calls, at least."""
    start = sockets()
    lab = al.Lab("openai/rough-1", api_base=url, api_key="none", folder=folder, concurrency=AT_ONCE)
    recipe = al.recipes.boxed_math(max_turns=5, **RETRIES)
    part = [f"What is 2 + 2? ({n})" for n in range(max(8, round(calls / PARTS / CALLS_A_RUN)))]
    lab.run_many(recipe, part[:8], progress=False)  # what is made once is made
    totals = Totals()
    totals.add(lab.last)
    weights, number = [], 0
    while len(weights) < PARTS:
        # A facade for each half of the parts.
        if number % 2:
            totals.add(lab.run_many(recipe, part, seed=number, progress=False))
        else:
            totals.add(asyncio.run(lab.arun_many(recipe, part, seed=number)))
        lab.last = al.Runs()
        number += 1
        if totals.rows >= calls * (len(weights) + 1) / PARTS:
            weights.append({"rows": totals.rows, **weigh()})
    open_sockets = sockets()
    on_loop(load_litellm().close_litellm_async_clients)
    gc.collect()
    return {
        "rows": totals.rows,
        "outcomes": totals.outcomes,
        "statuses": totals.statuses,
        "weights": weights,
        "tasks": on_loop(_tasks),
        "sockets": {"start": start, "loop": LOOP, "open": open_sockets, "end": sockets()},
        "at_once": AT_ONCE,
        "runs": sum(totals.statuses.values()),
        "files": len(list(folder.glob("*.jsonl"))),
    }


if __name__ == "__main__":
    at, wanted, where = sys.argv[1:]
    print(json.dumps(go(at, int(wanted), Path(where))))
