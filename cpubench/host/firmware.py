"""Which machine the firmware says this is. Serial numbers and asset tags name an owner's machine and are never read."""

from __future__ import annotations

from pathlib import Path

from cpubench.host.fact import ROOT, Fact, names_in, read_text

DMI = "sys/class/dmi/id"
FIELDS = ("sys_vendor", "product_name", "board_vendor", "board_name", "bios_vendor", "bios_version", "bios_date")


def read_firmware(root: Path = ROOT) -> Fact[dict[str, str | None]]:
    """Vendor, product, board and firmware by their DMI names, or ``model`` from a device tree."""
    if names_in(root, DMI).value:
        found = {name: read_text(root, f"{DMI}/{name}", 4096) for name in FIELDS}
        if any(fact.value for fact in found.values()):
            missing = [name for name, fact in found.items() if fact.value is None]
            values = {name: " ".join(fact.value.split()) if fact.value else None for name, fact in found.items()}
            return Fact(values, f"not told: {', '.join(missing)}" if missing else None)
    model = read_text(root, "proc/device-tree/model", 4096)
    if model.value:
        return Fact({"model": " ".join(model.value.split())})
    return Fact(None, f"neither /{DMI} nor /proc/device-tree/model tells")
