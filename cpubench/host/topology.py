"""Which CPUs this process may use, and which of them are siblings in a core, share an L3, share a package.

Precedence where the sources contradict each other (lxcfs#731): the affinity mask, then sysfs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from cpubench.host.caches import read_caches
from cpubench.host.cpulist import format_cpulist, parse_cpulist, read_cpulist
from cpubench.host.fact import ROOT, Fact, names_in, read_int, read_text

SYS_CPU = "sys/devices/system/cpu"


@dataclass(frozen=True)
class Core:
    """A physical core as far as this process may use it."""

    cpus: tuple[int, ...]  # its allowed logical CPUs, ascending
    package: int | None
    die: int | None
    l3: int | None  # the lowest CPU of the machine that shares this L3: a name, unlike cache/index3/id always there


@dataclass(frozen=True)
class Topology:
    cpus: tuple[int, ...]  # allowed, ascending
    cores: tuple[Core, ...]  # by package, L3, lowest CPU
    smt: Fact[bool]  # some core has two or more allowed siblings
    packages: Fact[int]  # that the allowed cores lie in
    dies: Fact[int]  # of all these packages
    note: str | None = None  # what is doubtful about the cores


def core_order(core: Core) -> tuple[bool, int, bool, int, tuple[int, ...]]:
    """The sort key of cores: package, L3, lowest CPU; unknown ones last."""
    return core.package is None, core.package or 0, core.l3 is None, core.l3 or 0, core.cpus


def allowed_cpus(root: Path = ROOT) -> Fact[list[int]]:
    """The online logical CPUs that this process may be pinned to, ascending."""
    allowed = _status_cpus(root)
    online, offline, present = (read_cpulist(root, f"{SYS_CPU}/{name}") for name in ("online", "offline", "present"))
    if not allowed.value:
        if online.value:
            return Fact(online.value, f"{allowed.reason}; the online CPUs are taken instead")
        return Fact(None, f"{allowed.reason}; {online.reason or 'no CPU is online'}")
    if online.value is None:
        return allowed
    usable = set(online.value)
    doubt = None
    if present.value is not None and offline.value is not None:
        lost = set(present.value) - set(online.value) - set(offline.value)
        if lost:  # lxcfs replaces `online` alone, by 0..n-1: crossing it with the mask would drop CPUs at random
            doubt = f"CPUs {format_cpulist(lost)} are present, and neither online nor offline"
            usable = set(present.value) - set(offline.value)
    # The mask may name CPUs that are offline or were never there ("0-127" on a guest with 2).
    kept = [cpu for cpu in allowed.value if cpu in usable]
    if not kept:
        doubt = f"none of the allowed CPUs {format_cpulist(allowed.value)} is online ({format_cpulist(online.value)})"
        return Fact(allowed.value, f"{doubt}: the affinity mask is believed")
    return Fact(kept, f"{doubt}: the list of online CPUs is not believed" if doubt else None)


def other_cpus(allowed: Iterable[int], root: Path = ROOT) -> Fact[list[int]]:
    """The online CPUs beside the allowed ones, where others may work: by a cpuset, by isolcpus, by taskset."""
    online, offline, present = (read_cpulist(root, f"{SYS_CPU}/{name}") for name in ("online", "offline", "present"))
    if present.value is not None and offline.value is not None:  # which lxcfs leaves alone
        return Fact(sorted(set(present.value) - set(offline.value) - set(allowed)))
    if online.value is None:
        return Fact(None, online.reason)
    return Fact(sorted(set(online.value) - set(allowed)))


def _status_cpus(root: Path) -> Fact[list[int]]:
    status = read_text(root, "proc/self/status")
    if status.value is None:
        return Fact(None, status.reason)
    for line in status.value.splitlines():
        if line.startswith("Cpus_allowed_list:"):
            try:
                cpus = parse_cpulist(line.partition(":")[2])
            except ValueError as error:
                return Fact(None, f"/proc/self/status: {error}")
            return Fact(cpus) if cpus else Fact(None, "/proc/self/status: Cpus_allowed_list is empty")
    return Fact(None, "/proc/self/status: no Cpus_allowed_list")


def read_topology(root: Path = ROOT, cpus: Iterable[int] | None = None) -> Topology:
    """The cores of the allowed CPUs, or of ``cpus`` where a list was asked for; never fails for want of a file."""
    chosen = sorted(set(cpus)) if cpus is not None else allowed_cpus(root).value or []
    cores: list[Core] = []
    unknown: list[int] = []  # CPUs whose siblings no file tells
    whole: dict[int, set[int]] = {}  # first CPU of a core -> all its siblings, allowed or not
    l3_of: dict[int, int] = {}
    left = set(chosen)
    folders = set(names_in(root, SYS_CPU).value or ())  # a broken mask may name a million CPUs: none is asked in vain
    for cpu in chosen:
        if cpu not in left:
            continue
        if f"cpu{cpu}" not in folders:
            unknown.append(cpu)
            left.discard(cpu)
            whole[cpu] = {cpu}
            cores.append(Core((cpu,), None, None, None))
            continue
        siblings = _members(root, cpu, "core_cpus_list", "thread_siblings_list")
        if siblings is None:
            unknown.append(cpu)
        # `left`, so that lists which contradict each other never put one CPU into two cores
        mine = tuple(sorted({cpu} | ((siblings or set()) & left)))
        left -= set(mine)
        whole[cpu] = siblings or {cpu}
        if cpu not in l3_of:
            l3_of.update(_l3_members(root, cpu))
        package, die = (_id(root, cpu, name) for name in ("physical_package_id", "die_id"))
        cores.append(Core(mine, package, die, l3_of.get(cpu)))
    notes = []
    if unknown:
        notes.append(f"no sibling list for CPUs {format_cpulist(unknown)}: each counts as a core")
    packages = _count_packages(cores)
    if _packages_are_made_up(root, cores, whole):
        cores = [replace(core, package=None) for core in cores]
        packages = Fact(None, "every core claims a package of its own, as hypervisors do by default")
    dies: Fact[int] = Fact(None, packages.reason or "die_id is missing or -1, as in kernels before 5.3 and on Arm")
    if packages.value is not None and all(core.die is not None for core in cores):
        dies = Fact(len({(core.package, core.die) for core in cores}))
    smt: Fact[bool] = Fact(any(len(core.cpus) > 1 for core in cores))
    if not smt.value and (unknown or not cores):
        smt = Fact(None, notes[0] if notes else "no CPU is known")
    return Topology(tuple(chosen), tuple(sorted(cores, key=core_order)), smt, packages, dies, "; ".join(notes) or None)


def _members(root: Path, cpu: int, *names: str) -> set[int] | None:
    """The CPUs in the first of these topology files that is a list and holds the CPU itself."""
    for name in names:
        found = read_cpulist(root, f"{SYS_CPU}/cpu{cpu}/topology/{name}").value
        if found and cpu in found:
            return set(found)
    return None


def _l3_members(root: Path, cpu: int) -> dict[int, int]:
    """The name of this CPU's L3 for each CPU that shares it, so that one read serves all of them."""
    for cache in read_caches(cpu, root).value or ():
        if cache.level == 3 and cache.shared_cpus and cpu in cache.shared_cpus:
            return dict.fromkeys(cache.shared_cpus, min(cache.shared_cpus))
    return {}


def _id(root: Path, cpu: int, name: str) -> int | None:
    value = read_int(root, f"{SYS_CPU}/cpu{cpu}/topology/{name}").value
    return value if value is not None and value >= 0 else None  # -1: the firmware does not say


def _count_packages(cores: list[Core]) -> Fact[int]:
    if not cores or any(core.package is None for core in cores):
        return Fact(None, "physical_package_id is missing or -1")
    return Fact(len({core.package for core in cores}))


def _packages_are_made_up(root: Path, cores: list[Core], whole: dict[int, set[int]]) -> bool:
    """Whether several packages hold one core each: no server does, guests do, and no group would ever fit.

    The full member lists decide, not the allowed cores: a cpuset may leave one core of each real socket.
    """
    if len(cores) < 2 or len({core.package for core in cores if core.package is not None}) < len(cores):
        return False
    for core in cores:
        members = _members(root, core.cpus[0], "package_cpus_list", "core_siblings_list")
        if members is None or not members <= whole[core.cpus[0]]:
            return False
    return True


def raw_cpu_lists(root: Path = ROOT) -> dict[str, str | None]:
    """The lists of CPUs as the kernel words them, so that a contradiction can be judged later."""
    names = ("online", "offline", "present", "possible", "isolated")
    lists = {name: read_text(root, f"{SYS_CPU}/{name}", keep_empty=True).value for name in names}
    mask = _status_cpus(root).value
    return {**lists, "cpus_allowed": format_cpulist(mask) if mask is not None else None}
