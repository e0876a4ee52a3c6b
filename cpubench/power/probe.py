"""What this host can measure: every backend is looked for, and what it has is read for a second."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from cpubench.errors import UsageError
from cpubench.host.fact import ROOT
from cpubench.power import doubts, hints
from cpubench.power.backend import Found, sockets_of
from cpubench.power.channel import GAP_S, PERIOD_S, Channel, Log, Meter, Reading, log_of
from cpubench.power.controls import Problem
from cpubench.power.energy import Energy, energy
from cpubench.power.meters import BACKENDS, open_meter, open_redfish
from cpubench.power.overlap import lacking, totals
from cpubench.power.registers import Host
from cpubench.power.show import caps_document

Json = dict[str, Any]
LENGTH_S = 1.2  # RAPL moves each ms: a counter that stands still for a second is none
HWMON = ("amd_energy", "hsmp_hwmon", "grace", "smpro", "xgene", "power_meter")
UNTOLD = ("short", "mirrored")  # codes of what more of the same may tell
ABSENT = ("no_interface", "not_configured", "no_program")  # codes of what is simply not there


def probe(root: Path = ROOT, length_s: float = LENGTH_S, sleep: Callable[[float], None] = time.sleep) -> Json:
    """``meters`` of this host with what they say now, ``caps``, and ``problems`` where no meter can be used."""
    found = {backend.name: backend.find(root) for backend in BACKENDS}
    opened: list[tuple[Meter, Found]] = []
    for backend in BACKENDS:
        one = found[backend.name]
        if one.channels:
            opened.append((backend.open(backend.name, "", one.channels, sockets_of(root, one), root), one))
    rows: list[Json] = []
    redfish = _redfish()
    if not isinstance(redfish, Problem):
        opened.append((redfish, Found(list(redfish.channels))))
    logs = watch([meter for meter, _ in opened], length_s, sleep)
    made = {log.meter: _rows(log, one) for log, (_, one) in zip(logs, opened, strict=True)}
    _cross(made)
    for name in (*(backend.name for backend in BACKENDS), "redfish"):
        if name in made:
            rows += [row for row, _ in made[name]]
        elif name in found and (found[name].problems or name not in (*HWMON, "hsmp")):
            scope = next(backend.scope for backend in BACKENDS if backend.name == name)
            rows.append(_row(name, scope, [], None, list(found[name].problems)))
    if not any(found[name].channels or found[name].problems for name in HWMON):
        nothing = Problem("no_interface", "/sys/class/hwmon", hints.no_hwmon(root))
        rows.append(_row("hwmon", "package", [], None, [nothing]))
    if isinstance(redfish, Problem):
        rows.append(_row("redfish", "wall", [], None, [redfish]))
    return {"meters": rows, "caps": caps_document(Host(root)), "problems": _problems(rows)}


def probe_one(name: str, root: Path = ROOT, length_s: float = 3.0, sleep: Callable[[float], None] = time.sleep) -> Json:
    """The same for one meter that a person names; UsageError where it cannot be opened."""
    meter = open_meter(name, root, allow_estimated=True)
    (log,) = watch([meter], length_s, sleep, GAP_S)
    rows = [row for row, _ in _rows(replace(log, meter=name), Found(list(meter.channels)), [meter.scope])]
    return {"meters": rows, "caps": [], "problems": _problems(rows)}


def watts_now(root: Path = ROOT) -> Json:
    """``watts`` of each meter that can be used, or the ``problems`` that explain why there is none."""
    found = probe(root)
    kept = ("name", "scope", "provenance", "watts", "flags")
    watts = [{key: row[key] for key in kept} for row in found["meters"] if row["usable"]]
    return {"watts": watts, "problems": found["problems"]}


def _redfish() -> Meter | Problem:
    if not os.environ.get("CPUBENCH_REDFISH_URL"):
        return Problem("not_configured", "CPUBENCH_REDFISH_URL", hints.REDFISH)
    try:
        return open_redfish("redfish", "")
    except UsageError as error:
        code, _, rest = error.text.partition(": ")
        return Problem(code if rest and " " not in code else "meter", "CPUBENCH_REDFISH_URL", error.text)


def watch(
    meters: list[Meter], length_s: float, sleep: Callable[[float], None] = time.sleep, most_s: float = 0.0
) -> list[Log]:  # fmt: skip
    """What each meter says over a time, read in turns by their own periods and at both ends; they are closed then.

    It goes on until ``most_s`` while one has told too little: a command may print a line each few seconds.
    """
    readings: list[list[Reading]] = [meter.read() for meter in meters]
    tick, least, most = 0, round(length_s / PERIOD_S) if meters else 0, round(most_s / PERIOD_S)

    def logs() -> list[Log]:
        return [log_of(meter, told) for meter, told in zip(meters, readings, strict=True)]

    try:
        while tick < least or (tick < most and any(energy(log).code in UNTOLD for log in logs())):
            tick += 1
            sleep(PERIOD_S)
            for meter, told in zip(meters, readings, strict=True):
                if tick >= least or tick % max(1, round(meter.period_s / PERIOD_S)) == 0:
                    told += meter.read()
        return logs()
    finally:
        for meter in meters:
            meter.close()


def _rows(log: Log, found: Found, scopes: list[str] | None = None) -> list[tuple[Json, Energy]]:
    """A row for each total that the backend's channels could make."""
    made = []
    begin, end = max(log.readings[0].at_ns), min(log.readings[-1].at_ns)
    middle = (begin + end) // 2
    everything = {c.id: energy(replace(log, scope=c.scope)).by_channel or {} for c in log.channels}
    joules = {id_: value for one in everything.values() for id_, value in one.items()}
    inside = doubts.child_exceeds_parent(log.channels, joules)
    for total in totals(log.channels) if scopes is None else scopes:
        one = replace(log, scope=total, lost=log.lost or lacking(log.channels, total, found.named))
        told = energy(one)
        halves = [energy(one, begin, middle).by_channel or {}, energy(one, middle, end).by_channel or {}]
        channels = [c for c in log.channels if c.scope in total.split("+")]
        problems = list(found.problems)
        if told.reason is not None:
            hint = hints.OF_VALUES.get(told.code)
            problems.insert(0, Problem(told.code, channels[0].path, told.reason + (f"; {hint}" if hint else "")))
        if inside and total.startswith("package"):
            problems.append(Problem("child_exceeds_parent", channels[0].path, inside))
        same = doubts.mirrored(halves) if channels[0].kind == "energy" else ""
        if same:
            problems.append(Problem("mirrored", channels[0].path, same))
        name = log.meter if scopes is not None or len(log.channels) == 1 else f"{log.meter}:{total}"
        made.append((_row(name, total, channels, told, problems), told))
    return made


def _row(name: str, scope: str, channels: list[Channel], told: Energy | None, problems: list[Problem]) -> Json:
    provenance = channels[0].provenance if channels else None
    watts = told.watts if told is not None else None
    return {
        "name": name, "scope": scope, "provenance": provenance,
        "channels": [{"id": c.id, "scope": c.scope, "socket": c.socket, "die": c.die, "kind": c.kind, "path": c.path}
                     for c in channels],
        "usable": watts is not None and provenance != "estimated", "watts": watts,
        "flags": list(told.flags) if told is not None else [], "problems": [asdict(problem) for problem in problems],
    }  # fmt: skip


def _cross(made: dict[str, list[tuple[Json, Energy]]]) -> None:
    """Adds what meters say against each other to the rows of both."""
    every = [pair for pairs in made.values() for pair in pairs]
    for number, (row, told) in enumerate(every):
        for other, said in every[number + 1 :]:
            code, text = "sources_disagree", doubts.sources_disagree(told, said)
            if not text and said.scope == "wall" and told.scope != "wall":
                code, text = "exceeds_wall", doubts.exceeds_wall(told, said)
            if text:
                for one, beside in ((row, other), (other, row)):
                    one["problems"].append(asdict(Problem(code, str(beside["name"]), text)))


def _problems(rows: list[Json]) -> list[Json]:
    """Why nothing can be measured: what is there and closed before what is not there; empty where something can."""
    if any(row["usable"] for row in rows):
        return []
    told = [problem for row in rows for problem in row["problems"]]
    closed = [problem for problem in told if problem["code"] not in ABSENT]
    return (closed or [problem for problem in told if problem["code"] == "no_interface"] or told)[:1]
