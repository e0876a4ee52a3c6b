"""What on this host would disturb a measurement, or make its numbers differ from another host's. Nothing is changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cpubench.host import check_clocks, check_kernel, check_load, check_shares
from cpubench.host.check import Finding, Machine, brief, machine
from cpubench.host.fact import ROOT

MOST_FOUND = 500  # characters
# In the order of the page: the clock, who else is there, how the kernel is set. Each with what is wanted, and why.
CHECKS: tuple[tuple[str, str, Callable[[Machine], Finding]], ...] = (
    ("governor", "performance: with others the clock follows the load, late", check_clocks.governor),
    ("max_frequency", "the hardware's own: a lower ceiling lowers every score", check_clocks.max_frequency),
    ("turbo", "on, as agents will run; off on some candidates only is no comparison", check_clocks.turbo),
    ("smt", "as sold, siblings all ours: a busy sibling takes about half a core", check_shares.smt),
    ("core_classes", "one: the mean over kinds of cores is that of no core", check_shares.core_classes),
    ("aslr", "full: each pass has another layout, so the interval covers it", check_kernel.aslr),
    ("isolated_cpus", "none: they differ from the CPUs on which agents run", check_shares.isolated_cpus),
    ("thp", "madvise or always: the chases of memory ask for huge pages", check_kernel.thp),
    ("clocksource", "the CPU's own counter: others are coarse, slow or scaled", check_clocks.clocksource),
    ("clock_read", f"at most {check_clocks.SLOW_CLOCK_NS} ns: it is part of what is timed", check_clocks.clock_read),
    ("interrupts", "away from measured CPUs where others are online: they take time", check_shares.interrupts),
    ("cgroup_quota", "none: a quota stops copies in the middle of a sample", check_shares.cgroup_quota),
    ("cpuset", "all CPUs: a run on some of them is not publishable", check_shares.cpuset),
    ("load", "nothing else running: it would be measured too", check_load.load),
    ("mitigations", "on, as in use: open holes are speed that production lacks", check_kernel.mitigations),
    ("numa_balancing", "off, or one node: it unmaps and moves pages meanwhile", check_kernel.numa_balancing),
    ("swap", "unused: swapped memory comes back in the middle of a sample", check_kernel.swap),
    ("perf_events", "0 or less, or CAP_PERFMON: energy counters are closed otherwise", check_kernel.perf_events),
    ("virtual", "bare metal: neighbours that cannot be seen take a share", check_shares.virtual),
    ("microcode", "known, one version, not old: it decides what mitigations cost", check_kernel.microcode),
)


def checks(clock_read_ns: float | None = None, root: Path = ROOT) -> list[dict[str, str]]:
    """Every check with its status (ok, warn, unknown), what was found or why not, what is wanted, how to change it."""
    subject = machine(root, clock_read_ns)
    made = []
    for name, wanted, check in CHECKS:
        status, found, advice = check(subject)
        made.append(
            {"id": name, "status": status, "found": brief(found, MOST_FOUND), "wanted": wanted, "advice": advice}
        )
    return made
