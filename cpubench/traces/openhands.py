"""OpenHands v1: a folder of ``event-*.json``, or the same events as lines; an action and its observation are a pair."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cpubench.traces.lines import command_of, document, field, in_lines, json_lines, json_of, size_of, status, time_s
from cpubench.traces.pending import Call, Clock, Pending, between, call_key
from cpubench.traces.span import Span

ANSWERS = ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation")


def read(path: Path) -> Iterator[Span]:
    """Spans of calls, and of what the model and a person took before them."""
    pending = Pending()
    clock = Clock()
    step = 0
    for event in _events(path):
        kind, t = event.get("kind"), time_s(event.get("timestamp"))
        agent = event.get("source") == "agent"
        if kind == "ActionEvent":
            step += 1
            yield from _waited(clock, t, "llm", path, step)
            pending.put(_key(event), Call(t, event, step))
        elif kind in ANSWERS:
            clock.set(t)
            found = pending.take(_key(event))
            if found is not None:
                yield _call(found, event, t, path)
        elif kind == "MessageEvent":
            yield from _waited(clock, t, "llm" if agent else "human", path, step)
    for call in pending.rest():
        yield _call(call, None, None, path)


def _events(path: Path) -> Iterator[dict[str, Any]]:
    if path.is_dir():
        for file in sorted(path.glob("event-*.json")):
            yield document(file)
    elif in_lines(path):
        yield from (event for _, event in json_lines(path))
    else:
        held = document(path)
        yield from held["items"] if isinstance(held.get("items"), list) else [held]


def _key(event: dict[str, Any]) -> str:
    return str(event.get("tool_call_id") or event.get("action_id") or event.get("id"))


def _waited(clock: Clock, t: float | None, kind: str, path: Path, step: int) -> Iterator[Span]:
    began, dur = clock.move(t)
    if dur is not None:
        yield Span(t=began, dur=dur, kind=kind, task=str(path), step=step)


def _call(call: Call, answer: dict[str, Any] | None, ended: float | None, path: Path) -> Span:
    event = call.record
    action = event.get("action") or json_of(field(event, "tool_call", "arguments"))
    tool = str(event.get("tool_name") or field(action, "kind") or "")
    code = field(answer, "observation", "exit_code")
    code = field(answer, "observation", "metadata", "exit_code") if code is None else code
    rejected = field(answer, "kind") == "UserRejectObservation"
    return Span(
        t=call.t, dur=between(call.t, ended), step=call.step, task=str(path), tool=tool,
        kind="human" if rejected else "tool", cmd=command_of(action), in_bytes=size_of(action),
        out_bytes=size_of(field(answer, "observation")), exit=status(code), key=call_key(_key(event), call.t),
    )  # fmt: skip
