"""All backends in the order of preference, and the one meter that a name means."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from cpubench.errors import UsageError
from cpubench.host.fact import ROOT
from cpubench.power import dcmi, hints, hsmp, hwmon, perf, powercap
from cpubench.power.backend import Backend, Found, sockets_of
from cpubench.power.channel import LATER, Meter
from cpubench.power.command import CommandMeter
from cpubench.power.overlap import SHOWN, TOTALS, pick, totals

if TYPE_CHECKING:
    from cpubench.power.redfish import RedfishMeter

_HWMON = {name: Backend(name, hwmon.CHIPS[name][2], hwmon.finder(name), hwmon.open_meter) for name in hwmon.CHIPS}
BACKENDS = (
    Backend("powercap", "package", powercap.find, powercap.open_meter),
    Backend("perf", "package", perf.find, perf.open_meter),
    _HWMON["amd_energy"],
    _HWMON["hsmp_hwmon"],
    Backend("hsmp", "package", hsmp.find_below, hsmp.open_meter),
    *(_HWMON[name] for name in ("grace", "smpro", "xgene", "power_meter")),
    Backend("dcmi", "wall", dcmi.find, dcmi.open_meter),
)
NAMES = ("auto", *(backend.name for backend in BACKENDS), "redfish", "cmd:COMMAND")


def open_meter(name: str, root: Path = ROOT, allow_estimated: bool = False) -> Meter:
    """The meter of a name: ``powercap``, ``perf:package+dram``, ``redfish:URL``, ``cmd:COMMAND`` or ``auto``.

    ``auto`` is the first of the host's own whose channels can all be read and added, ``auto:wall`` the first of that
    scope: never redfish or a command, which a person must name, and never memory alone or psys.
    UsageError says why there is no such meter, and what to do.
    """
    kind, _, rest = name.partition(":")
    if kind == "cmd":
        return CommandMeter(name, rest)
    if kind == "redfish":
        return open_redfish(name, rest)
    if name == LATER:
        text = "has no watts before `cpubench power merge`: only `cpubench run` takes it"
        raise UsageError("meter", text, _option(name))
    if kind == "auto" and (not rest or rest in TOTALS) and rest not in SHOWN:
        return _first(rest, root, allow_estimated)
    backend = next((one for one in BACKENDS if one.name == kind), None)
    if backend is None or (rest and rest not in TOTALS):
        known = (
            f"a meter is one of {', '.join(NAMES)}, for a run also none, and csv for `cpubench run`;"
            " one of the host's may say its scope: powercap:package+dram"
        )
        raise UsageError("meter", known, _option(name))
    made = _opened(backend, rest, root, allow_estimated)
    if isinstance(made, str):
        raise UsageError("meter", made, _option(name))
    return made


def open_redfish(name: str, url: str) -> RedfishMeter:
    """The meter of a BMC, by the URL or by CPUBENCH_REDFISH_URL; UsageError."""
    from cpubench.power.redfish import RedfishError, RedfishMeter  # with TLS and HTTP: a fifth of a sampler's start

    url = url or os.environ.get("CPUBENCH_REDFISH_URL", "")
    if not url:
        raise UsageError("meter", hints.REDFISH, "--meter redfish")
    try:
        return RedfishMeter(name, url)
    except RedfishError as error:
        raise UsageError("meter", f"{error.code}: {error.text}", "--meter redfish") from None


def _option(name: str) -> str:
    return f"--meter {ascii(name[:60])[1:-1]}"


def _opened(backend: Backend, total: str, root: Path, allow_estimated: bool) -> Meter | str:
    """The backend's meter of a total, or why there is none."""
    found = backend.find(root)
    have = totals(found.channels)
    if not have or (total and total not in have):
        return _why(found) if not have else f"it has no channels of {total}; it has {', '.join(have)}"
    total = total or next((one for one in have if one not in SHOWN), "")
    if not total:
        alone = f"no_total: it has {' and '.join(have)} alone, and no score is of that"
        return f"{alone}; {_why(found)}" if found.problems else alone
    sockets = sockets_of(root, found)
    picked = pick(found.channels, total, sockets, found.named)
    if picked.reason:
        return f"{picked.reason}; {_why(found)}" if found.problems else picked.reason
    if not allow_estimated and any(channel.provenance == "estimated" for channel in picked.channels):
        return f"estimated: {hints.ESTIMATED}"
    return backend.open(f"{backend.name}:{total}", total, list(picked.channels), sockets, root)


def _why(found: Found) -> str:
    if not found.problems:
        return "no_interface: nothing of that kind is here"
    first = found.problems[0]
    return f"{first.code}: {first.path}: {first.hint}"


def _first(total: str, root: Path, allow_estimated: bool) -> Meter:
    reasons = []
    for backend in BACKENDS:
        made = _opened(backend, total, root, allow_estimated)
        if not isinstance(made, str):
            return made
        reasons.append(made)
    # What is there and closed tells more than what is not there.
    best = next((reason for reason in reasons if not reason.startswith("no_interface")), reasons[0])
    raise UsageError("meter", best, f"--meter auto{total and ':'}{total}")
