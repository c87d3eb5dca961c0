"""Boxed case files: text to answer, and text to failure summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from axislab.answers.extract import AnswerStatus, extract_boxed
from axislab.answers.failure import failure_summary_text


def accepts(data: dict[str, Any]) -> bool:
    """Whether this is a boxed file: its cases hold a text and what is expected of it."""
    rows = [*data.get("cases", ()), *data.get("failure_summary_cases", ())]
    return bool(rows) and all(
        isinstance(row, dict)
        and isinstance(row.get("text"), str)
        and isinstance(row.get("expect"), str)
        for row in rows
    )


def cases(data: dict[str, Any]) -> Iterator[tuple[str, Callable[[], str | None]]]:
    """Name and check of each case; a check says what differs, or nothing."""
    for case in data.get("cases", ()):
        yield case["name"], partial(_check_box, case)
    for case in data.get("failure_summary_cases", ()):
        yield f"failure summary {case['name']}", partial(_check_summary, case)


def _expected(case: dict[str, Any]) -> str:
    right = case.get("right", "upstream") if case.get("disputed") else "upstream"
    return str(case["expect"] if right == "upstream" else right)


def _check_box(case: dict[str, Any]) -> str | None:
    expected = _expected(case)
    got = extract_boxed(case["text"])
    if (got.answer or "") != expected:
        return f"answer: {got.answer or ''!r} instead of {expected!r}"
    # A disputed answer settles the format error as well; the file states upstream's.
    error = case.get("format_error", not expected) if not case.get("disputed") else not expected
    if (got.status is AnswerStatus.FORMAT_ERROR) != error:
        return f"format_error: {got.status is AnswerStatus.FORMAT_ERROR} instead of {error}"
    return None


def _check_summary(case: dict[str, Any]) -> str | None:
    expected = _expected(case)
    got = failure_summary_text(case["text"])
    return None if got == expected else f"summary: {got!r} instead of {expected!r}"
