"""A small server that speaks OpenAI's protocol, well and badly, for the tests of the adapter.

The model's name picks the behaviour: `ok`, `tool`, `status-503`, `hang`, `seq-status-500-ok`, …
"""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

try:
    from fake_streams import Plan, encoded, plan_of
except ModuleNotFoundError:  # this module was imported as tests.models.fake_server
    from tests.models.fake_streams import Plan, encoded, plan_of

CONTEXT_TEXTS = {
    "context-openai": "This model's maximum context length is 8192 tokens. However, your messages "
    "resulted in 9001 tokens. Please reduce the length of the messages.",
    "context-anthropic": "prompt is too long: 205000 tokens > 200000 maximum",
    "context-dashscope": "Range of input length should be [1, 98304]",
    "context-moonshot": "Invalid request: Your request exceeded model token limit: 8192",
}
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def completion(message: dict[str, Any], **choice: Any) -> dict[str, Any]:
    """A chat completion around one message; `usage=None` leaves the usage out."""
    usage = choice.pop("usage", USAGE)
    extra = {"usage": usage} if usage else {}
    inner = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1700000000,
        "model": "fake-1",
        "choices": [{**inner, **choice}],
        **extra,
    }


def tool_call(arguments: object = '{"query": "axis"}', **call: Any) -> dict[str, Any]:
    """One tool call of a message."""
    function = {"name": call.pop("name", "search"), "arguments": arguments}
    return {"id": "call_a", "type": "function", "function": function, **call}


def anthropic(usage: dict[str, Any]) -> dict[str, Any]:
    """A message of Anthropic's protocol."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": "Hello."}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": usage,
    }


def nameless(call: dict[str, Any]) -> dict[str, Any]:
    """The call without an id."""
    return {key: value for key, value in call.items() if key != "id"}


BODIES: dict[str, Any] = {
    "ok": completion({"content": "Hello."}),
    "tool": completion({"content": None, "tool_calls": [tool_call()]}, finish_reason="tool_calls"),
    "tools": completion(
        {
            "content": "I look.",
            "tool_calls": [
                tool_call(),
                tool_call('{"query": "b", "k": 3}', id="call_b"),
                tool_call("{}", id="call_c"),
            ],
        },
        finish_reason="tool_calls",
    ),
    "tools-null-ids": completion(
        {"content": None, "tool_calls": [tool_call(id=None), tool_call('{"q": 2}', id=None)]},
        finish_reason="tool_calls",
    ),
    "tools-no-ids": completion(
        {"content": None, "tool_calls": [nameless(tool_call()), nameless(tool_call('{"q": 2}'))]},
        finish_reason="tool_calls",
    ),
    "tools-empty-ids": completion(
        {"content": None, "tool_calls": [tool_call(id=""), tool_call('{"q": 2}', id="")]},
        finish_reason="tool_calls",
    ),
    "tools-same-id": completion(
        {"content": None, "tool_calls": [tool_call(), tool_call('{"q": 2}')]},
        finish_reason="tool_calls",
    ),
    "tool-stop": completion({"content": None, "tool_calls": [tool_call()]}),
    "tool-cut": completion(
        {"content": None, "tool_calls": [tool_call('{"query": "ax')]}, finish_reason="length"
    ),
    "tool-empty": completion({"content": None, "tool_calls": [tool_call("")]}),
    "tool-spaces": completion({"content": None, "tool_calls": [tool_call('{ "query" :\n"é∂" }')]}),
    "tool-null-name": completion({"content": None, "tool_calls": [tool_call(name=None)]}),
    "tool-object": completion({"content": None, "tool_calls": [tool_call({"query": "axis"})]}),
    "tool-null-id": completion({"content": None, "tool_calls": [tool_call(id=None)]}),
    "tool-broken": completion({"content": None, "tool_calls": [tool_call('{"query": "ax')]}),
    "tool-legacy": completion(
        {"content": None, "function_call": {"name": "search", "arguments": "{}"}}
    ),
    "null": completion({"content": None}),
    "empty": completion({"content": ""}),
    "refusal": completion({"content": None, "refusal": "I cannot help with that."}),
    "reasoning": completion({"content": "42", "reasoning_content": "6 * 7"}),
    "reasoning-only": completion(
        {"content": None, "reasoning_content": "6 * 7 is"}, finish_reason="length"
    ),
    "reasoning-hidden": completion(
        {"content": ""},
        finish_reason="length",
        usage={**USAGE, "completion_tokens_details": {"reasoning_tokens": 7}},
    ),
    "reasoning-other": completion({"content": "42", "reasoning": "6 * 7"}),
    "long": completion({"content": "One two. " * 60 + "\n\nÄ 中文 \U0001f600 end"}),
    "same-words": completion({"content": "word" * 400}),
    "think-space": completion({"content": "\n<think>\n6 * 7\n</think>\n\n42"}),
    "think-closed": completion({"content": "<think>\n6 * 7\n</think>\n\n42"}),
    "think-blank": completion({"content": "<think>\n\n</think>\n\n42"}),
    "think-prompted": completion({"content": "6 * 7\n</think>\n\n42"}),
    "think-twice": completion({"content": "<think>a</think> <think>b</think>c <think>d"}),
    "think-late": completion({"content": "Use <think> tags: <think>a</think>."}),
    "think-other": completion({"content": "<thinking>a</thinking>b"}),
    "think-both": completion({"content": "<think>a</think>b", "reasoning_content": "r"}),
    "think-same": completion({"content": "<think>r</think>b", "reasoning_content": "r"}),
    "think-call": completion(
        {"content": "<think>a</think>", "tool_calls": [tool_call()]}, finish_reason="tool_calls"
    ),
    "half-tag": completion({"content": "<thin"}),
    "no-id": {k: v for k, v in completion({"content": "Hello."}).items() if k != "id"},
    "total-usage": completion({"content": "Hello."}, usage={"total_tokens": 12}),
    "filtered": completion({"content": "He"}, finish_reason="content_filter"),
    "think": completion({"content": "<think>6 * 7</think>42"}),
    "think-open": completion({"content": "<think>6 * 7 is"}, finish_reason="length"),
    "surrogate": completion({"content": "half: \ud83d"}),
    "no-usage": completion({"content": "Hello."}, usage=None),
    "zero-usage": completion({"content": "Hello."}, usage=dict.fromkeys(USAGE, 0)),
    "details": completion(
        {"content": "Hello."},
        usage={
            **USAGE,
            "prompt_tokens_details": {"cached_tokens": 8},
            "completion_tokens_details": {"reasoning_tokens": 5},
        },
    ),
    "finish-null": completion({"content": "Hello."}, finish_reason=None),
    "finish-odd": completion({"content": "Hello."}, finish_reason="engine_abort"),
    "finish-eos": completion({"content": "Hello."}, finish_reason="eos_token"),
    "no-choices": {**completion({"content": "Hello."}), "choices": []},
    "no-message": {**completion({}), "choices": [{"index": 0, "finish_reason": "stop"}]},
    "gpt-4o": completion({"content": "Hello."}),
    "gpt-4o-mini": completion(
        {"content": "Hello."},
        usage={
            "prompt_tokens": 1000,
            "completion_tokens": 50,
            "total_tokens": 1050,
            "prompt_tokens_details": {"cached_tokens": 800},
            "completion_tokens_details": {"reasoning_tokens": 10},
        },
    ),
    "deepseek-chat": completion(
        {"content": "Hello."},
        usage={
            "prompt_tokens": 1000,
            "completion_tokens": 50,
            "total_tokens": 1050,
            "prompt_cache_hit_tokens": 700,
            "prompt_cache_miss_tokens": 300,
        },
    ),
    "null-message": {
        **completion({}),
        "choices": [{"index": 0, "finish_reason": "stop", "message": None}],
    },
    "claude-sonnet-4-5": anthropic(
        {
            "input_tokens": 20,
            "cache_creation_input_tokens": 300,
            "cache_read_input_tokens": 1000,
            "output_tokens": 7,
        }
    ),
    "claude-haiku-4-5": anthropic({"input_tokens": 20, "output_tokens": 7}),
}


class FakeServer(ThreadingHTTPServer):
    """Listens on a free local port; `requests` holds every body it was sent."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.stopped = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        self.stopped.set()
        self.shutdown()
        self.server_close()

    def count(self, model: str) -> int:
        """Requests for this model so far."""
        return sum(body["model"] == model for body in self.requests)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is nothing to report."""


class Handler(BaseHTTPRequestHandler):
    server: FakeServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(body)
        self.server.keys.append(self.headers.get("Authorization", ""))
        name = body["model"]
        if name.startswith("fail-"):  # fail-STATUS-TIMES, then ok
            _, status, times = name.split("-")
            name = "ok" if self.server.count(name) > int(times) else f"status-{status}"
        if name.startswith("bad-then-ok"):  # badly twice
            name = "ok" if self.server.count(name) > 2 else name.replace("-then-ok", "")
        if body.get("stream") and (plan := plan_of(name, BODIES)):
            self.stream(plan)
        else:
            self.behave(name.partition("~")[0])

    def stream(self, plan: Plan) -> None:
        """Server-sent events, or what comes in their place."""
        if plan.raw is not None:
            self.raw(plan.raw, plan.kind)
            return
        self.send_response(200)
        self.send_header("Content-Type", plan.kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in [*plan.events, *(["data: [DONE]\n\n"] if plan.done else [])]:
            if isinstance(event, float):
                if self.server.stopped.wait(event):
                    return
                continue
            data = encoded(event)
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        if plan.whole:
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.close_connection = True

    def behave(self, name: str) -> None:
        if name in BODIES:
            self.send(200, BODIES[name])
        elif name in CONTEXT_TEXTS:
            self.send(400, error(CONTEXT_TEXTS[name]))
        elif name.startswith("status-"):
            status, _, wait = name.removeprefix("status-").partition("-after-")
            self.send(
                int(status), error(f"Status {status}."), {"Retry-After": wait} if wait else {}
            )
        elif name.replace("-", "_") in dir(self):
            getattr(self, name.replace("-", "_"))()
        else:
            self.send(404, error(f"The model `{name}` does not exist.", code="model_not_found"))

    def quota(self) -> None:
        self.send(429, error("You exceeded your current quota.", code="insufficient_quota"))

    def arguments(self) -> None:
        self.send(500, error("Failed to parse tool call arguments as JSON"))

    def echo_key(self) -> None:
        self.send(401, error("Incorrect key: " + self.headers.get("Authorization", "")))

    def html(self) -> None:
        self.raw(b"<!doctype html><title>Sign in</title>", "text/html")

    def close(self) -> None:
        self.close_connection = True

    def hang(self) -> None:
        self.server.stopped.wait(20)

    def drip(self) -> None:
        """A good answer, a byte at a time: a read timeout never fires."""
        data = json.dumps(BODIES["ok"]).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        for index in range(len(data)):
            if self.server.stopped.is_set():
                return
            self.wfile.write(data[index : index + 1])
            time.sleep(0.05)

    def send(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        self.raw(json.dumps(body).encode(), "application/json", status, headers)

    def raw(
        self, data: bytes, kind: str, status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for key, value in {"Content-Type": kind, **(headers or {})}.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""


def error(text: str, *, code: str | None = None) -> dict[str, Any]:
    """An OpenAI-shaped error."""
    return {"error": {"message": text, "type": None, "param": None, "code": code}}
