"""Which files a path means, which format each has, and all their spans one after the other."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cpubench.errors import UsageError
from cpubench.results.parse import located
from cpubench.traces import claude, codex, normal, openhands, otel, strace, sweagent
from cpubench.traces.lines import first_lines, head, json_of, opened
from cpubench.traces.span import Span

READERS: dict[str, Callable[[Path], Iterator[Span]]] = {
    "swe-agent": sweagent.read, "openhands": openhands.read, "claude": claude.read, "codex": codex.read,
    "otel": otel.read, "trace": normal.read,
}  # fmt: skip
FORMATS = (*READERS, "strace")
LOOKED = 50  # lines that may tell a format: sessions begin with lines that many formats could have
ENDINGS = frozenset((".traj", ".json", ".jsonl", ".ndjson", ".txt", ".log", ".strace"))
EVENT = re.compile(rb'"kind"\s*:\s*"(Action|Observation|Message|SystemPrompt)Event"')
TEXTS = (  # of one JSON text whose lines tell nothing
    (re.compile(rb'"resourceSpans"|"gen_ai\.|"trace_id"|"traceId"'), "otel"), (EVENT, "openhands"),
    (re.compile(rb'"trajectory"'), "swe-agent"),
)  # fmt: skip


@dataclass(frozen=True)
class Source:
    """A file of a trace, or a folder whose files are one conversation."""

    path: Path
    form: str


def sources(path: Path, form: str = "auto") -> tuple[list[Source], int]:
    """The files of a trace with their formats, and how many files of a folder are none; one at least is."""
    if not path.is_dir():
        found = form if form != "auto" else _format(path)
        if found is None:
            text = f"its format is none of {', '.join(FORMATS)}; give --format if it is one of them"
            raise located(path, UsageError("format", text))
        return [Source(path, found)], 0
    made: list[Source] = []
    unknown = 0
    for folder, names, files in os.walk(path):
        names.sort()
        here = Path(folder)
        if any(re.fullmatch(r"event-.*\.json", name) for name in files) and form in ("auto", "openhands"):
            made.append(Source(here, "openhands"))
            continue
        for file in (here / name for name in sorted(files)):
            usable = file.suffix in ENDINGS and file.is_file() and not file.is_symlink()
            one = (form if form != "auto" else _format(file)) if usable else None
            unknown += one is None
            made += [] if one is None else [Source(file, one)]
    if not made:
        text = f"holds no trace: none of its {unknown} files is of {', '.join(FORMATS)}"
        raise located(path, UsageError("format", text))
    return made, unknown


def spans(source: Source) -> Iterator[Span]:
    """The spans of a source; a fault names its file."""
    try:
        yield from READERS[source.form](source.path)
    except UsageError as fault:
        raise located(source.path, fault) from None


def digest(source: Source) -> dict[str, Any]:
    """What a weights file says of a source: its name, format, bytes and SHA-256; of a folder, of all its events."""
    files = sorted(source.path.glob("event-*.json")) if source.path.is_dir() else [source.path]
    sha, size = hashlib.sha256(), 0
    for path in files:
        with opened(path) as file:
            while block := file.read(1 << 20):
                sha.update(block)
                size += len(block)
    return {"file": source.path.name, "format": source.form, "bytes": size, "sha256": sha.hexdigest()}


def _format(path: Path) -> str | None:
    try:
        for line in first_lines(path, LOOKED):
            record = json_of(line.decode(errors="replace")) if line.startswith(b"{") else None
            if isinstance(record, dict) and (found := _of_record(record)):
                return found
        raw = head(path)
    except UsageError as fault:
        raise located(path, fault) from None
    if raw.lstrip().startswith((b"{", b"[")):
        if path.suffix == ".traj":
            return "swe-agent"
        return next((form for pattern, form in TEXTS if pattern.search(raw)), None)
    return "strace" if strace.is_summary(raw) else None


def _of_record(record: dict[str, Any]) -> str | None:
    """The format that an object of a trace tells."""
    keys = record.keys()
    if str(record.get("schema")).startswith("cpubench.trace/") or {"t", "dur", "kind"} <= keys:
        return "trace"
    if {"timestamp", "type", "payload"} <= keys:
        return "codex"
    if record.get("type") in ("user", "assistant") and isinstance(record.get("message"), dict):
        return "claude"
    if str(record.get("kind")).endswith(("Event", "Observation")):
        return "openhands"
    if "resourceSpans" in keys or ("attributes" in keys and keys & {"context", "traceId", "trace_id", "span_id"}):
        return "otel"
    return "swe-agent" if "trajectory" in keys else None
