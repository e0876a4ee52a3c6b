"""OpenTelemetry spans of agents: OTLP as JSON, or spans as SDKs print them; as one text or in lines.

The conventions for generative AI are in development: old names of attributes are read beside the new ones.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from sys import intern
from typing import Any

from cpubench.traces.lines import (
    command_of,
    document,
    field,
    in_lines,
    json_lines,
    json_of,
    number,
    size_of,
    status,
    time_s,
)
from cpubench.traces.pending import between, call_key
from cpubench.traces.span import Span

OPERATION = ("gen_ai.operation.name", "openinference.span.kind", "traceloop.span.kind", "span.type")
TOOL = ("gen_ai.tool.name", "tool.name", "tool_name", "traceloop.entity.name", "ai.toolCall.name", "mcp.tool.name")
INPUT = ("gen_ai.tool.call.arguments", "gen_ai.tool.arguments", "gen_ai.tool.input", "input.value",
         "traceloop.entity.input", "ai.toolCall.args", "process.command_line", "shell.command",
         "process.command_args")  # fmt: skip
OUTPUT = ("gen_ai.tool.call.result", "gen_ai.tool.output", "output.value", "traceloop.entity.output")
MODELS = ("chat", "text_completion", "generate_content", "embeddings", "llm", "embedding")
TOOLS = ("execute_tool", "tool", "claude_code.tool")
AGENTS = ("invoke_agent", "agent")
INTEGER = re.compile(r"-?[0-9]{1,19}")
NAMED = re.compile(r"execute_tool (\S+)")  # what else a span is called may hold a whole command
DEPTH = 100  # spans that one is in which are looked at; files may say that two are in each other
HERE = ("localhost", "127.0.0.1", "::1", "0.0.0.0")
Attributes = dict[str, Any]
Waits = dict[str, list[tuple[float, float]]]  # by the span of the call: from, to
Tree = tuple[dict[str, str], dict[str, str]]  # by span: the span that it is in, and whether it is tool, model or agent


def read(path: Path) -> Iterator[Span]:
    """Spans of tools and models. A tool at any depth inside a tool is the same call, told twice: the outer one counts;
    what a model or an agent inside a tool calls is a call of its own. What a call waited for a person is a span of its
    own and no part of the call's time."""
    tree, waits = _first_look(path)
    for step, one in enumerate(_spans(path)):
        attributes = _attributes(one)
        kind = _kind(one, attributes)
        if kind in (None, "agent") or (kind == "tool" and _tool_around(_parent(one), tree)):
            continue
        began, ended = _times(one)
        code = status(_first(attributes, ("process.exit.code", "exit_code")))
        given = json_of(_first(attributes, INPUT))
        address = _first(attributes, ("server.address", "net.peer.name"))
        away = kind == "tool" and isinstance(address, str) and address not in HERE
        failed = 1 if "error.type" in attributes else None
        named = NAMED.match(str(one.get("name")))
        trace = str(one.get("traceId") or field(one, "context", "trace_id") or one.get("trace_id") or path)
        yield Span(
            t=began, dur=_worked(began, ended, waits.get(_id(one), [])), step=step,
            kind="remote" if away else str(kind), task=trace,
            key=call_key(_id(one) and f"{trace} {_id(one)}", began),
            agent=str(_first(attributes, ("gen_ai.agent.id", "gen_ai.agent.name")) or "main"),
            tool=str(_first(attributes, TOOL) or (named[1] if named else "")) if kind == "tool" else "",
            cmd=command_of(given if given is not None else _first(attributes, INPUT)),
            in_bytes=size_of(_first(attributes, INPUT)), out_bytes=size_of(_first(attributes, OUTPUT)),
            exit=failed if code is None else code,
        )  # fmt: skip


def _spans(path: Path) -> Iterator[dict[str, Any]]:
    held = (one for _, one in json_lines(path)) if in_lines(path) else iter([document(path)])
    for one in held:
        yield from _inside(one)


def _inside(held: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The spans of an OTLP message, of a list of spans, or the one that it is."""
    many: list[Any] = []
    for resource in _list(held.get("resourceSpans")):
        for scope in [*_list(field(resource, "scopeSpans")), *_list(field(resource, "instrumentationLibrarySpans"))]:
            many += _list(field(scope, "spans"))
    many += [*_list(held.get("items")), *_list(held.get("spans"))]
    if "resourceSpans" not in held and not many:
        many = [held]
    for one in many:
        if isinstance(one, dict):
            yield from _inside(one) if "resourceSpans" in one else [one]


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _attributes(span: dict[str, Any]) -> Attributes:
    """Attributes by name: OTLP's list of keys and typed values, or a plain object."""
    held = span.get("attributes")
    if isinstance(held, dict):
        return held
    return {str(one.get("key")): _value(one.get("value")) for one in _list(held) if isinstance(one, dict)}


def _value(held: object) -> Any:
    if not isinstance(held, dict):
        return held
    convert: dict[str, Callable[[Any], Any]] = {
        "stringValue": str, "boolValue": bool, "doubleValue": number, "bytesValue": str,
        "intValue": lambda value: int(value) if INTEGER.fullmatch(str(value)) else None,
        "arrayValue": lambda value: [_value(one) for one in _list(field(value, "values"))],
        "kvlistValue": lambda value: {str(field(one, "key")): _value(field(one, "value"))
                                      for one in _list(field(value, "values"))},
    }  # fmt: skip
    return next((make(held[name]) for name, make in convert.items() if name in held), None)


def _first(attributes: Attributes, names: tuple[str, ...]) -> Any:
    return next((attributes[name] for name in names if attributes.get(name) is not None), None)


def _kind(span: dict[str, Any], attributes: Attributes) -> str | None:
    """What a span is of; None of what holds others (a workflow) and of what has nothing to do with agents."""
    name = str(span.get("name") or "")
    operation = str(_first(attributes, OPERATION) or "").lower()
    if name.endswith("blocked_on_user"):
        return "human"
    named = not operation and name.startswith("execute_tool")
    if operation in TOOLS or named or "process.command_line" in attributes:
        return "tool"
    if operation in AGENTS or (not operation and name.startswith("invoke_agent")):
        return "agent"
    return "llm" if operation in MODELS or (not operation and name.startswith("chat ")) else None


def _id(span: dict[str, Any]) -> str:
    return str(span.get("spanId") or field(span, "context", "span_id") or span.get("span_id") or "")


def _parent(span: dict[str, Any]) -> str:
    found = span.get("parentSpanId") or span.get("parent_id") or span.get("parent_span_id")
    return str(found or "")


def _first_look(path: Path) -> tuple[Tree, Waits]:
    """What each span is in and is, and when the calls that count waited for a person."""
    tree: Tree = {}, {}
    parents, kinds = tree
    asked: Waits = defaultdict(list)
    for one in _spans(path):
        kind, name, parent = _kind(one, _attributes(one)), _id(one), _parent(one)
        if name:
            parents[name] = intern(parent)  # calls of one turn are in the same span
            if kind in ("tool", "llm", "agent"):
                kinds[name] = intern(kind)
        began, ended = _times(one) if kind == "human" else (None, None)
        if began is not None and ended is not None and parent:
            asked[parent].append((began, ended))
    waits: Waits = defaultdict(list)
    for name, times in asked.items():
        outer = _tool_around(name, tree)
        for _ in range(DEPTH):
            further = _tool_around(parents.get(outer, ""), tree)
            outer = further or outer
        if outer:
            waits[outer] += times
    return tree, waits


def _tool_around(name: str, tree: Tree) -> str:
    """The next tool from this span on outwards; "" where there is none, or a model or an agent comes before it."""
    parents, kinds = tree
    for _ in range(DEPTH):
        if not name or name in kinds:
            break
        name = parents.get(name, "")
    return name if kinds.get(name) == "tool" else ""


def _worked(began: float | None, ended: float | None, waits: list[tuple[float, float]]) -> float | None:
    """Seconds of a span without the waits in it; waits at the same time count once. None as in ``between``."""
    whole = between(began, ended)
    if whole is None or began is None or ended is None:
        return None
    waited, told = 0.0, began
    for begin, end in sorted(waits):
        till = min(end, ended)
        waited += max(0.0, till - max(begin, told))
        told = max(told, till)
    return whole - waited


def _times(span: dict[str, Any]) -> tuple[float | None, float | None]:
    """When a span began and ended, in seconds since the epoch."""
    return (_time(span, "startTimeUnixNano", "start_time", "startTime"),
            _time(span, "endTimeUnixNano", "end_time", "endTime"))  # fmt: skip


def _time(span: dict[str, Any], *names: str) -> float | None:
    """Seconds since the epoch: of nanoseconds, also as text, of micro- or milliseconds, or of a date."""
    value = next((span[name] for name in names if span.get(name) is not None), None)
    if isinstance(value, str) and not INTEGER.fullmatch(value):
        return time_s(value)
    if isinstance(value, bool) or not isinstance(value, int | float | str) or len(str(value)) > 30:
        return None
    count = float(value)
    return count / next((scale for least, scale in ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3)) if count >= least), 1.0)
