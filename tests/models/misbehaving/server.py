"""A server that speaks OpenAI's protocol as badly as any real one: a scenario for each bad day.

The model's name picks the scenario, `err`, or with an argument `err:503`. `seq:err:503,ok` gives
one step a request and stays at the last. `ok@1` and `ok@2` are counted apart. A good answer becomes
a stream where one is asked for.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from misbehaving.answers import ANSWERS
from misbehaving.connections import CONNECTIONS
from misbehaving.parts import Answer, Heard, Maker, fails
from misbehaving.refusals import STATUSES
from misbehaving.streams import STREAMS, events_of
from misbehaving.toolcalls import CALLS

GROUPS: Final[Mapping[str, Mapping[str, Maker]]] = {
    "answers": ANSWERS,
    "tool calls": CALLS,
    "error statuses": STATUSES,
    "bodies and connections": CONNECTIONS,
    "streams": STREAMS,
}
"""All scenarios, by group."""

SCENARIOS: Final = {name: maker for group in GROUPS.values() for name, maker in group.items()}

_TICK: Final = 0.02


@dataclass(frozen=True, slots=True)
class Received:
    """A request as it was counted."""

    model: str
    body: Mapping[str, Any]


class MisbehavingServer(ThreadingHTTPServer):
    """Listens on a free local port, and counts what it is asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: list[Received] = []
        self.stopped = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"
        self._positions: Counter[str] = Counter()
        self._guard = threading.Lock()
        threading.Thread(target=self.serve_forever, args=(_TICK,), daemon=True).start()

    def stop(self) -> None:
        """Let go of everybody who still waits."""
        self.stopped.set()
        self.shutdown()
        self.server_close()

    def __enter__(self) -> MisbehavingServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def asked(self, model: str) -> list[Mapping[str, Any]]:
        """The bodies of all requests for this model."""
        return [request.body for request in self.received if request.model == model]

    def note(self, model: str, body: Mapping[str, Any]) -> None:
        """Count a request."""
        with self._guard:
            self.received.append(Received(model, body))

    def step(self, model: str) -> str:
        """The scenario whose turn it is."""
        head, colon, rest = model.partition(":")
        name = head.partition("@")[0]
        if name != "seq":
            return name + colon + rest
        steps = rest.split(",")
        with self._guard:
            place = self._positions[model]
            self._positions[model] += 1
        return steps[min(place, len(steps) - 1)]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is nothing to report."""


def answer_to(body: Mapping[str, Any], step: str) -> Answer:
    """What the scenario of this name answers."""
    name, _, argument = step.partition(":")
    heard = Heard(body=body, scenario=name, argument=argument)
    if name not in SCENARIOS:
        text = f"The model `{name}` does not exist or you do not have access to it."
        return fails(404, text, code="model_not_found")(heard)
    return SCENARIOS[name](heard)


class _Handler(BaseHTTPRequestHandler):
    server: MisbehavingServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        model = body["model"]
        self.server.note(model, body)
        step = self.server.step(model)
        key = self.headers.get("Authorization", "").removeprefix("Bearer ")
        answer = answer_to({**body, "_authorization": key}, step)
        self._idle(answer.wait)
        if answer.fault:
            self.close_connection = True
        if answer.fault == "silent":
            self._wait_for_the_client()
        elif answer.fault == "reset":
            no_goodbye = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, no_goodbye)
            self.connection.close()
        elif answer.fault != "close":
            streamed = body.get("stream") is True and answer.status == 200 and not answer.fault
            if streamed and not isinstance(answer.body, bytes):
                self._stream(answer, Heard(body=body, scenario=step))
            else:
                self._plain(answer)

    def _plain(self, answer: Answer) -> None:
        data = answer.body
        if not isinstance(data, bytes):
            data = json.dumps(data).encode()
        promised = len(data) + (500 if answer.fault == "short" else 0)
        self._head(answer, {"Content-Type": answer.kind, "Content-Length": str(promised)})
        if answer.fault == "half":
            data = data[: len(data) // 2]
        size = max(1, len(data) // 10) if answer.pause else max(1, len(data))
        for start in range(0, len(data), size):
            self.wfile.write(data[start : start + size])
            self._idle(answer.pause)
        if answer.fault == "half":
            self._wait_for_the_client()

    def _stream(self, answer: Answer, heard: Heard) -> None:
        self._head(answer, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})
        for line in self._lines(answer, heard):
            data = (line + 2 * answer.newline).encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self._idle(answer.pause)
        if answer.end == "silent":
            self._wait_for_the_client()
        if answer.end in ("silent", "cut"):
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")

    @staticmethod
    def _lines(answer: Answer, heard: Heard) -> Iterator[str]:
        events = events_of(heard, answer.body) if answer.events is None else answer.events
        for event in events:
            yield event if isinstance(event, str) else f"data: {json.dumps(event)}"
        if answer.end == "done":
            yield "data: [DONE]"

    def _head(self, answer: Answer, headers: Mapping[str, str]) -> None:
        self.send_response(answer.status)
        for name, value in {**headers, **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def _idle(self, seconds: float) -> None:
        """Wait, but not for a client that has left."""
        until = time.monotonic() + seconds
        while (rest := until - time.monotonic()) > 0 and not self._left():
            self.server.stopped.wait(min(rest, _TICK))

    def _wait_for_the_client(self) -> None:
        while not self._left():
            self.server.stopped.wait(_TICK)

    def _left(self) -> bool:
        """True if the client hung up, or the server is to stop."""
        if self.server.stopped.is_set():
            return True
        self.connection.setblocking(False)
        try:
            return self.connection.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True
        finally:
            self.connection.setblocking(True)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""
