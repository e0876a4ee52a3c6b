"""What the two sides of a comparison are, and in which facts, settings and builds they differ."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np

from cpubench.analysis.composite import MIN_PASSES, Array, mean, present
from cpubench.analysis.estimates import correlation
from cpubench.analysis.members import Member
from cpubench.analysis.obstacles import Sides
from cpubench.analysis.pairing import common_passes, is_pair
from cpubench.results.parse import shown

Json = dict[str, Any]

# Facts of a host that bear on its speed, by the words of a reader.
HOST = {
    "hostname": "host", "cpu_model": "CPU", "cpu_ids": "CPU ids", "microcode": "microcode", "arch": "architecture",
    "packages": "packages", "smt": "SMT", "virtual": "virtual machine", "memory_total_bytes": "memory bytes",
    "llc_bytes": "last-level cache bytes", "kernel": "kernel", "kernel_cmdline": "kernel command line",
    "governor": "governor", "turbo": "turbo", "thp": "huge pages", "clocksource": "clock source",
    "quota_cpus": "quota CPUs",
}  # fmt: skip


UNALIKE = 0.1  # of the blocks or the samples: by how much more of one side a flag is told
WORDS = ("kernel command line", "tmpfs")  # facts of many words, of which only those that differ are worth the room


def differences(sides: Sides) -> list[Json]:
    """Each fact that is not the same in all runs, with the values of either side."""
    told = [[_facts(one) for one in side] for side in sides]
    found = []
    for what in dict.fromkeys(name for side in told for facts in side for name in facts):
        values = [[facts.get(what, "-") for facts in side] for side in told]
        if len({value for side in values for value in side}) > 1:
            if what in WORDS:
                values = _without_common(values)
            a, b = (shown(" or ".join(dict.fromkeys(side)), 200) for side in values)
            found.append({"what": what, "a": a, "b": b})
    return found


def side_facts(side: Sequence[Member]) -> Json:
    """Which runs a side has, of which host, and over how long a time they were made."""
    first = side[0]
    return {
        "host": _text(first.host.get("hostname")),
        "cpu_model": _text(first.host.get("cpu_model")),
        "host_id": first.plan.host_id,
        "divisor": {"kind": first.plan.divisor.kind, "n": first.plan.divisor.n},
        "runs": [
            {"file": one.where, "created_utc": one.plan.created_utc, "passes": one.passes or _capped_passes(one)}
            for one in side
        ],
        "span_hours": _span_hours(side),
        "correlation": max(filter(None, (_correlation(list(one.logs.values())) for one in side)), default=None),
        "noise": _noise(side),
        "not_publishable": list(dict.fromkeys(text for one in side for text in one.faults)),
    }


def _capped_passes(one: Member) -> int:
    """How many passes a run has that has none without a cap."""
    levels = one.curves.levels.values() if one.curves is not None else ()
    return max((len(logs) for level in levels for logs in level.per_core.values()), default=0)


def _noise(side: Sequence[Member]) -> Json:
    """The shares of blocks and samples that have each flag; of blocks None where nobody looked at some of them."""
    blocks, samples = ([one.noise[what] for one in side] for what in ("blocks", "samples"))
    looked = all(one["looked"] == one["count"] > 0 for one in blocks)
    flagged, count = (sum(one[what] for one in blocks) for what in ("flagged", "count"))
    return {
        "looked": looked,
        "flagged": flagged / max(1, count) if looked else None,
        "blocks": _shares(blocks) if looked else None,
        "samples": _shares(samples),
        "set_aside": sum(one["set_aside"] for one in blocks),
    }


def _shares(counts: Sequence[Json]) -> dict[str, float]:
    whole = max(1, sum(one["count"] for one in counts))
    codes = dict.fromkeys(code for one in counts for code in one["flags"])
    return {code: sum(one["flags"].get(code, 0) for one in counts) / whole for code in codes}


def unalike(sides: Sides) -> list[str]:
    """Sentences on disturbances that one side had and the other had not: part of the difference may be theirs."""
    a, b = (_noise(side) for side in sides)
    if a["looked"] != b["looked"]:
        text = f"nobody looked at all blocks of {'B' if a['looked'] else 'A'}"
        return [f"{text}: whether the sides were disturbed alike is not known"]
    shares = {"flagged blocks": (a["flagged"], b["flagged"])} if a["looked"] else {}
    for code in dict.fromkeys([*a["samples"], *b["samples"]]):
        shares[f"{code} samples"] = (a["samples"].get(code, 0.0), b["samples"].get(code, 0.0))
    told = [f"{what} {100 * one:.0f} % of A, {100 * other:.0f} % of B" for what, (one, other) in shares.items()
            if abs(one - other) > UNALIKE]  # fmt: skip
    return [f"The sides were not disturbed alike: {'; '.join(told)}"] if told else []


def pairing(sides: Sides) -> Json | None:
    """How many passes both runs have, and how alike their differences are from pass to pass; None if unpaired."""
    if not is_pair([one for side in sides for one in side]):
        return None
    (a,), (b,) = sides
    in_a, in_b = common_passes(a, b)
    rows = [b.logs[key][in_b] - logs[in_a] for key, logs in a.logs.items() if key in b.logs]
    return {"passes": len(in_a), "correlation": _correlation(rows)}


def _correlation(rows: Sequence[Array]) -> float | None:
    """Lag-1 correlation of passes in the mean of all rows; None where there are too few."""
    rows = [logs for logs in rows if present(logs) >= MIN_PASSES]
    if not rows:
        return None
    logs = mean(rows)
    complete = logs[~np.isnan(logs)]
    return float(correlation(complete)) if len(complete) >= MIN_PASSES else None


def _facts(one: Member) -> dict[str, str]:
    plan = one.plan
    facts = {"host id": plan.host_id[:12]} | {words: _text(one.host.get(key)) for key, words in HOST.items()}
    mitigations = one.host.get("mitigations")
    if isinstance(mitigations, dict):
        facts |= {f"mitigation of {shown(key, 40)}": _text(value) for key, value in mitigations.items()}
    facts |= {
        "cores": f"{plan.divisor.n:g} x {plan.divisor.kind}",
        "CPUs measured": str(len(plan.cpus)),
        "profile": plan.profile,
        "samples a pass": f"{plan.samples} of {plan.sample_ns / 1e6:g} ms",
        "cap levels": ", ".join(plan.caps),
        "cpubench": plan.cpubench,
    }
    if plan.side is not None:
        facts |= {f"setting {shown(key, 40)}": shown(value, 2000) for key, value in plan.side.settings.items()}
    for key, value in plan.build.items():
        text = _text(value)
        facts[f"build: {shown(key, 40)}"] = text[:12] if key.endswith("sha256") else text
    tmpfs = {
        f"{kind} ({', '.join(option for option in _options(row) if not option.startswith('size='))})"
        for row in one.obtained.values()
        for kind in row.get("tmpfs") or ()
    }
    return facts | ({"tmpfs": " or ".join(sorted(tmpfs))} if tmpfs else {})


def _options(row: Json) -> list[str]:
    return list(
        dict.fromkeys(option for text in row.get("mount_options") or () for option in text.replace(",", " ").split())
    )


def _without_common(values: list[list[str]]) -> list[list[str]]:
    """The texts without the words that are in all of them."""
    common = set.intersection(*(set(text.split()) for side in values for text in side))
    return [[" ".join(word for word in text.split() if word not in common) or "-" for text in side] for side in values]


def _text(value: Any) -> str:
    """A fact of a host as one line; foreign, so whatever it is."""
    if value is None:
        return "unknown"
    return shown(value if isinstance(value, str) else json.dumps(value, sort_keys=True), 2000)


def _span_hours(side: Sequence[Member]) -> float | None:
    """Hours between the starts of the first and the last run; None where a file does not tell."""
    try:
        times = [datetime.fromisoformat(one.plan.created_utc.replace("Z", "+00:00")).timestamp() for one in side]
    except (ValueError, OverflowError):
        return None
    return (max(times) - min(times)) / 3600
