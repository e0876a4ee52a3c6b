"""hwmon chips that measure a CPU, a module or a board; Documentation/hwmon/. GPUs, drives, fans never count."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from cpubench.power import hints
from cpubench.power.backend import Found, by_index, shown_path
from cpubench.power.channel import GAP_S, WALL_MAX_W, Channel, Meter
from cpubench.power.controls import Problem
from cpubench.power.source import FileMeter, Opener, OpenFile, code_of, text_of, whole

CLASS = "sys/class/hwmon"
# A superchip may hold a GPU too; of the others each lies inside the one before.
GRACE = {"Module": "superchip", "Grace": "module", "CPU": "cpu", "SysIO": "sysio"}
# Documentation/hwmon/smpro-hwmon.rst: rails add up; RCA is the mesh's.
SMPRO = {"core vrd": ("soc", "core"), "soc vrd": ("soc", "soc"), "soc": ("soc", "soc"), "rca vrd": ("soc", "rca"),
         "dimm vrd1": ("dram", "vrd1"), "dimm vrd2": ("dram", "vrd2")}  # fmt: skip
XGENE = {"cpu power": ("soc", "cpu"), "io power": ("soc", "io")}


class Chip(NamedTuple):
    number: int
    name: str
    folder: Path  # that has the attributes
    device: str  # of the bus, the same after each boot, unlike the number


def chips(root: Path, open_: Opener = OpenFile) -> Iterator[Chip]:
    """Every hwmon chip, by device and number. Attributes of old drivers are in ``device/``."""
    made = []
    try:
        folders = [path for path in (root / CLASS).iterdir() if re.fullmatch(r"hwmon[0-9]{1,9}", path.name)]
    except OSError:
        return
    for folder in folders:
        for place in (folder, folder / "device"):
            try:
                name = text_of(place / "name", open_)
            except OSError:
                continue
            device = (folder / "device").resolve().name if (folder / "device").exists() else folder.name
            made.append(Chip(int(folder.name[5:]), name, place, device))
            break
    yield from sorted(made, key=lambda chip: (chip.device, chip.number))


def inputs(chip: Chip, pattern: str, open_: Opener) -> Iterator[tuple[Path, str]]:
    """The value files of a chip with their labels, in the order of their numbers."""
    try:
        names = [path.name for path in chip.folder.iterdir()]
    except OSError:
        return
    found = [match for name in names if (match := re.fullmatch(pattern, name))]
    for match in sorted(found, key=lambda m: int(m[1])):
        stem = match[0].rpartition("_")[0]
        try:
            label = text_of(chip.folder / f"{stem}_label", open_)
        except OSError:
            label = ""
        yield chip.folder / match[0], label


def _amd_energy(chips_: list[Chip], open_: Opener) -> Iterator[tuple[Path, Channel]]:
    """Sockets only: a core's counter is inside. The kernel widens them to 64 bits."""
    for chip in chips_:
        for path, label in inputs(chip, r"energy([0-9]{1,5})_input", open_):
            if found := re.fullmatch(r"Esocket([0-9]{1,3})", label):
                yield path, Channel(f"amd_energy:{label}", "package", "energy", 1e-6, socket=int(found[1]),
                                    gap_s=600.0, provenance="modelled")  # fmt: skip


def _hsmp(chips_: list[Chip], open_: Opener) -> Iterator[tuple[Path, Channel]]:
    """One chip a socket, in the order in which the driver made them: nothing in sysfs says whose it is."""
    for socket, chip in enumerate(chips_):
        yield (
            chip.folder / "power1_input",
            Channel(
                f"hsmp_hwmon:{chip.device}#{socket}", "package", "power", 1e-6, socket=socket, provenance="modelled"
            ),
        )


def _acpi(chips_: list[Chip], open_: Opener, grace: bool) -> Iterator[tuple[Path, Channel]]:
    """ACPI power meters: those of NVIDIA Grace by their names, others as the board's; no batteries."""
    for chip in chips_:
        about = {}
        for name in ("power1_oem_info", "power1_is_battery", "power1_average_interval"):
            try:
                about[name] = text_of(chip.folder / name, open_)
            except OSError:
                about[name] = ""
        found = re.fullmatch(r"(Module|Grace|CPU|SysIO) Power Socket ([0-9]{1,3})", about["power1_oem_info"])
        if bool(found) != grace or about["power1_is_battery"] == "1":
            continue
        gap_s = max(GAP_S, 3e-3 * (whole(about["power1_average_interval"]) or 0))
        path = chip.folder / "power1_average"
        if found:
            yield path, Channel(f"grace:{found[0].replace(' ', '_')}", GRACE[found[1]], "power", 1e-6,
                                socket=int(found[2]), gap_s=gap_s)  # fmt: skip
        else:
            yield path, Channel(f"power_meter:{chip.device}", "board", "power", 1e-6, part=chip.device,
                                max_w=WALL_MAX_W, gap_s=gap_s)  # fmt: skip


def _rails(
    chips_: list[Chip], open_: Opener, prefix: str, table: dict[str, tuple[str, str]]
) -> Iterator[tuple[Path, Channel]]:
    for socket, chip in enumerate(chips_):
        for path, label in inputs(chip, r"power([0-9]{1,3})_input", open_):
            if label.lower() in table:
                scope, part = table[label.lower()]
                yield path, Channel(f"{prefix}:{chip.device}:{part}", scope, "power", 1e-6, socket=socket, part=part)


Found_ = Iterator[tuple[Path, Channel]]
CHIPS: dict[str, tuple[str, Callable[[list[Chip], Opener], Found_], str]] = {
    "amd_energy": ("amd_energy", _amd_energy, "package"),
    "hsmp_hwmon": ("amd_hsmp_hwmon", _hsmp, "package"),
    "grace": ("power_meter", lambda c, o: _acpi(c, o, True), "module"),
    "smpro": ("smpro", lambda c, o: _rails(c, o, "smpro", SMPRO), "soc"),
    "xgene": ("apm_xgene", lambda c, o: _rails(c, o, "xgene", XGENE), "soc"),
    "power_meter": ("power_meter", lambda c, o: _acpi(c, o, False), "board"),
}


def find(root: Path, backend: str, open_: Opener = OpenFile) -> Found:
    """The readable channels of one kind of chip."""
    found = Found()
    name, channels_of, _ = CHIPS[backend]
    mine = [chip for chip in chips(root, open_) if chip.name == name]
    for path, channel in channels_of(mine, open_):
        place = shown_path(root, path)
        (channel,) = by_index([channel], root)
        found.named.add(channel.place)
        try:
            value = whole(text_of(path, open_))
            code = "" if value is not None else "read_error"
        except OSError as error:
            code = code_of(error)
        if code:
            hint = f"run as root, or sudo chmod g+r {place}" if code == "permission" else hints.NO_VALUE
            found.problems.append(Problem(code, place, hint))
        else:
            found.channels.append(replace(channel, path=place))
    return found


def finder(backend: str) -> Callable[[Path], Found]:
    return lambda root: find(root, backend)


def open_meter(name: str, scope: str, channels: list[Channel], sockets: frozenset[int] | None, root: Path) -> Meter:
    return FileMeter(name, scope, channels, [root / c.path.lstrip("/") for c in channels], sockets)
