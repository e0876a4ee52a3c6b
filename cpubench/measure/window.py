"""Family windows of a block, with energy where there is a meter, and a look at the limits around them.

Standard library and the extension only: the block imports this.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cpubench import _native
from cpubench.errors import UsageError
from cpubench.host.fact import ROOT
from cpubench.host.noise import frequencies
from cpubench.measure import copies as pool
from cpubench.power import registers
from cpubench.power.channel import LATER, dump
from cpubench.power.published import public_log
from cpubench.power.registers import Host

Json = dict[str, Any]


class NoMeter:
    """Stands in for a meter that cannot be opened any more: the run goes on without watts, and says why."""

    def __init__(self, name: str, why: str) -> None:
        self._log: Json = {
            "meter": name,
            "scope": "",
            "channels": [],
            "sockets": None,
            "readings": [],
            "flags": [],
            "lost": why,
        }

    def begin(self) -> None: ...

    def mark(self) -> None: ...

    def end(self) -> Json:
        return self._log


@contextmanager
def meter(told: Json) -> Iterator[Any]:
    """The sampler of a block, which must be started before its copies; None where the run has no meter."""
    if not told.get("meter"):
        yield None
        return
    if told["meter"] == LATER:
        from cpubench.power.clocks import Clocks

        yield Clocks()
        return
    from cpubench.power.sampler import Sampler  # with all backends: late, a block starts in 30 ms

    try:
        sampler = Sampler(told["meter"], Path(told["root"]), told["allow_estimated"])
    except UsageError as error:
        yield NoMeter(told["meter"], f"{error.code}: {error.text}")
        return
    with sampler:
        yield sampler


def measured_in(variants: Sequence[Json], family: str) -> list[Json]:
    """The variants of a family that its window measures: the scored ones on all cores; of a family that has none,
    which is the control kernel's, all of them."""
    own = [v for v in variants if v["family"] == family and v["copies"] == "cores"]
    return [v for v in own if v["scored"]] or own


def measure_window(copies: pool.Copies, window: Json, times: Any, cpus: Sequence[int], sampler: Any = None) -> Json:
    """A contiguous all-copies measurement of one family, whose variants share the window. Those with hooks come last
    and are not metered: what they do with the clock stopped draws power too.

    ``times`` gives deadline and due time of a variant's sample of some length, in ns.
    """
    chosen = measured_in(copies.variants, window["family"])
    chosen.sort(key=lambda v: copies.kernels[v["kernel"]]["hooks"])
    share = max(1, len(chosen))
    if sampler is not None:
        sampler.begin()  # a slow meter takes its first reading here, and not between settling and measuring
    for variant in chosen:
        length = window["settle_ns"] // share or 1
        pool.sample(copies, variant, variant["ops"], length, *times(variant, length))
    cells, t0_ns = [], _native.now_ns()
    if sampler is not None:
        sampler.mark()  # each edge between two variants has a reading, so that each has its own watts
    for variant in chosen:
        metered = not copies.kernels[variant["kernel"]]["hooks"]
        length = window["length_ns"] // share
        answers = pool.sample(copies, variant, variant["ops"], length, *times(variant, length)) or []
        if sampler is not None and metered:
            sampler.mark()
        cells.append({
            "kernel": variant["kernel"], "params": variant["params"],
            "t0_ns": min((a["t0_ns"] for a in answers), default=0),
            "t1_ns": max((a["t1_ns"] for a in answers), default=0),
            "copy_ops": [a["ops"] for a in answers], "copy_elapsed_ns": [a["elapsed_ns"] for a in answers],
            "error": copies.errors.get(pool.key(variant)), "metered": metered, "obtained": {},
        })  # fmt: skip
    found = {"family": window["family"], "t0_ns": t0_ns, "t1_ns": _native.now_ns(), "cells": cells,
             "freq_khz": frequencies(cpus, ROOT).value or []}  # fmt: skip
    if sampler is not None:
        log = sampler.end()
        found["log"] = public_log(log if isinstance(log, dict) else dump(log))
    return found


def settled(windows: Sequence[Json], copies: pool.Copies, obtained: Any) -> None:
    """Nothing; after the release of all copies: what each row of the windows had, and no operations of those whose
    work was not done."""
    variants = {(v["kernel"], v["params"]): v for v in copies.variants if v["copies"] == "cores"}
    for cell in (cell for window in windows for cell in window["cells"]):
        variant = variants[cell["kernel"], cell["params"]]
        cell["error"] = cell["error"] or copies.errors.get(pool.key(variant))
        cell["obtained"] = obtained(copies, variant)
        if copies.slot(variant) in copies.disproven:
            cell["copy_ops"], cell["copy_elapsed_ns"] = [], []


def held(told: Json) -> dict[str, int | None]:
    """What the registers of the caps hold now, by key; None where one cannot be read."""
    found: dict[str, int | None] = {}
    for key in told["limits"]["asked"]:
        try:
            found[key] = registers.read(Host(Path(told["root"])), told["limits"]["places"][key])
        except OSError:
            found[key] = None
    return found


def limits(told: Json, before: dict[str, int | None]) -> Json:
    """What is stored of the limits around a block (``results.windows.Limits``)."""
    asked, steps = told["limits"]["asked"], told["limits"]["steps"]
    return {"settle_ns": told["limits"]["settle_ns"], "asked": asked, "steps": {key: steps[key] for key in asked},
            "before": before, "after": held(told)}  # fmt: skip
