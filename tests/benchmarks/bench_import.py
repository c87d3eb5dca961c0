"""`python -m tests.benchmarks.bench_import`: what importing axislab costs, beside pydantic."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys

ROUNDS = 9
SUBJECTS = {
    "nothing": "pass",
    "pydantic": "import pydantic",
    "axislab": "import axislab",
    "axislab, a recipe made": "import axislab; axislab.recipes.boxed_math()",
}


def cpu_seconds(code: str) -> float:
    """CPU time of one fresh interpreter that runs the code."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(rounds: int = ROUNDS) -> dict[str, float]:
    """Median CPU seconds above a bare interpreter; subjects alternate, so that noise is shared."""
    times: dict[str, list[float]] = {name: [] for name in SUBJECTS}
    for _ in range(rounds):
        for name, code in SUBJECTS.items():
            times[name].append(cpu_seconds(code))
    bare = statistics.median(times["nothing"])
    return {name: statistics.median(values) - bare for name, values in times.items()}


def main() -> None:
    """Print each subject's cost and its ratio to pydantic's."""
    found = measure()
    for name, seconds in found.items():
        ratio = seconds / found["pydantic"]
        print(f"import {name:24} {1000 * seconds:7.1f} ms CPU   {ratio:5.2f} x pydantic")


if __name__ == "__main__":
    main()
