"""What the processor calls itself: vendor, model, part, microcode; each of them can be absent (hiq#28)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from cpubench.host.fact import ROOT, Fact, read_text

# MIDR implementer and part numbers of server cores, and of the cores of small machines one meets on a desk.
_IMPLEMENTERS = {
    0x41: "Arm", 0x42: "Broadcom", 0x43: "Cavium", 0x46: "Fujitsu", 0x48: "HiSilicon", 0x4E: "NVIDIA", 0x50: "APM",
    0x51: "Qualcomm", 0x53: "Samsung", 0x56: "Marvell", 0x61: "Apple", 0x69: "Intel", 0x6D: "Microsoft",
    0x70: "Phytium", 0xC0: "Ampere",
}  # fmt: skip
_PARTS = {
    (0x41, 0xD0C): "Neoverse-N1", (0x41, 0xD49): "Neoverse-N2", (0x41, 0xD8E): "Neoverse-N3",
    (0x41, 0xD40): "Neoverse-V1", (0x41, 0xD4F): "Neoverse-V2", (0x41, 0xD84): "Neoverse-V3",
    (0x41, 0xD83): "Neoverse-V3AE", (0x41, 0xD4A): "Neoverse-E1",
    (0x41, 0xD03): "Cortex-A53", (0x41, 0xD04): "Cortex-A35", (0x41, 0xD05): "Cortex-A55",
    (0x41, 0xD07): "Cortex-A57", (0x41, 0xD08): "Cortex-A72", (0x41, 0xD09): "Cortex-A73",
    (0x41, 0xD0A): "Cortex-A75", (0x41, 0xD0B): "Cortex-A76", (0x41, 0xD0D): "Cortex-A77",
    (0x41, 0xD41): "Cortex-A78", (0x41, 0xD42): "Cortex-A78AE", (0x41, 0xD44): "Cortex-X1",
    (0x41, 0xD46): "Cortex-A510", (0x41, 0xD47): "Cortex-A710", (0x41, 0xD48): "Cortex-X2",
    (0x41, 0xD4B): "Cortex-A78C", (0x41, 0xD4D): "Cortex-A715", (0x41, 0xD4E): "Cortex-X3",
    (0x41, 0xD80): "Cortex-A520", (0x41, 0xD81): "Cortex-A720", (0x41, 0xD82): "Cortex-X4",
    (0x41, 0xD85): "Cortex-X925", (0x41, 0xD87): "Cortex-A725",
    (0x43, 0x0A1): "ThunderX-88XX", (0x43, 0x0AF): "ThunderX2-99xx", (0x46, 0x001): "A64FX",
    (0x48, 0xD01): "Kunpeng-920", (0x4E, 0x004): "Carmel", (0x51, 0xC00): "Falkor", (0x51, 0x001): "Oryon",
    (0x6D, 0xD49): "Azure-Cobalt-100", (0x70, 0x662): "FTC662", (0x70, 0x663): "FTC663",
    (0xC0, 0xAC3): "Ampere-1", (0xC0, 0xAC4): "Ampere-1a",
}  # fmt: skip


@dataclass(frozen=True)
class Cpu:
    vendor: Fact[str]
    model: Fact[str]
    ids: Fact[str]  # the raw numbers: "0x41/0xd4f" on Arm, "6/143/8" (family, model, stepping) on x86
    microcode: Fact[str]


def part_name(implementer: int, part: int) -> str:
    """What an Arm core is called, or "unknown(0x7e/0x001)": two unknown ones are never taken for the same."""
    return _PARTS.get((implementer, part), f"unknown(0x{implementer:02x}/0x{part:03x})")


def read_cpu(root: Path = ROOT) -> Cpu:
    """Vendor, model, raw ids and microcode of the processor, from proc/cpuinfo."""
    # 64 KiB hold the first CPUs. All of 1024 CPUs are 1.5 MB, and older kernels interrupt each one for its clock.
    text = read_text(root, "proc/cpuinfo", 1 << 16)
    if text.value is None:
        none: Fact[str] = Fact(None, text.reason)
        return Cpu(none, none, none, none)
    fields: dict[str, list[str]] = {}
    for line in text.value.splitlines():
        key, colon, value = line.partition(":")
        if colon and value.strip() and value.strip() not in fields.setdefault(key.strip(), []):
            fields[key.strip()].append(value.strip())
    parts = _arm_parts(text.value)
    if parts:
        ids = " + ".join(f"0x{implementer:02x}/0x{part:03x}" for implementer, part in parts)
        vendor = " + ".join(dict.fromkeys(_IMPLEMENTERS.get(i, f"unknown(0x{i:02x})") for i, _ in parts))
        model = " + ".join(part_name(*part) for part in parts)
        return Cpu(Fact(vendor), Fact(model), Fact(ids), _field(fields, "microcode"))
    x86 = [fields.get(key, [""])[0] for key in ("cpu family", "model", "stepping")]
    x86_ids: Fact[str] = Fact("/".join(x86)) if all(x86) else Fact(None, "/proc/cpuinfo: no ids of Arm or x86")
    # "cpu" is POWER's word, "uarch" RISC-V's.
    return Cpu(_field(fields, "vendor_id"), _field(fields, "model name", "cpu", "uarch"), x86_ids,
               _field(fields, "microcode"))  # fmt: skip


def _field(fields: dict[str, list[str]], *keys: str) -> Fact[str]:
    for key in keys:
        if fields.get(key):
            return Fact(fields[key][0])
    return Fact(None, f"/proc/cpuinfo: no {' or '.join(repr(key) for key in keys)}")


def _arm_parts(text: str) -> list[tuple[int, int]]:
    """The distinct (implementer, part) of the CPUs in order of appearance; big and small cores give two."""
    implementer = None
    parts: dict[tuple[int, int], None] = {}
    for line in text.splitlines():
        match = re.fullmatch(r"CPU (implementer|part)\s*:\s*0x([0-9a-fA-F]{1,8})\s*", line)
        if match and match[1] == "implementer":
            implementer = int(match[2], 16)
        elif match and implementer is not None:
            parts[implementer, int(match[2], 16)] = None
    return list(parts)
