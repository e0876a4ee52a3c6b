"""Makes odd machines: small /proc and /sys trees in a folder, in the kernel's own file formats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from cpubench.host.cpulist import format_cpulist

CoreSpec = tuple[int, object, tuple[int, ...]]  # package id, any name of an L3 (None: no L3), logical CPUs
SYS_CPU = "sys/devices/system/cpu"


def write(root: Path, files: Mapping[str, str]) -> Path:
    """Files by name, each with the newline that the kernel puts at its end."""
    top, made = str(root), set()
    for name, text in files.items():
        path = f"{top}/{name}"
        folder = path.rpartition("/")[0]
        if folder not in made:  # a tree of 1,024 CPUs has 26,000 files
            Path(folder).mkdir(parents=True, exist_ok=True)
            made.add(folder)
        with open(path, "wb") as file:  # noqa: PTH123
            file.write(f"{text}\n".encode("utf-8", "surrogateescape"))
    return root


def cpus(
    root: Path, cores: Iterable[CoreSpec], *, allowed: str | None = None, online: str | None = None, offline: str = "",
    present: str | None = None, topology: bool = True, caches: bool = True, old_names: bool = False,
    linked: bool = False,
) -> Path:  # fmt: skip
    """A CPU tree; CPUs of ``offline`` have no folder, as on a real machine.

    ``linked`` siblings are links to the folder of the first, which holds the same: half of the files.
    """
    cores = list(cores)
    every = [cpu for _, _, members in cores for cpu in members]
    mask = allowed or format_cpulist(every)
    write(root, {
        "proc/self/status": f"Name:\tpython\nCpus_allowed:\tff\nCpus_allowed_list:\t{mask}\nMems_allowed_list:\t0",
        f"{SYS_CPU}/online": online if online is not None else format_cpulist(every),
        f"{SYS_CPU}/offline": offline,
        f"{SYS_CPU}/present": present or format_cpulist(every),
        f"{SYS_CPU}/possible": present or format_cpulist(every),
        f"{SYS_CPU}/isolated": "",
    })  # fmt: skip
    in_core, in_package = ("thread_siblings_list", "core_siblings_list") if old_names else (
        "core_cpus_list", "package_cpus_list")  # fmt: skip
    sockets: dict[int, list[int]] = {}
    behind: dict[tuple[int, object], list[int]] = {}  # by L3
    for package, l3, members in cores:
        sockets.setdefault(package, []).extend(members)
        behind.setdefault((package, l3), []).extend(members)
    socket_lists = {package: format_cpulist(those) for package, those in sockets.items()}
    files: dict[str, str] = {}
    for package, l3, members in cores:
        mine, sharing = format_cpulist(members), format_cpulist(behind[package, l3])
        for cpu in members[: 1 if linked else None]:
            folder = f"{SYS_CPU}/cpu{cpu}"
            if topology:
                files |= {
                    f"{folder}/topology/physical_package_id": str(package), f"{folder}/topology/die_id": "0",
                    f"{folder}/topology/{in_core}": mine, f"{folder}/topology/{in_package}": socket_lists[package],
                }  # fmt: skip
            if caches:
                rows = [("1", "Data", "32K", mine), ("1", "Instruction", "64K", mine), ("2", "Unified", "1024K", mine)]
                rows += [("3", "Unified", "32M", sharing)] if l3 is not None else []
                for index, row in enumerate(rows):
                    names = ("level", "type", "size", "shared_cpu_list")
                    files |= {f"{folder}/cache/index{index}/{n}": text for n, text in zip(names, row, strict=True)}
    write(root, files)
    for _, _, members in cores if linked else ():
        for cpu in members[1:]:
            (root / SYS_CPU / f"cpu{cpu}").symlink_to(f"cpu{members[0]}")
    return root


def cache(root: Path, cpu: int, index: int, level: int, kind: str, size: str | None, shared: Iterable[int]) -> None:
    folder = f"{SYS_CPU}/cpu{cpu}/cache/index{index}"
    write(root, {f"{folder}/level": str(level), f"{folder}/type": kind,
                 f"{folder}/shared_cpu_list": format_cpulist(shared)})  # fmt: skip
    if size is not None:
        write(root, {f"{folder}/size": size})


def xeon(root: Path, **options: str) -> Path:
    """Two sockets of four cores with SMT, siblings numbered n and n + 8, one L3 per socket."""
    return cpus(root, [(n // 4, "L3", (n, n + 8)) for n in range(8)], **options)  # type: ignore[arg-type]


def epyc(root: Path) -> Path:
    """One socket with eight L3s of three cores each, SMT off in the firmware."""
    return cpus(root, [(0, n // 3, (n,)) for n in range(24)])


def hybrid(root: Path) -> Path:
    """A laptop: two big cores with SMT and four small ones, all behind one L3."""
    return cpus(root, [(0, 0, (0, 1)), (0, 0, (2, 3)), *[(0, 0, (cpu,)) for cpu in range(4, 8)]])


def holes(root: Path) -> Path:
    """SMT switched off at run time: the odd CPUs are present and offline, the mask still names them."""
    cores: list[CoreSpec] = [(0, "L3", (cpu,)) for cpu in (0, 2, 4, 6)]
    return cpus(root, cores, allowed="0-7", online="0,2,4,6", offline="1,3,5,7", present="0-7")


def cgroups(root: Path, membership: str, mounts: Iterable[tuple[str, str, str, str]], files: Mapping[str, str]) -> Path:
    """Control groups; a mount is (mount point, group seen there, file system, its options)."""
    lines = ["27 1 254:0 / / rw,relatime - ext4 /dev/vda rw"]
    lines += [f"{30 + n} 27 0:{30 + n} {seen} {point} rw,nosuid shared:{n} - {kind} {kind} {options}"
              for n, (point, seen, kind, options) in enumerate(mounts)]  # fmt: skip
    return write(root, {"proc/self/cgroup": membership, "proc/self/mountinfo": "\n".join(lines), **files})


def meminfo(root: Path, total_kb: int, available_kb: int | None) -> Path:
    rows = [f"MemTotal:       {total_kb} kB", "MemFree:        1 kB"]
    rows += [f"MemAvailable:   {available_kb} kB"] if available_kb is not None else []
    return write(root, {"proc/meminfo": "\n".join(rows)})


X86 = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\nmodel name\t: Intel(R) Xeon(R) 8480+\nstepping\t: 8\nmicrocode\t: 0x2b000603\ncpu MHz\t\t: 2000.000\nflags\t\t: fpu vme {flags}avx2\n"  # noqa: E501
ARM = "processor\t: {cpu}\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd\nCPU implementer\t: {implementer}\nCPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: {part}\nCPU revision\t: 1\n"  # noqa: E501


def x86_cpuinfo(root: Path, hypervisor: bool = False) -> Path:
    return write(root, {"proc/cpuinfo": X86.format(flags="hypervisor " if hypervisor else "")})


def arm_cpuinfo(root: Path, *parts: tuple[str, str]) -> Path:
    blocks = [ARM.format(cpu=n, implementer=i, part=p) for n, (i, p) in enumerate(parts)]
    return write(root, {"proc/cpuinfo": "\n".join(blocks)})


def irq(root: Path, number: int, may: str, device: str | None = "nvme0q1") -> Path:
    """An interrupt; without a device nothing has asked for it."""
    files = {
        "affinity_hint": "0",
        "effective_affinity_list": may,
        "node": "0",
        "smp_affinity": "f",
        "spurious": "count 0",
    }
    write(root, {f"proc/irq/{number}/{name}": text for name, text in (files | {"smp_affinity_list": may}).items()})
    if device:
        (root / f"proc/irq/{number}" / device).mkdir(parents=True, exist_ok=True)
    return root


def quiet(root: Path) -> Path:
    """A bare-metal Xeon of 16 CPUs that is set as a measurement wants it, in every check."""
    cpus(root, [(n // 4, "L3", (n, n + 8)) for n in range(8)], caches=False)  # which no check asks for
    x86_cpuinfo(root)
    cgroups(root, "0::/a", [("/sys/fs/cgroup", "/", "cgroup2", "rw")], {"sys/fs/cgroup/a/cpu.max": "max 100000"})
    for n in range(16):
        folder = f"{SYS_CPU}/cpu{n}"
        write(root, {
            f"{folder}/cpufreq/scaling_governor": "performance", f"{folder}/cpufreq/scaling_max_freq": "3900000",
            f"{folder}/cpufreq/cpuinfo_max_freq": "3900000", f"{folder}/microcode/version": "0x2b000603",
            f"{folder}/cpu_capacity": "1024",
        })  # fmt: skip
    irq(irq(root, 4, "0-15", None), 30, "0-15")
    thp = "sys/kernel/mm/transparent_hugepage"
    clocks = "sys/devices/system/clocksource/clocksource0"
    return write(root, {
        f"{SYS_CPU}/intel_pstate/no_turbo": "0", f"{SYS_CPU}/intel_pstate/max_perf_pct": "100",
        f"{SYS_CPU}/smt/control": "on", f"{SYS_CPU}/nohz_full": "(null)",
        "proc/sys/kernel/randomize_va_space": "2", "proc/self/personality": "00000000",
        f"{thp}/enabled": "always [madvise] never", f"{thp}/hpage_pmd_size": "2097152",
        f"{thp}/hugepages-2048kB/enabled": "always [inherit] madvise never",
        f"{clocks}/current_clocksource": "tsc", f"{clocks}/available_clocksource": "tsc hpet acpi_pm",
        "proc/loadavg": "0.03 0.90 3.00 1/812 4711", "proc/self/stat": "4711 (python) R 1 4711",
        f"{SYS_CPU}/vulnerabilities/meltdown": "Not affected",
        f"{SYS_CPU}/vulnerabilities/old_microcode": "Not affected",
        f"{SYS_CPU}/vulnerabilities/mds": "Mitigation: Clear CPU buffers; SMT vulnerable",
        f"{SYS_CPU}/vulnerabilities/itlb_multihit": "KVM: Vulnerable",
        "proc/sys/kernel/numa_balancing": "0", "proc/sys/kernel/perf_event_paranoid": "0",
        "sys/devices/system/node/has_memory": "0-1", "sys/devices/system/node/online": "0-2",
        "proc/meminfo": "MemTotal: 8000000 kB\nSwapTotal:       4194304 kB\nSwapFree:        4194304 kB",
    })  # fmt: skip
