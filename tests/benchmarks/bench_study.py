"""`python -m tests.benchmarks.bench_study`: what a study costs beyond the runs it makes.

1,000 pairs, 20 ms a call, 64 at once. The bare loop makes the same runs, recorded in the same way,
with workers that take the next from a list, and nothing else: no plan, no book, no figures, no
manifest. The two take turns in one process, so that noise is shared. "calls alone" is the loop that
only waits 20 ms a call: what a machine would do to which the runs themselves cost nothing.
"""

from __future__ import annotations

import asyncio
import cProfile
import gc
import itertools
import resource
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import axislab as al
from axislab.models.scripted import ScriptedModel
from axislab.orchestrator.task import RunIdentity, TaskOrchestrator
from axislab.running import Handle, LoopThread
from axislab.trace.recorder import TraceRecorder

PAIRS, DELAY, AT_ONCE = 1_000, 0.02, 64


def arms() -> dict[str, al.Recipe]:
    """Two arms."""
    return al.grid(al.Recipe(name="plain"), temperature=[0.0, 1.0])


def tasks(pairs: int) -> al.TaskSet:
    """As many tasks as two arms make so many pairs of."""
    return al.TaskSet([al.Task(f"t{i}", f"What is {i} + 0?", str(i)) for i in range(pairs // 2)])


def model(delay: float) -> ScriptedModel:
    """Answers after so many seconds, and forgets what it was asked."""
    made = ScriptedModel(lambda request: r"\boxed{4}", delay=delay)
    made.requests = _Forgetful()  # else the double itself would keep every request
    return made


class _Forgetful(list):  # type: ignore[type-arg]
    def append(self, item: object) -> None:
        pass


def study_rate(folder: Path, *, pairs: int = PAIRS, delay: float = DELAY) -> float:
    """Pairs a second of a study."""
    lab = al.Lab(model(delay), folder=folder)
    made, asked = arms(), tasks(pairs)
    start = time.perf_counter()
    study = lab.compare(made, asked, name="s", concurrency=AT_ONCE, progress=False)
    took = time.perf_counter() - start
    assert study.new_runs == pairs
    return pairs / took


def bare_rate(folder: Path, *, pairs: int = PAIRS, delay: float = DELAY) -> float:
    """Runs a second of a loop that makes the same runs and nothing else."""
    asked_of = model(delay)
    jobs = list(itertools.product(tasks(pairs), arms().items()))

    async def work(numbered: Iterator[tuple[int, tuple[al.Task, tuple[str, al.Recipe]]]]) -> None:
        for number, (task, (arm, recipe)) in numbered:
            run_id = f"run-{number}"
            with TraceRecorder(folder / f"{run_id}.jsonl") as recorder:
                identity = RunIdentity(run_id=run_id, arm=arm, study="s")
                await TaskOrchestrator(
                    recipe, task, model=asked_of, identity=identity, emit=recorder
                ).run()

    async def all_of_them() -> None:
        numbered = iter(enumerate(jobs))
        await asyncio.gather(*(work(numbered) for _ in range(AT_ONCE)))

    start = time.perf_counter()
    handle = Handle(all_of_them)
    handle.wait()
    handle.value()
    return pairs / (time.perf_counter() - start)


def calls_rate(*, pairs: int = PAIRS, delay: float = DELAY) -> float:
    """Calls a second of a loop that only waits."""

    async def work(left: Iterator[int]) -> None:
        for _ in left:
            await asyncio.sleep(delay)

    async def all_of_them() -> None:
        left = iter(range(pairs))
        await asyncio.gather(*(work(left) for _ in range(AT_ONCE)))

    start = time.perf_counter()
    asyncio.run(all_of_them())
    return pairs / (time.perf_counter() - start)


def peak() -> float:
    """The most memory this process had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def work_share(*, pairs: int = 200) -> float:
    """Function calls of the bare loop as a share of the study's: what no other process can blur."""
    loop = LoopThread.current().loop
    calls = []
    with tempfile.TemporaryDirectory() as place:
        study_rate(Path(place) / "warm", pairs=20, delay=0.001)
        for name, run in (("bare", bare_rate), ("study", study_rate)):
            profile = cProfile.Profile()
            asyncio.run_coroutine_threadsafe(_call(profile.enable), loop).result()
            run(Path(place) / name, pairs=pairs, delay=0.001)
            asyncio.run_coroutine_threadsafe(_call(profile.disable), loop).result()
            calls.append(sum(row.callcount for row in profile.getstats()))
    return calls[0] / calls[1]


async def _call(function: Callable[[], None]) -> None:
    function()


def kept(pairs: int) -> int:
    """Bytes that are kept for a study of so many pairs when it is done, the study included."""
    with tempfile.TemporaryDirectory() as place:
        lab = al.Lab(model(0.001), folder=place)
        made, asked = arms(), tasks(pairs)
        tracemalloc.start()
        try:
            study = lab.compare(made, asked, name="s", concurrency=AT_ONCE, progress=False)
            gc.collect()
            assert study.new_runs == pairs
            return tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()


def main() -> None:
    """Print rates and memory."""
    with tempfile.TemporaryDirectory() as place:
        study_rate(Path(place) / "warm", pairs=100)
        for number in range(5):
            bare = bare_rate(Path(place) / f"bare-{number}")
            study = study_rate(Path(place) / f"study-{number}")
            print(
                f"study {study:6.0f} pairs/s   bare loop {bare:6.0f} runs/s   share "
                f"{study / bare:.2f}   calls alone {calls_rate():6.0f}/s   peak {peak():.0f} MB"
            )
    print(f"function calls of the bare loop over those of the study: {work_share():.2f}")


if __name__ == "__main__":
    main()
