"""Scenarios in which what arrives is no JSON of a chat, or does not arrive at all."""

from __future__ import annotations

import json

from misbehaving.parts import HELLO, Answer, Heard, Maker, completion, raw, says, so


def _latin(heard: Heard) -> Answer:
    text = json.dumps(completion(heard, {"content": "a caf@"}))
    return Answer(body=text.encode().replace(b"@", b"\xe9"))


CONNECTIONS: dict[str, Maker] = {
    "bad_json": raw(b'{"id": "chatcmpl-bad", "choices": [{"index": 0, "mess'),
    "html": raw(b"<!doctype html><title>Please sign in</title>", kind="text/html"),
    "empty_body": raw(b""),
    "json_null": raw(b"null"),
    "json_list": raw(b"[]"),
    "json_empty": raw(b"{}"),
    "bad_utf8": _latin,
    "slow": lambda heard: so(says(HELLO), wait=heard.seconds(0.2))(heard),
    "drip": lambda heard: so(says(HELLO), pause=heard.seconds(5) / 10)(heard),
    "hang": so(says(HELLO), fault="silent"),
    "stall": so(says(HELLO), fault="half"),
    "close": so(says(HELLO), fault="close"),
    "reset": so(says(HELLO), fault="reset"),
    "truncate": so(says(HELLO), fault="short"),
}
"""The body or the connection is broken."""
