"""`python -m tests.models.rough_server SEED`: a server that fails often, and counts its requests.

It prints its address. A GET of /count says how many requests it was sent, and how each of them
was treated. It draws from the seed in the order in which requests arrive.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import struct
import sys
from collections import Counter

from tests.models.fake_server import completion, error, tool_call

TREATMENTS = {
    "tool": 34,
    "answer": 22,
    "status-429": 6,
    "status-500": 6,
    "status-503": 6,
    "reset": 5,
    "closed": 5,
    "half": 4,
    "html": 4,
    "broken": 4,
    "empty": 3,
    "slow": 0.5,
}
"""What may become of a request, and how often."""
RETRY_AFTER = "0.01"
LONG = 60.0
_ABORTED = struct.pack("ii", 1, 0)
"""SO_LINGER of a socket whose close is a reset."""


def http(status: int, body: bytes, *, kind: str = "application/json", more: str = "") -> bytes:
    """A whole answer."""
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}"
    return head.encode() + b"\r\n" + body


def sent_for(treatment: str) -> bytes:
    """The bytes of an answer, whole or not."""
    name, _, status = treatment.partition("-")
    if name == "status":
        text = json.dumps(error(f"Status {status}.")).encode()
        return http(int(status), text, more=f"Retry-After: {RETRY_AFTER}\r\n")
    if name == "html":
        return http(200, b"<!doctype html><title>Sign in</title>", kind="text/html")
    message = {"content": "It is \\boxed{4}."}
    if name == "tool":
        message = {"content": "", "tool_calls": [tool_call('{"expression": "2 + 2"}')]}
        message["tool_calls"][0]["function"]["name"] = "calculator"
    if name == "empty":
        message = {"content": ""}
    finish = "tool_calls" if name == "tool" else "stop"
    whole = http(200, json.dumps(completion(message, finish_reason=finish)).encode())
    if name == "broken":
        return http(200, b'{"id": "chatcmpl-1", "choices": [{"index": 0, "mess')
    return whole[:-40] if name == "half" else whole


class Rough:
    """Treats requests as chance has it."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.counts: Counter[str] = Counter()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until either side ends it."""
        try:
            while await self._request(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; False if the connection is over."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        if head.startswith("GET "):
            writer.write(http(200, json.dumps(self.counts).encode()))
            await writer.drain()
            return False
        lines = head.lower().split("\r\n")
        length = next(line for line in lines if line.startswith("content-length:"))
        json.loads(await reader.readexactly(int(length.partition(":")[2])))
        chosen = self._random.choices(list(TREATMENTS), list(TREATMENTS.values()))[0]
        self.counts[chosen] += 1
        return await self._treat(chosen, reader, writer)

    async def _treat(
        self, treatment: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        if treatment == "reset":
            peer = writer.get_extra_info("socket")
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORTED)
            writer.transport.abort()
            return False
        if treatment == "closed":
            return False
        if treatment == "slow":
            await asyncio.wait_for(reader.read(1), LONG)  # until the client hangs up
            return False
        writer.write(sent_for(treatment))
        await writer.drain()
        return treatment != "half"


async def main(seed: int) -> None:
    """Serve on a free port of this machine."""
    server = await asyncio.start_server(Rough(seed).serve, "127.0.0.1", 0, backlog=512)
    host, port = server.sockets[0].getsockname()[:2]
    print(f"http://{host}:{port}/v1", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
