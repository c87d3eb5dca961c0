"""What of a model's account of its failure is worth telling the next attempt."""

from __future__ import annotations

import re
from dataclasses import dataclass

from axislab.answers.thinking import first_tag_opens, without_thinking

_CALL = re.compile(r"<(?:use_mcp_tool|tool_call)\b")


def failure_summary_text(text: str) -> str:
    """The account alone: no thinking, nothing before it, nothing from the first tool call on.

    If nothing is left, the thinking is the account; "" if there is none either.

    Examples:
        >>> failure_summary_text("<think>hm</think>Failure type: blocked<tool_call>{}")
        'Failure type: blocked'
        >>> failure_summary_text("<think>still going")
        'still going'
    """
    spoken = without_thinking(text[first_tag_opens(text) or 0 :])
    call = _CALL.search(spoken.text)
    said = spoken.text[: call.start() if call else None].strip()
    return said or "\n".join(t for thought in spoken.thoughts if (t := thought.strip()))


@dataclass(frozen=True, slots=True)
class SummaryQuality:
    """How much a next attempt can do with an account."""

    score: float
    """Share of what makes an account useful that it has, 0 to 1."""
    missing: tuple[str, ...] = ()
    """What it lacks, as requests to the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureSummary:
    """A model's account of a failed try."""

    text: str
    quality: SummaryQuality
    calls: int = 1
    """How often an account was asked for; this is the best."""


_WANTED: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "say what kind of failure it was",
        re.compile(r"\bfail|\bblocked|\bincomplete|\bmisdirected|\bwrong|失败|受阻|错误", re.I),
    ),
    (
        "say what was done and where it led nowhere",
        re.compile(
            r"\bwhat happened|\btried|\bsearch|\basked|\bcalled|\bread\b|\bran out|尝试|搜索", re.I
        ),
    ),
    (
        "say what is still missing",
        re.compile(
            r"\bmissing|\bnot (?:yet )?(?:found|known)|\bunknown|\bunclear|\bneed|\bremain|\bnext\b"
            r"|缺|未找到|需要",
            re.I,
        ),
    ),
)
_APOLOGY = re.compile(r"^\W*(?:i['’]?m sorry|i cannot|i can['’]?t|抱歉)", re.I)
_CONCRETE = re.compile(r"\d+|[\"“”「].+?[\"“”」]|\b[A-Z]\w+(?: [A-Z]\w+)*|[\u4e00-\u9fff]{2,}")
_SENTENCE_START = re.compile(r"(?:^|[.!?:\n]\s*)[\"“]?([A-Z]\w+)")


def summary_quality(text: str, task: str = "") -> SummaryQuality:
    """How useful an account is: the kind of failure, the steps, what is missing, and findings.

    A finding is something concrete (a number, a name, a quotation) that the task does not say
    itself; it counts twice. An apology is worth nothing.

    Args:
        text: The account.
        task: What was asked.

    Examples:
        >>> summary_quality("I am not sure.").score
        0.0
    """
    if _APOLOGY.search(text):
        return SummaryQuality(0.0, ("give an account, not an apology",))
    missing = [request for request, pattern in _WANTED if not pattern.search(text)]
    openings = set(_SENTENCE_START.findall(text))
    found = {f for f in _CONCRETE.findall(text) if f not in openings and f not in task}
    points = len(_WANTED) - len(missing) + (2 if found else 0)
    if not found:
        missing.append("repeat every fact that was found: names, numbers, words")
    return SummaryQuality(round(points / (len(_WANTED) + 2), 3), tuple(missing))
