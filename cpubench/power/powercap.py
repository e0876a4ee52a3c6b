"""RAPL through powercap: Intel by MSR, MMIO and TPMI, AMD and Hygon; Documentation/power/powercap/powercap.rst."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from cpubench.host.virtual import read_virtual
from cpubench.power import hints
from cpubench.power.backend import Found, shown_path
from cpubench.power.channel import SOCKET_MAX_W, Channel, Meter, Place, Provenance
from cpubench.power.controls import Problem
from cpubench.power.source import FileMeter, Opener, OpenFile, code_of, is_amd, text_of, whole

CLASS = "sys/class/powercap"
ZONE = re.compile(r"(intel-rapl(?:-mmio)?)((?::[0-9a-f]+){1,2})")  # "%s:%x": the tenth package is intel-rapl:9, then :a
COUNTER_GAP_S = 600.0  # the range decides earlier; Intel's 262 kJ last 175 s at 1,500 W
NO_RANGE_GAP_S = 20.0


def parse_zone_name(name: str) -> Place | None:
    """What a zone is by its name, never by its index, which is the order of registration; None where unknown."""
    if found := re.fullmatch(r"package-([0-9]{1,6})(?:-die-([0-9]{1,6}))?", name):
        return Place("package", int(found[1]), int(found[2]) if found[2] else None)
    if found := re.fullmatch(r"psys(?:-([0-9]{1,6}))?", name):
        return Place("psys", part=found[1] or "")
    return Place(name) if name in ("core", "uncore", "dram") else None


def zones(root: Path) -> Iterator[tuple[str, Path]]:
    """Zone ids with their folders, packages before what lies in them; the kernel lists subzones flat and nested."""
    seen: dict[str, Path] = {}
    try:
        tops = list((root / CLASS).iterdir())
    except OSError:
        return
    for top in tops:
        found = ZONE.fullmatch(top.name)
        if found is None:
            continue
        seen[top.name] = top
        try:
            nested = [path for path in top.iterdir() if path.name.startswith(f"{top.name}:")]
        except OSError:
            continue
        for path in nested:
            if ZONE.fullmatch(path.name):
                seen.setdefault(path.name, path)
    yield from sorted(seen.items(), key=lambda item: (item[0].count(":"), item[0]))


def find(root: Path, open_: Opener = OpenFile) -> Found:
    """The readable energy counters of powercap."""
    found, named, virtual, amd = Found(), dict[str, Place](), read_virtual(root).value, is_amd(root)
    provenance: Provenance = "estimated" if virtual else "modelled" if amd else "measured"
    listed = False
    for zone, folder in zones(root):
        listed = True
        try:
            name = text_of(folder / "name", open_)
        except OSError as error:
            code = code_of(error)
            code = "masked" if code == "vanished" else code  # listed, and nothing behind the link
            found.problems.append(Problem(code, shown_path(root, folder), _hint(code)))
            if zone.count(":") == 1:  # a package, for all that is known
                found.named.add(Place("package", part=zone))
            continue
        what = parse_zone_name(name)
        if what is None:
            continue  # Linux has none but these; a scope that nobody knows is added to nothing
        parent = named.get(zone.rpartition(":")[0], Place(""))
        if what.scope in ("core", "uncore", "dram"):
            what = Place(what.scope, parent.socket, parent.die)
        named[zone] = what
        found.named.add(what)
        channel = _channel(root, zone, folder, what, provenance, amd, open_, found)
        if channel is not None:
            found.channels.append(channel)
    if not listed:
        found.problems.append(Problem("no_interface", f"/{CLASS}", hints.no_powercap(root)))
    if virtual and found.channels:
        found.problems.append(Problem("estimated", f"/{CLASS}", hints.ESTIMATED))
    return found


def _hint(code: str) -> str:
    return {"permission": hints.UDEV, "masked": hints.MASKED}.get(code, hints.NO_VALUE)


def _channel(
    root: Path, zone: str, folder: Path, what: Place, provenance: Provenance, amd: bool, open_: Opener, found: Found
) -> Channel | None:
    path = folder / "energy_uj"
    try:
        value = whole(text_of(path, open_))
        code = "" if value is not None and value >= 0 else "read_error"
    except OSError as error:
        code = code_of(error)
        code = "masked" if code == "vanished" else code
    if code:
        found.problems.append(Problem(code, shown_path(root, path), _hint(code)))
        return None
    range_raw = _number(folder / "max_energy_range_uj", open_)
    mmio = zone.startswith("intel-rapl-mmio")
    place = what.scope if what.socket is None else f"package-{what.socket}"
    place += f"-die-{what.die}" if what.die is not None else ""
    place += f"-{what.part}" if what.part else ""
    id_ = "powercap:" + ("mmio/" if mmio else "") + place
    id_ += f"/{what.scope}" if what.scope != "package" and what.socket is not None else ""
    if any(channel.id == id_ for channel in found.channels):
        id_ += f"#{zone}"  # a second driver's view of the same zone
    return Channel(
        id_, what.scope, "energy", 1e-6, shown_path(root, path), what.socket, what.die, what.part, range_raw or None,
        _most_w(folder, open_), COUNTER_GAP_S if range_raw else NO_RANGE_GAP_S, provenance, int(mmio),
        amd and what.die is not None,
    )  # fmt: skip


def _number(path: Path, open_: Opener) -> int | None:
    try:
        value = whole(text_of(path, open_))
    except OSError:
        return None
    return value if value is not None and value > 0 else None


def _most_w(folder: Path, open_: Opener) -> float:
    """The most that a zone can draw: twice its maximum where that is a number to be believed (3,409 W was seen)."""
    told = (_number(folder / "constraint_0_max_power_uw", open_) or 0) / 1e6
    return max(SOCKET_MAX_W, 2 * told if told <= SOCKET_MAX_W else 0.0)


def open_meter(name: str, scope: str, channels: list[Channel], sockets: frozenset[int] | None, root: Path) -> Meter:
    return FileMeter(name, scope, channels, [root / c.path.lstrip("/") for c in channels], sockets)
