"""A study that is being run: what was asked for, what there is, and what came of this time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from axislab.accounts import ceiling
from axislab.drive import Driver
from axislab.models.account import Account
from axislab.models.base import ChatModel
from axislab.models.prefix import SharedPrefix, Tape
from axislab.orchestrator.identity import RunIdentity
from axislab.orchestrator.prefix import differing_fields, same_main_loop
from axislab.recipe import Recipe
from axislab.study.book import Book
from axislab.study.library import check_same
from axislab.study.manifest import Manifest, Session
from axislab.study.shelf import Shelf
from axislab.study.study import Study
from axislab.tasks import Task, TaskSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What `compare` was asked for, checked."""

    arms: Mapping[str, Recipe]
    tasks: TaskSet
    manifest: Manifest
    at_once: int
    budget: Mapping[str, Any] | None
    stop_when: str | None
    new: bool


class Work:
    """A study that is being run: it is locked, and what came of it is noted at the end."""

    def __init__(self, asked: Asked, manifest: Manifest, shelf: Shelf, *, book: Book) -> None:
        self.asked = asked
        self.manifest = manifest
        self.shelf = shelf
        self.book = book
        self.started = now()
        self.driver: Driver | None = None

    def study(self) -> Study:
        """The study as it stands."""
        study = Study(self.manifest, self.shelf, book=self.book)
        study.new_runs = self.driver.finished if self.driver else 0
        study.new_calls = self.driver.calls if self.driver else 0
        return study

    def note(self, ended_by: str) -> None:
        """Write down what came of this time, if anything was run."""
        if self.driver is None:
            return
        before = self.manifest.sessions[-1].ended_by if self.manifest.sessions else None
        news = ended_by in ("decided", "budget") and ended_by != before
        if not self.driver.ended and not news:
            return
        session = Session(
            started=self.started,
            ended=now(),
            ended_by=ended_by,
            runs=self.driver.finished,
            calls=self.driver.calls,
            repeats=self.manifest.repeats,
            budget=self.asked.budget,
        )
        self.manifest = replace(self.manifest, sessions=(*self.manifest.sessions, session))
        self.shelf.save(self.manifest)


def take_up(wanted: Manifest, shelf: Shelf) -> Manifest:
    """The manifest of the study, which is now ours to run: written if it is new."""
    found = shelf.read()
    if found is not None:
        check_same(found, wanted)
    created = wanted if found is None else found
    manifest = replace(
        wanted, label=shelf.label, created=created.created, sessions=created.sessions
    )
    if manifest != found:
        shelf.save(manifest)
    return manifest


def account_of(budget: Mapping[str, Any] | None, work: Work) -> Account | None:
    """What a budget leaves of itself after what the study has used."""
    if budget is None:
        return None
    account = ceiling(**budget)
    account.spent = work.book.used()
    return account


def used_up(account: Account | None, work: Work) -> bool:
    """Nothing is left, or not enough: the same budget has stopped the study before."""
    if account is None:
        return False
    left = [account.left_tokens(), account.left_usd()]
    if any(amount is not None and amount <= 0 for amount in left):
        return True
    last = work.manifest.sessions[-1:]
    return any(s.ended_by == "budget" and s.budget == work.asked.budget for s in last)


def shared_groups(arms: Mapping[str, Recipe]) -> tuple[tuple[str, ...], ...]:
    """Arms that differ only from the answer stage on, two or more in a group.

    Arms that do not differ at all are no group: what is compared is then chance itself, and a
    shared main loop would leave none of it.
    """
    groups: list[list[str]] = []
    for name, recipe in arms.items():
        for group in groups:
            others = [arms[other] for other in group]
            if same_main_loop([*others, recipe]) and all(
                set(differing_fields(other, recipe)) - {"name"} for other in others
            ):
                group.append(name)
                break
        else:
            groups.append([name])
    return tuple(tuple(group) for group in groups if len(group) > 1)


def tape_of(work: Work) -> Tape | None:
    """Where the main loops that arms of a study share are kept; None if none do."""
    return work.shelf.tape if work.manifest.shared else None


def sharer(
    manifest: Manifest, tape: Tape | None, identity: RunIdentity, task: Task
) -> Callable[[ChatModel], ChatModel] | None:
    """What makes the model of a run share its main loop; None for an arm that does not."""
    group = next((g for g in manifest.shared if identity.arm in g), None)
    if group is None or tape is None:
        return None
    name = "\x1f".join(group)
    draw = replace(identity, arm=f"shared by {name}").draw_key(task)
    return lambda model: SharedPrefix(model, tape, group=name, draw=draw)


def now() -> str:
    """The time as manifests have it: UTC, ISO 8601."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
