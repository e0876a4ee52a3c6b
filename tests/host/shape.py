"""What every document of facts is held to, whatever the machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

FIELDS = {
    "arch", "cache_instances", "caches", "cgroup", "clocksource", "container", "container_evidence", "core_classes",
    "cores", "cpu_ids", "cpu_lists", "cpu_model", "cpu_vendor", "cpus_allowed",
    "cpus_not_allowed", "dies", "file_systems", "firmware",
    "frequency", "governor", "hostname", "id", "kernel", "kernel_cmdline", "libc", "llc_bytes", "memory_bytes",
    "memory_limit_bytes", "memory_total_bytes", "microcode", "mitigations", "notes", "numa_nodes", "os", "packages",
    "page_bytes", "pids_max", "quota_cpus", "reasons", "rlimits", "smt", "thp", "turbo", "virtual", "virtual_evidence",
}  # fmt: skip


def check_shape(facts: dict[str, Any]) -> None:
    """Every field is there, is plain JSON, and is null exactly where there is a reason."""
    assert set(facts) == FIELDS
    assert json.loads(json.dumps(facts, allow_nan=False).encode()) == facts
    assert all(abs(number) < 1 << 63 for number in numbers(facts)), (
        "a run with such a number is refused when it is loaded"
    )
    null = {name for name, value in facts.items() if value is None}
    assert null == set(facts["reasons"])
    assert all(facts["reasons"].values())
    assert not null & set(facts["notes"])
    on_cores = [cpu for core in facts["cores"] or () for cpu in core]
    assert len(on_cores) == len(set(on_cores)), "a CPU in two cores"
    classes = [cpu for one in facts["core_classes"] or () for cpu in one["cpus"]]
    assert len(classes) == len(set(classes)), "a CPU in two classes"


def numbers(value: Any) -> Iterator[float]:
    """Every number inside of a document."""
    if isinstance(value, int | float):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from numbers(one)
