"""The plan of a fleet: which host is measured at which level, how often, and in which order. Touches no host."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cpubench import SUITE_VERSION, __version__
from cpubench.errors import UsageError
from cpubench.fleet.inventory import Host
from cpubench.fleet.layout import Cell
from cpubench.fleet.suite import suite_hash
from cpubench.power.levels import parse_level
from cpubench.results.files import content_hash, sealed
from cpubench.results.parse import located, parse, read, shown

SCHEMA = "cpubench.fleet/1"
Json = dict[str, Any]
MOST_CELLS = 200_000


def make(
    fleet: str, hosts: Sequence[Host], caps: Sequence[str], repeats: int, arguments: Sequence[str], *, seed: int,
    group: str, versions: Mapping[str, int], expected_s: float, deadline_s: float, created_utc: str,
) -> Json:  # fmt: skip
    """The plan, whose order the seed alone decides. UsageError for a cap that a host cannot take."""
    levels = {host.name: host.caps or tuple(caps) for host in hosts}
    if repeats * sum(map(len, levels.values())) > MOST_CELLS:
        raise UsageError("plan", f"more than {MOST_CELLS} runs: take fewer hosts, caps or repeats")
    for host in hosts:
        for cap in levels[host.name]:
            _check_cap(host, cap)
    cells = order([(host.name, levels[host.name]) for host in hosts], repeats, seed)
    return sealed(
        {
            "schema": SCHEMA, "fleet": fleet, "group": group, "created_utc": created_utc, "cpubench": __version__,
            "suite": SUITE_VERSION, "kernels": dict(versions), "arguments": list(arguments),
            "suite_hash": suite_hash(dict(versions), arguments), "seed": seed, "expected_s": expected_s,
            "deadline_s": deadline_s, "hosts": {host.name: {"power_group": host.group} for host in hosts},
            "cells": [list(cell) for cell in cells],
        }
    )  # fmt: skip


def _check_cap(host: Host, cap: str) -> None:
    level = parse_level(cap)
    if level.watts is None or host.range_w is None:
        return
    low, high = host.range_w
    if not low <= level.watts <= high:
        text = f"{level.name} is not within {low:g} to {high:g} W, which it takes (cap_range_watts)"
        raise UsageError("level", text, f"host {host.name}")


def order(hosts: Sequence[tuple[str, Sequence[str]]], repeats: int, seed: int) -> list[tuple[str, str, int]]:
    """(host, cap, repeat): hosts take turns, in an order drawn for each; a repeat has every cap of a host once.

    So neither what changes with time nor the order of names or caps sides with a host or a level.
    """
    draw, cells = random.Random(seed), []
    for repeat in range(1, repeats + 1):
        drawn = {name: draw.sample(list(caps), len(caps)) for name, caps in hosts}
        for turn in range(max(map(len, drawn.values()), default=0)):
            names = [name for name, caps in drawn.items() if turn < len(caps)]
            draw.shuffle(names)
            cells += [(name, drawn[name][turn], repeat) for name in names]
    return cells


def cells_of(plan: Json) -> list[Cell]:
    """The plan's runs in their order."""
    return [Cell(host, cap, repeat, plan["suite_hash"]) for host, cap, repeat in plan["cells"]]


def load(file: Path) -> Json:
    """A plan, checked; UsageError with the file's name for any that was changed or is another file."""
    try:
        plan = parse(read(file))
        _check(plan)
    except UsageError as fault:
        if fault.code == "missing":
            raise UsageError("no_plan", "there is no plan: make one with `cpubench fleet plan`", str(file)) from None
        raise located(file, fault) from None
    return plan


def _check(plan: Json) -> None:
    if plan.get("schema") != SCHEMA:
        raise UsageError("schema", f"is of schema {shown(str(plan.get('schema')), 60)}; wanted is {SCHEMA}")
    if plan.get("sha256") != content_hash(plan):
        raise UsageError("changed", "was changed since it was made: plan again with `cpubench fleet plan`", "sha256")
