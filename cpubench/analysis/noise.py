"""How much a run was disturbed: flags of its blocks and samples counted, and what must be said of that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from cpubench.analysis.cells import blocks_at, whole_passes
from cpubench.analysis.flags import Flag, block_verdicts, cpu_time_ns, row_flags, sample_flags
from cpubench.results.records import Cell, Run

MAX_FLAGGED = 0.2  # of the blocks
BUSIEST = 3  # processes that are named
# What tells a flag, for the reason where it was not told.
TOLD_BY = {
    Flag.STOLEN: "steal_ns", Flag.QUOTA: "throttles", Flag.CONTENDED: "others_ns", Flag.HOT: "package_throttles",
    Flag.CAPPED: "power_limits", Flag.SUSPENDED: "suspended_ns", Flag.CPUS: "allowed", Flag.CAP_CHANGED: "limits",
}  # fmt: skip

Json = dict[str, Any]


def noise(run: Run, cap: str) -> Json:
    """Flags of the blocks that count at a cap level, and of their samples; which processes of others were busiest.

    ``doubts`` are flags that could not be judged, or in part, in some block, with a reason. ``looked``: some block has
    evidence; ``blocks.looked`` says how many have.
    """
    planned = {variant.key: variant for variant in run.plan.variants}
    samples, of_samples = 0, Counter[Flag]()
    for cell in (cell for block in blocks_at(run, cap) for cell in block.cells):
        samples += len(cell.samples.round)
        of_samples.update(sample_flags(planned[cell.key], cell))
    return noise_of_blocks(run, cap) | {"samples": {"count": samples, "flags": _by_code(of_samples)}}


def noise_of_blocks(run: Run, cap: str) -> Json:
    """The same without what single samples tell, which decides nothing."""
    blocks, flags, doubts, flagged = blocks_at(run, cap), Counter[Flag](), dict[str, str](), 0
    busy, time_ns = Counter[str](), 0
    for block in blocks:
        verdicts = block_verdicts(run.plan, block)
        raised = [flag for flag, found in verdicts.items() if found]
        flags.update(raised)
        flagged += bool(raised)
        looked_ns = cpu_time_ns(run.plan, block)
        if looked_ns is None:
            continue
        time_ns += looked_ns
        for one in block.environment.busiest:
            busy[one.name] += one.took_ns
        for flag, found in verdicts.items():
            reason = block.environment.reasons.get(TOLD_BY[flag])
            if found is None or reason:
                doubts.setdefault(flag.value, reason or "not told")
    looked = sum(cpu_time_ns(run.plan, block) is not None for block in blocks)
    aside = sum(block.cap == cap for one in whole_passes(run) for block in one.set_aside)
    return {
        "looked": looked > 0,
        "blocks": {"count": len(blocks), "looked": looked, "flagged": flagged, "set_aside": aside,
                   "flags": _by_code(flags)},
        "busiest": [{"name": name, "share": took_ns / time_ns} for name, took_ns in busy.most_common(BUSIEST)],
        "doubts": doubts,
    }  # fmt: skip


def _by_code(counts: Mapping[Flag, int]) -> dict[str, int]:
    return {flag.value: counts[flag] for flag in Flag if counts.get(flag)}


def flags_of_rows(run: Run, cap: str) -> dict[str, list[str]]:
    """The codes of each row's flags, by its key; rows without any are not there."""
    cells: dict[str, list[Cell]] = {}
    for block in blocks_at(run, cap):
        for cell in block.cells:
            cells.setdefault(cell.key, []).append(cell)
    found = {v.key: [flag.value for flag in row_flags(v, cells.get(v.key, []))] for v in run.plan.variants}
    return {key: codes for key, codes in found.items() if codes}


def too_noisy(made: Json) -> str | None:
    """Why the run was too disturbed to be published; None where it was not."""
    blocks = made["blocks"]
    if blocks["flagged"] <= MAX_FLAGGED * blocks["count"]:
        return None
    named = ", ".join(f"{code} {count}" for code, count in blocks["flags"].items())
    return f"{blocks['flagged']} of {blocks['count']} blocks were disturbed ({named}): more than a fifth"


def remarks(run: Run, cap: str, made: Json) -> list[tuple[str, str]]:
    """Code and sentence of what must be known, and forbids nothing."""
    said, blocks = [], made["blocks"]
    if without := blocks["count"] - blocks["looked"]:
        text = f"{without} of {blocks['count']} blocks have no evidence of what else the host did"
        said.append(("no_evidence", text))
    shots = [shot for block in blocks_at(run, cap) for shot in (block.environment.before, block.environment.after)]
    logins = {shot.logins for shot in shots if shot is not None and shot.logins is not None}
    if len(logins) > 1:
        said.append(("logins", f"between {min(logins)} and {max(logins)} sessions of users were open: they may work"))
    return said
