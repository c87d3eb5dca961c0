r"""Records traces/smollm2: 60 runs of the real local model, a language model of 135 M parameters.

It needs axislab with its extra `local` and the fetched weights, and takes about ten minutes of one
core. Unlike the other scripts it does not give the same bytes each time: the model draws.

    nice python datasets/record_smollm2.py FOLDER    # a new folder of runs
    python datasets/record_smollm2.py --check        # the runs that are kept are of this script

36 runs are of 18 sums, each with the recipe boxed_math as it ships and with one that takes the
last number of the reply for its answer; 24 are of 12 questions of the atlas that one fact answers,
each with the recipe research_qa and what went wrong hidden from the model, or shown to it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import axislab as al
from axislab.config import KNOBS

MODEL = "axislab-local/smollm2-135m"
STUDY = "smollm2"
LAST_NUMBER = r"(-?\d[\d,]*(?:\.\d+)?(?:/\d+)?)\D*$"
LIMITS: dict[str, Any] = {
    "max_turns": 6,
    "max_output_tokens": 160,
    "window": 4096,
    "min_tokens_for_generation": 64,
    "default_max_consecutive_calls_with_same_args": 2,
    "on_length": "rollback",
}
"""Small, since the model repeats itself until something stops it."""
CHOSEN = (
    *LIMITS, "temperature", "on_tool_error", "on_duplicate", "answer_format", "answer_pattern",
)  # fmt: skip


def groups() -> Iterator[tuple[dict[str, al.Recipe], al.TaskSet]]:
    """The arms and tasks that are recorded."""
    boxed = al.recipes.boxed_math(**LIMITS, temperature=0.2, on_tool_error="rollback")
    last = boxed.with_(answer_format="regex", answer_pattern=LAST_NUMBER)
    sums = al.load_tasks("sums").where(kind=["add", "multi_step"])
    yield {"boxed": boxed, "last number": last}, sums.sample(18, seed=7)

    hidden = al.recipes.research_qa(
        corpus=al.load_corpus("atlas"), **LIMITS, temperature=0.5, on_tool_error="rollback"
    )
    shown = hidden.with_(on_tool_error="allow", on_duplicate="allow")
    single = al.load_tasks("atlas").where(kind="single")
    yield {"mishaps hidden": hidden, "mishaps shown": shown}, single.sample(12, seed=7)


def record(folder: Path) -> list[al.Run]:
    """Run them all, one after the other."""
    if folder.exists() and any(folder.iterdir()):
        sys.exit(f"{folder} is not empty; give a new folder")
    lab = al.Lab(MODEL, folder=folder, concurrency=1)
    return [
        run
        for arms, tasks in groups()
        for run in lab.run_many(arms, tasks, study=STUDY, progress=False)
    ]


def problems(runs: Sequence[al.Run]) -> list[str]:
    """What is wrong with recorded runs: not whole, simulated, or of other arms and tasks."""
    found = []
    wanted = {
        (arm, task.id): recipe
        for arms, tasks in groups()
        for task in tasks
        for arm, recipe in arms.items()
    }
    for run in runs:
        found += [f"{run.id}: {problem}" for problem in al.fsck(run.trace).problems]
        if run.simulated or run.model != MODEL or run.study != STUDY:
            found.append(f"{run.id}: of {run.model!r} in the study {run.study!r}")
        recipe = wanted.pop((str(run.arm), run.task_id), None)
        if recipe is None:
            found.append(f"{run.id}: nobody asked for {run.arm!r} on {run.task_id!r}")
        elif not _alike(run.trace.header["recipe"], recipe):
            found.append(f"{run.id}: recorded with another recipe")
    return found + [f"no run of {arm!r} on {task!r}" for arm, task in wanted]


def _alike(recorded: Mapping[str, Any], recipe: al.Recipe) -> bool:
    """The knobs set here are those of the recording; a later axislab may have more of them."""
    return recorded["name"] == recipe.name and all(
        reduce(getitem, KNOBS[name], recorded["config"]) == recipe.config.knob(name)
        for name in CHOSEN
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Record, or check what was recorded."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, help="where to record")
    parser.add_argument("--check", action="store_true", help="look at traces/smollm2 instead")
    chosen = parser.parse_args(arguments)
    if chosen.folder is None and not chosen.check:
        parser.error("give a folder, or --check")
    start = time.monotonic()
    runs = al.load_example_traces("smollm2") if chosen.check else record(chosen.folder)
    found = problems(runs)
    right = sum(bool(run.correct) for run in runs)
    print(*found, f"{len(runs)} runs, {right} right, {len(found)} problems", sep="\n")
    if not chosen.check:
        print(f"{time.monotonic() - start:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
