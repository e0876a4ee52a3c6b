"""What the events of a play say of a host: pure functions from ansible-runner's events."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

Json = dict[str, Any]
MOST = 400  # characters of what a host says
NOISE = ("Shared connection", "Connection to", "Warning: Permanently added")  # of ssh, on stderr


class Told(NamedTuple):
    """How a host's part in a play ended.

    ``state`` of a start: started, running, done, refused, busy; of a finish: running, done, gone; of both: unreachable,
    and failed, where a task did. ``outcome`` is what the job on the host says, of one that is running ``ran_s``, and
    ``fetched`` whether its result is here. ``begun``: a start that failed may have started the run all the same.
    """

    host: str
    phase: str  # start or finish
    state: str
    text: str = ""
    outcome: Json = {}  # noqa: RUF012  # never changed
    fetched: bool = False
    begun: bool = False


def hear(memory: dict[str, Json], phase: str, event: Json) -> Told | None:
    """What an event tells, once a host's part is over; ``memory`` holds what its earlier events said."""
    data, kind = event.get("event_data") or {}, event.get("event")
    host, task, res = data.get("host"), data.get("task"), data.get("res")
    if kind not in ("runner_on_ok", "runner_on_failed", "runner_on_unreachable") or not isinstance(res, dict):
        return None
    host, before = str(host), memory.setdefault(str(host), {})
    begun = phase == "start" and task == "start"
    if kind == "runner_on_unreachable":
        return Told(host, phase, "unreachable", one_line(res), begun=begun)
    if kind == "runner_on_failed":
        before["failed"] = f"{task}: {one_line(res)}"
        last = phase == "start" or task == "clean"
        return Told(host, phase, "failed", before["failed"], begun=begun) if last else None
    if task == "fetch":
        before["fetched"] = True
    said = answer(res) if task in ("facts", "preflight", "start", "look", "clean") else {}
    if task == "look":
        before["look"] = said
        before["stop"] = said.get("state") != "running"
    if task in ("facts", "preflight") and said.get("state") in ("refused", "busy", "running", "done"):
        return Told(host, phase, said["state"], str(said.get("text", ""))[:MOST], said)
    if task == "start":
        return Told(host, phase, str(said.get("state")), "", said, begun=begun)
    if task == "clean":
        outcome = before.get("look", {"state": "gone"})
        if _exit(said) == 70:
            outcome = before["look"] = {**outcome, "restore": said["restore"]}
        text, fetched = before.get("failed", ""), bool(before.get("fetched"))
        return Told(host, phase, str(outcome.get("state")), text, outcome, fetched)
    return None


def left(memory: dict[str, Json], phase: str, host: str, ended: str) -> Told:
    """What is to be said of a host whose part ended without a last event: it still runs, or Ansible ended early."""
    before = memory.get(host, {})
    if before.get("look", {}).get("state") == "running" and "failed" not in before:
        return Told(host, phase, "running", "", before["look"])
    return Told(host, phase, "failed", before.get("failed", ended), begun=phase == "start" and host in memory)


def _exit(said: Json) -> Any:
    restore = said.get("restore")
    return restore.get("exit") if isinstance(restore, dict) else None


def answer(res: Json) -> Json:
    """The JSON object in the last line that a host printed; ``state`` is gone where there is none."""
    for text in reversed(str(res.get("stdout", "")).splitlines()):
        try:
            found = json.loads(text)
        except ValueError:
            continue
        if isinstance(found, dict) and isinstance(found.get("state"), str):
            return found
    return {"state": "gone"}


def one_line(res: Json) -> str:
    """Why a task failed: all that Ansible says of a host that it did not reach, else what was printed last there."""
    message = str(res.get("msg", ""))
    if res.get("unreachable"):
        return " ".join(line for line in map(str.strip, message.splitlines()) if line)[:MOST]
    printed = str(res.get("stdout", "")).splitlines() + str(res.get("stderr", "")).splitlines()
    lines = [line.strip() for line in printed if line.strip() and not line.startswith(NOISE)]
    return (lines[-1] if lines else " ".join(message.split()))[:MOST]
