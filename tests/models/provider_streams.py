"""How each provider streams the reply that its `Dialect` gives as a whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

try:
    from fake_streams import encoded, pieces, streamed
except ModuleNotFoundError:  # this module was imported as tests.models.provider_streams
    from tests.models.fake_streams import encoded, pieces, streamed

Body = dict[str, Any]


def openai(body: Body) -> Iterator[bytes]:
    for event in streamed(body):
        yield encoded(event)
    yield b"data: [DONE]\n\n"


def anthropic(body: Body) -> Iterator[bytes]:
    """Named events; a block is opened, filled and closed, its signature comes last."""
    head = {**body, "content": [], "stop_reason": None}
    used = body["usage"]
    yield event("message_start", message={**head, "usage": {**used, "output_tokens": 1}})
    yield event("ping")
    for index, block in enumerate(body["content"]):
        kind = block["type"]
        empty = {"text": "", "thinking": "", "signature": "", "input": {}}
        opened = {key: empty.get(key, value) for key, value in block.items()}
        yield event("content_block_start", index=index, content_block=opened)
        for delta in block_deltas(kind, block):
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    why = {"stop_reason": body["stop_reason"], "stop_sequence": None}
    yield event("message_delta", delta=why, usage={"output_tokens": used["output_tokens"]})
    yield event("message_stop")


def block_deltas(kind: str, block: Body) -> Iterator[Body]:
    if kind == "text":
        for piece in pieces(block["text"]):
            yield {"type": "text_delta", "text": piece}
    elif kind == "thinking":
        for piece in pieces(block["thinking"]):
            yield {"type": "thinking_delta", "thinking": piece}
        yield {"type": "signature_delta", "signature": block["signature"]}
    elif kind == "tool_use":
        for piece in ["", *pieces(json.dumps(block["input"]))]:
            yield {"type": "input_json_delta", "partial_json": piece}


def event(name: str, **body: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **body})}\n\n".encode()


def gemini(body: Body) -> Iterator[bytes]:
    """Whole objects, each with some of the parts; calls are not cut, and the usage grows."""
    (candidate,) = body["candidates"]
    head = {key: value for key, value in body.items() if key != "candidates"}
    parts: list[Body] = []
    for part in candidate["content"]["parts"]:
        cut = pieces(part["text"]) if "text" in part else []
        parts += [{**part, "text": piece} for piece in cut] or [part]
    for part in parts:
        content = {**candidate["content"], "parts": [part]}
        yield encoded({**head, "candidates": [{"content": content, "index": 0}]})
    end = {"content": {"role": "model", "parts": [{"text": ""}]}, "index": 0}
    yield encoded({**head, "candidates": [{**end, "finishReason": candidate["finishReason"]}]})


def ollama(body: Body) -> Iterator[bytes]:
    """Lines of JSON; a call comes whole."""
    message = body["message"]
    head = {"model": body["model"], "created_at": "2026-01-01T00:00:00Z", "done": False}
    for name in ("thinking", "content"):
        for piece in pieces(message.get(name) or ""):
            yield line({**head, "message": {"role": "assistant", "content": "", name: piece}})
    for call in message.get("tool_calls") or ():
        said = {"role": "assistant", "content": "", "tool_calls": [call]}
        yield line({**head, "message": said})
    yield line({**body, "message": {"role": "assistant", "content": ""}})


def line(body: Body) -> bytes:
    return json.dumps(body).encode() + b"\n"


STREAMS: dict[str, Callable[[Body], Iterator[bytes]]] = {
    "Anthropic": anthropic,
    "Gemini": gemini,
    "Ollama": ollama,
}
"""By the class of the dialect; all others stream as OpenAI does."""
