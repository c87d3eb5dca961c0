"""How a reply is judged: a rule looks at a turn and decides, or passes it on; the first wins.

A rule looks at one frozen `Turn` and gives a `Decision`, or passes the turn on and says why.
Nothing here changes, awaits or logs anything; `ConversationRuntime` applies the decision. The
rules themselves stand in `axislab.runtime.rules`; a recipe extends that table or replaces rows
of it: `chain=insert_before(CHAIN, "refusal", my_rule)`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias, TypeVar

from axislab.borders import text_of
from axislab.config import ConversationConfig
from axislab.errors import ConfigError, ConversationError, HookError, did_you_mean
from axislab.messages import Message
from axislab.runtime.budget import ContextBudget
from axislab.runtime.detectors import Detector
from axislab.runtime.stages import ConversationStage as Stage

T = TypeVar("T")


class Verdict(StrEnum):
    """What a decision does with the reply."""

    TOKEN_EXCEED = "token_exceed"
    """End: no tokens were left."""
    EXECUTE_TOOLS = "execute_tools"
    """Run its tool calls."""
    ROLL_BACK = "roll_back"
    """Hide it and ask again."""
    ASK_AGAIN = "ask_again"
    """Keep it in sight, do not count the turn, ask again."""
    REPROMPT = "reprompt"
    """Keep it, point out the format error, ask again."""
    FINAL_PROMPT = "final_prompt"
    """Keep it, ask for a summary and the final answer."""
    FORCE_FINAL = "force_final"
    """Force the final answer."""
    COMPLETE = "complete"
    """End: it is the answer."""
    FORCE_COMPLETE = "force_complete"
    """End: it is the answer that was forced."""
    REJECT_CALLS = "reject_calls"
    """End: it called tools when it had to answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a rule decided."""

    rule: str
    level: str
    verdict: Verdict
    because: str = ""
    """One sentence for people."""
    reason: str | None = None
    """Why messages are hidden, or what triggered the forced answer."""
    prompt: str | None = None
    """Text appended for the model."""
    answer: str | None = None
    """The direct answer, where a hook found one."""
    matched: tuple[str, ...] = ()
    spans: tuple[tuple[int, int], ...] | None = None
    budget: ContextBudget | None = None


@dataclass(frozen=True, slots=True)
class Pass:
    """A rule has no opinion, and says why."""

    because: str
    skipped: bool = False
    """The rule was not asked at all: one of the two skip rules."""


DirectAnswerHook: TypeAlias = Callable[[Message], str | None]
"""Finds a final answer in a reply, or None."""
FinalPromptHook: TypeAlias = Callable[[Message], bool]
"""Says whether the final-response prompt is to be appended after a reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Everything a rule may look at."""

    message: Message
    prior: Stage
    """Stage in which the reply was received."""
    config: ConversationConfig
    detector: Detector
    finish_reason: str | None = None
    rollbacks: int = 0
    """Consecutive rollbacks so far."""
    reprompts: int = 0
    """Reprompts of this conversation so far."""
    force_prompted: bool = False
    """The final answer was forced by a prompt the model saw."""
    budget: ContextBudget | None = None
    """The budget with this reply in sight; None where it is not checked."""
    direct_answer: DirectAnswerHook | None = None
    wants_final_prompt: FinalPromptHook | None = None
    chain: tuple[Rule, ...] = field(default=(), repr=False)
    visible: Sequence[Message] = field(default=(), repr=False)
    """What the model sees, this reply at its end; read when needed."""
    turn_idx: int = 0
    """Number of this assistant turn, from 1."""

    @property
    def text(self) -> str:
        """The reply's content."""
        return self.message.text

    @property
    def calls(self) -> int:
        """Number of its tool calls."""
        return len(self.message.tool_calls)

    @property
    def may_roll_back(self) -> bool:
        """The shared counter leaves room for one more rollback."""
        return self.rollbacks < self.config.assistant_rollback.max_rollbacks

    @property
    def at_rollback_limit(self) -> bool:
        """Rollbacks are on, and used up."""
        return 0 < self.config.assistant_rollback.max_rollbacks <= self.rollbacks

    def ahead(self, rule: str) -> Decision:
        """What the rules after the one named would decide."""
        names = [r.name for r in self.chain]
        return _first(self, self.chain[names.index(rule) + 1 :])


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table."""

    name: str
    level: str
    check: Callable[[Turn], Decision | Pass | None]

    def ask(self, turn: Turn) -> Decision | Pass | None:
        """What the rule says about a turn.

        Raises:
            HookError: It raised, or gave something that is no answer; the message names it.
        """
        found: object = guarded(f"rule {self.name!r}", self.check, turn)
        if found is None or isinstance(found, Decision | Pass):
            return found
        raise HookError(
            f"rule {self.name!r} gave {found!r}: a rule gives a Decision, a Pass or None"
        )

    @property
    def summary(self) -> str:
        """The first line of the function's docstring."""
        return (self.check.__doc__ or "").strip().partition("\n")[0]


def decide(turn: Turn) -> Decision:
    """What the turn's chain decides."""
    return _first(turn, turn.chain)


def _first(turn: Turn, rules: Sequence[Rule]) -> Decision:
    for rule in rules:
        found = rule.ask(turn)
        if isinstance(found, Decision):
            return found
    return NO_OBJECTION


NO_OBJECTION = Decision(
    rule="completed",
    level="L7",
    verdict=Verdict.COMPLETE,
    because="no rule objects: the reply is the answer",
)
"""What is decided where no rule of a chain decides."""


@dataclass(frozen=True, slots=True)
class RuleReport:
    """What one rule said about a turn."""

    rule: str
    level: str
    outcome: str
    """fired, passed, skipped, or not reached."""
    because: str


def explain(turn: Turn) -> tuple[RuleReport, ...]:
    """What every rule of the chain says about a turn, in order."""
    reports: list[RuleReport] = []
    fired: Decision | None = None
    for rule in turn.chain:
        if fired is not None:
            because = f"{fired.rule} had decided"
            reports.append(RuleReport(rule.name, rule.level, "not reached", because))
            continue
        found = rule.ask(turn)
        if isinstance(found, Decision):
            fired = found
            reports.append(RuleReport(rule.name, rule.level, "fired", found.because))
        else:
            outcome = "skipped" if found is not None and found.skipped else "passed"
            because = found.because if found is not None else ""
            reports.append(RuleReport(rule.name, rule.level, outcome, because))
    if fired is None:
        last = NO_OBJECTION
        reports.append(RuleReport(last.rule, last.level, "fired", last.because))
    return tuple(reports)


def insert_before(chain: Sequence[Rule], name: str, rule: Rule) -> tuple[Rule, ...]:
    """The chain with one more rule in front of the one named.

    Raises:
        ConfigError: No rule has that name.
    """
    names = [r.name for r in chain]
    if name not in names:
        raise ConfigError(f"no rule is called {name!r}: {did_you_mean(name, names)}")
    at = names.index(name)
    return (*chain[:at], rule, *chain[at:])


def replace_rule(chain: Sequence[Rule], name: str, rule: Rule | None) -> tuple[Rule, ...]:
    """The chain with another rule in the place of the one named, or without it.

    Raises:
        ConfigError: No rule has that name.
    """
    names = [r.name for r in chain]
    if name not in names:
        raise ConfigError(f"no rule is called {name!r}: {did_you_mean(name, names)}")
    at = names.index(name)
    return (*chain[:at], *([rule] if rule else []), *chain[at + 1 :])


def accept(rule: str, level: str, because: str, *, answer: str | None = None) -> Decision:
    """A decision to take the reply as the answer and end the conversation.

    Args:
        rule: Name of the rule that decides.
        level: Its level, for the step's record.
        because: One sentence for people.
        answer: The answer itself, where it was found; else it is looked for in the reply.
    """
    return Decision(
        rule=rule, level=level, verdict=Verdict.COMPLETE, because=because, answer=answer
    )


def reprompt(rule: str, level: str, prompt: str, because: str) -> Decision:
    """A decision to keep the reply in sight, append a user message and ask again."""
    return Decision(
        rule=rule, level=level, verdict=Verdict.REPROMPT, because=because, prompt=prompt
    )


def roll_back(
    rule: str,
    level: str,
    reason: str,
    because: str,
    *,
    matched: tuple[str, ...] = (),
    spans: tuple[tuple[int, int], ...] | None = None,
) -> Decision:
    """A decision to hide the reply and ask again."""
    return Decision(
        rule=rule,
        level=level,
        verdict=Verdict.ROLL_BACK,
        because=because,
        reason=reason,
        matched=matched,
        spans=spans,
    )


def guarded(what: str, call: Callable[[T], object], given: T) -> object:
    """Call a rule or hook, which may be the user's.

    Raises:
        HookError: It raised, the message names it and the line; or it is an `async def`.
    """
    try:
        found = call(given)
    except ConversationError:
        raise
    except Exception as problem:
        raise HookError(f"{what} raised {_described(problem)}") from problem
    if inspect.isawaitable(found):
        if inspect.iscoroutine(found):
            found.close()
        raise HookError(f"{what} is asynchronous, which always counts as true: write a plain `def`")
    return found


def _described(problem: BaseException) -> str:
    """Type, message and place of an exception: the innermost function and its line."""
    place = problem.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f" (in {place.tb_frame.f_code.co_name}, line {place.tb_lineno})" if place else ""
    return f"{type(problem).__name__}: {text_of(problem)}{where}"


def preview(text: str, limit: int = 240) -> str:
    """One line of a text, cut with an ellipsis."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[:limit] + "…"
