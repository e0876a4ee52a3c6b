"""What clock the hardware allows and what the policy does (Documentation/admin-guide/pm/cpufreq.rst), apart.

The clock of this moment is not read: some kernels interrupt a CPU or sleep 10 ms for it, others have no such file.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cpubench.host.cpulist import format_cpulist
from cpubench.host.fact import ROOT, Fact, read_int, read_text

FILES = {
    "hardware_min_khz": "cpuinfo_min_freq", "hardware_max_khz": "cpuinfo_max_freq", "base_khz": "base_frequency",
    "policy_min_khz": "scaling_min_freq", "policy_max_khz": "scaling_max_freq",
}  # fmt: skip


def read_frequency(cpus: Iterable[int], root: Path = ROOT) -> Fact[list[dict[str, Any]]]:
    """For CPUs that have the same: driver, governor and the frequencies in kHz, each or None; JSON-ready.

    None where no CPU has a frequency policy, as in most virtual machines.
    """
    groups: dict[tuple[str | int | None, ...], list[int]] = {}
    reasons: dict[str, None] = {}
    for cpu in cpus:
        folder = f"sys/devices/system/cpu/cpu{cpu}/cpufreq"
        if not (root / folder).is_dir():
            reasons[f"/{folder}: no such folder"] = None
            continue
        words = [read_text(root, f"{folder}/{name}", 4096) for name in ("scaling_driver", "scaling_governor")]
        numbers = [read_int(root, f"{folder}/{name}") for name in FILES.values()]
        missing = [word.reason for word in words if word.value is None]
        missing += [
            number.reason
            for number, name in zip(numbers, FILES, strict=True)
            if number.value is None and not (name == "base_khz" and number.absent)
        ]  # which few drivers have
        reasons.update(dict.fromkeys(reason or "" for reason in missing))
        khz = [n.value if n.value is not None and 0 < n.value < 10**9 else None for n in numbers]
        groups.setdefault((*(word.value for word in words), *khz), []).append(cpu)
    told = "; ".join(list(reasons)[:3]) + (f" and {len(reasons) - 3} more" if len(reasons) > 3 else "")
    if not groups:
        return Fact(None, told or "no CPU is known")
    rows = [{"cpus": format_cpulist(of), **dict(zip(("driver", "governor", *FILES), key, strict=True))}
            for key, of in groups.items()]  # fmt: skip
    return Fact(rows, told or None)
