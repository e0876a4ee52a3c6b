"""Limits that a BMC sets, by IPMI DCMI and Redfish: read and told, never written here.

They outlive a reboot, and the default of some BMCs on exceeding one is to switch the host off: ``powers_off`` says so.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cpubench.power.controls import Problem


@dataclass(frozen=True)
class BmcLimit:
    """``watts`` is None without a limit; ``active`` None where the answer does not say."""

    backend: str  # dcmi, redfish
    watts: float | None
    active: bool | None
    powers_off: bool
    low_w: float | None = None
    high_w: float | None = None


DCMI = ("ipmitool", "-N", "5", "-R", "1", "dcmi", "power", "get_limit")
TIMEOUT_S = 10.0


def dcmi_limit(root: Path) -> BmcLimit | Problem | None:
    """The limit of the BMC beside this host, by the program ipmitool; None without a BMC or without the program."""
    if not any((root / "dev").glob("ipmi[0-9]*")) or shutil.which(DCMI[0]) is None:
        return None
    try:
        done = subprocess.run(
            DCMI, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=False,
            stdin=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        why = f"no answer in {TIMEOUT_S:g} s" if isinstance(error, subprocess.TimeoutExpired) else error.strerror
        return Problem("no_data", " ".join(DCMI), str(why))
    return parse_dcmi_limit(done.stdout, done.returncode, done.stderr)


def parse_dcmi_limit(text: str, status: int = 0, complaint: str = "") -> BmcLimit | Problem:
    """What ``ipmitool dcmi power get_limit`` printed, ended with and complained of."""
    watts = re.search(r"^\s*Power Limit:\s*([0-9]{1,6})\s*Watts", text, re.MULTILINE)
    if status or watts is None:
        first = next(iter((complaint or text).strip().splitlines()), "no answer")
        return Problem("refused" if status else "no_data", "ipmitool dcmi power get_limit", f"{first[:120]!r}")
    active = re.search(r"^\s*Current Limit State:\s*(No Active )?Power Limit", text, re.MULTILINE)
    action = re.search(r"^\s*Exception actions:\s*(.*)$", text, re.MULTILINE)
    number = int(watts[1])
    on = None if active is None else active[1] is None
    return BmcLimit("dcmi", number if number and on is not False else None, on, bool(action and "Off" in action[1]))


def parse_redfish_limit(document: Mapping[str, Any], control: int = 0) -> BmcLimit | Problem:
    """The limit in a Chassis' Power (``PowerControl[control]``) or EnvironmentMetrics (``PowerLimitWatts``)."""
    newer = document.get("PowerLimitWatts")
    if isinstance(newer, Mapping):
        watts, mode = _watts(newer.get("SetPoint")), newer.get("ControlMode")
        on = mode != "Disabled" if isinstance(mode, str) else None
        low, high = _watts(newer.get("AllowableMin")), _watts(newer.get("AllowableMax"))
        return BmcLimit("redfish", watts if on is not False else None, on, False, low, high)
    controls = document.get("PowerControl")
    one = controls[control] if isinstance(controls, list) and 0 <= control < len(controls) else None
    older = one.get("PowerLimit") if isinstance(one, Mapping) else None
    if not isinstance(older, Mapping):
        return Problem("no_data", "redfish", "the chassis tells no power limit")
    watts = _watts(older.get("LimitInWatts"))  # null: no limit
    return BmcLimit("redfish", watts, watts is not None, older.get("LimitException") == "HardPowerOff")


def _watts(value: Any) -> float | None:
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0
    return float(value) if good else None
