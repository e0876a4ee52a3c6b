"""Hosts with power limits as folders, and a kernel that stands behind their files: refusals, clamping, locks."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from host.trees import SYS_CPU, write

from cpubench.power.registers import Host

POWERCAP, HWMON = "sys/class/powercap", "sys/class/hwmon"
BOOT = "11111111-2222-3333-4444-555555555555"


def base(root: Path, sockets: int = 2, vendor: str = "GenuineIntel") -> Path:
    """A booted host of so many sockets, without any limit."""
    write(root, {f"{SYS_CPU}/cpu{n}/topology/physical_package_id": str(n) for n in range(sockets)})
    write(root, {"proc/sys/kernel/random/boot_id": BOOT, "proc/cpuinfo": f"vendor_id\t: {vendor}"})
    (root / "run").mkdir(exist_ok=True)
    return root


def zone(root: Path, index: str, name: str, long_w: float | None = 350, short_w: float | None = 420,
         enabled: str = "1", highest_uw: str = "350000000") -> str:  # fmt: skip
    """A powercap zone; its path below the root."""
    folder = f"{POWERCAP}/{index}"
    write(root, {f"{folder}/name": name, f"{folder}/enabled": enabled, f"{folder}/energy_uj": "1"})
    number = 0
    for constraint, watts, window_us in (("long_term", long_w, 999424), ("short_term", short_w, 7808)):
        if watts is not None:
            stem = f"{folder}/constraint_{number}"
            write(root, {f"{stem}_name": constraint, f"{stem}_power_limit_uw": str(round(watts * 1e6)),
                         f"{stem}_time_window_us": str(window_us), f"{stem}_max_power_uw": highest_uw})  # fmt: skip
            number += 1
    return folder


def xeon(root: Path, enabled: str = "1") -> Path:
    """Two sockets of 350 W, with psys and DRAM between them, as the kernel numbers them."""
    base(root)
    zone(root, "intel-rapl:0", "psys", 800, 900)
    zone(root, "intel-rapl:1", "package-0", enabled=enabled)
    zone(root, "intel-rapl:1:0", "dram", 40, None)
    zone(root, "intel-rapl:a", "package-1")
    return root


def hwmon(root: Path, number: int, chip: str, device: str, files: dict[str, str], inside: str = "") -> str:
    """A hwmon chip with a device elsewhere; files lie in it or, with ``inside``, in its device."""
    folder = f"{HWMON}/hwmon{number}"
    write(root, {f"{folder}/name": chip, f"sys/devices/{device}/uevent": ""})
    link = root / folder / "device"
    if not link.is_symlink():
        link.symlink_to(os.path.relpath(root / "sys/devices" / device, root / folder))
    write(root, {f"{folder}/{inside}{name}": text for name, text in files.items()})
    return folder


def epyc(root: Path, sockets: int = 2) -> Path:
    """AMD: powercap zones that have no limit, and HSMP by hwmon."""
    base(root, sockets, "AuthenticAMD")
    for socket in range(sockets):
        zone(root, f"intel-rapl:{socket}", f"package-{socket}", None, None, "0")
        files = {"power1_input": "150000000", "power1_cap": "360000000", "power1_cap_max": "400000000"}
        hwmon(root, socket + 3, "amd_hsmp_hwmon", f"platform/AMDI0097:0{socket}", files)
    return root


class Kernel:
    """Writes to plain files as a kernel would: a rule by a part of the path gives what is stored, or raises."""

    def __init__(self, **rules: Callable[[int], int]):
        self.rules, self.writes = rules, []

    def __call__(self, path: Path, text: str) -> None:
        value = int(text)
        self.writes.append((f"{path.parent.name}/{path.name}", value))
        for part, rule in self.rules.items():
            if part in str(path):
                value = rule(value)
        store(path, value)


def store(path: Path, value: int) -> None:
    """As a whole or not at all, like a register: a kill must not leave half of it."""
    if not path.exists():
        raise FileNotFoundError(2, os.strerror(2))
    fresh = path.with_name(f".{path.name}")
    fresh.write_text(f"{value}\n")
    fresh.replace(path)


def raises(number: int) -> Callable[[int], int]:
    """A rule that refuses with an errno."""

    def rule(value: int) -> int:
        raise OSError(number, os.strerror(number))

    return rule


def host(root: Path, kernel: Kernel | None = None) -> Host:
    return Host(root, kernel or Kernel())


def limits(root: Path) -> dict[str, str]:
    """Every register that a cap could touch, by its path."""
    names = ("*/constraint_*_power_limit_uw", "*/enabled", "hwmon*/power*_cap")
    return {str(p.relative_to(root)): p.read_text() for c in (POWERCAP, HWMON) for n in names
            for p in sorted((root / c).glob(n))}  # fmt: skip
