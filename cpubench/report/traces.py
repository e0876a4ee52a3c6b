"""Traces of a run of tasks: Chrome's JSON, which Perfetto opens, or OpenTelemetry's JSON spans (OTLP).

Spans have the true times inside a repeat. Repeats follow each other on the trace without the pauses between them, which
are not stored.
"""

from __future__ import annotations

import hashlib
from calendar import timegm
from collections.abc import Iterator
from time import strptime
from typing import Any

from cpubench.results.task_records import Repeat, TaskRow, TaskRun

FORMATS = ("chrome", "otel")
COUNTED = ("user_us", "sys_us", "forks", "minor_faults", "major_faults", "voluntary", "involuntary", "read_bytes",
           "written_bytes", "peak_bytes")  # fmt: skip

Json = dict[str, Any]


def trace(run: TaskRun, form: str) -> Json:
    """The trace of a run in one of ``FORMATS``."""
    return chrome(run) if form == "chrome" else otel(run)


def _repeats(run: TaskRun) -> Iterator[tuple[int, TaskRow, Repeat, int]]:
    """Number of the row, the row, each of its repeats, and the nanosecond of the trace at which it begins."""
    begin_ns = 0
    for number, row in enumerate(run.tasks):
        for one in row.repeats:
            early_ns = -min(0, *one.spans.start_ns, 0)
            yield number, row, one, begin_ns + early_ns
            ends = [start + wall for start, wall in zip(one.spans.start_ns, one.spans.wall_ns, strict=True)]
            begin_ns += early_ns + max(one.wall_ns, *ends, 0)


def _facts(row: TaskRow, one: Repeat, at: int) -> Json:
    counted = {name: getattr(one.spans, name)[at] for name in COUNTED}
    step = row.steps[one.spans.step[at]]
    return {"task": row.name, "repeat": one.index, "step": step.label, "phase": step.phase, **counted}


def chrome(run: TaskRun) -> Json:
    """Complete events ("X"), microseconds; a process is a task, a thread an agent or the servers beside it."""
    events: list[Json] = []
    for number, row in enumerate(run.tasks):
        events.append({"name": "process_name", "ph": "M", "pid": number, "tid": 0, "args": {"name": row.name}})
    for number, row, one, begin_ns in _repeats(run):
        for at, step in enumerate(one.spans.step):
            name = row.steps[step]
            lane = 2 * one.spans.agent[at] + one.spans.background[at]
            events.append({
                "name": name.label, "cat": name.phase, "ph": "X", "pid": number, "tid": lane,
                "ts": (begin_ns + one.spans.start_ns[at]) / 1000, "dur": one.spans.wall_ns[at] / 1000,
                "args": _facts(row, one, at),
            })  # fmt: skip
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"suite": run.suite, "run": run.sha256}}


def otel(run: TaskRun) -> Json:
    """OTLP JSON: a span "invoke_agent" for each repeat with its steps as "execute_tool KIND" (GenAI conventions)."""
    epoch_ns = timegm(strptime(run.created_utc, "%Y-%m-%dT%H:%M:%SZ")) * 10**9
    spans: list[Json] = []
    for number, row, one, begin_ns in _repeats(run):
        trace_id = _id(f"{run.sha256} {number} {one.index}", 32)
        parent = _id(f"{trace_id} parent", 16)
        start_ns = epoch_ns + begin_ns
        whole = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": row.name, "cpubench.repeat": one.index}
        spans.append(
            _span(trace_id, parent, "", f"invoke_agent {row.name}", start_ns, one.wall_ns, whole, one.failures)
        )
        for at, step in enumerate(one.spans.step):
            kind = row.steps[step].kind
            facts = {f"cpubench.{name}": value for name, value in _facts(row, one, at).items()}
            facts |= {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": kind,
                      "cpubench.agent": one.spans.agent[at]}  # fmt: skip
            spans.append(_span(trace_id, _id(f"{trace_id} {at}", 16), parent, f"execute_tool {kind}",
                               start_ns + one.spans.start_ns[at], one.spans.wall_ns[at], facts, []))  # fmt: skip
    resource = _attributes({"service.name": "cpubench", "service.version": run.cpubench})
    scopes = [{"scope": {"name": "cpubench.tasks", "version": run.suite}, "spans": spans}]
    return {"resourceSpans": [{"resource": {"attributes": resource}, "scopeSpans": scopes}]}


def _id(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def _span(trace_id: str, span_id: str, parent: str, name: str, start_ns: int, wall_ns: int, facts: Json,
          failures: list[str]) -> Json:  # fmt: skip
    status = {"code": 2, "message": failures[0]} if failures else {}
    return {"traceId": trace_id, "spanId": span_id, "parentSpanId": parent, "name": name, "kind": 1,
            "startTimeUnixNano": str(start_ns), "endTimeUnixNano": str(start_ns + wall_ns),
            "attributes": _attributes(facts), "status": status}  # fmt: skip


def _attributes(facts: Json) -> list[Json]:
    """Attributes as OTLP spells them: 64-bit numbers are strings; what is not known is left out."""
    return [{"key": key, "value": {"stringValue": value} if isinstance(value, str) else {"intValue": str(value)}}
            for key, value in facts.items() if value is not None]  # fmt: skip
