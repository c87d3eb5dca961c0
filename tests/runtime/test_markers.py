"""Markers: what is written, what is read, and what is not."""

import json

import pytest

from axislab.messages import Message, Role
from axislab.runtime.markers import Compaction, DiscardAll, Rollback, parse_marker


def raw(name, payload):
    content = payload if isinstance(payload, str) or payload is None else json.dumps(payload)
    return Message(role=Role.RUNTIME, name=name, content=content)


@pytest.mark.parametrize(
    "marker",
    [Rollback(0, ""), Rollback(3, "tool_error"), Compaction("摘要", 0, 1), DiscardAll(0)],
)
def test_a_marker_is_read_back_as_it_was_written(marker):
    message = marker.to_message()
    assert (message.role, message.name) == (Role.RUNTIME, marker.name)
    assert json.loads(message.text) == marker.payload()
    assert parse_marker(message) == marker


HUGE = 10**40
COMPACTION = {"summary": "s", "prefix_len": 1, "compressed_count": 1}


@pytest.mark.parametrize(
    ("name", "payload", "marker"),
    [
        ("rollback", {"rollback_message_count": 2, "reason": "x", "more": [1]}, Rollback(2, "x")),
        ("rollback", {"rollback_message_count": 2}, Rollback(2, "")),
        ("rollback", {"rollback_message_count": 2, "reason": 7}, Rollback(2, "")),
        ("rollback", {"rollback_message_count": HUGE}, Rollback(HUGE, "")),
        ("rollback", {"rollback_message_count": True}, None),
        ("rollback", {"rollback_message_count": -1}, None),
        ("rollback", {"rollback_message_count": 1.0}, None),
        ("rollback", {"rollback_message_count": "1"}, None),
        ("rollback", {"rollback_message_count": None}, None),
        ("rollback", {}, None),
        ("rollback", [1], None),
        ("rollback", "null", None),
        ("rollback", "", None),
        ("rollback", None, None),
        ("rollback", "{", None),
        ("rollback", "[" * 100_000, None),
        ("rollback", '{"rollback_message_count": ' + "9" * 5000 + "}", None),
        ("rollback", '{"rollback_message_count": NaN}', None),
        ("compaction", COMPACTION, Compaction("s", 1, 1)),
        ("compaction", COMPACTION | {"prefix_len": HUGE}, Compaction("s", HUGE, 1)),
        ("compaction", COMPACTION | {"summary": ""}, Compaction("", 1, 1)),
        ("compaction", COMPACTION | {"summary": None}, None),
        ("compaction", COMPACTION | {"summary": ["s"]}, None),
        ("compaction", COMPACTION | {"prefix_len": True}, None),
        ("compaction", COMPACTION | {"prefix_len": -1}, None),
        ("compaction", COMPACTION | {"compressed_count": 0}, None),
        ("compaction", COMPACTION | {"compressed_count": True}, None),
        ("compaction", COMPACTION | {"compressed_count": -2}, None),
        ("compaction", {"summary": "s", "prefix_len": 1}, None),
        ("discard_all", {"prefix_len": 3}, DiscardAll(3)),
        ("discard_all", {"prefix_len": False}, None),
        ("discard_all", {"prefix_len": -3}, None),
        ("discard_all", {"prefix_len": 1.5}, None),
        ("discard_all", {}, None),
        ("other", {"prefix_len": 3}, None),
        (None, {"prefix_len": 3}, None),
    ],
)
def test_what_is_malformed_is_no_marker(name, payload, marker):
    assert parse_marker(raw(name, payload)) == marker


def test_only_the_runtime_writes_markers():
    content = json.dumps({"rollback_message_count": 1, "reason": "x"})
    for role in (Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL):
        assert parse_marker(Message(role=role, name="rollback", content=content)) is None
