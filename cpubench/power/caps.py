"""Which zones of this host a cap is written to, over all backends."""

from __future__ import annotations

from collections.abc import Sequence

from cpubench.errors import UsageError
from cpubench.power import hsmp_limits, hwmon_limits, powercap_limits, proxies
from cpubench.power.controls import Control, Problem, packages
from cpubench.power.levels import Level, share_uw, total_w
from cpubench.power.registers import Host

# (backend, scope), the first that is there; HSMP by hwmon comes before the same by /dev/hsmp
ORDER = (("intel-rapl", "package"), ("amd_hsmp", "package"), ("hwmon", "module"), ("hwmon", "board"))
NO_CAP = (
    "on bare metal `modprobe intel_rapl_msr` or `modprobe amd_hsmp`; a guest's limits are its host's: --cap-external"
)
NOTHING = Problem("no_interface", "/sys/class/powercap", f"nothing here takes a limit: {NO_CAP}")


def find(host: Host, frequency: bool = False) -> tuple[list[Control], list[Problem]]:
    """All that has a limit, and what is in the way; ``frequency`` adds the proxies."""
    found: list[Control] = []
    problems: list[Problem] = []
    for backend in (powercap_limits, hwmon_limits, hsmp_limits):
        some, why = backend.controls(host)
        if backend is hsmp_limits and any(one.backend == "amd_hsmp" for one in found):
            continue  # the same sockets, by hwmon
        found += some
        problems += why
    return found + (proxies.frequency_controls(host) if frequency else []), problems


def choose(host: Host) -> tuple[list[Control], list[Problem]]:
    """The zones that a cap is written to, all of one backend and scope and usable; or none and every reason."""
    found, problems = find(host)
    for backend, scope in ORDER:
        group = [one for one in found if (one.backend, one.scope) == (backend, scope)]
        offered = [one for one in group if one.problem is None or one.problem.code != "not_offered"]
        bad = [one.problem for one in offered if one.problem is not None]
        if offered and not bad:
            missing = _uncovered(offered, packages(host.root))
            if missing:
                return [], [*problems, Problem("partial_sockets", f"/{offered[0].limits[0].place}", missing)]
            return offered, problems
        problems += bad
    return [], problems or [NOTHING]


def ceiling(controls: Sequence[Control]) -> int | None:
    """The highest value that may be written to each zone; None where nothing is known to limit it."""
    return min((one.ceiling for one in controls if one.ceiling is not None), default=None)


def value_of(
    level: Level, controls: Sequence[Control], uncapped_w: float | None = None, idle_w: float | None = None,
    where: str = "--cap",
) -> int | None:  # fmt: skip
    """What a level writes to each zone, in uW or kHz; None for as-is. UsageError for what they cannot take."""
    low = max((one.low for one in controls if one.low is not None), default=None)
    high = ceiling(controls)
    if level.khz is not None:
        if (low or 0) <= level.khz <= (high or level.khz):
            return level.khz
        raise UsageError("level", f"{level.name} is not within {low} to {high} kHz, which every CPU takes", where)
    watts = total_w(level, uncapped_w, where)
    if watts is None:
        return None
    if level.percent is not None and high is not None:  # a meter may read a little above the limit that is in force
        watts = min(watts, high * len(controls) / 1e6)
    return share_uw(watts, len(controls), max(one.step for one in controls), low, high, idle_w, where)


def _uncovered(offered: list[Control], sockets: set[int]) -> str:
    """Why a cap on these zones would leave sockets without one; "" where it would not."""
    if offered[0].scope == "board" or not sockets:
        return ""
    named = {one.socket for one in offered}
    if offered[0].backend == "intel-rapl" and not sockets <= named:
        return f"no zone for sockets {sorted(sockets - named)}: a part of the host would stay uncapped"
    if len(offered) < len(sockets):
        return f"{len(offered)} limits for {len(sockets)} sockets: a part of the host would stay uncapped"
    return ""
