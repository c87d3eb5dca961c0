"""The seven-level decision chain: one pure function a rule, from the highest priority down.

Source: seed 000, section 2, with the order and the gates that spec section 5 states.
"""

from __future__ import annotations

from collections.abc import Callable

from axislab.config import FormatErrorStrategy
from axislab.errors import HookError
from axislab.messages import Message
from axislab.runtime.decisions import (
    NO_OBJECTION,
    Decision,
    Pass,
    Rule,
    Turn,
    Verdict,
    guarded,
    preview,
    roll_back,
)
from axislab.runtime.stages import ConversationStage as Stage
from axislab.runtime.stages import FinalizationTrigger, RollbackReason

_AFTER_FINAL = Pass(
    "the final-response prompt was already given: replies are taken as they are", True
)
_NOT_FORCED = Pass("the final answer was not forced")


def token_exhaustion(turn: Turn) -> Decision | Pass:
    """The reply was cut by length before any text or call."""
    if turn.finish_reason != "length":
        return Pass(f"finish reason is {turn.finish_reason!r}, not 'length'")
    if turn.text or turn.calls:
        return Pass("it was cut by length, but holds text or calls")
    because = "cut by length with neither text nor calls"
    if turn.message.reasoning:
        because = "thinking used all tokens of the reply: " + because
    return Decision(
        rule="token_exhaustion", level="L1", verdict=Verdict.TOKEN_EXCEED, because=because
    )


def forced_finalization(turn: Turn) -> Decision | Pass:
    """The final answer was forced: whatever came is the end."""
    if turn.prior is not Stage.FORCE_FINAL:
        return _NOT_FORCED
    if turn.calls:
        verdict, because = Verdict.REJECT_CALLS, "the forced reply calls tools"
    elif turn.force_prompted:
        verdict, because = Verdict.FORCE_COMPLETE, "the forced reply is the answer, as it stands"
    else:
        verdict, because = Verdict.COMPLETE, "the silently forced reply is the answer"
    return Decision(rule="forced_finalization", level="L2", verdict=verdict, because=because)


def truncated_reply(turn: Turn) -> Decision | Pass:
    """The reply was cut by length: only a direct answer in it counts."""
    if turn.finish_reason != "length":
        return Pass(f"finish reason is {turn.finish_reason!r}, not 'length'")
    if turn.config.on_length == "accept":
        return Pass("on_length='accept' lets a cut reply go on")
    if (answer := _direct(turn)) is not None:
        return Decision(
            rule="truncated_reply",
            level="L1b",
            verdict=Verdict.COMPLETE,
            because="cut by length, but it already holds the answer",
            answer=answer,
        )
    if turn.config.on_length == "rollback" and turn.may_roll_back:
        return roll_back(
            "truncated_reply", "L1b", RollbackReason.TOKEN_EXHAUSTION, "cut by length: hidden"
        )
    return Decision(
        rule="truncated_reply",
        level="L1b",
        verdict=Verdict.TOKEN_EXCEED,
        because="cut by length without a complete answer",
    )


def context_budget(turn: Turn) -> Decision | Pass:
    """Too few tokens are left to go on after this reply."""
    budget = turn.budget
    if budget is None:
        return Pass("no hard line is set, so the budget is not checked here")
    if not budget.exceeds_context:
        return Pass(f"{budget.remaining_tokens} tokens are left")
    if turn.text.strip() and turn.ahead("context_budget").verdict is Verdict.COMPLETE:
        return Pass("it ends the conversation: no further generation is needed")
    if budget.hard_stop:
        return Decision(
            rule="context_budget",
            level="budget",
            verdict=Verdict.TOKEN_EXCEED,
            because=f"{budget.remaining_tokens} tokens left, below the hard line",
            reason=FinalizationTrigger.CONTEXT_LIMIT,
            budget=budget,
        )
    return Decision(
        rule="context_budget",
        level="budget",
        verdict=Verdict.FORCE_FINAL,
        because=f"{budget.remaining_tokens} tokens left, below the warning line",
        reason=FinalizationTrigger.CONTEXT_LIMIT,
        budget=budget,
    )


def tool_calls(turn: Turn) -> Decision | Pass:
    """The reply calls tools."""
    if not turn.calls:
        return Pass("it calls no tool")
    return Decision(
        rule="tool_calls",
        level="L3",
        verdict=Verdict.EXECUTE_TOOLS,
        because=f"it calls {turn.calls} tool{'s' * (turn.calls > 1)}",
    )


def empty_reply(turn: Turn) -> Decision | Pass:
    """The reply is empty, and empty replies are asked again."""
    if turn.text.strip():
        return Pass("it is not empty")
    if turn.config.on_empty_reply == "accept":
        return Pass("on_empty_reply='accept' takes an empty reply")
    uncounted = turn.config.on_empty_reply == "retry_uncounted"
    if not turn.may_roll_back and not uncounted:
        return Pass(_no_room(turn))
    if turn.config.on_empty_reply == "retry":
        return roll_back("empty_reply", "L4", RollbackReason.EMPTY_REPLY, "empty: hidden")
    return Decision(
        rule="empty_reply",
        level="L4",
        verdict=Verdict.ASK_AGAIN,
        because="empty: asked again, left in sight",
        reason=RollbackReason.EMPTY_REPLY,
    )


def refusal(turn: Turn) -> Decision | Pass:
    """The reply refuses the task."""
    if turn.prior is Stage.FINAL_PROMPT:
        return _AFTER_FINAL
    if not turn.may_roll_back and not _stops(turn):
        return Pass(_no_room(turn))
    found = turn.detector.refusals(turn.text)
    if not found:
        return Pass("no refusal was found")
    matched = tuple(m.text for m in found)
    if not turn.may_roll_back:
        return _stop("refusal", "L4a", f"a refusal ({matched[0]!r}), and no rollback is left")
    return roll_back(
        "refusal",
        "L4a",
        RollbackReason.ASSISTANT_REFUSAL,
        f"a refusal: {matched[0]!r}",
        matched=matched,
        spans=_spans(turn, [(m.start, m.end) for m in found]),
    )


def format_error(turn: Turn) -> Decision | Pass:
    """The reply holds a tool call written as text."""
    if turn.prior is Stage.FINAL_PROMPT:
        return _AFTER_FINAL
    config = turn.config.format_error
    if config.strategy is FormatErrorStrategy.IGNORE:
        return Pass("strategy 'ignore' takes it as it is")
    found = turn.detector.textual_calls(turn.text)
    if not found:
        return Pass("no call written as text was found")
    matched = tuple(m.text for m in found)
    spans = _spans(turn, [(m.start, m.end) for m in found])
    because = f"a tool call written as text: {preview(matched[0], 60)!r}"
    if config.strategy is FormatErrorStrategy.ROLLBACK:
        if turn.may_roll_back:
            reason = RollbackReason.FORMAT_ERROR
            return roll_back("format_error", "L4b", reason, because, matched=matched, spans=spans)
        if _stops(turn):
            return _stop("format_error", "L4b", because + ", and no rollback is left")
        return Pass(_no_room(turn))
    if config.max_reprompts is not None and turn.reprompts >= config.max_reprompts:
        return Pass(f"all {config.max_reprompts} reprompts are used up")
    return Decision(
        rule="format_error",
        level="L4b",
        verdict=Verdict.REPROMPT,
        because=because,
        prompt=config.reprompt,
        matched=matched,
        spans=spans,
    )


def direct_answer(turn: Turn) -> Decision | Pass:
    """The hook finds the final answer in the reply."""
    if turn.prior is Stage.FINAL_PROMPT:
        return _AFTER_FINAL
    if turn.direct_answer is None:
        return Pass("no direct-answer hook is set")
    if (answer := _direct(turn)) is None:
        return Pass("the hook found no direct answer")
    return Decision(
        rule="direct_answer",
        level="L5",
        verdict=Verdict.COMPLETE,
        because=f"a direct answer: {preview(answer, 60)!r}",
        answer=answer,
    )


def final_prompt(turn: Turn) -> Decision | Pass:
    """A final-response prompt is set and was not given yet."""
    if turn.prior is Stage.FINAL_PROMPT:
        return _AFTER_FINAL
    prompt = turn.config.final_response_prompt
    if prompt is None:
        return Pass("no final-response prompt is set")
    hook = turn.wants_final_prompt
    if hook is not None and not _ask("wants_final_prompt", hook, turn.message):
        return Pass("the hook wants no final-response prompt")
    return Decision(
        rule="final_prompt",
        level="L6",
        verdict=Verdict.FINAL_PROMPT,
        because="a summary and the final answer are asked for",
        prompt=prompt,
    )


def completed(turn: Turn) -> Decision:
    """Nothing objects: the reply is the answer."""
    return NO_OBJECTION


CHAIN: tuple[Rule, ...] = (
    Rule("token_exhaustion", "L1", token_exhaustion),
    Rule("forced_finalization", "L2", forced_finalization),
    Rule("truncated_reply", "L1b", truncated_reply),
    Rule("context_budget", "budget", context_budget),
    Rule("tool_calls", "L3", tool_calls),
    Rule("empty_reply", "L4", empty_reply),
    Rule("refusal", "L4a", refusal),
    Rule("format_error", "L4b", format_error),
    Rule("direct_answer", "L5", direct_answer),
    Rule("final_prompt", "L6", final_prompt),
    Rule("completed", "L7", completed),
)
"""The table, from the highest priority down."""


def _direct(turn: Turn) -> str | None:
    answer = _ask("direct_answer", turn.direct_answer, turn.message)
    if answer is None or isinstance(answer, str):
        return answer
    raise HookError(f"the direct_answer hook gave {answer!r}: it gives text or None")


def _ask(name: str, hook: Callable[[Message], object] | None, message: Message) -> object:
    return None if hook is None else guarded(f"the {name} hook", hook, message)


def _stops(turn: Turn) -> bool:
    return turn.at_rollback_limit and turn.config.assistant_rollback.on_rollback_limit == "stop"


def _stop(rule: str, level: str, because: str) -> Decision:
    return Decision(
        rule=rule,
        level=level,
        verdict=Verdict.FORCE_FINAL,
        because=because,
        reason=FinalizationTrigger.ROLLBACK_LIMIT,
    )


def _no_room(turn: Turn) -> str:
    if turn.config.assistant_rollback.max_rollbacks == 0:
        return "max_rollbacks=0 switches rollbacks off"
    return f"all {turn.config.assistant_rollback.max_rollbacks} consecutive rollbacks are used up"


def _spans(turn: Turn, spans: list[tuple[int, int]]) -> tuple[tuple[int, int], ...] | None:
    return tuple(spans) if turn.config.detector == "structured" else None
