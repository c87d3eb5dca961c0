"""What a prompt asks of the simulated agent: to work, to answer now or to sum up; in what form."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from axislab.messages import Message, Role
from axislab.models.sim_language import parse_question


class Want(StrEnum):
    """What the last prompt wants."""

    WORK = "work"
    ANSWER = "answer"
    SUMMARY = "summary"
    VERDICT = "verdict"
    """Whether a candidate answer is right."""


@dataclass(frozen=True, slots=True)
class Style:
    """The form of a final answer."""

    kind: str = "plain"
    r"""plain, boxed (`\boxed{…}`), json (an object) or line (a word, a colon, the answer)."""
    key: str = ""
    """The key of the object, or the word before the colon."""


_BOXED = re.compile(r"\\?\\boxed\b|\bboxed\s*\{")
_NO_BOX = re.compile(r"\b(?:no|not|never|without)\b[^.\n]{0,30}\\?\\boxed[^.\n]*")
_JSON = re.compile(r"\bJSON\b.*?[{`'\"]\s*[\"']?(\w+)[\"']\s*[:`'\"]?", re.DOTALL)
_LINE = re.compile(
    r"[`'\"\n]((?:[Tt]he )?(?:[Ff]inal |FINAL )?(?:[Aa]nswer|ANSWER)(?: is)?):?\s*[<\[{(]"
)
_FAILED = re.compile(
    r"\b(?:fail\w*|unsuccessful|did not (?:succeed|work|lead)|not (?:been )?solved)\b", re.I
)
_SUM_UP = re.compile(
    r"\b(?:summar\w+|sum up|experience|lessons?|review|describe|explain|compress)\b", re.I
)
_FINAL = re.compile(
    r"\bfinal (?:answer|response|result|report)\b|\banswer (?:\w+ ){0,3}now\b|"
    r"\b(?:give|state|provide|write) (?:me )?(?:your|the) (?:best )?answer\b",
    re.I,
)
_NO_CALLS = re.compile(
    r"\bno (?:further|more|additional)\b[^.\n]{0,30}\b(?:tool|call|search)|"
    r"\b(?:cannot|can't|can not|must not|do not|don't|may not|stop)\b[^.\n]{0,30}"
    r"\b(?:tools?|tool calls?|calling|searching)\b",
    re.I,
)
_COMPLAINT = re.compile(
    r"\b(?:valid|invalid|proper|correct|wrong|right) (?:\w+ )?"
    r"(?:call|form|format|syntax|arguments?|json)|"
    r"\bcall syntax\b|\bformat error\b|\breads like a tool call\b|\bnot? .{0,20}\\?\\boxed|"
    r"^(?:error|invalid|not run|unknown tool|failed)\b|\bcould not be (?:parsed|read)\b",
    re.I,
)


_CANDIDATE = re.compile(r"\b(?:candidate|proposed) answer:[ \t]*(.+)", re.I)
_ASKS_VERDICT = re.compile(r"\bVERDICT:? (?:RIGHT|CORRECT)\b", re.I)
_REPROMPT = re.compile(
    r"\breads like a tool call\b|\bcall (?:syntax|format)\b|\bno valid call\b|"
    r"\b(?:use|in) the (?:proper|correct|right) (?:\w+ )?(?:call|form|format)\b|"
    r"\btool[- ]call\w*.{0,40}\b(?:format|as text|wrong|incorrect|malformed)\b",
    re.I,
)


@lru_cache(maxsize=4096)
def want_of(prompt: str | None, *, task: str = "") -> Want:
    """What a later prompt wants; None stands for no such prompt.

    A prompt with a question of its own, other than that of the task, is a new task.
    """
    if prompt is None:
        return Want.WORK
    if candidate_in(prompt) is not None:
        return Want.VERDICT
    own, first = parse_question(prompt), parse_question(task)
    if own is not None and (first is None or own.text != first.text):
        return Want.ANSWER if _NO_CALLS.search(prompt) else Want.WORK
    boxed = bool(_BOXED.search(_NO_BOX.sub("", prompt)))
    final = boxed or bool(_FINAL.search(prompt))
    if _SUM_UP.search(prompt) and not boxed and (_FAILED.search(prompt) or not final):
        return Want.SUMMARY
    if _NO_CALLS.search(prompt) or (final and not is_complaint(prompt)):
        return Want.ANSWER
    return Want.WORK


def candidate_in(prompt: str) -> str | None:
    """The answer that a prompt asks to be checked, with a verdict of right or wrong."""
    found = _CANDIDATE.search(prompt)
    return found[1].strip() if found and _ASKS_VERDICT.search(prompt) else None


@lru_cache(maxsize=4096)
def is_complaint(text: str) -> bool:
    """Whether a prompt or a tool result says that the last reply had the wrong form."""
    return bool(_COMPLAINT.search(text))


@lru_cache(maxsize=4096)
def is_reprompt(text: str) -> bool:
    """Whether a user message asks to send a call again that was written as text."""
    return bool(_REPROMPT.search(text))


def style_of(messages: Sequence[Message]) -> Style:
    """The form of answer the prompts ask for; the newest prompt that asks for one rules."""
    for message in reversed(messages):
        if message.role not in (Role.SYSTEM, Role.USER):
            continue
        if style := _style(message.text):
            return style
    return Style()


@lru_cache(maxsize=4096)
def _style(text: str) -> Style | None:
    if _BOXED.search(text):
        return Style("boxed")
    if match := _JSON.search(text):
        return Style("json", match[1])
    if match := _LINE.search(text):
        return Style("line", match[1])
    return None


def task_of(messages: Sequence[Message], results: frozenset[int]) -> int | None:
    """The place of the newest prompt that holds a question of ours."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role == Role.USER and index not in results and parse_question(message.text):
            return index
    return None
