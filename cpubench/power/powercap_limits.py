"""Limits of powercap zones (`intel-rapl` by MSR or TPMI, `intel-rapl-mmio`): found by name, never by index.

Zone folders are numbered in hex and in the order of registration; constraints are numbered without those that are
missing. A limit is kept in units of 1/8 W, rounded down; the kernel checks no bounds.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

from cpubench.host.fact import read_int, read_text
from cpubench.power.controls import FIRST, Control, Limit, Problem, limit_at, listed, positive
from cpubench.power.registers import Host

CLASS = "sys/class/powercap"
STEP_UW = 125_000
_ZONE = re.compile(r"([A-Za-z][\w-]*)((?::[0-9a-f]+)+)")
_PACKAGE = re.compile(r"package-([0-9]+)(?:-die-[0-9]+)?")
_CONSTRAINT = re.compile(r"constraint_([0-9]{1,2})_power_limit_uw")


def controls(host: Host) -> tuple[list[Control], list[Problem]]:
    """Every zone with its limits, those of AMD without any, and what hides zones."""
    names = listed(host.root / CLASS)
    zones = [match for name in names.value or () if (match := _ZONE.fullmatch(name))]
    found, problems = [], []
    if names.value is None and not names.absent:
        problems.append(Problem("read_error", f"/{CLASS}", f"{names.reason}: run as root"))
    for match in zones:
        folder = f"{CLASS}/{match[0]}"
        if not (host.root / folder).exists():
            hint = "a container hides it: add -v /sys/devices/virtual/powercap:/sys/devices/virtual/powercap"
            problems.append(Problem("masked", f"/{folder}", hint))
        elif (zone := _name(host.root, match)) is None:
            problems.append(Problem("read_error", f"/{folder}/name", "the zone has no readable name"))
        else:
            found.append(_control(host.root, folder, match, zone))
    twice = {key for key, times in Counter(one.key for one in found).items() if times > 1}
    two = "two zones have this name: which of them is in force cannot be told"
    return [replace(c, problem=Problem("ambiguous", c.zone, two)) if c.key in twice else c for c in found], problems


def _name(root: Path, match: re.Match[str]) -> str | None:
    """``package-0`` or, of a subzone, ``package-0/dram``; None where a part of it cannot be read."""
    parts, name = [], match[1]
    for number in match[2].split(":")[1:]:
        name = f"{name}:{number}"
        text = read_text(root, f"{CLASS}/{name}/name", 4096).value
        if text is None or not re.fullmatch(r"[\w.-]{1,60}", text):
            return None
        parts.append(text)
    return "/".join(parts)


def _control(root: Path, folder: str, match: re.Match[str], zone: str) -> Control:
    key, last = f"{match[1]}/{zone}", zone.rpartition("/")[2]
    package = _PACKAGE.fullmatch(zone)
    limits, nameless = [], []
    numbers = [m for name in listed(root / folder).value or () if (m := _CONSTRAINT.fullmatch(name))]
    for number in numbers:
        named = read_text(root, f"{folder}/constraint_{number[1]}_name", 4096).value
        if named is None or not re.fullmatch(r"\w{1,30}", named):
            nameless.append(f"/{folder}/{number[0]}")
        else:
            limits.append(limit_at(root, f"{key}/{named}", f"{folder}/{number[0]}", named))
    main = min((x for x in limits if x.constraint in FIRST), key=lambda x: x.constraint, default=None)
    stem = main.place.removesuffix("power_limit_uw") if main else ""
    low, high = (positive(root, f"{stem}{end}_power_uw") if main else None for end in ("min", "max"))
    enable = limit_at(root, f"{key}/enabled", f"{folder}/enabled", "enabled")
    return Control(
        key, match[1], zone, "package" if package else re.sub(r"-.*", "", last), int(package[1]) if package else None,
        tuple(limits), enable if limits else None,
        low, high,
        STEP_UW, max((_window_us(root, x) for x in limits if x.constraint in FIRST), default=0),
        _problem(match[1], folder, bool(package), main, nameless),
    )  # fmt: skip


def _window_us(root: Path, limit: Limit) -> int:
    return max(0, read_int(root, limit.place.replace("power_limit_uw", "time_window_us")).value or 0)


def _problem(kind: str, folder: str, package: bool, main: Limit | None, nameless: list[str]) -> Problem | None:
    """Why no cap is written to this zone."""
    if not package:
        return Problem("not_offered", f"/{folder}", "only packages are capped: other limits often do nothing")
    if kind != "intel-rapl":
        return Problem("not_offered", f"/{folder}", "a second limit of this package: the lower one wins")
    if nameless:
        return Problem("unsupported", nameless[0], "a limit without a name: which one it is cannot be told")
    if main is None:
        hint = "it measures and has no limits; AMD: load amd_hsmp, and enable HSMP in the BIOS"
        return Problem("unsupported", f"/{folder}", hint)
    if main.value is None:
        return Problem("unsupported", f"/{main.place}", f"its limit cannot be read: {main.reason}")
    return None
