"""`python -m tests.benchmarks.plain_server`: a server that answers every request alike, at once.

It prints its address, and lives until it is told to stop or the process that started it is gone.
"""

from __future__ import annotations

import asyncio
import json
import sys

REPLY = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1700000000,
        "model": "fake-1",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": "Let me look that up.",
                    "tool_calls": [
                        {
                            "id": "call_x",
                            "type": "function",
                            "function": {"name": "search", "arguments": '{"query": "the lake"}'},
                        }
                    ],
                },
            }
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    }
).encode()
HEAD = (
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    f"Content-Length: {len(REPLY)}\r\nConnection: keep-alive\r\n\r\n"
).encode()


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read requests and answer each, until the other side hangs up."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            lengths = [
                line.partition(b":")[2]
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length:")
            ]
            await reader.readexactly(int(lengths[0]))
            writer.write(HEAD + REPLY)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main() -> None:
    """Serve on a free port of this machine."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=1 << 20)
    host, port = server.sockets[0].getsockname()[:2]
    print(f"http://{host}:{port}/v1", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        sys.exit(0)
