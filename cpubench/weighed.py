"""``cpubench weights``: a trace read once, span by span, to a file of weights, and what was understood of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from msgspec import structs

from cpubench.analysis.scenarios import covers, of_paths
from cpubench.analysis.task_reference import load_task_reference
from cpubench.analysis.weights import SCHEMA
from cpubench.errors import UsageError
from cpubench.results.files import sealed
from cpubench.results.parse import located, shown
from cpubench.traces import strace
from cpubench.traces.classify import classified
from cpubench.traces.find import Source, digest, sources, spans
from cpubench.traces.normal import writing
from cpubench.traces.span import Span
from cpubench.traces.tally import Tally
from cpubench.traces.weigh import load_matrix, of_classes, of_system_calls

Json = dict[str, Any]
MEASURED = ("spawn", "file", "switch", "lock", "memory")


def weights_from(
    path: Path, form: str = "auto", name: str = "own", matrix: Path | None = None, trace: Path | None = None,
    keep_commands: bool = False,
) -> tuple[Json, Json]:  # fmt: skip
    """The sealed weights document of a trace, and what was understood of it; ``trace`` gets the spans' normal form."""
    found, unknown = sources(path, form)
    summaries = [one for one in found if one.form == "strace"]
    if summaries and len(summaries) < len(found):
        text = "holds traces of calls and summaries of strace: give one kind at a time"
        raise located(path, UsageError("format", text))
    notes = [f"{unknown} files were passed over: they are no trace that is known"] if unknown else []
    if summaries:
        if trace is not None:
            raise UsageError("usage", "a summary of strace has no spans", "--spans")
        paths, told = _of_strace(summaries, notes)
    else:
        paths, told = _of_calls(found, matrix, trace, keep_commands, notes, path)
    held = [digest(one) for one in found]
    kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(one["format"] for one in held).items())
    document = sealed({
        "schema": SCHEMA, "name": name, "paths": paths, "tasks": None,
        "evidence": f"own trace ({kinds}): {told['basis']}", "confidence": told["confidence"], "sources": held,
        "matrix": told["matrix"], "classes": told["classes"], "left_out": told["left_out"],
    })  # fmt: skip
    scenario = of_paths(name, "", paths, None)
    return document, {
        "name": name, "weights_sha256": scenario.sha256, "spans": told["spans"], "classes": told["classes"],
        "left_out": told["left_out"], "paths": paths, "covers": covers(scenario, MEASURED), "sources": held,
        "matrix": told["matrix"], "notes": notes,
    }  # fmt: skip


def _of_calls(
    found: list[Source], matrix: Path | None, trace: Path | None, keep: bool, notes: list[str], path: Path
) -> tuple[dict[str, float], Json]:
    table, tally, names = load_matrix(matrix), Tally(), _Names()
    seen: set[str] = set()
    copies = 0
    with writing(trace, keep) as write:
        for source in found:
            for span in spans(source):
                if span.key in seen:  # a session that was resumed or forked begins with a copy of the one before
                    copies += 1
                    continue
                if span.key:
                    seen.add(span.key)
                made = names.short(classified(span))
                tally.add(made)
                write(made)
        reference = load_task_reference()
        classes = tally.classes(reference.class_s)
        paths, absent = of_classes(classes, table)
        if not paths:  # inside, so that no spans are left where there are no weights
            left = ", ".join(f"{one['calls']} {one['what']}" for one in tally.left_out()) or "no call at all"
            raise located(path, UsageError("nothing", f"holds no call whose work is known: {left}"))
    calls = sum(row["calls"] for row in classes.values())
    replayed = sum(row["replayed"] for row in classes.values())
    timed = sum(row["timed"] for row in classes.values())
    if copies:
        notes.append(f"{copies} spans are copies, as in sessions that were resumed or forked: each is counted once")
    if replayed:
        notes.append(f"{replayed} of {calls} calls have no time, nor has any of their class: counted with what such a "
                     f"step takes in the tasks of {reference.name}")  # fmt: skip
    if calls - replayed > timed:
        notes.append(f"{calls - replayed - timed} of {calls} calls have no time: counted with the mean of their class")
    lost = [cls for cls, row in classes.items() if row["share"] is None]
    if lost:
        notes.append(f"no time is known of {', '.join(lost)}: they have no part in the weights")
    if absent:
        notes.append(f"the matrix {table.name} has no row of {', '.join(absent)}: they have no part in the weights")
    if tally.words["caller"]:
        notes.append(f"{tally.words['caller']} of {timed} timed calls are known by their caller's clock alone: it may "
                     "count the start of the tool, and waits for permission")  # fmt: skip
    return paths, {
        "basis": f"{calls} calls, {'counts only' if not timed else 'times'}; matrix {table.name}",
        "confidence": "low" if replayed or table.name == "prior" else "medium", "spans": tally.spans,
        "matrix": {"name": table.name, "sha256": table.sha256}, "classes": classes, "left_out": tally.left_out(),
    }  # fmt: skip


def _of_strace(found: list[Source], notes: list[str]) -> tuple[dict[str, float], Json]:
    counted: dict[str, tuple[int, float]] = {}
    for source in found:
        try:
            for path, (calls, seconds) in strace.read(source.path).items():
                before = counted.get(path, (0, 0.0))
                counted[path] = before[0] + calls, before[1] + seconds
        except UsageError as fault:
            raise located(source.path, fault) from None
    paths, by = of_system_calls(counted)
    notes.append(f"strace tells how the kernel's part splits (here by {by}) and not how large it is: that, and all "
                 "other paths, are those of the scenario coding; strace makes calls slower")  # fmt: skip
    why = {"wait": "system calls that wait", "other": "system calls of no path"}
    left = [{"what": what, "calls": counted[what][0], "timed": counted[what][0], "seconds": counted[what][1],
             "why": text} for what, text in why.items() if what in counted]  # fmt: skip
    return paths, {
        "basis": f"system calls by {by}, the rest of scenario coding", "confidence": "low", "spans": 0, "matrix": None,
        "classes": {}, "left_out": left,
    }  # fmt: skip


class _Names:
    """Short names of tasks and agents, so that no path and no session's number leaves the trace."""

    def __init__(self) -> None:
        self._tasks: dict[str, str] = {}
        self._agents: dict[str, str] = {}

    def short(self, span: Span) -> Span:
        task = self._tasks.setdefault(span.task, f"t{len(self._tasks) + 1}")
        agent = self._agents.setdefault(f"{span.task} {span.agent}", f"a{len(self._agents) + 1}")
        return structs.replace(span, task=task, agent=agent, tool=shown(span.tool, 80))
