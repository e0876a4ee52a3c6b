"""Codex' rollout files: lines of {timestamp, type, payload}; a call and its output have one ``call_id``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cpubench.traces.lines import command_of, field, json_lines, json_of, number, size_of, status, time_s
from cpubench.traces.pending import Call, Clock, Pending, between, call_key
from cpubench.traces.span import Span

CALLS = ("function_call", "custom_tool_call", "local_shell_call")
ENDS = ("function_call_output", "custom_tool_call_output")
MODEL = ("reasoning", "agent_message", "agent_reasoning", "token_count")
HUMAN = ("user_message", "task_started", "turn_started", "turn_context")
WALL = re.compile(r"Wall time: (\d+(?:\.\d+)?) seconds")
EXIT = re.compile(r"(?:Process exited with code|Exit code:) (-?\d{1,9})\b")
RUNNING = re.compile(r"Process running with session ID (\d+)")
TOP = 400  # characters of an output that hold what the tool says of itself


def read(path: Path) -> Iterator[Span]:
    """Spans of calls, and of what the model and a person took. Asking again for the output of a command that still
    runs counts as that command."""
    pending = Pending()
    commands: dict[str, str] = {}  # that still run, by the number that the tool gave them
    ended: dict[str, float] = {}  # seconds, by call, that the runtime told before the output came
    clock, task, step = Clock(), str(path), 0
    for _, line in json_lines(path):
        t, payload = time_s(line.get("timestamp")), line.get("payload")
        kind = field(payload, "type") if line.get("type") != "turn_context" else "turn_context"
        key = str(field(payload, "call_id") or field(payload, "id"))
        if line.get("type") == "session_meta":
            task = str(field(payload, "id") or path)
            clock.set(t)
        elif kind in CALLS:
            step += 1
            yield from _waited(clock, t, "llm", task, step)
            pending.put(key, Call(t, payload, step, _command(payload, commands)))
        elif kind == "exec_command_end":
            seconds = _duration(field(payload, "duration"))
            if seconds is not None:
                ended[key] = seconds
        elif kind in ENDS:
            clock.set(t)
            found = pending.take(key)
            if found is not None:
                running = RUNNING.search(_top(payload))
                if running:
                    commands[running[1]] = found.command
                yield _call(found, payload, t, task, ended.pop(key, None))
        elif kind == "web_search_call":
            yield Span(t=t, kind="remote", task=task, step=step, tool="web_search")
        elif kind in MODEL or (kind == "message" and field(payload, "role") == "assistant"):
            yield from _waited(clock, t, "llm", task, step)
        elif kind in HUMAN or kind == "message":
            yield from _waited(clock, t, "human", task, step)
    for call in pending.rest():
        yield _call(call, None, None, task, None)


def _waited(clock: Clock, t: float | None, kind: str, task: str, step: int) -> Iterator[Span]:
    began, dur = clock.move(t)
    if dur:
        yield Span(t=began, dur=dur, kind=kind, task=task, step=step)


def _arguments(call: object) -> Any:
    given = field(call, "arguments") or field(call, "input") or field(call, "action")
    found = json_of(given)
    return given if found is None else found


def _command(call: object, commands: dict[str, str]) -> str:
    arguments = _arguments(call)
    running = commands.get(str(field(arguments, "session_id")))
    return running if running is not None else command_of(arguments)


def _top(answer: object) -> str:
    output = field(answer, "output")
    return output[:TOP] if isinstance(output, str) else str(field(output, "content") or "")[:TOP]


def _duration(value: object) -> float | None:
    """Seconds of {"secs", "nanos"}, or of a number of them."""
    whole, part = number(field(value, "secs")), number(field(value, "nanos"))
    return number(value) if whole is None else whole + (part or 0.0) / 1e9


def _call(call: Call, answer: object, ended: float | None, task: str, own: float | None) -> Span:
    top, meta = _top(answer), field(json_of(field(answer, "output")), "metadata")
    wall, code = WALL.search(top), EXIT.search(top)
    own = own if own is not None else float(wall[1]) if wall else number(field(meta, "duration_seconds"))
    ended_with = int(code[1]) if code else field(meta, "exit_code")
    return Span(
        t=call.t, dur=between(call.t, ended), internal_dur=own, task=task, step=call.step,
        tool=str(field(call.record, "name") or "shell"), cmd=call.command, in_bytes=size_of(_arguments(call.record)),
        out_bytes=size_of(field(answer, "output")),
        exit=status(ended_with), key=call_key(field(call.record, "call_id") or field(call.record, "id"), call.t),
    )  # fmt: skip
