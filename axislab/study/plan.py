"""The plan of a study: every pair, in an order that is balanced wherever it stops."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One arm on one task, for one repeat: what is run once and never again."""

    arm: str
    task_id: str
    repeat: int
    run_id: str
    """The same whenever the same study is planned; names the file of its trace."""

    def attempt(self, number: int) -> str:
        """The run id of an attempt at it, from 1: earlier ones were broken off."""
        return self.run_id if number == 1 else f"{self.run_id}-{number}"


def plan(
    label: str, arms: Sequence[str], blocks: Sequence[Sequence[str]], *, repeats: int
) -> tuple[Pair, ...]:
    """All pairs in the order they are run.

    A task is finished, all arms and repeats, before the next is begun, and arms take turns in
    going first. Wherever a study stops, each arm has met the same tasks, but for those in flight.

    Args:
        label: The study's own name, which no other in the folder has.
        arms: Names.
        blocks: Ids of tasks as `drawn_blocks` gives them.
        repeats: Runs of each pair.

    Examples:
        >>> [(p.arm, p.task_id) for p in plan("s", ["a", "b"], [["t1"], ["t2"]], repeats=1)]
        [('a', 't1'), ('b', 't1'), ('b', 't2'), ('a', 't2')]
    """
    rounds = [(task_id, r) for block in blocks for task_id in block for r in range(repeats)]
    pairs = []
    for turn, (task_id, repeat) in enumerate(rounds):
        first = turn % len(arms)
        for arm in (*arms[first:], *arms[:first]):
            run_id = _run_id(label, arm, task_id, repeat)
            pairs.append(Pair(arm=arm, task_id=task_id, repeat=repeat, run_id=run_id))
    return tuple(pairs)


def drawn_blocks(clusters: Mapping[str, str | None], *, seed: int) -> list[list[str]]:
    """Tasks in an order drawn with the seed, so that the first n are a random sample.

    Args:
        clusters: Cluster of each task, by id; None for one of its own. Tasks of a cluster make
            one block, since they are not independent of each other.
        seed: Of the study.
    """
    blocks: dict[tuple[str, str], list[str]] = {}
    for task_id, cluster in clusters.items():
        key = ("task", task_id) if cluster is None else ("cluster", cluster)
        blocks.setdefault(key, []).append(task_id)
    drawn = sorted(blocks, key=lambda key: _digest("order", str(seed), *key))
    return [
        sorted(blocks[key], key=lambda task_id: _digest("order", str(seed), task_id))
        for key in drawn
    ]


def _run_id(label: str, arm: str, task_id: str, repeat: int) -> str:
    slug = re.sub(r"[^A-Za-z0-9]+", "-", task_id).strip("-")[:40].strip("-") or "task"
    return f"{slug}-r{repeat}-{_digest(label, arm, task_id, str(repeat))[:12]}"


def _digest(*parts: str) -> str:
    text = "\x1f".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16).hexdigest()
