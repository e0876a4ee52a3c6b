"""What must be known beside figures of watts and caps, and what of it forbids publishing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cpubench.analysis.flags import window_flags
from cpubench.analysis.noise import MAX_FLAGGED
from cpubench.results.records import Block, Run
from cpubench.results.windows import Power

Json = dict[str, Any]
DRIFT = 0.03  # of idle power, between before and after (EEHPC asks for both)
REMARKS = frozenset({"no_watts", "coarse", "idle_drift", "cap_state", "over_cap", "energy", "clamp_changed", "proxy"})
TELLING = {
    "coarse": "the meter is renewed too seldom for windows of this length: their watts hold some of what came before",
    "short": "less than a second of energy: the edges of the counter's ticks are 0.2 % and more of it",
    "to_merge": "watts are to be merged with the run (cpubench power merge)",
    "clock_skew": "the clock of the watts seems to be off from that of the windows, or the meter averages",
    "partial": "the meter lacked a channel that it had at other times: such windows have no watts",
    "mirrored": "dies may show one counter or have their own: these windows have no watts",
    "clock_unseen": "no watts at rest show whether their clock is that of the windows",
    "deduped_die": "dies that show one counter were counted once",
}


def watt_notes(run: Run, document: Json | None) -> tuple[list[Json], list[Json]]:
    """The notes that forbid publishing, and the others; both empty of a run without a meter and caps."""
    power = run.plan.powered
    if power is None or document is None:
        return [], []
    blocks = {row["level"]: [b for one in run.passes for b in one.blocks if b.cap == row["level"]]
              for row in document["levels"]}  # fmt: skip
    return _faults(run, power, document, blocks), _remarks(power, document)


def _note(code: str, text: str, where: str) -> Json:
    return {"code": code, "text": text, "where": where}


def _faults(run: Run, power: Power, document: Json, blocks: Mapping[str, Sequence[Block]]) -> list[Json]:
    faults = []
    if power.shortened:
        text = "settling, idle, load or window times are not those of the profile: the figures are a test's"
        faults.append(_note("shortened", text, "plan.power"))
    if "estimated" in power.provenance:
        text = "the watts are a hypervisor's estimate by CPU time: no measurement of this host"
        faults.append(_note("estimated", text, "plan.power.provenance"))
    for row in document["levels"]:
        level = row["level"]
        if row["changed_passes"]:
            text = f"a limit changed in {row['changed_passes']} passes, whose windows are left out"
            faults.append(_note("cap_changed", text, level))
        of = blocks[level]
        flagged = sum(bool(window_flags(run.plan, block)) for block in of)
        if flagged > MAX_FLAGGED * len(of):
            text = f"the windows of {flagged} of {len(of)} blocks were disturbed: more than a fifth"
            faults.append(_note("noisy", text, level))
    return faults


def _remarks(power: Power, document: Json) -> list[Json]:
    said = []
    if not power.meter:
        said.append(_note("no_watts", f"no meter was read: {power.problem or 'none was asked for'}", "plan.power"))
    for row in document["levels"]:
        level = row["level"]
        if row["state"] not in ("verified", "verified(external)", "as_found"):
            said.append(_note("cap_state", f"{row['state']}: {row['text']}", level))
        if row["over_cap_passes"]:
            text = f"in {row['over_cap_passes']} of {row['passes']} passes a window drew more than the cap allows"
            said.append(_note("over_cap", text, level))
        if "clamp_changed" in row["flags"]:
            text = "a switch was written that also lets the cap reach below the base clock: a reboot undoes that"
            said.append(_note("clamp_changed", text, level))
        for flag, count in row["energy_flags"].items():
            text = TELLING.get(flag, f"the energy of windows has the flag {flag}")
            said.append(_note("coarse" if flag == "coarse" else "energy",
                              f"{text} ({count} of {row['windows']} windows)", level))  # fmt: skip
    before, after = document["idle"]["before_watts"], document["idle"]["after_watts"]
    if before and after and abs(after / before - 1) > DRIFT:
        text = f"{before:.1f} W before the passes, {after:.1f} W after: figures above idle are that uncertain"
        said.append(_note("idle_drift", text, "idle"))
    return said
