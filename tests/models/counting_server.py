"""A server that follows a script and counts prompt tokens the way OpenAI documents it.

Text is counted by tiktoken's o200k_base. A message costs 3 tokens besides role and content, a
prompt 3, tools what OpenAI's cookbook says ("How to count tokens with tiktoken", gpt-4o); calls
and their results are laid out as in the harmony format. axislab's own counting is not used.
"""

from __future__ import annotations

import json
import math
from functools import lru_cache
from typing import Any

from tests.models.fake_server import FakeServer, Handler, completion

MESSAGE, PROMPT = 3, 3
TOOL, TOOLS_END, PROPERTIES, PROPERTY = 7, 12, 3, 3
CALL_MARKS, RESULT_MARKS = 5, 4
"""Special tokens of a call (start, channel, constrain, message, call) and of a result."""


@lru_cache(maxsize=1)
def _encoding() -> Any:
    from axislab.models._litellm import load_litellm

    load_litellm()
    import litellm.litellm_core_utils.default_encoding  # noqa: F401  (its tables are in its wheel)
    import tiktoken

    return tiktoken.get_encoding("o200k_base")


@lru_cache(maxsize=4096)
def count_text(text: str) -> int:
    """Tokens of a text."""
    return len(_encoding().encode(text, disallowed_special=()))


def count_prompt(body: dict[str, Any]) -> int:
    """Tokens of a request."""
    messages = sum(map(_message, body["messages"]))
    return PROMPT + messages + _tools(body.get("tools") or [])


def _message(message: dict[str, Any]) -> int:
    content = count_text(message.get("content") or "")
    if message["role"] == "tool":
        return RESULT_MARKS + count_text("functions.search to=assistantcommentary") + content
    total = MESSAGE + count_text(message["role"]) + content
    for call in message.get("tool_calls") or ():
        function = call["function"]
        head = f"assistantcommentary to=functions.{function['name']} json"
        total += CALL_MARKS + count_text(head) + count_text(function["arguments"])
    return total


def _tools(tools: list[dict[str, Any]]) -> int:
    total = TOOLS_END if tools else 0
    for tool in tools:
        function = tool["function"]
        described = f"{function['name']}:{function['description'].rstrip('.')}"
        total += TOOL + count_text(described)
        properties = function["parameters"].get("properties") or {}
        total += PROPERTIES if properties else 0
        for name, schema in properties.items():
            about = schema.get("description", "").rstrip(".")
            total += PROPERTY + count_text(f"{name}:{schema.get('type', 'any')}:{about}")
    return total


class CountingServer(FakeServer):
    """Gives the replies of a script, one a request, with the tokens it counted.

    Args:
        factor: How many more tokens its own vocabulary makes of the same text.
    """

    def __init__(self, *, factor: float = 1.0) -> None:
        super().__init__()
        self.RequestHandlerClass = _Handler  # the socket is the same
        self.factor = factor
        self.script: list[dict[str, Any]] = []


class _Handler(Handler):
    server: CountingServer

    def behave(self, name: str) -> None:
        body = self.server.requests[-1]
        message = self.server.script.pop(0)
        given = math.ceil(self.server.factor * count_prompt(body))
        made = count_text(json.dumps(message))
        usage = {
            "prompt_tokens": given,
            "completion_tokens": made,
            "total_tokens": given + made,
        }
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        self.send(200, completion(message, usage=usage, finish_reason=finish))
