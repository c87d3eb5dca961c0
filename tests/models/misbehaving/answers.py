"""Scenarios whose answers are complete, but unlike what a naive client expects."""

from __future__ import annotations

from typing import Any

from misbehaving.parts import (
    HELLO,
    Answer,
    Heard,
    Maker,
    changed,
    completion,
    message,
    says,
)

THOUGHT = "Six times seven is asked."


def _echo(heard: Heard) -> Answer:
    asked = [m.get("content") for m in heard.messages if m["role"] == "user"]
    return says(asked[-1] if asked else "")(heard)


def _boxed(heard: Heard) -> Answer:
    return says(f"Six times seven is \\boxed{{{heard.argument or 42}}}.")(heard)


def _named(heard: Heard) -> Answer:
    return says(HELLO, model=heard.argument or "another-model-2026")(heard)


def _finish(heard: Heard) -> Answer:
    return says(HELLO, finish=heard.argument or "engine_abort")(heard)


def _second_choice(body: dict[str, Any]) -> None:
    other = {"role": "assistant", "content": "The second."}
    body["choices"].append({"index": 1, "finish_reason": "stop", "message": other})


def _bare(heard: Heard) -> Answer:
    return Answer(body={"choices": [{"message": {"content": HELLO}}]})


def _used(**usage: Any) -> Maker:
    return says(HELLO, usage=usage)


def _huge(heard: Heard) -> Answer:
    text = "many words "
    return says(text * (int(heard.argument or 200_000) // len(text)))(heard)


def _no_content(heard: Heard) -> Answer:
    return Answer(body=completion(heard, {}))


ANSWERS: dict[str, Maker] = {
    "ok": lambda heard: says(heard.argument or HELLO)(heard),
    "echo": _echo,
    "boxed": _boxed,
    "boxed_empty": says("It is nowhere to be found: \\boxed{}"),
    "content_null": says(None),
    "content_empty": says(""),
    "content_missing": _no_content,
    "content_parts": says([{"type": "text", "text": "Two "}, {"type": "text", "text": "parts."}]),
    "reasoning": message(content="42", reasoning_content=THOUGHT),
    "reasoning_field": message(content="42", reasoning=THOUGHT),
    "reasoning_only": message(content=None, reasoning_content=THOUGHT, finish="length"),
    "think_tags": says(f"<think>{THOUGHT}</think>\n42"),
    "think_open": says(f"<think>{THOUGHT}", finish="length"),
    "refusal": message(content=None, refusal="I'm sorry, I can't help with that."),
    "refusal_text": says("I'm sorry, but I can't assist with that request."),
    "length": says("The result of the whole calculation is the", finish="length"),
    "content_filter": says("", finish="content_filter"),
    "finish": _finish,
    "finish_null": says(HELLO, finish=None),
    "finish_missing": changed(says(HELLO), lambda body: body["choices"][0].pop("finish_reason")),
    "no_usage": changed(says(HELLO), lambda body: body.pop("usage")),
    "usage_null": says(HELLO, usage=None),
    "usage_partial": _used(total_tokens=12),
    "usage_zero": _used(prompt_tokens=0, completion_tokens=0, total_tokens=0),
    "usage_details": _used(
        prompt_tokens=100,
        completion_tokens=50,
        total_tokens=150,
        prompt_tokens_details={"cached_tokens": 80},
        completion_tokens_details={"reasoning_tokens": 30},
    ),
    "no_choices": says(HELLO, choices=[]),
    "choices_null": says(HELLO, choices=None),
    "no_message": says(HELLO, choices=[{"index": 0, "finish_reason": "stop"}]),
    "two_choices": changed(says("The first."), _second_choice),
    "model_other": _named,
    "bare": _bare,
    "unicode": says("四十二 \U0001f52d e\u0301 \u0000 \u200f."),
    "surrogate": says("half a sign: \ud83d"),
    "huge": _huge,
    "repeat": lambda heard: says("I look it up. " * int(heard.argument or 40), finish="length")(
        heard
    ),
}
"""Status 200 and a chat completion, or nearly one."""
