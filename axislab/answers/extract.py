r"""Finding the final answer in a reply: \boxed{…}, a pattern, JSON, or the whole text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from axislab.answers.boxes import deciding_box
from axislab.answers.json_objects import last_object_with
from axislab.answers.thinking import Spoken, without_thinking
from axislab.config import AnswerPolicy
from axislab.errors import ConfigError, HookError
from axislab.runtime.decisions import guarded


class AnswerStatus(StrEnum):
    """Whether a reply gave an answer."""

    OK = "ok"
    FORMAT_ERROR = "format_error"
    """There is a reply, but no answer in the form that was asked for."""
    NO_ANSWER = "no_answer"
    """There is nothing to look for an answer in."""
    EXHAUSTED = "exhausted"
    """Turns, context or budget were used up before an answer could be asked for."""
    FAILED = "failed"
    """The last call for an answer failed, or the run did."""


class AnswerForm(StrEnum):
    """What was found where an answer should be."""

    COMPLETE = "complete"
    UNCLOSED = "unclosed"
    """A box without its closing brace: the rest of the text is taken."""
    PLACEHOLDER = "placeholder"
    """The form is there, but empty or filled with something like "?"."""
    NONE = "none"


PLACEHOLDERS = frozenset({"?", "??", "???", "？", "……", "…", "...", "unknown"})
"""What stands for no answer, compared without case and surrounding whitespace."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """An answer, or what there was instead."""

    answer: str | None
    status: AnswerStatus
    span: tuple[int, int] | None
    """Where it stands in the text; for JSON, where the object stands that holds it."""
    form: AnswerForm


_NOTHING = Extraction(None, AnswerStatus.FORMAT_ERROR, None, AnswerForm.NONE)
_EMPTY = Extraction(None, AnswerStatus.NO_ANSWER, None, AnswerForm.NONE)


def _found(answer: str, span: tuple[int, int] | None, form: AnswerForm) -> Extraction:
    if not answer or answer.casefold() in PLACEHOLDERS:
        return Extraction(None, AnswerStatus.FORMAT_ERROR, span, AnswerForm.PLACEHOLDER)
    return Extraction(answer, AnswerStatus.OK, span, form)


def extract_boxed(text: str) -> Extraction:
    r"""The content of the last complete \boxed{…}, or of an unclosed one if none is complete.

    Whitespace before the brace, nested braces and escaped ones are understood. A last box that is
    empty or holds a placeholder is a format error, whatever stood in earlier ones.

    Examples:
        >>> extract_boxed(r"First \boxed{1}, no: \boxed {\frac{1}{2}}").answer
        '\\frac{1}{2}'
    """
    box = deciding_box(text)
    if box is None:
        return _NOTHING
    form = AnswerForm.COMPLETE if box.closed else AnswerForm.UNCLOSED
    return _found(text[box.start : box.end], (box.start, box.end), form)


def extract_regex(text: str, pattern: str) -> Extraction:
    r"""The first group of the last match that is not blank; without a group, the match itself.

    Raises:
        ConfigError: The pattern is no regular expression.

    Examples:
        >>> extract_regex("Answer: 4\nAnswer: 5", r"Answer:\s*(\S+)").answer
        '5'
    """
    try:
        compiled = re.compile(pattern)
    except re.error as problem:
        raise ConfigError(
            f"answer_pattern={pattern!r} is no regular expression: {problem}"
        ) from problem
    group = 1 if compiled.groups else 0
    last = None
    for match in compiled.finditer(text):
        if match[group] is not None and (last is None or match[group].strip()):
            last = match
    if last is None:
        return _NOTHING
    written = last[group]
    start = last.start(group) + len(written) - len(written.lstrip())
    answer = written.strip()
    return _found(answer, (start, start + len(answer)), AnswerForm.COMPLETE)


def extract_json(text: str, key: str = "answer") -> Extraction:
    """The value of a key in the last JSON object that holds it, fenced or not, at any depth.

    A value that is no text is given as JSON; null is a placeholder.

    Examples:
        >>> extract_json('So: {"answer": [1, 2]}').answer
        '[1, 2]'
    """
    place = last_object_with(text, key)
    if place is None:
        return _NOTHING
    try:
        value = json.loads(text[place.start : place.end], strict=False)[key]
        written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except (RecursionError, ValueError):
        # Nested deeper than Python reads, or a number of more digits than it converts.
        return _NOTHING
    answer = "" if value is None else written.strip()
    return _found(answer, (place.start, place.end), AnswerForm.COMPLETE)


def extract_text(text: str) -> Extraction:
    """The whole text, without surrounding whitespace.

    Examples:
        >>> extract_text(" Osk ").answer
        'Osk'
    """
    answer = text.strip()
    if not answer:
        return _EMPTY
    start = text.index(answer)
    return Extraction(answer, AnswerStatus.OK, (start, start + len(answer)), AnswerForm.COMPLETE)


def extract(text: str | None, policy: AnswerPolicy) -> Extraction:
    r"""The answer a policy asks for, in what the model said: <think> blocks are left out.

    Args:
        text: The reply; None or blank gives NO_ANSWER, and so does one that is all thinking.
        policy: `answer_format` and, for regex and json, `answer_pattern`.

    Raises:
        ConfigError: The policy asks for a regex and has no valid one.

    Examples:
        >>> extract(r"<think>\boxed{1}</think> It is \boxed{2}.", AnswerPolicy()).answer
        '2'
    """
    spoken = without_thinking(text or "")
    if not spoken.text.strip():
        return _EMPTY
    out = _by_format(spoken.text, policy)
    return out if out.span is None else replace(out, span=_in_whole(spoken, out.span))


def extract_with(finder: Callable[[str], object], text: str | None) -> Extraction:
    """The answer a function finds in what the model said: <think> blocks are left out.

    Args:
        finder: Gives the answer as text, or None; one that is blank or a placeholder is none.
        text: The reply.

    Raises:
        HookError: It raised, or gave something that is no text.

    Examples:
        >>> extract_with(lambda said: said.partition("=")[2], "x = 4").answer
        '4'
    """
    spoken = without_thinking(text or "")
    if not spoken.text.strip():
        return _EMPTY
    found = guarded("the answer_finder", finder, spoken.text)
    if found is None:
        return _NOTHING
    if not isinstance(found, str):
        raise HookError(f"the answer_finder gave {found!r}: it gives text or None")
    answer = found.strip()
    place = spoken.text.find(answer) if answer else -1
    span = (place, place + len(answer)) if place >= 0 else None
    out = _found(answer, span, AnswerForm.COMPLETE)
    return out if out.span is None else replace(out, span=_in_whole(spoken, out.span))


def _by_format(text: str, policy: AnswerPolicy) -> Extraction:
    if policy.answer_format == "boxed":
        return extract_boxed(text)
    if policy.answer_format == "json":
        return extract_json(text, policy.answer_pattern or "answer")
    if policy.answer_format == "text":
        return extract_text(text)
    if policy.answer_pattern is None:
        raise ConfigError("answer_format='regex' needs answer_pattern, a pattern with one group")
    return extract_regex(text, policy.answer_pattern)


def _in_whole(spoken: Spoken, span: tuple[int, int]) -> tuple[int, int]:
    start, end = span
    if start == end:
        return spoken.origin(start), spoken.origin(start)
    return spoken.origin(start), spoken.origin(end - 1) + 1
