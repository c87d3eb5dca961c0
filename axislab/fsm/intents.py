"""Intents: what somebody wants, whether it changed in the middle of a task, and what then stays."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from axislab.errors import ConfigError
from axislab.fsm.dialog_values import DialogContext, Intent, PlanStep, Relation, StepResult

SURE = 0.9
"""A change of goal below this confidence is asked about."""

CHANGE_WORDS = (
    "instead",
    "rather",
    "change to",
    "switch to",
    "改成",
    "改为",
    "换成",
    "而是",
    "不如",
)
ADD_WORDS = (
    "also", "as well", "afterwards", "after that", "and then", "in addition",
    "另外", "还有", "顺便", "然后", "之后再", "同时", "再帮", "也要",
)  # fmt: skip
HEDGES = (
    "maybe",
    "perhaps",
    "not sure",
    "what if",
    "how do",
    "how can",
    "也许",
    "可能",
    "要不要",
    "怎么",
)
_NOT = re.compile(
    r"(?:\b(?:don't|dont|do not|not|never|no|without|stop|instead of|rather than)\s+(?:\w+\s+){0,2}"
    r"|(?:不要|不用|不想|不能|别|先不|取消|停止|而不是)[^,.;，。；、]{0,3})$"
)
_THING = re.compile(r"(?<![\w.])(?:[a-z]+[-_]?)?\d[\w.-]*\b", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """Something a dialog can do, and the steps it takes.

    Raises:
        ConfigError: No name, no steps, or a remedy for a step that is none of them.

    Examples:
        >>> Skill(name="deploy", keywords=["deploy", "部署"], steps=[PlanStep(name="ship")]).name
        'deploy'
    """

    name: str
    description: str = ""
    keywords: Sequence[str] = ()
    """Words it is recognised by, of any language; longer ones are looked for first."""
    steps: Sequence[PlanStep] = ()
    remedies: Mapping[str, Sequence[PlanStep]] = field(default_factory=dict)
    """By the name of a step: what is done in its place when it failed too often."""
    refines: Sequence[str] = ()
    """Skills it is a more careful form of: said in the middle of one, it takes its place."""
    risky: bool = False
    """Taking it up in the middle of another task is asked about."""

    def __post_init__(self) -> None:
        for name in ("keywords", "steps", "refines"):
            given = getattr(self, name)
            if isinstance(given, str):
                raise ConfigError(f"{name}={given!r}: a list is wanted, [{given!r}]")
            object.__setattr__(self, name, tuple(given))
        names = [step.name for step in self.steps]
        if not self.name or not names or len(set(names)) < len(names):
            raise ConfigError(
                f"skill {self.name!r} with the steps {names}: give a name, and steps with names "
                "that differ"
            )
        if strange := [name for name in self.remedies if name not in names]:
            raise ConfigError(f"remedies for {strange}: skill {self.name!r} has the steps {names}")


class IntentClassifier(Protocol):
    """Says what somebody wants; any function of this form is one."""

    def __call__(self, text: str, goal: Intent | None) -> Intent:
        """What a text asks for.

        Args:
            text: What was said.
            goal: What is being worked on, if anything.
        """


class KeywordIntents:
    """Recognises skills by their keywords, offline; English, Chinese, or whatever they are in.

    The confidence falls with every other skill whose words are there as well, and with hedging.
    A word that is negated ("don't deploy", "不要部署") does not count.

    Raises:
        ConfigError: A skill without keywords, or two of one name.

    Examples:
        >>> skills = [Skill(name="deploy", keywords=["deploy"], steps=[PlanStep(name="ship")])]
        >>> KeywordIntents(skills)("Please deploy v2", None).about
        'v2'
    """

    def __init__(self, skills: Iterable[Skill]) -> None:
        self.skills = skills_by_name(skills)
        for skill in self.skills.values():
            if not skill.keywords:
                raise ConfigError(f"skill {skill.name!r} has no keywords to be recognised by")

    def __call__(self, text: str, goal: Intent | None) -> Intent:
        """What a text asks for; without a name if no keyword is there."""
        plain = _plain(text)
        negated: list[str] = []
        hits = self._hits(plain, negated)
        if not hits:
            about = about_of(text)
            if goal is not None and about and not negated:
                return self._same_goal(text, goal, about)
            why = f"negated: {', '.join(negated)}" if negated else "no keyword of any skill"
            return Intent(name="", text=text, confidence=0.0, why=why)
        ranked = sorted(hits, key=lambda name: (-len(hits[name]), name))
        best, others = ranked[0], ranked[1:]
        first = len(hits[best])
        second = len(hits[others[0]]) if others else 0
        confidence = 0.9 * first / (first + second) + min(0.09, 0.03 * first)
        why = ", ".join(f"{name}: {'/'.join(hits[name])}" for name in ranked)
        if hedge := next((word for word in HEDGES if word in plain), None):
            confidence, why = confidence * 0.6, f"{why}; {hedge!r} is not sure"
        found = Intent(name=best, text=text, confidence=round(confidence, 3), why=why)
        return related(replace(found, about=about_of(text)), goal, plain, self.skills)

    def _same_goal(self, text: str, goal: Intent, about: str) -> Intent:
        if about == goal.about:
            return replace(goal, text=text, relation=Relation.SAME, why="what it is about")
        return replace(
            goal,
            text=text,
            about=about,
            relation=Relation.CHANGED,
            confidence=0.85,
            why=f"about {about} now",
        )

    def _hits(self, plain: str, negated: list[str]) -> dict[str, list[str]]:
        """Keywords found, by skill: the longest first, each place counted once."""
        words = [(_plain(w), s) for s in self.skills.values() for w in s.keywords]
        hits: dict[str, list[str]] = {}
        for word, skill in sorted(words, key=lambda pair: -len(pair[0])):
            pattern = rf"\b{re.escape(word)}" if word.isascii() else re.escape(word)
            while (place := re.search(pattern, plain)) is not None:
                refused = _NOT.search(plain[: place.start()])
                plain = f"{plain[: place.start()]}{' ' * len(word)}{plain[place.end() :]}"
                if refused:
                    negated.append(word)
                else:
                    hits.setdefault(skill.name, []).append(word)
        for name in list(hits):
            for general in self.skills[name].refines if name in hits else ():
                hits[name] += hits.pop(general, [])
        return hits


def related(intent: Intent, goal: Intent | None, text: str, skills: Mapping[str, Skill]) -> Intent:
    """The intent with its relation to the goal; what neither says it is about is the goal's."""
    if goal is None:
        return replace(intent, relation=Relation.NEW)
    about = intent.about or goal.about
    if intent.name == goal.name:
        changed = about != goal.about
        relation = Relation.CHANGED if changed else Relation.SAME
        return replace(intent, about=about, relation=relation)
    refines = goal.name in skills[intent.name].refines
    if any(word in text for word in CHANGE_WORDS) or refines:
        return replace(intent, about=about, relation=Relation.CHANGED)
    if any(word in text for word in ADD_WORDS):
        return replace(intent, about=about, relation=Relation.ADDED)
    # Nothing says how the two stand to each other: sure enough to ask, not to act.
    confidence = min(intent.confidence, SURE - 0.05)
    return replace(intent, about=about, relation=Relation.CHANGED, confidence=confidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The steps towards a goal, and how they stand to what was done and planned before."""

    steps: tuple[PlanStep, ...]
    """What is left to do."""
    dropped: tuple[str, ...] = ()
    """Steps planned before that are not in it."""
    kept: tuple[str, ...] = ()
    """Steps of it whose results are there already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A goal that changed, or came in addition, in the middle of a task."""

    intent: Intent
    plan: Plan
    risk: str
    """Why a person should be asked first; empty if nobody need be."""

    def __str__(self) -> str:
        intent = self.intent
        what = f"{intent.relation.capitalize()} goal: {intent.name} {intent.about}".rstrip()
        parts = [
            f"{name} {', '.join(steps)}"
            for name, steps in (("drops", self.plan.dropped), ("keeps", self.plan.kept))
            if steps
        ]
        return "; ".join([what, *parts])


def plan_for(intent: Intent, context: DialogContext, skills: Mapping[str, Skill]) -> Plan:
    """The steps an intent takes; those whose results are there are kept and not done again.

    What a key operation did is no longer there once another one came after it: the same step
    asked otherwise, or one for another goal.
    """
    skill = skills[intent.name]
    steps = [filled(step, intent) for step in skill.steps]
    done = {
        (result.step, result.asked)
        for place, result in enumerate(context.executed)
        if not result.key or not any(_undoes(later, result) for later in context.executed[place:])
    }
    kept = tuple(step.name for step in steps if (step.name, step.prompt) in done)
    left = tuple(step for step in steps if step.name not in kept)
    asked = {(step.name, step.prompt) for step in left}
    dropped = tuple(s.name for s in context.steps if (s.name, s.prompt) not in asked)
    return Plan(steps=left, dropped=dropped, kept=kept)


def _undoes(later: StepResult, result: StepResult) -> bool:
    again = later.step == result.step and later.asked != result.asked
    return later.key and (again or later.goal != result.goal)


def filled(step: PlanStep, intent: Intent) -> PlanStep:
    """A step of a skill as it is asked for one intent."""
    prompt = step.prompt.replace("{about}", intent.about).replace("  ", " ")
    return replace(step, prompt=prompt, goal=intent.name)


def find_drift(intent: Intent, context: DialogContext, skills: Mapping[str, Skill]) -> Drift | None:
    """Whether an intent said in the middle of a task changes it; None if it does not."""
    if context.goal is None or intent.relation in (Relation.NEW, Relation.SAME):
        return None
    return drift_to(intent, context, skills)


def drift_to(intent: Intent, context: DialogContext, skills: Mapping[str, Skill]) -> Drift:
    """What it means to take up a changed or added goal now."""
    skill = skills[intent.name]
    reasons = [f"{skill.name} is marked risky"] if skill.risky else []
    if intent.relation is Relation.ADDED:
        kept = tuple(step.name for step in context.steps)
        plan = Plan(steps=tuple(context.steps), kept=kept)
        return Drift(intent=intent, plan=plan, risk="; ".join(reasons))
    plan = plan_for(intent, context, skills)
    if intent.confidence < SURE:
        reasons.append(f"it was understood with confidence {intent.confidence:.2f}")
    effects = [r.step for r in context.executed if r.key and r.step not in plan.kept]
    if effects:
        reasons.append(f"{', '.join(effects)} has been done already")
    return Drift(intent=intent, plan=plan, risk="; ".join(reasons))


def skills_by_name(skills: Iterable[Skill]) -> dict[str, Skill]:
    """Skills by their names.

    Raises:
        ConfigError: None, two of one name, or one that refines another which is not there.
    """
    several = tuple(skills)
    named = {skill.name: skill for skill in several}
    if not named or len(named) < len(several):
        raise ConfigError(f"skills {[s.name for s in several]}: give some, with names that differ")
    for skill in several:
        if strange := [name for name in skill.refines if name not in named]:
            raise ConfigError(f"skill {skill.name!r} refines {strange}, of {sorted(named)}")
    return named


def about_of(text: str) -> str:
    """The things with a number in a text: versions, nodes, percentages."""
    return " ".join(dict.fromkeys(_THING.findall(_plain(text))))


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().replace("’", "'").split())
