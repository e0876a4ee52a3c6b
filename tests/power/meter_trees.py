"""Makes machines with power meters: small sysfs trees, a watts series that is known, and time that does not pass."""

from __future__ import annotations

import math
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from host import trees

from cpubench.power.channel import Channel, Log, Reading
from cpubench.power.registers import Host
from cpubench.power.source import OpenFile

P = "sys/class/powercap"
H = "sys/class/hwmon"
INTEL_RANGE, DRAM_RANGE, AMD_RANGE = 262143328850, 65712999613, 65532610987
AMD = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nflags\t\t: fpu avx2\n"


def zone(
    root: Path, id_: str, name: str, energy: int | None = 1, range_: int | None = INTEL_RANGE, **more: str
) -> Path:
    """A powercap zone; ids of subzones have two colons."""
    files = {"name": name, "enabled": "1"}
    if energy is not None:
        files["energy_uj"] = str(energy)
    if range_ is not None:
        files["max_energy_range_uj"] = str(range_)
    return trees.write(root, {f"{P}/intel-rapl:{id_}/{file}": text for file, text in (files | more).items()})


def joule(root: Path, id_: str, joules: float) -> None:
    """What a zone's counter says from now on."""
    (root / f"{P}/intel-rapl:{id_}/energy_uj").write_text(f"{round(joules * 1e6)}\n")


def packages(root: Path, *ids: int) -> Path:
    """The topology of one CPU a package."""
    trees.write(root, {"sys/devices/system/cpu/online": f"0-{len(ids) - 1}"})
    return trees.write(
        root, {f"sys/devices/system/cpu/cpu{n}/topology/physical_package_id": str(id_) for n, id_ in enumerate(ids)}
    )


def hwmon(root: Path, number: int, device: str, files: Mapping[str, str], below: str = "") -> Path:
    """A chip at hwmonN whose device link leads to the bus; attributes in the chip's folder or ``below`` it."""
    folder = root / f"sys/devices/platform/{device}"
    folder.mkdir(parents=True, exist_ok=True)
    chip = root / f"{H}/hwmon{number}"
    chip.mkdir(parents=True, exist_ok=True)
    (chip / "device").symlink_to(folder, target_is_directory=True)
    return trees.write(root, {f"{H}/hwmon{number}/{below}{name}": text for name, text in files.items()})


class Failing:
    """Opens files, but for those whose name ends as given: they answer with an errno. Root can read any mode."""

    def __init__(self, errors: Mapping[str, int]) -> None:
        self.errors = errors

    def __call__(self, path: Path) -> OpenFile:
        for end, number in self.errors.items():
            if str(path).endswith(end):
                raise OSError(number, "made up", str(path))
        return OpenFile(path)


class Clock:
    """Nanoseconds that pass when told to."""

    def __init__(self) -> None:
        self.ns = 1_000_000_000_000

    def __call__(self) -> int:
        return self.ns

    def pass_s(self, seconds: float) -> None:
        self.ns += round(seconds * 1e9)


def watts(t: float) -> float:
    """A series between 250 and 430 W."""
    return 340 + 90 * math.sin(2 * math.pi * t / 97)


def joules(t: float) -> float:
    """Its integral from 0."""
    return 340 * t + 90 * 97 / (2 * math.pi) * (1 - math.cos(2 * math.pi * t / 97))


def log(
    channels: Sequence[Channel], rows: Sequence[tuple[float, Sequence[float | None]]], scope: str = "",
    sockets: Sequence[int] | None = None,
) -> Log:  # fmt: skip
    """The log of rows (seconds, raw values)."""
    readings = [
        Reading([round(t * 1e9)] * len(channels), list(raw), ["" if v is not None else "read_error" for v in raw])
        for t, raw in rows
    ]
    return Log("made", scope or channels[0].scope, tuple(channels), None if sockets is None else frozenset(sockets),
               tuple(readings))  # fmt: skip


def until(true: Callable[[], bool], most_s: float = 30.0) -> None:
    """Nothing, as soon as it is true."""
    end = time.monotonic() + most_s
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def gone(pid: int) -> bool:
    """Whether a process has ended; where nobody reaps orphans it stays as a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def hsmp_host(root: Path, answer: Callable[[int, int], int]) -> Host:
    """A host whose management unit answers (message, socket) in the form of struct hsmp_message."""

    def ioctl(file: int, request: int, raw: bytes) -> bytes:
        assert request == 0xC02CF800  # as a C compiler computes _IOWR(0xF8, 0, struct hsmp_message)
        fields = list(struct.unpack("=IHH8IH2x", raw))
        fields[3] = answer(fields[0], fields[11])
        return struct.pack("=IHH8IH2x", *fields)

    return Host(root, ioctl=ioctl)
