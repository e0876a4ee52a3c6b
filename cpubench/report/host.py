"""The facts of a host as a person checks them: in groups, numbers in their units, each unknown with its reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import IO, Any

from cpubench.report.page import console_of, line, pairs

Json = Mapping[str, Any]
NAME_WIDTH = 16

# Title, then (fact, its name for a reader). Every other stable fact follows under "more": none is left out.
GROUPS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    ("machine", (
        ("hostname", "host name"), ("cpu_model", "CPU"), ("cpu_vendor", "vendor"), ("cpu_ids", "ids"),
        ("microcode", "microcode"), ("arch", "architecture"), ("firmware", "firmware"), ("virtual", "virtual"),
        ("container", "container"), ("os", "system"), ("kernel", "kernel"), ("libc", "C library"), ("id", "identity"),
    )),
    ("CPUs", (
        ("cpus_allowed", "allowed"), ("cpus_not_allowed", "not ours"), ("quota_cpus", "quota"),
        ("cores", "cores"), ("smt", "SMT"), ("core_classes", "core classes"), ("packages", "packages"),
        ("dies", "dies"), ("divisor", "per core means"),
        ("cache_instances", "caches"), ("llc_bytes", "last level"), ("numa_nodes", "NUMA nodes"),
        ("frequency", "frequency"), ("governor", "governor"), ("turbo", "turbo"), ("cpu_lists", "as files say"),
    )),
    ("memory and limits", (
        ("memory_total_bytes", "memory"), ("memory_limit_bytes", "cgroup limit"), ("page_bytes", "page"),
        ("thp", "huge pages"), ("cgroup", "cgroups"), ("pids_max", "most tasks"), ("rlimits", "own limits"),
        ("file_systems", "file systems"),
    )),
    ("kernel", (
        ("kernel_cmdline", "command line"), ("clocksource", "clock source"), ("mitigations", "mitigations"),
    )),
    ("this cpubench", (("build", "build"), ("imported", "versions"))),
)  # fmt: skip
TOLD = {"virtual_evidence", "container_evidence", "caches"}  # beside others, or in more detail by them
NOW = {"memory_bytes": "usable memory", "memory_available_bytes": "available", "swap_free_bytes": "free swap",
       "pids_left": "tasks left", "load_1_5_15": "load", "uptime_s": "up for"}  # fmt: skip


def show_host(document: Json, out: IO[str]) -> None:
    """Nothing; writes the page: stable facts in groups, then what holds now, then what is not known."""
    stable, now, reasons, notes = (document[key] for key in ("stable", "volatile", "reasons", "notes"))
    console = console_of(out)
    named = TOLD.union(key for _, rows in GROUPS for key, _ in rows)
    more = ("more", tuple((key, key) for key in stable if key not in named))
    for title, rows in (*GROUPS, more):
        told = [(name, text) for key, name in rows if stable.get(key) is not None
                for text in _with_note(_lines(key, stable), notes.get(key))]  # fmt: skip
        if told:
            console.print(line(console, f"{title}"))
            pairs(console, _once_named(told), NAME_WIDTH)
            console.print()
    console.print(line(console, "now (changes while you read)"))
    held = [(NOW.get(key, key), text) for key, value in now.items() if value is not None
            for text in _with_note([_number(key, value)], notes.get(key))]  # fmt: skip
    pairs(console, _once_named(held), NAME_WIDTH)
    if reasons:
        names = NOW | {key: name for _, rows in GROUPS for key, name in rows}
        console.print(line(console, "\nno value, and why"))
        pairs(console, [(names.get(key, key), reason) for key, reason in reasons.items()], NAME_WIDTH)


def _with_note(lines: list[str], note: str | None) -> list[str]:
    return [*lines, f"({note})"] if note else lines


def _once_named(rows: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The rows with the name of several in a row beside the first of them only."""
    made: list[tuple[str, str]] = []
    last = None
    for name, text in rows:
        made.append(("" if name == last else name, text))
        last = name
    return made


def _lines(key: str, stable: Json) -> list[str]:
    value = stable[key]
    words = WORDS.get(key)
    if words is not None:
        return words(value, stable)
    return [_number(key, value)]


def _number(key: str, value: Any) -> str:
    if key.endswith("_bytes") and isinstance(value, int):
        return _size(value)
    if key == "uptime_s":
        return f"{value / 3600:.1f} hours"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_number(name, one)}" for name, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)


def _size(n_bytes: int) -> str:
    """Bytes in the largest unit that shows them exactly, else rounded in GiB or MiB, with all of them behind."""
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if n_bytes >= 1 << shift:
            exact = n_bytes % (1 << shift) == 0
            if exact or n_bytes >= 1 << 20:
                return f"{n_bytes >> shift} {unit}" if exact else f"{n_bytes / (1 << shift):.2f} {unit} ({n_bytes} B)"
    return f"{n_bytes} B"


def _cores(value: list[list[int]], stable: Json) -> list[str]:
    shown = " ".join("+".join(map(str, core)) for core in value[:24])
    return [f"{len(value)}: {shown}{f' and {len(value) - 24} more' if len(value) > 24 else ''}"]


def _classes(value: list[Json], stable: Json) -> list[str]:
    if len(value) == 1:
        return ["one: all cores are of a kind"]
    told = [f"{one['name']}: {len(one['cpus'])} CPUs, from {one['cpus'][0]} to {one['cpus'][-1]}" for one in value]
    return [*told, "a run measures one class: give its CPUs by --cpus"]


def _caches(value: list[Json], stable: Json) -> list[str]:
    made = []
    for row in value:
        size = "size unknown" if row["size_bytes"] is None else _size(row["size_bytes"])
        shared = row["shared_cpus"]
        where = f"{len(shared)} of them: {'; '.join(shared[:8])}{' ..' if len(shared) > 8 else ''}" if shared else ""
        hidden = f"{row['unknown_sharing']} CPUs with unknown sharing" if row["unknown_sharing"] else ""
        made.append(f"L{row['level']} {row['kind']} {size}, {', '.join(filter(None, (where, hidden)))}")
    return made


def _nodes(value: list[Json], stable: Json) -> list[str]:
    made = []
    for node in value:
        cpus = "CPUs unknown" if node["cpus"] is None else f"CPUs {node['cpus']}" if node["cpus"] else "no CPU"
        memory = "memory unknown" if node["memory_bytes"] is None else _size(node["memory_bytes"])
        made.append(f"node {node['id']}: {cpus}, {memory}")
    return made


def _frequency(value: list[Json], stable: Json) -> list[str]:
    made = []
    for row in value:
        most, allowed = row["hardware_max_khz"], row["policy_max_khz"]
        cap = " (a cap)" if most is not None and allowed is not None and allowed < most else ""
        told = f"CPUs {row['cpus']}: hardware {_ghz(row['hardware_min_khz'])} to {_ghz(most)}"
        told += f", policy {_ghz(row['policy_min_khz'])} to {_ghz(allowed)}{cap}"
        base = f", base {_ghz(row['base_khz'])}" if row["base_khz"] else ""
        made.append(f"{told}{base}, driver {row['driver'] or 'unknown'}, governor {row['governor'] or 'unknown'}")
    return made


def _ghz(khz: int | None) -> str:
    return "unknown" if khz is None else f"{khz / 1e6:.4g} GHz"


def _yes(key: str) -> Callable[[Any, Json], list[str]]:
    def words(value: Any, stable: Json) -> list[str]:
        told = ("yes" if value else "no") if isinstance(value, bool) else str(value)
        return [told, *(stable.get(key) or ())]

    return words


def _rows(value: Json, stable: Json) -> list[str]:
    return [f"{name}: {_number(name, one)}" for name, one in value.items()]


def _file_systems(value: Json, stable: Json) -> list[str]:
    return [f"{place}: {one['kind']} at {one['mount']} ({','.join(one['options'])})" for place, one in value.items()]


def _rlimits(value: Json, stable: Json) -> list[str]:
    return [f"{name}: {soft}{f' (at most {hard})' if hard != soft else ''}" for name, (soft, hard) in value.items()]


def _lists(value: Json, stable: Json) -> list[str]:
    return [", ".join(f"{name} {text or '-'}" for name, text in value.items())]


def _others(value: str, stable: Json) -> list[str]:
    return [value or "none: every online CPU may be measured"]


def _divisor(value: Json, stable: Json) -> list[str]:
    return [f"{value['kind']}, {value['n']:g} of them"]


WORDS: dict[str, Callable[[Any, Json], list[str]]] = {
    "cores": _cores, "core_classes": _classes, "cache_instances": _caches, "numa_nodes": _nodes,
    "frequency": _frequency, "virtual": _yes("virtual_evidence"), "container": _yes("container_evidence"),
    "smt": _yes(""), "mitigations": _rows, "file_systems": _file_systems, "rlimits": _rlimits, "cpu_lists": _lists,
    "firmware": _rows, "build": _rows, "imported": _rows, "divisor": _divisor,
    "cpus_not_allowed": _others,
}  # fmt: skip
