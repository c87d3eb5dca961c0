"""Random draws of the simulated agent: hashes of what was asked, never a generator with a state.

A draw key is opaque. What stands before its first colon is the same in all requests of one run,
what stands after it is not; a key without a colon counts as the first part only.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from math import sqrt
from statistics import NormalDist
from typing import TypeVar

from axislab.config import Sampling
from axislab.messages import Message

T = TypeVar("T")
_NORMAL = NormalDist()
_SCALE = float(1 << 64)


def digest(*parts: object) -> bytes:
    """A short hash of texts; ("ab", "c") and ("a", "bc") differ."""
    return blake2b("\x1f".join(map(str, parts)).encode("utf-8", "replace"), digest_size=16).digest()


def draw_key(
    *,
    seed: int,
    task: str,
    repeat: int = 0,
    purpose: str = "main_loop",
    sent: int = 0,
    arm: str | None = None,
    coupling: str = "independent",
) -> str:
    """The opaque key a request carries to the simulated provider (`ModelRequest.draw`).

    Args:
        seed: Seed of the run.
        task: Id of the task.
        repeat: Number of the repeat.
        purpose: What the request is for.
        sent: How often this very request was sent before in this run.
        arm: Name of the arm of a study.
        coupling: "independent" draws anew in each arm; "common" leaves the arm out.

    Examples:
        >>> draw_key(seed=1, task="t1") == draw_key(seed=1, task="t1")
        True
        >>> draw_key(seed=1, task="t1", sent=1) == draw_key(seed=1, task="t1")
        False
    """
    run = digest(seed, task, repeat, arm if coupling == "independent" else None)
    call = digest(purpose, sent)
    return f"{run.hex()}:{call.hex()[:16]}"


@dataclass(frozen=True, slots=True)
class Draws:
    """Independent uniform draws under names, all from one key."""

    key: bytes

    def uniform(self, *name: object) -> float:
        """A number in [0, 1) that depends on the key and the name alone."""
        text = "\x1f".join(map(str, name)).encode("utf-8", "replace")
        raw = blake2b(text, key=self.key, digest_size=8).digest()
        return int.from_bytes(raw, "big") / _SCALE

    def pick(self, options: Sequence[T], *name: object) -> T:
        """One of the options."""
        return options[int(self.uniform(*name) * len(options))]


def call_draws(draw: str, messages: Sequence[Message], sampling: Sampling) -> Draws:
    """Draws of one request.

    Ids of calls are left out: they differ between equal runs. Arguments that are no JSON object
    count as empty, which is how they are sent back to a provider.
    """
    state = blake2b(digest_size=32)
    state.update(draw.encode("utf-8", "replace"))
    for message in messages:
        calls = "\x1d".join(f"{c.name}\x1c{_sent(c.arguments)}" for c in message.tool_calls)
        entry = f"\x1e{message.role}\x1f{message.text}\x1f{calls}"
        state.update(entry.encode("utf-8", "replace"))
    extra = sorted((str(k), str(v)) for k, v in sampling.extra.items())
    form = [sampling.temperature, sampling.top_p, sampling.max_output_tokens]
    state.update(f"\x1e{form}{sampling.reasoning_effort}{extra}".encode("utf-8", "replace"))
    return Draws(state.digest())


@lru_cache(maxsize=4096)
def _sent(arguments: str) -> str:
    try:
        return arguments if isinstance(json.loads(arguments), dict) else "{}"
    except ValueError:
        return "{}"


def run_draws(draw: str, *parts: str) -> Draws:
    """Draws that stay the same through a run, as far as the parts do."""
    return Draws(digest(draw.partition(":")[0], *parts))


def task_draws(question: str) -> Draws:
    """Draws that every run on the same question shares: what makes a task hard."""
    return Draws(digest("task", question))


def difficulty(question: str) -> float:
    """How hard a task is: a standard normal value from its text alone."""
    return _NORMAL.inv_cdf(min(max(task_draws(question).uniform("difficulty"), 1e-9), 1 - 1e-9))


def given_difficulty(rate: float, hardness: float, share: float) -> float:
    """The rate on a task of this difficulty, so that the mean over all tasks is `rate`.

    A one-factor normal model: a failure happens when sqrt(share) * task + sqrt(1 - share) * luck
    is over a threshold; `share` of the variance is the task's.
    """
    if rate <= 0.0 or rate >= 1.0 or share <= 0.0:
        return rate
    threshold = _NORMAL.inv_cdf(rate)
    return _NORMAL.cdf((threshold + sqrt(share) * hardness) / sqrt(1.0 - share))


def with_odds(rate: float, factor: float) -> float:
    """The rate after its odds were multiplied; 0 and 1 stay what they are."""
    if rate <= 0.0 or rate >= 1.0:
        return rate
    odds = rate / (1.0 - rate) * factor
    return odds / (1.0 + odds)
