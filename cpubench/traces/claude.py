"""Claude Code's session files: a line per message; calls are blocks of the model's, results of the user's messages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cpubench.traces.lines import command_of, field, json_lines, number, size_of, time_s
from cpubench.traces.pending import Call, Clock, Pending, between, call_key
from cpubench.traces.span import Span

# What a tool says that it took itself, and how many seconds one of its units are.
OWN = (("durationMs", 1e-3), ("totalDurationMs", 1e-3), ("durationSeconds", 1.0))


def read(path: Path) -> Iterator[Span]:
    """Spans of calls, and of what the model and a person took before each message. Agents of an agent are told apart
    and may work at the same time."""
    pending = Pending()
    clocks: dict[str, Clock] = defaultdict(Clock)
    step = 0
    for _, line in json_lines(path):
        kind, t = line.get("type"), time_s(line.get("timestamp"))
        if kind not in ("assistant", "user"):
            continue
        task = str(line.get("sessionId") or path)
        agent = str(line.get("agentId") or ("side" if line.get("isSidechain") is True else "main"))
        content = field(line, "message", "content")
        blocks = [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []
        results = [one for one in blocks if one.get("type") == "tool_result"]
        clock = clocks[f"{task} {agent}"]
        if results:
            clock.set(t)
            for block in results:
                found = pending.take(f"{task} {block.get('tool_use_id')}")
                if found is not None:
                    own = line.get("toolUseResult") if len(results) == 1 else None
                    yield _call(found, block, own, t, task, agent)
            continue
        began, dur = clock.move(t)
        step += kind == "assistant"
        if dur is not None:
            yield Span(t=began, dur=dur, kind="llm" if kind == "assistant" else "human", task=task, agent=agent,
                       step=step, key=call_key(line.get("uuid"), t))  # fmt: skip
        for block in blocks:
            if block.get("type") == "tool_use":
                pending.put(f"{task} {block.get('id')}", Call(t, block, step))
    for call in pending.rest():
        yield _call(call, {}, None, None, str(path), "main")


def _call(made: Call, result: dict[str, Any], told: object, ended: float | None, task: str, agent: str) -> Span:
    call = made.record
    own = next((seconds * unit for name, unit in OWN if (seconds := number(field(told, name))) is not None), None)
    refused = isinstance(told, str) and told.startswith("User rejected")
    failed = result.get("is_error")
    return Span(
        t=made.t, dur=between(made.t, ended), kind="human" if refused else "tool", task=task, agent=agent,
        step=made.step, tool=str(call.get("name") or ""), cmd=command_of(call.get("input")),
        in_bytes=size_of(call.get("input")), out_bytes=size_of(result.get("content")),
        exit=int(failed) if isinstance(failed, bool) else None, internal_dur=own, key=call_key(call.get("id"), made.t),
    )  # fmt: skip
