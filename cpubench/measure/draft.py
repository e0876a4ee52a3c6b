"""From what was asked for to a draft of the plan, on this host."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from cpubench import _native
from cpubench.errors import UsageError
from cpubench.host.caches import Cache, llc_bytes, read_caches
from cpubench.host.cpulist import format_cpulist, parse_cpulist
from cpubench.host.fact import ROOT, Fact
from cpubench.host.facts import collect, divisor, here, standing
from cpubench.host.layout import layout
from cpubench.host.topology import Core, allowed_cpus, read_topology
from cpubench.measure import plan as planning
from cpubench.measure import programs
from cpubench.measure.asked import Asked
from cpubench.measure.build import build
from cpubench.measure.variants import Host, Request, choose
from cpubench.results.records import Divisor, Plan


@dataclass
class Options:
    """What ``cpubench run`` was asked for; None is the profile's own."""

    profile: str = "standard"
    families: Sequence[str] | None = None
    copies: Sequence[str] | None = None
    keys: Sequence[str] | None = None
    cpus: Sequence[int] | None = None
    workdir: Path | None = None
    out: Path | None = None
    budget_ns: int | None = None
    seed: int | None = None
    prefix: Path | None = None  # of another build, which takes turns with this one
    settings: dict[str, str] = field(default_factory=dict)  # environment variables of the side that takes turns
    own: dict[str, int] = field(default_factory=dict)  # samples and passes of the plan that are not the profile's
    locked: bool = False  # the caller has the host's lock
    power: Asked | None = None

    @property
    def turns(self) -> bool:
        """Whether two sides take turns."""
        return self.prefix is not None or bool(self.settings)


def draft(options: Options) -> tuple[Plan, dict[str, Any]]:
    """A plan without sizes of what this host can measure of the options, and the facts of the host."""
    planning.profile_of(options.profile)
    fault = programs.fault()
    if fault:
        raise UsageError("programs", fault)
    facts = collect()
    _check_cpus(options.cpus)
    cores = read_topology(cpus=options.cpus).cores
    host = host_of(facts, cores)
    request = Request(options.profile, options.families, options.copies, options.keys)
    variants, skipped = choose(_native.kernels(hidden=True), host, request)
    kind, n = divisor(facts, len(cores))
    plan = planning.draft(
        variants, skipped, run_id=secrets.token_hex(8), build=build(), host_id=facts["id"] or "unknown",
        created_utc=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        seed=random.SystemRandom().randrange(2**32) if options.seed is None else options.seed,
        profile=options.profile, budget_ns=options.budget_ns, cpus=sorted(c for core in cores for c in core.cpus),
        divisor=Divisor(kind=kind, n=n), llc_bytes=host.llc_bytes,
    )  # fmt: skip
    return msgspec.structs.replace(plan, machine=standing(facts) | here(facts), **options.own), facts


def host_of(facts: dict[str, Any], cores: Sequence[Core], root: Path = ROOT) -> Host:
    """What decides on this host which variants can be measured.

    Its caches are those of the CPU that one copy runs on: where cores or dies differ they are not those of the first
    CPU, which the facts have and which stand in where nothing is told.
    """
    one_copy = layout(cores, "any")[-1:]
    own = read_caches(one_copy[0][0], root) if one_copy else Fact[tuple[Cache, ...]](None)
    told = [(cache["level"], cache["size_bytes"]) for cache in facts["caches"] or ()]
    found: dict[str, int | None] = {"L1": None, "L2": None, "L3": None}
    for level, size_bytes in [(cache.level, cache.size_bytes) for cache in own.value or ()] or told:
        found[f"L{level}"] = size_bytes
    return Host(cores, found, facts["memory_bytes"], llc_bytes(own).value or facts["llc_bytes"])


def names_of(text: str | None) -> list[str] | None:
    """The names of a list with commas; None where none was given."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def cpus_of(text: str | None) -> list[int] | None:
    """The logical CPUs of a list such as 0-3,8, as a person wrote it; None where none was given."""
    try:
        return None if text is None else parse_cpulist(text)
    except ValueError as error:
        raise UsageError("cpu", str(error), "--cpus") from None


def _check_cpus(cpus: Sequence[int] | None) -> None:
    """UsageError where the CPUs that were asked for are none, or not all allowed: before a file of theirs is read."""
    if cpus is None:
        return
    if not cpus:
        raise UsageError("cpu", "the list of CPUs is empty", "--cpus")
    allowed = set(allowed_cpus().value or ())
    wrong = [cpu for cpu in cpus if cpu not in allowed]
    if wrong:
        which = f"CPU {wrong[0]} is" if len(wrong) == 1 else f"{len(wrong)} CPUs are"
        named = f" ({', '.join(map(str, wrong[:4]))}{', ..' if len(wrong) > 4 else ''})" if len(wrong) > 1 else ""
        raise UsageError("cpu", f"{which} not allowed here{named}; allowed: {format_cpulist(allowed)}", "--cpus")
