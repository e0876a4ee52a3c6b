"""Limits of hwmon chips: AMD HSMP (a device for each socket), ACPI power meters and among them those of Grace.

hwmonN is numbered anew at each boot: a limit is known by its chip, its device and its file.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from cpubench.host.fact import read_int, read_text
from cpubench.power.controls import Control, Problem, limit_at, listed, positive
from cpubench.power.registers import Host

CLASS = "sys/class/hwmon"
HSMP_CHIP, METER_CHIP = "amd_hsmp_hwmon", "power_meter"
NOT_CPU = re.compile(r"amdgpu|radeon|nouveau|nvidia|i915|xe|nvme|ina[0-9]+|.*psu.*")
STEP_UW = 1000  # both count in mW
_CAP = re.compile(r"power[0-9]+_cap")


def controls(host: Host) -> tuple[list[Control], list[Problem]]:
    """Every power limit of a chip that may be a CPU's or the board's."""
    found = []
    for number in listed(host.root / CLASS).value or ():
        chip = _text(host.root, number, "name")
        if chip is None or not re.fullmatch(r"[\w.-]{1,60}", chip) or NOT_CPU.fullmatch(chip):
            continue
        for inside in ("", "device/"):  # acpi_power_meter has its files in the device
            folder = f"{CLASS}/{number}/{inside}"
            for name in listed(host.root / folder).value or ():
                if _CAP.fullmatch(name):
                    found.append(_control(host.root, number, chip, folder + name))
    return found, []


def _text(root: Path, number: str, name: str) -> str | None:
    for inside in ("", "device/"):
        text = read_text(root, f"{CLASS}/{number}/{inside}{name}", 4096).value
        if text is not None:
            return text
    return None


def _device(root: Path, number: str) -> str:
    """The real folder of the device below the root, which outlives a new numbering."""
    folder = root / CLASS / number / "device"
    real = os.path.realpath(folder if folder.exists() else root / CLASS / number)
    return os.path.relpath(real, os.path.realpath(root))


def _control(root: Path, number: str, chip: str, place: str) -> Control:
    name = place.rpartition("/")[2]
    power = name.removesuffix("_cap")
    label = _text(root, number, f"{power}_label") or _text(root, number, f"{power}_oem_info") or ""
    label = label if re.fullmatch(r"[\w .:/-]{1,60}", label) else ""  # it is printed
    key = f"hwmon/{chip}/{_device(root, number)}/{name}"
    low, high = (positive(root, f"{place}_{end}", 10**12) for end in ("min", "max"))
    grace = re.match(r"Grace Power Socket ([0-9]+)", label)
    scope = "package" if chip == HSMP_CHIP else "module" if grace else "board" if chip == METER_CHIP else "other"
    limit = limit_at(root, key, place, "cap")
    return Control(
        key, "amd_hsmp" if chip == HSMP_CHIP else "hwmon", label or f"{chip}/{_device(root, number)}", scope,
        int(grace[1]) if grace else None, (limit,), None, low, high, STEP_UW, _interval_us(root, number, power),
        _problem(chip, label, place, low, high, limit.reason if limit.value is None else ""),
    )  # fmt: skip


def _interval_us(root: Path, number: str, power: str) -> int:
    """The averaging time of the meter, where there is one."""
    found = [read_int(root, f"{CLASS}/{number}/{inside}{power}_average_interval").value for inside in ("", "device/")]
    return max(0, *(1000 * (value or 0) for value in found))


def _problem(chip: str, label: str, place: str, low: int | None, high: int | None, unread: str) -> Problem | None:
    if unread:
        return Problem("unsupported", f"/{place}", f"its limit cannot be read: {unread}")
    if low is not None and low == high:
        return Problem("unsupported", f"/{place}", f"fixed: least and most are both {low / 1e6:g} W")
    if chip == METER_CHIP and re.match(r"(Module|CPU|SysIO) Power Socket", label):
        return Problem("not_offered", f"/{place}", "Grace takes a limit at `Grace Power Socket` only")
    if chip not in (HSMP_CHIP, METER_CHIP):
        return Problem("not_offered", f"/{place}", "no chip that is known to limit CPUs")
    return None
