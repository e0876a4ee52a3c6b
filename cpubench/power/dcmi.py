"""Whole-server watts from the BMC through ``ipmitool dcmi power reading``: whole watts, renewed each 1 to 60 s."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from cpubench.power import hints, program
from cpubench.power.backend import Found
from cpubench.power.channel import WALL_MAX_W, Channel, Meter, Reading, now_ns
from cpubench.power.controls import Problem

NODES = ("dev/ipmi0", "dev/ipmi/0", "dev/ipmidev/0")
COMMAND = ("dcmi", "power", "reading")
TIMEOUT_S = 10.0
PERIOD_S = 5.0  # starting the program takes some 5 ms of CPU: oftener would cost more than 0.1 % of a core


class Power(NamedTuple):
    watts: int | None
    flags: frozenset[str]


def parse_dcmi(text: str) -> Power:
    """The instantaneous watts of ``ipmitool dcmi power reading``; None where there are none.

    Minimum, maximum and average are since a reset that the BMC defines. The state is no proof: BMCs were seen
    "deactivated" with good values, and "activated" with 0 W.
    """
    found = re.search(r"^\s*Instantaneous power reading\s*:\s*([0-9]{1,9})\s*Watts\s*$", text, re.MULTILINE)
    state = re.search(r"^\s*Power reading state is\s*:\s*([a-z]{1,20})", text, re.MULTILINE)
    flags = {"deactivated"} if state and state[1] == "deactivated" else set[str]()
    return Power(int(found[1]) if found else None, frozenset(flags))


def _ask() -> tuple[Power, str, str]:
    """The watts, the code of what went wrong, and its sentence."""
    tool = shutil.which("ipmitool")
    if tool is None:
        return Power(None, frozenset()), "no_program", hints.IPMI_TOOL
    try:
        answer = program.run([tool, *COMMAND], TIMEOUT_S)
    except OSError as error:
        return Power(None, frozenset()), "no_program", f"ipmitool: {error.strerror}"
    if answer.status is None:
        return Power(None, frozenset()), "timeout", f"ipmitool did not answer within {TIMEOUT_S:.0f} s"
    power = parse_dcmi(answer.out)
    if answer.status or power.watts is None:
        said = " ".join((answer.err or answer.out).split())[:120]
        code = "permission" if re.search(r"permission denied|not permitted", said, re.IGNORECASE) else "read_error"
        hint = f"ipmitool says {said!r}; it needs root, and a BMC with DCMI"
        return Power(None, power.flags), code, hint
    return power, "", ""


def find(root: Path) -> Found:
    """The BMC's channel where there are a device, the program and an answer."""
    node = next((name for name in NODES if (root / name).exists()), None)
    if node is None:
        return Found(problems=[Problem("no_interface", f"/{NODES[0]}", hints.no_ipmi(root))])
    _, code, hint = _ask()
    if code:
        return Found(problems=[Problem(code, f"/{node}", hint)])
    channel = Channel("dcmi:system", "wall", "power", 1.0, f"/{node}", max_w=WALL_MAX_W, gap_s=4 * PERIOD_S)
    return Found([channel])


class DcmiMeter:
    def __init__(self, name: str, channels: list[Channel], clock: Callable[[], int] = now_ns) -> None:
        self.name, self.scope, self.period_s = name, "wall", PERIOD_S
        self.sockets: frozenset[int] | None = None
        self.channels, self.flags, self._clock = tuple(channels), set[str](), clock

    def read(self) -> list[Reading]:
        """The value counts for the middle of the time that asking took."""
        before = self._clock()
        power, code, _ = _ask()
        self.flags |= power.flags
        return [Reading([(before + self._clock()) // 2], [None if code else power.watts], [code])]

    def close(self) -> None:
        pass


def open_meter(name: str, scope: str, channels: list[Channel], sockets: frozenset[int] | None, root: Path) -> Meter:
    return DcmiMeter(name, channels)
