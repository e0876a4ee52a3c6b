"""A BMC that answers recorded Redfish documents over real HTTP, and an ipmitool that answers recorded texts."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

USER, PASSWORD = "reader", "s3cret\N{EURO SIGN}"
CHASSIS = "/redfish/v1/Chassis/System.Embedded.1"
READING = """
    Instantaneous power reading:                   {watts:>4} Watts
    Minimum during sampling period:                  2 Watts
    Maximum during sampling period:                468 Watts
    Average power reading over sample period:      184 Watts
    IPMI timestamp:                           Mon Nov 30 11:00:00 2026
    Sampling period:                          00001000 Seconds.
    Power reading state is:                   {state}

"""


def chassis(power: Any = None, environment: Any = None, members: int = 1) -> dict[str, Any]:
    """Documents by path, in the shapes of the DMTF's mockups: Chassis, Power (1.x), EnvironmentMetrics (2020.4)."""
    ids = [CHASSIS] + [f"/redfish/v1/Chassis/Enclosure.{n}" for n in range(1, members)]
    documents: dict[str, Any] = {
        "/redfish/v1/Chassis": {"Members@odata.count": members, "Members": [{"@odata.id": id_} for id_ in ids]}
    }
    if power is not None:
        documents[f"{CHASSIS}/Power"] = power
    if environment is not None:
        documents[f"{CHASSIS}/EnvironmentMetrics"] = environment
    return documents


def control(watts: Any, limit: Any = None) -> dict[str, Any]:
    return {"@odata.id": f"{CHASSIS}/Power#/PowerControl/0", "MemberId": "0", "PowerConsumedWatts": watts,
            "PowerLimit": {"LimitInWatts": limit, "LimitException": "NoAction"},
            "PowerMetrics": {"AverageConsumedWatts": 184, "IntervalInMin": 1, "MaxConsumedWatts": 468}}  # fmt: skip


@contextmanager
def server(documents: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """The URL, and the paths that were asked for. Values of ``documents`` are JSON, bytes, a status or a function."""
    asked: list[str] = []
    wanted = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            answer = documents.get(self.path, 404)
            answer = answer() if callable(answer) else answer
            if self.headers.get("Authorization") != wanted:
                answer = 401
            status = answer if isinstance(answer, int) else 200
            body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            if status in (301, 302):
                self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.handle_error = lambda request, client: None  # type: ignore[method-assign]  # clients that went away
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{made.server_address[1]}", asked
    finally:
        made.shutdown()
        thread.join()
        made.server_close()


def ipmitool(folder: Path, script: str) -> None:
    """A program of that name, as /bin/sh runs it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "ipmitool"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
