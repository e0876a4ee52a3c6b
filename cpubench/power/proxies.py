"""Limits of frequency and CPU time: never power caps, and always named `proxy:freq` and `proxy:quota`."""

from __future__ import annotations

import re

from cpubench.host.fact import read_int
from cpubench.host.limits import cpu_quota
from cpubench.power.controls import Control, limit_at, listed, positive
from cpubench.power.registers import Host

FOLDER = "sys/devices/system/cpu"
MOST_KHZ = 100_000_000


def frequency_controls(host: Host) -> list[Control]:
    """The highest frequency of each policy, in kHz."""
    names = [name for name in listed(host.root / FOLDER / "cpufreq").value or () if re.fullmatch(r"policy[0-9]+", name)]
    found = []
    for name in names:
        folder = f"{FOLDER}/cpufreq/{name}"
        limit = limit_at(host.root, f"cpufreq/{name}/max_freq", f"{folder}/scaling_max_freq", "max_freq")
        low = positive(host.root, f"{folder}/scaling_min_freq", MOST_KHZ)
        high = positive(host.root, f"{folder}/cpuinfo_max_freq", MOST_KHZ)
        found.append(Control(f"cpufreq/{name}", "proxy:freq", name, "proxy:freq", None, (limit,), None, low, high))
    return [control for control in found if control.limits[0].value is not None]


def in_force(host: Host) -> list[dict[str, str]]:
    """The proxies that limit this host now: their name and what they do."""
    found = []
    for control in frequency_controls(host):
        now = control.limits[0].value
        if now is not None and control.high is not None and now < control.high:
            found.append({"name": "proxy:freq", "text": f"{control.zone}: at most {now} of {control.high} kHz"})
    for place, wanted, text in (
        (f"{FOLDER}/intel_pstate/max_perf_pct", 100, "intel_pstate: at most {} % of its performance"),
        (f"{FOLDER}/cpufreq/boost", 1, "boost is off (boost = {})"),
    ):
        value = read_int(host.root, place).value
        if value is not None and value < wanted:
            found.append({"name": "proxy:freq", "text": text.format(value)})
    if read_int(host.root, f"{FOLDER}/intel_pstate/no_turbo").value == 1:
        found.append({"name": "proxy:freq", "text": "turbo is off (no_turbo = 1)"})
    quota = cpu_quota(host.root).value
    if quota is not None:
        found.append({"name": "proxy:quota", "text": f"a cgroup grants {quota:g} CPUs of time"})
    return found
