"""What the checks of a plan demand is what a real plan has, on machines of every shape."""

from __future__ import annotations

import msgspec
import pytest
from made import made_run

from cpubench._native import kernels
from cpubench.host.topology import Core
from cpubench.measure.variants import Host, Request, choose
from cpubench.results.check import check_plan
from cpubench.results.records import Divisor, Plan

CACHES = {"L1": 32 << 10, "L2": 1 << 20, "L3": 36 << 20}


def machine(cores: int, threads: int, left_out: int | None) -> list[Core]:
    """Cores of 4 per L3 and 48 per package, without every third CPU where one is ``left_out``."""
    numbers = {core: [core + cores * thread for thread in range(threads)] for core in range(cores)}
    allowed = {core: tuple(cpu for cpu in cpus if cpu % 3 != left_out) for core, cpus in numbers.items()}
    return [Core(cpus, core // 48, core // 48, core // 4) for core, cpus in allowed.items() if cpus]


@pytest.mark.parametrize("left_out", [None, 0, 1], ids=["all", "no third", "no second"])
@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("cores", [2, 3, 8, 96])
def test_what_a_run_lays_out_is_a_valid_plan(cores: int, threads: int, left_out: int | None) -> None:
    there = machine(cores, threads, left_out)
    variants, _ = choose(kernels(), Host(there, dict(CACHES), None), Request("strict"))
    plan = msgspec.structs.replace(
        msgspec.convert(made_run(0)["plan"], Plan),
        cpus=sorted(cpu for core in there for cpu in core.cpus),
        divisor=Divisor("physical_core", len(there)),
        variants=variants,
    )
    check_plan(plan)
    check_plan(msgspec.structs.replace(plan, divisor=Divisor("granted_cpu", len(there) / 2)))
