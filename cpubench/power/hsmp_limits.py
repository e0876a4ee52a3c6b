"""Socket limits of AMD EPYC by /dev/hsmp, where the kernel has no hwmon files for them (before 6.16)."""

from __future__ import annotations

import re

from cpubench.host.fact import read_text
from cpubench.power.controls import Control, Limit, Problem, packages
from cpubench.power.registers import GET_MAXIMUM, HSMP, Host, hsmp, read

STEP_UW = 1000
NO_HSMP = "EPYC limits are set by HSMP: `modprobe amd_hsmp` (family 19h and later), and enable HSMP in the BIOS"


def controls(host: Host) -> tuple[list[Control], list[Problem]]:
    """A control for each socket; without the device the reason, on AMD."""
    if not (host.root / "dev/hsmp").exists():
        cpu = read_text(host.root, "proc/cpuinfo").value or ""
        here = "AuthenticAMD" in cpu and not re.search(r"^flags.*\bhypervisor\b", cpu, re.MULTILINE)
        return [], [Problem("unsupported", "/dev/hsmp", NO_HSMP)] if here else []
    sockets = max(1, len(packages(host.root)))
    return [_control(host, socket) for socket in range(sockets)], []


def _control(host: Host, socket: int) -> Control:
    place, key = f"{HSMP}{socket}", f"hsmp/socket-{socket}"
    try:
        limit, high = Limit(f"{key}/cap", place, "cap", read(host, place)), 1000 * hsmp(host, GET_MAXIMUM, socket)
        problem = None
    except OSError as error:  # ENOMSG: the firmware does not know the message
        limit, high = Limit(f"{key}/cap", place, "cap", None, str(error.strerror)), 0
        problem = Problem("unsupported", "/dev/hsmp", f"socket {socket}: {error.strerror}; {NO_HSMP}")
    return Control(
        key, "amd_hsmp", f"socket-{socket}", "package", socket, (limit,), high=high or None, step=STEP_UW,
        problem=problem,
    )  # fmt: skip
