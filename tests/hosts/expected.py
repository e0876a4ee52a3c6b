"""What each machine of machines.py must be taken for: facts, a part of a reason or a note, and where copies run.

``layout`` has the number of copies of (one per core, one per CPU, sibling pairs, pairs of cores) and the first pair.
"""

from __future__ import annotations

from typing import Any

KIB, MIB = 1 << 10, 1 << 20
ONE = [{"name": "uniform"}]

EXPECTED: dict[str, dict[str, Any]] = {
    "xeon_2s_smt": {
        "facts": {
            "cpus_allowed": "0-31", "cpus_not_allowed": "", "packages": 2, "dies": 2,
            "smt": True, "virtual": False, "container": "none",
            "llc_bytes": 105 * MIB, "governor": "performance", "turbo": "on", "quota_cpus": None, "cgroup": "v2",
            "cpu_model": "Intel(R) Xeon(R) 8480+", "cpu_ids": "6/143/8", "pids_max": None, "memory_limit_bytes": None,
        },
        "instances": [("L1 Data", 48 * KIB, 16), ("L2 Unified", 2 * MIB, 16), ("L3 Unified", 105 * MIB, 2)],
        "classes": {"uniform": 32}, "nodes": [("0-7,16-23", 131072000 << 10), ("8-15,24-31", 131072000 << 10)],
        "layout": (16, 32, 16, 8), "pair": [0, 1], "divisor": ("physical_core", 16),
        "frequency": [("0-31", 3900000, 1600000)],
        "reasons": {"quota_cpus": "no CPU quota", "pids_max": "no task limit"},
    },
    "epyc_8_dies": {
        "facts": {"packages": 1, "dies": 8, "smt": True, "virtual": False, "cpu_vendor": "AuthenticAMD",
                  "turbo": "off", "cpu_model": "AMD EPYC 9354P 32-Core Processor"},
        "instances": [("L1 Data", 32 * KIB, 32), ("L2 Unified", MIB, 32), ("L3 Unified", 32 * MIB, 8)],
        "classes": {"uniform": 64}, "nodes": [(f"{8 * n}-{8 * n + 7},{8 * n + 32}-{8 * n + 39}", 65536000 << 10)
                                              for n in range(4)],
        "layout": (32, 64, 32, 16), "pair": [0, 1], "divisor": ("physical_core", 32),
        "notes": {"turbo": "boost is 0"},
    },
    "grace": {
        "facts": {"cpu_vendor": "Arm", "cpu_model": "Neoverse-V2", "cpu_ids": "0x41/0xd4f", "packages": 1, "dies": None,
                  "smt": False, "virtual": False, "microcode": None, "llc_bytes": 114 * MIB},
        "instances": [("L1 Data", 64 * KIB, 72), ("L2 Unified", MIB, 72), ("L3 Unified", 114 * MIB, 1)],
        "classes": {"uniform": 72}, "nodes": [("0-71", 498073600 << 10), ("", 99614720 << 10), ("", 0)],
        "layout": (72, 72, 0, 36), "pair": [0, 1], "divisor": ("physical_core", 72),
        "notes": {"numa_nodes": "node 1: memory and no CPU; node 2: neither CPUs nor memory"},
        "reasons": {"dies": "die_id is missing or -1", "microcode": "no 'microcode'"},
    },
    "altra": {
        "facts": {"cpu_model": "Neoverse-N1", "packages": 1, "smt": False, "virtual": False, "llc_bytes": MIB,
                  "governor": None, "frequency": None, "turbo": None},
        "instances": [("L1 Data", 64 * KIB, 80), ("L2 Unified", MIB, 80)],
        "classes": {"uniform": 80}, "nodes": [("0-79", 263000000 << 10)],
        "layout": (80, 80, 0, 40), "pair": [0, 1], "divisor": ("physical_core", 80),
        "notes": {"core_classes": "cpu_capacity 1004: near enough to be favoured cores"},
        "reasons": {"frequency": "cpu0/cpufreq: no such folder"},
    },
    "graviton_vm": {
        "facts": {"cpu_model": "Neoverse-V1", "virtual": True, "numa_nodes": None, "frequency": None, "smt": False},
        "instances": [("L1 Data", 64 * KIB, 4), ("L2 Unified", MIB, 4), ("L3 Unified", 32 * MIB, 1)],
        "classes": {"uniform": 4}, "layout": (4, 4, 0, 2), "pair": [0, 1], "divisor": ("vcpu", 4),
        "reasons": {"numa_nodes": "one implicit node", "governor": "no such file", "turbo": "leaves it to its host"},
    },
    "hybrid_laptop": {
        "facts": {"smt": True, "packages": 1, "virtual": False},
        "instances": [("L1 Data", 32 * KIB, 4), ("L1 Data", 48 * KIB, 2), ("L2 Unified", 1280 * KIB, 2),
                      ("L2 Unified", 2 * MIB, 1), ("L3 Unified", 12 * MIB, 1)],
        "classes": {"cpu_core, capacity 1024, L1 48 KiB, L2 1280 KiB": 4,
                    "cpu_atom, capacity 614, L1 32 KiB, L2 2048 KiB": 4},
        "layout": (6, 8, 2, 3), "pair": [0, 2], "divisor": ("physical_core", 6),
        "frequency": [("0-3", 4700000, 4700000), ("4-7", 3500000, 3500000)],
        "notes": {"core_classes": "cpu_capacity 1009: near enough"},
    },
    "big_little": {
        "facts": {"cpu_model": "Cortex-A53 + Cortex-A72", "caches": None, "cache_instances": None, "llc_bytes": None,
                  "virtual": None, "firmware": {"model": "Radxa ROCK Pi 4"}},
        "classes": {"Cortex-A53, capacity 485": 4, "Cortex-A72, capacity 1024": 2},
        "layout": (6, 6, 0, 3), "pair": [0, 1], "divisor": ("physical_core", 6),
        "reasons": {"cache_instances": "cpu0/cache: no such folder", "llc_bytes": "no such folder"},
    },
    "smt_off_holes": {
        "facts": {"cpus_allowed": "0,2,4,6", "cpus_not_allowed": "", "smt": False, "packages": 1},
        "classes": {"uniform": 4}, "layout": (4, 4, 0, 2), "pair": [0, 2], "divisor": ("physical_core", 4),
    },
    "container_half_cpu": {
        "facts": {"cpus_allowed": "3", "cpus_not_allowed": "0-2,4-15", "cores": [[3]], "quota_cpus": 0.5,
                  "container": "kubernetes", "packages": 1,
                  "pids_max": 64, "memory_limit_bytes": 512 * MIB, "smt": False},
        "classes": {"uniform": 1}, "layout": (1, 1, 0, 0), "pair": None, "divisor": ("granted_cpu", 0.5),
    },
    "firecracker": {
        "facts": {"cpus_allowed": "0-1", "virtual": True, "container": "none", "cgroup": "hybrid", "packages": 1,
                  "cpu_vendor": "AuthenticAMD", "cpu_ids": "25/17/1", "firmware": None, "governor": None,
                  "llc_bytes": 32 * MIB, "clocksource": "tsc", "thp": "madvise"},
        "instances": [("L1 Data", 32 * KIB, 2), ("L2 Unified", MIB, 2), ("L3 Unified", 32 * MIB, 1)],
        "classes": {"uniform": 2}, "nodes": [("0-1", 9267416 << 10)],
        "layout": (2, 2, 0, 1), "pair": [0, 1], "divisor": ("vcpu", 2),
        "notes": {"container": ".dockerenv: docker, but its namespaces are the first",
                  "numa_nodes": "the nodes have 9489833984 B, /proc/meminfo has"},
        "reasons": {"quota_cpus": "no CPU quota", "firmware": "neither"},
    },
    "lxc": {
        "facts": {"cpus_allowed": "24", "cpus_not_allowed": "0-23,25-31", "cores": [[24]],
                  "container": "lxc", "quota_cpus": None},
        "classes": {"uniform": 1}, "layout": (1, 1, 0, 0), "pair": None, "divisor": ("physical_core", 1),
        "notes": {"cpus_allowed": "CPUs 1-31 are present, and neither online nor offline",
                  "numa_nodes": "the nodes have"},
    },
    "cpus_1024": {
        "facts": {"cpus_allowed": "0-1023", "packages": 2, "smt": True, "turbo": None},
        "instances": [("L1 Data", 32 * KIB, 512), ("L2 Unified", MIB, 512), ("L3 Unified", 32 * MIB, 32)],
        "classes": {"uniform": 1024}, "layout": (512, 1024, 512, 256), "pair": [0, 1],
        "divisor": ("physical_core", 512), "frequency": [("0-1023", 3000000, 3000000)],
    },
}  # fmt: skip
