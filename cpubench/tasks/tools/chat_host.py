"""A host of chats: ``chat_host.py serve WORKERS MERGES`` here; ``audit`` prints how many turns its sessions hold.

Each turn is a connection: HTTP, JSON, a template, tokens, the session's row in sqlite, an event stream of 214 parts
(the median of answers), a line of log. The model is not there: its tokens are drawn from the prompt's, and not waited
for. The stream ends with a comment that says what the worker used since it said so last.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import resource
import signal
import socket
import sqlite3
import sys
from array import array
from typing import Any

sys.dont_write_bytecode = True  # inputs stay as they were generated
import bpe  # type: ignore[import-not-found]  # noqa: E402

PARTS = 214
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
SESSION = re.compile(rb"x-session: *(\d+)", re.IGNORECASE)


def template(messages: list[dict[str, str]]) -> str:
    parts = [f"<|{message['role']}|>\n{message['content']}<|end|>\n" for message in messages]
    return "".join(parts) + "<|assistant|>\n"


def numbers(tokens: list[int]) -> bytes:
    """Little-endian words."""
    made = array("I", tokens)
    if sys.byteorder == "big":
        made.byteswap()
    return made.tobytes()


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


class Worker:
    """One process: its event loop, its connection to the database, its cache of pieces."""

    def __init__(self, ranks: dict[tuple[int, int], int]) -> None:
        self.ranks, self.cache = ranks, dict[str, list[int]]()
        self.base = sqlite3.connect("sessions.db", timeout=60, isolation_level=None)
        self.base.execute("PRAGMA synchronous = NORMAL")
        self.log = os.open("chat.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.told = [0] * 6

    def used(self) -> list[int]:
        one = resource.getrusage(resource.RUSAGE_SELF)
        now = [round(one.ru_utime * 1e6), round(one.ru_stime * 1e6), one.ru_minflt, one.ru_majflt, one.ru_nvcsw,
               one.ru_nivcsw]  # fmt: skip
        grown = [new - old for new, old in zip(now, self.told)]  # noqa: B905
        self.told = now
        return grown

    async def turn(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length, session = LENGTH.search(head), SESSION.search(head)
        assert length is not None
        assert session is not None
        request = json.loads(await reader.readexactly(int(length[1])))
        tokens = bpe.tokenised(template(request["messages"]), self.ranks, self.cache)
        digest = hashlib.sha256(numbers(tokens)).hexdigest()[:16]
        asked = request["messages"][-1]["content"]
        self.base.execute("INSERT INTO turns (session, tokens, digest, asked) VALUES (?, ?, ?, ?)",
                          (int(session[1]), len(tokens), digest, asked))  # fmt: skip
        writer.write(HEAD)
        for number in range(PARTS):
            delta = {"content": f"{tokens[number * 7919 % len(tokens)]} "}
            writer.write(event({"object": "chat.completion.chunk", "model": request["model"],
                                "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}))  # fmt: skip
            await asyncio.sleep(0)  # the next token would come later: others have their turn
            await writer.drain()
        writer.write(event({"usage": {"prompt_tokens": len(tokens), "digest": digest}}) + b"data: [DONE]\n\n")
        os.write(self.log, f"{session[1].decode()} {len(tokens)} {PARTS} {digest}\n".encode())
        writer.write(f": used {json.dumps(self.used())}\n\n".encode())
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def serve(self, listening: socket.socket, ready: int) -> None:
        server = await asyncio.start_server(self.turn, sock=listening, backlog=4096)
        os.write(ready, b"+")
        async with server:
            await server.serve_forever()


def listener(port: int) -> socket.socket:
    """A socket of its own for each worker: the kernel shares out connections (socket(7), SO_REUSEPORT)."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    made.bind(("127.0.0.1", port))
    made.listen(4096)
    return made


def serve(workers: int, merges: str) -> None:
    """Serves with so many processes, 0: one for each CPU, until the input ends."""
    workers = workers or len(os.sched_getaffinity(0))
    base = sqlite3.connect("sessions.db")
    base.execute("PRAGMA journal_mode = WAL")
    base.execute(
        "CREATE TABLE turns (id INTEGER PRIMARY KEY, session INTEGER, tokens INTEGER, digest TEXT, asked TEXT)"
    )
    base.execute("CREATE INDEX by_session ON turns (session)")
    base.commit()
    base.close()
    ranks, ready = bpe.load(merges), os.pipe()
    sockets = [listener(0)]
    port = sockets[0].getsockname()[1]
    sockets += [listener(port) for _ in range(workers - 1)]
    pids = []
    for listening in sockets:
        pid = os.fork()
        if not pid:
            os.close(0)
            try:
                asyncio.run(Worker(ranks).serve(listening, ready[1]))
            finally:
                os._exit(1)
        pids.append(pid)
    for listening in sockets:
        listening.close()
    for _ in pids:
        os.read(ready[0], 1)
    with open("port", "w") as file:
        file.write(str(port))
    print(json.dumps({"port": port}), flush=True)
    sys.stdin.read()
    for pid in pids:
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)


def audit() -> str:
    base = sqlite3.connect("sessions.db")
    count, sessions = base.execute("SELECT count(*), count(DISTINCT session) FROM turns").fetchone()
    base.close()
    with open("chat.log") as file:
        logged = sum(1 for _ in file)
    return f"{count} turns of {sessions} sessions, {logged} logged"


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]), sys.argv[3])
    else:
        print(audit())
