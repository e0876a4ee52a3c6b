"""How often a CPU entered each of its idle states (Documentation/admin-guide/pm/cpuidle.rst)."""

from __future__ import annotations

from pathlib import Path

from cpubench.host.fact import ROOT, read_int, read_text


def idle_usage(cpu: int, root: Path = ROOT) -> dict[str, int]:
    """Entries by the state's name since boot; {} where the kernel does not tell, as in most virtual machines."""
    found = {}
    for state in sorted((root / f"sys/devices/system/cpu/cpu{cpu}/cpuidle").glob("state*")):
        place = str(state.relative_to(root))
        name, usage = read_text(root, f"{place}/name").value, read_int(root, f"{place}/usage").value
        if name and usage is not None:
            found[name.strip()] = usage
    return found
