"""`python -m tests.benchmarks.true_effects`: what notebook 03 compares, known by sheer number.

The simulated agent's accuracy under each answer policy, over all tasks of the atlas: 25 runs of
each task and arm, 5,000 runs an arm, with seeds that no notebook uses. The standard error is that
of repeating these runs; the tasks are all there are. Takes some minutes; the result is kept beside
the notebook.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import axislab as al

FILE = Path(__file__).parents[2] / "notebooks" / "truth" / "answer_policies.json"
BASELINE = "single_shot"
POLICIES = (BASELINE, "three_tries", "usability_first", "accuracy_first")
SEEDS = range(1_000, 1_025)


def arms() -> dict[str, al.Recipe]:
    """The arms of notebook 03."""
    recipe = al.recipes.research_qa(corpus=al.load_corpus("atlas"), max_turns=8)
    return {name: recipe.with_(answer_policy=name) for name in POLICIES}


def one_round(seed: int) -> dict[str, float]:
    """Accuracy of each arm over all tasks, with one seed."""
    lab = al.Lab("axislab/simulated-stubborn", seed=seed, concurrency=16)
    study = lab.compare(arms(), al.load_tasks("atlas"), name="truth", progress=False)
    summary = study.summary()
    return dict(zip(summary["arm"], summary["accuracy"].astype(float), strict=True))


def written(rounds: Sequence[Mapping[str, float]]) -> str:
    """The text of the file: what the rounds come to."""
    rows = []
    for name in POLICIES:
        accuracy = [found[name] for found in rounds]
        apart = [found[name] - found[BASELINE] for found in rounds]
        rows.append(
            {
                "arm": name,
                "accuracy": round(statistics.fmean(accuracy), 5),
                "difference": round(statistics.fmean(apart), 5),
                "se": round(statistics.stdev(apart) / len(apart) ** 0.5, 5),
                "runs": len(al.load_tasks("atlas")) * len(rounds),
            }
        )
    about = {
        "model": "axislab/simulated-stubborn",
        "tasks": "atlas",
        "seeds": [SEEDS.start, SEEDS.stop - 1],
        "made_by": "python -m tests.benchmarks.true_effects",
    }
    return json.dumps({"about": about, "arms": rows}, indent=1) + "\n"


def main() -> None:
    """Run all rounds and write what they come to."""
    rounds = []
    for seed in SEEDS:
        rounds.append(one_round(seed))
        print(f"seed {seed}: {rounds[-1]}", file=sys.stderr, flush=True)
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(written(rounds), encoding="utf-8")


if __name__ == "__main__":
    main()
