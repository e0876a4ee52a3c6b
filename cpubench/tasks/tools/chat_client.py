"""Clients of the host of chats: ``chat_client.py serve TEXT BYTES``, or ``crowd TEXT BYTES FIRST COUNT``.

One serves over stdio. A crowd says that it is ready, reads when the window opens and ends, and prints what each turn
took. Both only send prepared requests and hash what comes back: they are the load, not the work.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
import time
from typing import Any

TURNS = 40
ASKED, PIECE, NEXT = 3400, 2000, 900  # bytes of the last question, of earlier messages, and from turn to turn
PARTS = 214


def request(text: str, size: int, turn: int) -> bytes:
    """The body of a turn: so many bytes of text as messages of a history, and a question."""
    history = text[turn * NEXT : turn * NEXT + max(0, size - ASKED)]
    pieces = [history[at : at + PIECE] for at in range(0, len(history), PIECE)]
    messages = [{"role": ("user", "assistant")[n % 2], "content": piece} for n, piece in enumerate(pieces)]
    asked = text[-ASKED - turn * NEXT :][: min(size, ASKED)]
    messages.append({"role": "user", "content": asked})
    return json.dumps({"model": "none", "stream": True, "messages": messages}).encode()


async def turn(port: int, session: int, body: bytes) -> tuple[list[Any], list[int]]:
    """Digest of the answer, tokens and bytes of the request; and what the host used."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\nX-Session: {session}"
    )
    writer.write(head.encode() + b"\r\n\r\n" + body)
    answer = await reader.read(-1)
    writer.close()
    await writer.wait_closed()
    told, mark, used = answer.partition(b": used ")
    rows = told.split(b"data: ")
    if not mark or len(rows) != PARTS + 3:
        raise ValueError(f"an answer of {len(rows)} parts")
    usage = json.loads(rows[-2])["usage"]
    return [hashlib.sha256(told).hexdigest()[:16], usage["prompt_tokens"], len(body)], json.loads(used)


async def session(port: int, number: int, bodies: list[bytes], span: tuple[int, int], out: list[Any]) -> None:
    """Turns without a pause until the end of the window; what ends in it is told."""
    open_ns, end_ns = span
    at = number
    while True:
        begin_ns = time.monotonic_ns()
        if begin_ns >= end_ns:
            return
        result, used = await turn(port, number, bodies[at % TURNS])
        done_ns = time.monotonic_ns()
        if open_ns <= done_ns <= end_ns:
            out.append([number, at % TURNS, begin_ns - open_ns, done_ns - begin_ns, result, used])
        at += 1


async def crowd(port: int, first: int, count: int, bodies: list[bytes], span: tuple[int, int]) -> list[Any]:
    out: list[Any] = []
    await asyncio.gather(*(session(port, first + n, bodies, span, out) for n in range(count)))
    return out


def main(what: str, name: str, size: str, first: str = "0", count: str = "0") -> None:
    with open(name) as file:
        text = file.read()
    with open("port") as file:
        port = int(file.read())
    bodies = [request(text, int(size), number) for number in range(TURNS)]
    print(json.dumps({"ready": len(bodies[0])}), flush=True)
    if what == "crowd":
        open_ns, end_ns = (int(part) for part in sys.stdin.readline().split())
        print(json.dumps(asyncio.run(crowd(port, int(first), int(count), bodies, (open_ns, end_ns)))), flush=True)
        return
    loop = asyncio.new_event_loop()
    for row in sys.stdin:
        asked = json.loads(row)
        number = int(asked["params"]["arguments"])
        result, used = loop.run_until_complete(turn(port, 0, bodies[number]))
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result, "usage": used}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
