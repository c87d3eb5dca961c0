"""One strict server that speaks the wire formats of eight providers, for whole sessions.

`SESSION` is what the model says, in neutral form; a `Dialect` writes it as its provider does and
checks each request as its provider would: what breaks a rule is answered with error 400.
"""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any

try:
    from provider_streams import STREAMS, openai
except ModuleNotFoundError:  # this module was imported as tests.models.provider_servers
    from tests.models.provider_streams import STREAMS, openai

Body = dict[str, Any]


@dataclass(frozen=True)
class Turn:
    """One reply of the model: what it thinks, says and looks up."""

    text: str = ""
    queries: tuple[str, ...] = ()
    thought: str = ""
    ids: str = "own"
    """own ids, one "same" id twice, or "none"."""


SESSION = (
    Turn("I will look.", ("a",), thought="First a."),
    Turn("", ("b", "c")),
    Turn("Again.", ("a",), thought="Was that a?"),  # a duplicate: hidden, asked again
    Turn("", ("d", "e"), thought="Now d and e.", ids="same"),
    Turn("", ("f",), ids="none"),
    Turn("It is \\boxed{42}.", thought="Enough."),
)


class Refused(Exception):
    """The request breaks a rule."""


def need(condition: object, what: str) -> None:
    if not condition:
        raise Refused(what)


class Dialect:
    """A server of OpenAI's protocol, strict in what all of them are strict in."""

    thinks = False
    id_form = "call_{n:024d}"
    id_rule = r".{1,40}"

    def __init__(self) -> None:
        self.requests: list[Body] = []
        self.refused: list[str] = []
        self.issued: list[str] = []

    def answer(self, path: str, body: Body) -> Body:
        turn = SESSION[len(self.requests)]
        self.requests.append(body)
        need(path.endswith("/chat/completions"), f"path {path}")
        self.check(body)
        return self.reply(turn)

    def new_ids(self, turn: Turn) -> list[str | None]:
        if turn.ids == "none":
            return [None] * len(turn.queries)
        count = len(self.issued)
        numbers = [count if turn.ids == "same" else count + k for k in range(len(turn.queries))]
        ids = [self.id_form.format(n=n) for n in numbers]
        self.issued += ids
        return list(ids)

    def reply(self, turn: Turn) -> Body:
        calls = [
            {
                "id": own,
                "type": "function",
                "function": {"name": "search", "arguments": json.dumps({"query": query})},
            }
            for own, query in zip(self.new_ids(turn), turn.queries, strict=True)
        ]
        message: Body = {"role": "assistant", "content": turn.text or None}
        if calls:
            message["tool_calls"] = calls
        if self.thinks and turn.thought:
            message["reasoning_content"] = turn.thought
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": "tool_calls" if calls else "stop",
        }
        usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
        head = {"id": "r", "object": "chat.completion", "created": 1, "model": "m"}
        return {**head, "choices": [choice], "usage": usage}

    def check(self, body: Body) -> None:
        messages = body["messages"]
        need(body.get("tools"), "tools must not be empty")
        need(messages[-1]["role"] in ("user", "tool"), "the last message must ask something")
        open_ids: list[str] = []
        for message in messages:
            role = message["role"]
            need(role in ("system", "user", "assistant", "tool"), f"role {role!r}")
            if role == "tool":
                need(message["tool_call_id"] in open_ids, f"a result without call: {message}")
                open_ids.remove(message["tool_call_id"])
            else:
                need(not open_ids, f"calls without result: {open_ids}")
            need(message.keys() <= self.keys(role), f"unknown keys: {sorted(message)}")
            need(message.get("content") is not None or message.get("tool_calls"), "no content")
            open_ids = self.open(message) or open_ids
        need(not open_ids, f"calls without result: {open_ids}")
        need(all(m["role"] != "system" for m in messages[1:]), "a system message must come first")

    def keys(self, role: str) -> set[str]:
        extra = {"assistant": {"tool_calls"}, "tool": {"tool_call_id"}}
        return {"role", "content"} | extra.get(role, set())

    def open(self, message: Body) -> list[str]:
        ids = [call["id"] for call in message.get("tool_calls") or ()]
        need(len(set(ids)) == len(ids), f"an id comes twice: {ids}")
        for call in message.get("tool_calls") or ():
            need(re.fullmatch(self.id_rule, call["id"]), f"id {call['id']!r}")
            need(re.fullmatch(r"[\w-]{1,64}", call["function"]["name"]), "name")
            need(isinstance(json.loads(call["function"]["arguments"]), dict), "arguments")
        return ids

    def sent_ids(self) -> list[str]:
        """The ids of the calls in the last request, in order."""
        messages = self.requests[-1]["messages"]
        return [c["id"] for m in messages for c in m.get("tool_calls") or ()]


class OpenAI(Dialect):
    """Nothing more."""


class DeepSeek(Dialect):
    """Thinks; wants its reasoning on every turn that calls tools, and content that is text."""

    thinks = True

    def keys(self, role: str) -> set[str]:
        return super().keys(role) | ({"reasoning_content"} if role == "assistant" else set())

    def open(self, message: Body) -> list[str]:
        if message.get("tool_calls"):
            need(isinstance(message.get("content"), str), "missing field `content`")
            need(self.is_reasoning(message.get("reasoning_content")), "reasoning_content is gone")
        return super().open(message)

    def is_reasoning(self, value: object) -> bool:
        return isinstance(value, str)


class Moonshot(DeepSeek):
    """The same, never empty; ids that count calls."""

    id_form = "functions.search:{n}"

    def keys(self, role: str) -> set[str]:
        return super().keys(role) | ({"name"} if role == "tool" else set())

    def open(self, message: Body) -> list[str]:
        need(message.get("tool_calls") or message["content"].strip(), "must not be empty")
        return super().open({"content": "", **message})

    def is_reasoning(self, value: object) -> bool:
        return isinstance(value, str) and value != ""


class Mistral(Dialect):
    """Nine letters or digits, and an order of roles."""

    id_form = "n{n:08d}"
    id_rule = r"[a-zA-Z0-9]{9}"
    may_follow = {  # noqa: RUF012
        "user": ("system", "assistant", None),
        "assistant": ("user", "tool"),
        "tool": ("assistant", "tool"),
        "system": (None,),
    }

    def keys(self, role: str) -> set[str]:
        return super().keys(role) | ({"name"} if role == "tool" else set())

    def check(self, body: Body) -> None:
        before = None
        for message in body["messages"]:
            role = message["role"]
            need(before in self.may_follow[role], f"Unexpected role {role!r} after role {before!r}")
            before = role
        super().check(body)


class Vllm(Dialect):
    """A template that joins content, wants user and assistant in turn, and thinks."""

    thinks = True
    id_form = "chatcmpl-tool-{n:032d}"
    id_rule = ".+"

    def keys(self, role: str) -> set[str]:
        return super().keys(role) | ({"reasoning_content"} if role == "assistant" else set())

    def check(self, body: Body) -> None:
        roles = [m["role"] for m in body["messages"]]
        need(("user", "user") not in pairwise(roles), "roles must alternate")
        need(all(isinstance(m.get("content"), str) for m in body["messages"]), "None is no text")
        super().check(body)


class LlamaCpp(Vllm):
    """The same; ids are made of letters and digits."""

    id_form = "{n:032d}"


class Ollama(Dialect):
    """A protocol of its own: arguments are objects, and it makes no ids."""

    def answer(self, path: str, body: Body) -> Body:
        if path.endswith("/api/show"):  # litellm asks what the model can do
            return {"template": "{{ .Tools }}", "model_info": {}}
        turn = SESSION[len(self.requests)]
        self.requests.append(body)
        need(path.endswith("/api/chat") and isinstance(body["stream"], bool), f"path {path}")
        translated = [dict(message) for message in body["messages"]]
        for message in translated:
            message.pop("images", None)
            message.pop("thinking", None)
            for call in message.get("tool_calls") or ():
                need(isinstance(call["function"]["arguments"], dict), "arguments are no object")
        self.check({**body, "messages": [self.plain(message) for message in translated]})
        calls = [
            {"function": {"name": "search", "arguments": {"query": query}}}
            for query in turn.queries
        ]
        message = {"role": "assistant", "content": turn.text}
        if turn.thought:
            message["thinking"] = turn.thought
        told: Body = {"message": {**message, **({"tool_calls": calls} if calls else {})}}
        counts = {"prompt_eval_count": 11, "eval_count": 7}
        return {"model": "m", "done": True, "done_reason": "stop", **told, **counts}

    def plain(self, message: Body) -> Body:
        calls = [
            {
                **call,
                "function": {
                    "name": call["function"]["name"],
                    "arguments": json.dumps(call["function"]["arguments"]),
                },
            }
            for call in message.get("tool_calls") or ()
        ]
        return {**message, "tool_calls": calls} if calls else message


class Anthropic(Dialect):
    """Blocks; thinking with a signature that must come back unchanged."""

    id_form = "toolu_{n:024d}"

    def answer(self, path: str, body: Body) -> Body:
        turn = SESSION[len(self.requests)]
        self.requests.append(body)
        need(path.endswith("/v1/messages"), f"path {path}")
        need(body.get("tools") and body.get("max_tokens"), "tools and max_tokens are required")
        need(body["system"][0]["text"], "the system message is apart")
        self.check_turns(body["messages"], thinks="thinking" in body)
        blocks: list[Body] = []
        if turn.thought:
            signature = f"signed:{turn.thought}"
            blocks.append({"type": "thinking", "thinking": turn.thought, "signature": signature})
        if turn.text:
            blocks.append({"type": "text", "text": turn.text})
        for own, query in zip(self.new_ids(turn), turn.queries, strict=True):
            call = {"name": "search", "input": {"query": query}}
            blocks.append({"type": "tool_use", "id": own or "toolu_0", **call})
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}
        reason = {"stop_reason": "tool_use" if turn.queries else "end_turn", "stop_sequence": None}
        usage = {"input_tokens": 11, "output_tokens": 7}
        return {**head, "content": blocks, **reason, "usage": usage}

    def check_turns(self, messages: list[Body], *, thinks: bool) -> None:
        roles = [message["role"] for message in messages]
        need(roles == ["user", "assistant"] * (len(roles) // 2) + ["user"], f"roles {roles}")
        seen: set[str] = set()
        open_ids: list[str] = []
        for message in messages:
            blocks = message["content"]
            results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
            need(sorted(results) == sorted(open_ids), f"{results} do not answer {open_ids}")
            head = [b["type"] for b in blocks[: len(results)]]
            need(head == ["tool_result"] * len(results), "results come first")
            need(all(b["text"].strip() for b in blocks if b["type"] == "text"), "blank text")
            open_ids = [b["id"] for b in blocks if b["type"] == "tool_use"]
            need(all(re.fullmatch(r"[\w-]+", own) for own in open_ids), f"ids {open_ids}")
            need(not seen & {*open_ids} and len({*open_ids}) == len(open_ids), "ids not unique")
            seen.update(open_ids)
            for block in blocks:
                if block["type"] == "thinking":
                    need(block["signature"] == f"signed:{block['thinking']}", "signature")
        first = next((m for m in messages if m["role"] == "assistant"), None)
        if thinks and first is not None:
            need(first["content"][0]["type"] == "thinking", "Expected `thinking`")

    def sent_ids(self) -> list[str]:
        blocks = [b for m in self.requests[-1]["messages"] for b in m["content"]]
        return [b["id"] for b in blocks if b["type"] == "tool_use"]


class Gemini(Dialect):
    """Parts; no ids, so results go by name and number; a signature on the first call."""

    def answer(self, path: str, body: Body) -> Body:
        turn = SESSION[len(self.requests)]
        self.requests.append(body)
        need(path.endswith((":generateContent", ":streamGenerateContent")), f"path {path}")
        need(body["tools"] and body["system_instruction"]["parts"][0]["text"], "tools, system")
        self.check_contents(body["contents"])
        parts: list[Body] = []
        if turn.thought:
            parts.append({"text": turn.thought, "thought": True})
        if turn.text:
            parts.append({"text": turn.text})
        for number, query in enumerate(turn.queries):
            part: Body = {"functionCall": {"name": "search", "args": {"query": query}}}
            parts.append({**part, **({} if number else {"thoughtSignature": self.sign(query)})})
        usage = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m"}

    def sign(self, query: str) -> str:
        return f"c2lnbmVk{query * 4}"

    def check_contents(self, contents: list[Body]) -> None:
        open_names: list[str] = []
        for content in contents:
            parts = [{self.key(k): v for k, v in part.items()} for part in content["parts"]]
            need(content["role"] in ("user", "model") and parts, "role")
            need(all(p["text"].strip() for p in parts if "text" in p), "a text part is blank")
            results = [p["functionResponse"]["name"] for p in parts if "functionResponse" in p]
            need(results == open_names, f"{results} do not answer {open_names}")
            calls = [p for p in parts if "functionCall" in p]
            open_names = [p["functionCall"]["name"] for p in calls]
            if calls:
                need(content["role"] == "model", "a call of the user's")
                query = calls[0]["functionCall"]["args"]["query"]
                need(calls[0].get("thoughtSignature") == self.sign(query), "thought_signature")

    def key(self, name: str) -> str:
        return re.sub(r"_(\w)", lambda m: m[1].upper(), name)


DIALECTS: dict[str, type[Dialect]] = {
    "openai": OpenAI,
    "anthropic": Anthropic,
    "gemini": Gemini,
    "deepseek": DeepSeek,
    "moonshot": Moonshot,
    "mistral": Mistral,
    "vllm": Vllm,
    "ollama": Ollama,
    "llamacpp": LlamaCpp,
}


class ProviderServer(ThreadingHTTPServer):
    """All of them on one port: the first part of the path says whose turn it is."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.dialects = {name: cls() for name, cls in DIALECTS.items()}
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: ProviderServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        dialect = self.server.dialects[self.path.split("/")[1]]
        path = self.path.partition("?")[0]
        try:
            answer = dialect.answer(path, body)
            if body.get("stream") or path.endswith(":streamGenerateContent"):
                self.stream(type(dialect).__name__, answer)
            else:
                self.send(200, answer)
        except (Refused, KeyError, IndexError, TypeError, ValueError) as problem:
            dialect.refused.append(f"{type(problem).__name__}: {problem}")
            self.send(400, {"error": {"message": dialect.refused[-1], "code": 400}})

    def stream(self, dialect: str, answer: Body) -> None:
        kind = "application/x-ndjson" if dialect == "Ollama" else "text/event-stream"
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for data in STREAMS.get(dialect, openai)(answer):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.write(b"0\r\n\r\n")

    def send(self, status: int, body: Body) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""
