"""Odd machines, each built into a folder from a few lines: what one of its kind says in /proc and /sys."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from host import trees
from host.trees import SYS_CPU, CoreSpec, write

from cpubench.host.cpulist import format_cpulist

NODE, DMI = "sys/devices/system/node", "sys/class/dmi/id"
NAMESPACES = {"ipc": 4026531839, "uts": 4026531838, "user": 4026531837, "pid": 4026531836, "cgroup": 4026531835}
V2 = ("/sys/fs/cgroup", "/", "cgroup2", "rw,nsdelegate")


def base(root: Path, hostname: str, arch: str, own: tuple[str, ...] = ()) -> Path:
    """What each machine has; ``own`` are the namespaces that are not the first ones, as in a container."""
    write(root, {
        "proc/sys/kernel/hostname": hostname, "proc/sys/kernel/osrelease": "6.8.0", "proc/sys/kernel/arch": arch,
        "proc/cmdline": "quiet", "etc/machine-id": "0123456789abcdef0123456789abcdef",
        "etc/os-release": 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"', "proc/loadavg": "0.10 0.20 0.30 1/200 99",
        "proc/uptime": "3600.25 7000.00", "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
        f"{SYS_CPU}/vulnerabilities/meltdown": "Not affected",
        "proc/self/limits": "Limit   Soft Limit   Hard Limit   Units\n"
                            "Max open files            1024                 524288               files     \n"
                            "Max locked memory         8388608              unlimited            bytes     ",
    })  # fmt: skip
    (root / "proc/self/ns").mkdir(parents=True)
    for name, inode in NAMESPACES.items():
        (root / "proc/self/ns" / name).symlink_to(f"{name}:[{inode + 1000 * (name in own)}]")
    return root


def each_cpu(cpus: range, files: Mapping[str, str]) -> dict[str, str]:
    return {f"{SYS_CPU}/cpu{cpu}/{name}": text for cpu in cpus for name, text in files.items()}


def sizes(cpus: range, l1d: str, l2: str, l3: str | None = None) -> dict[str, str]:
    """Sizes of the caches that trees.cpus() makes."""
    own = {"cache/index0/size": l1d, "cache/index2/size": l2} | ({"cache/index3/size": l3} if l3 else {})
    return each_cpu(cpus, own)


def nodes(root: Path, *node: tuple[str, int]) -> Path:
    """NUMA nodes of (CPUs, kB of memory)."""
    files = {f"{NODE}/online": f"0-{len(node) - 1}" if len(node) > 1 else "0"}
    for number, (cpus, kb) in enumerate(node):
        rows = f"Node {number} MemTotal:       {kb} kB\nNode {number} MemFree:        1 kB"
        files |= {f"{NODE}/node{number}/cpulist": cpus, f"{NODE}/node{number}/meminfo": rows}
    trees.meminfo(root, sum(kb for _, kb in node), sum(kb for _, kb in node))
    return write(root, files)


def clock(cpus: range, driver: str, most_khz: int, policy_khz: int, governor: str = "performance") -> dict[str, str]:
    return each_cpu(cpus, {
        "cpufreq/scaling_driver": driver, "cpufreq/scaling_governor": governor,
        "cpufreq/cpuinfo_min_freq": "800000", "cpufreq/cpuinfo_max_freq": str(most_khz),
        "cpufreq/scaling_min_freq": "800000", "cpufreq/scaling_max_freq": str(policy_khz),
    })  # fmt: skip


def midr(cpus: range, value: str) -> dict[str, str]:
    return each_cpu(cpus, {"regs/identification/midr_el1": value})


def firmware(root: Path, vendor: str, product: str) -> Path:
    return write(root, {f"{DMI}/sys_vendor": vendor, f"{DMI}/product_name": product, f"{DMI}/bios_version": "1.2"})


def no_limits(root: Path) -> Path:
    return trees.cgroups(root, "0::/user.slice", [V2], {
        "sys/fs/cgroup/user.slice/cpu.max": "max 100000", "sys/fs/cgroup/user.slice/memory.max": "max",
        "sys/fs/cgroup/user.slice/pids.max": "max",
    })  # fmt: skip


def xeon_2s_smt(root: Path) -> Path:
    """Two sockets of eight cores, siblings n and n + 16, capped by policy at 1.6 GHz (benchexec#918)."""
    base(root, "xeon", "x86_64")
    trees.cpus(root, [(n // 8, "L3", (n, n + 16)) for n in range(16)])
    write(root, sizes(range(32), "48K", "2048K", "107520K") | clock(range(32), "intel_pstate", 3900000, 1600000))
    write(root, {f"{SYS_CPU}/intel_pstate/no_turbo": "0"})
    firmware(trees.x86_cpuinfo(root), "Dell Inc.", "PowerEdge R760")
    return no_limits(nodes(root, ("0-7,16-23", 131072000), ("8-15,24-31", 131072000)))


def epyc_8_dies(root: Path) -> Path:
    """One socket of eight dies, each with four cores behind an L3 of their own; siblings n and n + 32; four nodes."""
    base(root, "epyc", "x86_64")
    trees.cpus(root, [(0, n // 4, (n, n + 32)) for n in range(32)])
    write(root, {f"{SYS_CPU}/cpu{n}/topology/die_id": str(n % 32 // 4) for n in range(64)})
    write(root, sizes(range(64), "32K", "1024K", "32768K") | clock(range(64), "amd-pstate-epp", 3700000, 3700000))
    text = trees.X86.format(flags="").replace("GenuineIntel", "AuthenticAMD").replace(
        "Intel(R) Xeon(R) 8480+", "AMD EPYC 9354P 32-Core Processor").replace(": 6\n", ": 25\n")  # fmt: skip
    firmware(write(root, {"proc/cpuinfo": text, f"{SYS_CPU}/cpufreq/boost": "0"}), "Supermicro", "AS -1115SV")
    return no_limits(nodes(root, *[(f"{8 * n}-{8 * n + 7},{8 * n + 32}-{8 * n + 39}", 65536000) for n in range(4)]))


def grace(root: Path) -> Path:
    """72 cores of one Grace; node 1 is the memory of the GPU without a CPU, node 2 an empty place for a partition."""
    base(root, "grace", "aarch64")
    trees.cpus(root, [(0, "L3", (n,)) for n in range(72)])
    write(root, sizes(range(72), "64K", "1024K", "116736K") | midr(range(72), "0x00000000410fd4f0"))
    write(root, each_cpu(range(72), {"topology/die_id": "-1", "cpu_capacity": "1024"}))
    write(root, clock(range(72), "cppc_cpufreq", 3447000, 3447000))
    firmware(trees.arm_cpuinfo(root, *[("0x41", "0xd4f")] * 72), "NVIDIA", "P4352")
    return no_limits(nodes(root, ("0-71", 498073600), ("", 99614720), ("", 0)))


def altra(root: Path) -> Path:
    """80 cores without an L3 that the kernel knows; two of them favoured by 2 %."""
    base(root, "altra", "aarch64")
    trees.cpus(root, [(0, None, (n,)) for n in range(80)])
    write(root, sizes(range(80), "64K", "1024K") | midr(range(80), "0x00000000413fd0c1"))
    write(root, each_cpu(range(80), {"cpu_capacity": "1004"}) | each_cpu(range(2), {"cpu_capacity": "1024"}))
    firmware(trees.arm_cpuinfo(root, *[("0x41", "0xd0c")] * 80), "GIGABYTE", "R272-P30-JG")
    return no_limits(nodes(root, ("0-79", 263000000)))


def graviton_vm(root: Path) -> Path:
    """Four vCPUs of a Graviton, in a guest without any frequency file and without a node."""
    base(root, "ip-10-0-0-1", "aarch64")
    trees.cpus(root, [(0, "L3", (n,)) for n in range(4)])
    write(root, sizes(range(4), "64K", "1024K", "32768K") | midr(range(4), "0x00000000411fd401"))
    firmware(trees.arm_cpuinfo(root, *[("0x41", "0xd40")] * 4), "Amazon EC2", "m7g.xlarge")
    return no_limits(trees.meminfo(root, 16000000, 15000000))


def hybrid_laptop(root: Path) -> Path:
    """Two performance cores with SMT, four efficiency cores that share an L2."""
    base(root, "laptop", "x86_64")
    trees.hybrid(root)
    write(root, sizes(range(4), "48K", "1280K", "12288K") | sizes(range(4, 8), "32K", "2048K", "12288K"))
    write(root, each_cpu(range(4, 8), {"cache/index2/shared_cpu_list": "4-7"}))
    write(root, {"sys/devices/cpu_core/cpus": "0-3", "sys/devices/cpu_atom/cpus": "4-7"})
    write(root, each_cpu(range(4), {"cpu_capacity": "1024"}) | each_cpu(range(2), {"cpu_capacity": "1009"}))
    write(root, each_cpu(range(4, 8), {"cpu_capacity": "614"}))
    write(
        root, clock(range(4), "intel_pstate", 4700000, 4700000) | clock(range(4, 8), "intel_pstate", 3500000, 3500000)
    )
    firmware(trees.x86_cpuinfo(root), "LENOVO", "21CB")
    return no_limits(nodes(root, ("0-7", 16000000)))


def big_little(root: Path) -> Path:
    """A board with four small and two big cores of Arm, by device tree, without DMI."""
    base(root, "board", "aarch64")
    trees.cpus(root, [(0, None, (n,)) for n in range(6)], caches=False)
    write(root, midr(range(4), "0x00000000410fd034") | midr(range(4, 6), "0x00000000410fd082"))
    write(root, each_cpu(range(4), {"cpu_capacity": "485"}) | each_cpu(range(4, 6), {"cpu_capacity": "1024"}))
    write(root, {"proc/device-tree/model": "Radxa ROCK Pi 4\0", "proc/device-tree/compatible": "radxa,rockpi4\0"})
    trees.arm_cpuinfo(root, *[("0x41", "0xd03")] * 4, *[("0x41", "0xd08")] * 2)
    return no_limits(trees.meminfo(root, 4000000, 3500000))


def smt_off_holes(root: Path) -> Path:
    """SMT switched off at run time, and a mask over every possible CPU."""
    base(root, "holes", "x86_64")
    trees.holes(root)
    trees.x86_cpuinfo(root)
    return no_limits(nodes(root, ("0,2,4,6", 8000000)))


def container_half_cpu(root: Path) -> Path:
    """CPU 3 of a Xeon, half of it granted, by a pod of Kubernetes."""
    base(root, "pod-7", "x86_64", own=("ipc", "uts", "pid", "cgroup"))
    trees.xeon(root, allowed="3")
    trees.x86_cpuinfo(root)
    nodes(root, ("0-3,8-11", 8000000), ("4-7,12-15", 8000000))
    write(root, {"run/secrets/x": "", "var/run/secrets/kubernetes.io/serviceaccount/namespace": "default"})
    return trees.cgroups(root, "0::/", [("/sys/fs/cgroup", "/kubepods/pod1/c1", "cgroup2", "ro"), V2], {
        "sys/fs/cgroup/cpu.max": "50000 100000", "sys/fs/cgroup/memory.max": "536870912",
        "sys/fs/cgroup/pids.max": "64", "sys/fs/cgroup/pids.current": "5",
    })  # fmt: skip


def firecracker(root: Path) -> Path:
    """A guest of two vCPUs as its own files were recorded, with control groups v1 and v2 at once."""
    base(root, "vm", "x86_64")
    return write(root, json.loads(Path(__file__).with_name("firecracker.json").read_text()))


def lxc(root: Path) -> Path:
    """lxcfs says that CPU 0 alone is online, 32 are present, the mask says 24 (lxcfs#731)."""
    base(root, "ct101", "x86_64", own=("ipc", "uts", "user", "pid", "cgroup"))
    trees.cpus(root, [(0, n // 8, (n,)) for n in range(32)], allowed="24", online="0", present="0-31")
    trees.x86_cpuinfo(root)
    nodes(root, ("0-31", 64000000))
    trees.meminfo(root, 2000000, 1900000)
    return trees.cgroups(root, "0::/.lxc", [
        ("/sys/fs/cgroup", "/lxc/101/ns", "cgroup2", "rw"), ("/proc/meminfo", "/proc/meminfo", "fuse.lxcfs", "rw"),
    ], {"sys/fs/cgroup/cpu.max": "max 100000"})  # fmt: skip


def cpus_1024(root: Path) -> Path:
    """Two sockets, 32 L3s, 512 cores, 1,024 CPUs."""
    base(root, "large", "x86_64")
    cores: list[CoreSpec] = [(n // 256, n // 16, (n, n + 512)) for n in range(512)]
    trees.cpus(root, cores, linked=True)
    write(root, clock(range(1), "acpi-cpufreq", 3000000, 3000000))
    for cpu in range(1, 512):
        (root / SYS_CPU / f"cpu{cpu}/cpufreq").symlink_to("../cpu0/cpufreq")
    trees.x86_cpuinfo(root)
    halves = [format_cpulist([*range(256 * n, 256 * n + 256), *range(512 + 256 * n, 768 + 256 * n)]) for n in range(2)]
    return no_limits(nodes(root, *[(half, 500000000) for half in halves]))


MACHINES: tuple[Callable[[Path], Path], ...] = (
    xeon_2s_smt, epyc_8_dies, grace, altra, graviton_vm, hybrid_laptop, big_little, smt_off_holes, container_half_cpu,
    firecracker, lxc, cpus_1024,
)  # fmt: skip
