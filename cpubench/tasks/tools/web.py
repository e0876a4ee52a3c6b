"""A local HTTP server for tools: ``web.py``; its port is the one line that it prints. It ends with its input."""

from __future__ import annotations

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    """``/bytes/N`` answers a GET with N bytes, and a POST with the count and a sum of the bytes that it got."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.answer(b"0123456789abcdef" * (int(self.path.rpartition("/")[2]) // 16 + 1))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(json.dumps({"bytes": len(body), "sum": sum(body)}).encode())

    def answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing: the output is for the port."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with open("port.new", "w") as file:
        file.write(str(server.server_address[1]))
    os.replace("port.new", "port")
    print(json.dumps({"port": server.server_address[1]}), flush=True)
    sys.stdin.read()  # the thread ends with the process: shutdown() would wait half a second for its next look
