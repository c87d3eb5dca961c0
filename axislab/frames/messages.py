"""messages_df: one row a message, markers included, and whether it was hidden later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from axislab.frames.clock import Clock
from axislab.frames.columns import Column, Table, documented
from axislab.frames.history import Entry, history_of
from axislab.frames.source import RunsLike, runs_of
from axislab.messages import Role
from axislab.trace.run import Run

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class MessageRow:
    """One message."""

    entry: Entry
    seconds: float | None


def message_rows(run: Run) -> list[MessageRow]:
    """The messages of a run."""
    clock = Clock(run)
    return [MessageRow(e, clock.seconds(e.record)) for e in history_of(run).entries]


def _chars(row: MessageRow) -> int:
    return len(row.entry.message.text)


def _calls(row: MessageRow) -> str | None:
    made = row.entry.message.tool_calls
    return ", ".join(f"{call.name}({call.arguments})" for call in made) or None


def _called(row: MessageRow) -> str | None:
    return ", ".join(call.name for call in row.entry.message.tool_calls) or None


MESSAGES: Table[MessageRow] = Table(
    "messages",
    (
        Column("index", "Int64", "Place in the full list, from 0.", lambda r: r.entry.index),
        Column("step", "Int64", "Step that appended it.", lambda r: r.entry.step),
        Column(
            "role",
            "string",
            "system, user, assistant, tool, ConversationRuntime.",
            lambda r: str(r.entry.message.role),
        ),
        Column(
            "name", "string", "Tool of a result; kind of a marker.", lambda r: r.entry.message.name
        ),
        Column(
            "content",
            "string",
            "Text; NA for a message without any.",
            lambda r: r.entry.message.content,
        ),
        Column("calls", "string", "Tool calls with their arguments, as text.", _calls),
        Column("chars", "Int64", "Length of the text.", _chars),
        Column(
            "reasoning",
            "string",
            "Thinking the provider reported apart.",
            lambda r: r.entry.message.reasoning,
        ),
        Column(
            "tool_calls", "Int64", "Tool calls in it.", lambda r: len(r.entry.message.tool_calls)
        ),
        Column("tools_called", "string", "Their names, joined by commas.", _called),
        Column(
            "tool_call_id",
            "string",
            "Call a result answers.",
            lambda r: r.entry.message.tool_call_id,
        ),
        Column(
            "is_marker",
            "boolean",
            "A marker: never sent to a model.",
            lambda r: r.entry.message.role is Role.RUNTIME,
        ),
        Column(
            "visible_at_end",
            "boolean",
            "The model would see it if it were asked again.",
            lambda r: r.entry.visible,
        ),
        Column(
            "hidden_by",
            "string",
            "Reason (or kind) of the marker that hid it.",
            lambda r: r.entry.hidden_by,
        ),
        Column("hidden_at_step", "Int64", "Step of that marker.", lambda r: r.entry.hidden_at_step),
        Column("hidden_at_index", "Int64", "Index of that marker.", lambda r: r.entry.hidden_at),
        Column("seconds", "Float64", "Seconds since the run started.", lambda r: r.seconds),
    ),
    message_rows,
)


@documented(MESSAGES)
def messages_df(data: RunsLike) -> pd.DataFrame:
    """One row a message, markers included, in the order they were appended.

    Args:
        data: A run, runs, a study, or the path of a trace or folder.

    Examples:
        >>> messages_df([]).query("~visible_at_end").empty
        True
    """
    return MESSAGES.frame(runs_of(data))
