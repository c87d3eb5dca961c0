"""Chunks and think blocks, however they are cut: the whole comes out."""

from __future__ import annotations

import json
from typing import Any

from fake_streams import chunk
from hypothesis import example, given
from hypothesis import strategies as st

from axislab.models.assembly import Assembler
from axislab.models.deltas import Delta, DeltaKind
from axislab.models.thoughts import ThoughtSplitter, split_thinking

TAGGED = st.lists(
    st.sampled_from(
        [
            "<think>",
            "</think>",
            "<thinking>",
            "</thinking>",
            "<",
            "</",
            "think",
            ">",
            " ",
            "\n",
            "ä",
        ]
    ),
    max_size=12,
).map("".join)
TEXTS = st.one_of(TAGGED, st.text(st.characters(exclude_categories=["Cs"]), max_size=40))


def cuts_of(text: str, places: list[int]) -> list[str]:
    """The text in pieces, cut at these places (some pieces may be empty)."""
    at = sorted(place % (len(text) + 1) for place in places)
    return [text[a:b] for a, b in zip([0, *at], [*at, len(text)], strict=True)]


PLACES = st.lists(st.integers(0, 200), max_size=10)


@given(TEXTS, PLACES)
@example("</think></think>\n</think>", [])
@example("so\n</think>\nyes", [1, 4])
def test_where_a_text_is_cut_does_not_change_what_was_thought(text: str, places: list[int]) -> None:
    splitter = ThoughtSplitter()
    pieces = [p for cut in cuts_of(text, places) for p in splitter.feed(cut)]
    pieces += splitter.flush()
    whole = split_thinking(text)
    said = thought = ""
    for piece in pieces:
        assert piece.text or piece.turned, "a piece says something"
        if piece.turned:
            said, thought = "", said
        said += "" if piece.thought else piece.text
        thought += piece.text if piece.thought else ""
    assert (said, thought) == (whole.said, whole.thought or "")


@given(TEXTS)
def test_a_text_without_a_leading_block_is_left_alone(text: str) -> None:
    if not text.lstrip().startswith("<"):
        assert split_thinking(text).said == text
        assert split_thinking(text).thought is None


def test_leading_blocks_are_thought_and_later_ones_are_text() -> None:
    def parts(text: str) -> tuple[str, str | None]:
        split = split_thinking(text)
        return split.said, split.thought

    assert parts("<think>a</think>b") == ("b", "a")
    assert parts(" \n<think>a</think>\n\nb") == ("b", "a")
    assert parts("<think>a</think> <think>b</think>c") == ("c", "a\nb")
    assert parts("<think>a") == ("", "a")
    assert parts("<think></think>b") == ("b", "")
    assert parts("<thinking>a</thinking>b") == ("b", "a")
    assert parts("<think>a<think>b</think>c") == ("c", "a<think>b")
    assert parts("b <think>a</think>") == ("b <think>a</think>", None)
    assert parts("a\n</think>\n\nb") == ("b", "a")
    assert parts("a\n</think>") == ("", "a")
    assert parts("a\n</think> b") == ("a\n</think> b", None)
    assert parts("a</think>b") == ("a</think>b", None)
    assert parts("<thin") == ("<thin", None)
    assert parts("") == ("", None)


def body_of(message: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "c1",
        "created": 1,
        "model": "m",
        "choices": [{"finish_reason": "stop", "message": message}],
    }


CALLS = st.lists(
    st.builds(
        lambda name, arguments, call_id: {
            "type": "function",
            "function": {"name": name, "arguments": arguments},
            **({"id": call_id} if call_id else {}),
        },
        st.sampled_from(["search", "read", "s"]),
        st.one_of(
            st.dictionaries(st.text(max_size=3), st.text(max_size=5), max_size=3).map(json.dumps),
            st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
        ),
        st.one_of(st.none(), st.sampled_from(["call_a", "call_b", "x"])),
    ),
    max_size=3,
)


@st.composite
def cut_messages(draw: st.DrawFn) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A message, and the deltas of one way to cut it: its parts come interleaved."""
    text, reasoning, calls = draw(TEXTS), draw(TEXTS), draw(CALLS)
    runs: list[list[dict[str, Any]]] = [
        [{"content": piece} for piece in cuts_of(text, draw(PLACES))],
        [{"reasoning_content": piece} for piece in cuts_of(reasoning, draw(PLACES))],
    ]
    for index, call in enumerate(calls):
        first, *rest = cuts_of(call["function"]["arguments"], draw(PLACES))
        head = {**call, "function": {**call["function"], "arguments": first}, "index": index}
        tail = [{"index": index, "function": {"arguments": piece}} for piece in rest]
        runs.append([{"tool_calls": [piece]} for piece in (head, *tail)])
    deltas: list[dict[str, Any]] = []
    begun = 2  # calls begin in the order of their indices, as with every provider
    while any(runs):
        open_runs = [run for place, run in enumerate(runs) if run and place <= begun]
        run = draw(st.sampled_from(open_runs)) if open_runs else next(r for r in runs if r)
        begun = max(begun, next(i for i, r in enumerate(runs) if r is run) + 1)
        deltas.append(run.pop(0))
    message = {"content": text, "reasoning_content": reasoning, "tool_calls": calls}
    return message, deltas


@given(cut_messages())
def test_every_cutting_of_a_message_gives_the_message(cut: Any) -> None:
    message, deltas = cut
    told: list[Delta] = []
    parts = Assembler(told.append)
    body = body_of(message)
    for delta in deltas:
        parts.take(chunk(body, delta))
    assert not parts.finished
    parts.take(chunk(body, {}, "stop"))
    assert parts.finished
    parts.close()
    made = parts.body()["choices"][0]
    assert made["finish_reason"] == "stop"
    assert made["message"]["reasoning_content"] == message["reasoning_content"]
    assert made["message"].get("tool_calls", []) == message["tool_calls"]
    wanted = message["content"] or (None if message["tool_calls"] else "")
    assert made["message"]["content"] == wanted
    split = split_thinking(message["content"])
    text = "".join(d.text for d in told if d.kind is DeltaKind.TEXT)
    thought = "".join(d.text for d in told if d.kind is DeltaKind.REASONING)
    assert text == split.said
    assert sorted(thought) == sorted(message["reasoning_content"] + (split.thought or ""))
    for number, call in enumerate(message["tool_calls"]):
        pieces = [d.text for d in told if d.kind is DeltaKind.ARGUMENTS and d.number == number]
        assert "".join(pieces) == call["function"]["arguments"]


def test_of_usage_the_last_word_counts_and_a_zero_says_nothing() -> None:
    parts = Assembler(lambda _: None)
    parts.take({"usage": {"prompt_tokens": 9, "completion_tokens": 1}, "choices": []})
    parts.take({"usage": {"prompt_tokens": 0, "completion_tokens": 5}, "choices": []})
    assert parts.body()["usage"] == {"prompt_tokens": 9, "completion_tokens": 5}


def test_a_name_that_comes_in_pieces_is_one_name() -> None:
    parts = Assembler(lambda _: None)
    for name in ("sea", "rch"):
        parts.take(chunk({}, {"tool_calls": [{"index": 0, "id": "a", "function": {"name": name}}]}))
    (call,) = parts.body()["choices"][0]["message"]["tool_calls"]
    assert call["function"]["name"] == "search"


def test_what_is_no_chunk_changes_nothing() -> None:
    parts = Assembler(lambda _: None)
    for odd in ({}, {"choices": None}, {"choices": []}, {"choices": 3}):
        parts.take(odd)
    parts.take_generic({"text": "", "is_finished": False, "finish_reason": "", "usage": None})
    assert not parts.heard
    assert not parts.finished


def test_a_report_before_the_reply_is_not_its_end() -> None:
    parts = Assembler(lambda _: None)
    usage = {"prompt_tokens": 9, "completion_tokens": 0, "total_tokens": 9}
    parts.take({"choices": [], "usage": usage})
    assert not parts.finished
    parts.take(chunk({}, {"content": "The answer is"}))
    assert not parts.finished
    parts.take({"choices": [], "usage": usage})
    assert parts.finished
    parts.take(chunk({}, {"content": " 42."}))
    assert not parts.finished, "it goes on"
    parts.take(chunk({}, {}, "stop"))
    assert parts.finished
