"""Small studies for tests: a scripted model whose answers depend on nothing but the request."""

from __future__ import annotations

import hashlib
from pathlib import Path

import axislab as al
from axislab.models.scripted import ScriptedModel
from axislab.study.study import Study

SECONDS = "seconds"
"""What a column of measured time holds in its name: it is never twice the same."""


def reply(request):
    """Right or wrong by a hash of what is asked: the same in every process."""
    asked = "\x1f".join(message.text for message in request.messages)
    last = request.messages[-1].text
    draw = hashlib.sha256((asked + str(request.sampling.temperature)).encode()).digest()[0]
    if draw < 40 and "again" not in last:
        return "No box here."
    return r"\boxed{4}" if draw < 170 else r"\boxed{5}"


def scripted(*, delay: float = 0.0) -> ScriptedModel:
    """The model of these studies."""
    return ScriptedModel(reply, usage="estimate", delay=delay)


def tasks(n: int) -> al.TaskSet:
    """So many tasks; the answer is always 4."""
    return al.TaskSet([al.Task(f"t{i:03}", f"What is {i} - {i - 4}?", "4") for i in range(n)])


def arms(*temperatures: float) -> dict[str, al.Recipe]:
    """Arms that differ in what the model draws with."""
    return al.grid(al.Recipe(name="plain"), temperature=list(temperatures or (0.0, 1.0)))


def lasting(study: Study):
    """The summary without what a clock measured."""
    frame = study.summary()
    return frame[[name for name in frame.columns if SECONDS not in name]]


def requests_by_pair(folder: Path) -> dict[tuple[str, str, int], list[int]]:
    """Requests of every run of a pair, finished or not."""
    found: dict[tuple[str, str, int], list[int]] = {}
    for path in sorted(folder.glob("*.jsonl")):
        try:
            run = al.load_run(path)
        except al.AxislabError:
            continue  # killed before its first line was whole
        found.setdefault((run.arm, run.task_id, run.repeat), []).append(run.requests)
    return found
