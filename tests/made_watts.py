"""Made-up runs with a meter and cap levels: what each draws and does is known."""

from __future__ import annotations

import math
import random
from typing import Any

import msgspec
from made import made_environment, made_run, made_variants, true_ns

from cpubench.results import records as r
from cpubench.results.files import sealed
from cpubench.results.orders import level_order
from cpubench.results.windows import Level, Power, Window

S = 10**9
LENGTH_NS = 2 * S
HOOKED = {"lock_mutex"}  # made up: its untimed work would draw power too
WATTS = {"spawn": 200.0, "file": 150.0, "switch": 100.0, "lock": 120.0, "memory": 250.0}
CHANNEL = {
    "id": "powercap:package-0", "scope": "package", "kind": "energy", "unit": 1e-6, "path": "", "socket": 0,
    "die": None, "part": "", "range_raw": 262143328850, "max_w": 1500.0, "gap_s": 600.0, "provenance": "measured",
    "rank": 0, "mirrors": False,
}  # fmt: skip


def made_power(levels: list[Level] | None = None, **fields: Any) -> Power:
    """A meter of one package, and the profile's times."""
    return Power(**{
        "meter": "powercap:package", "scope": "package", "provenance": "measured", "cap_scope": "package",
        "settle_ns": 10 * S, "idle_ns": 10 * S, "uncapped_ns": 20 * S, "verify_ns": 20 * S, "total_ns": 10 * S,
        "levels": levels or [], "idle": made_log([(0, 0.0), (5 * S, 250.0), (10 * S, 500.0)]), **fields,
    })  # fmt: skip


def made_log(rows: list[tuple[int, float]], **fields: Any) -> dict[str, Any]:
    """A log of joules at times."""
    readings = [[[t_ns], [round(joules * 1e6)], [""]] for t_ns, joules in rows]
    return {"meter": "powercap:package", "scope": "package", "channels": [CHANNEL], "sockets": [0], "flags": [],
            "readings": readings, "lost": "", **fields}  # fmt: skip


def made_window(
    family: str, variants: list[r.Variant], start_ns: int, watts: float, slower: float
) -> dict[str, Any]:  # fmt: skip
    """A window whose rows share two seconds, those with hooks last; readings stand at each edge between two rows."""
    own = sorted((v for v in variants if v.family == family and v.scored and v.copies == "cores"),
                 key=lambda v: v.kernel in HOOKED)  # fmt: skip
    share, cells, at = LENGTH_NS // max(1, len(own)), [], start_ns
    edges = [at - S, at]
    for variant in own:
        batches = max(1, round(share / (variant.ops * true_ns(variant) * slower)))
        ops, elapsed = batches * variant.ops, round(batches * variant.ops * true_ns(variant) * slower)
        cells.append({
            "kernel": variant.kernel, "params": variant.params, "t0_ns": at, "t1_ns": at + max(share, elapsed),
            "copy_ops": [ops] * len(variant.groups), "copy_elapsed_ns": [elapsed] * len(variant.groups), "error": None,
            "metered": variant.kernel not in HOOKED, "obtained": {},
        })  # fmt: skip
        at += max(share, elapsed)
        edges.append(at)
    log = made_log([(t_ns, watts * (t_ns - start_ns + S) / S) for t_ns in edges])
    return {"family": family, "t0_ns": start_ns, "t1_ns": at, "cells": cells, "freq_khz": [3_000_000, 2_800_000],
            "log": log}  # fmt: skip


def made_capped_run(
    passes: int = 12, *, caps: dict[str, tuple[float, float]] | None = None, seed: int = 0, noise: float = 0.01,
    states: dict[str, str] | None = None, power: dict[str, Any] | None = None, watts: float = 1.0, **fields: Any,
) -> dict[str, Any]:  # fmt: skip
    """A sealed run with windows; ``caps`` are factors of (time of an operation, watts) by level, as-is among them.

    ``watts`` multiplies what all families draw.
    """
    caps = caps or {"as-is": (1.0, 1.0), "200W": (1.25, 0.6)}
    variants = fields.pop("variants", None) or made_variants()
    families = list(dict.fromkeys(v.family for v in variants if v.scored))
    levels = [Level(name=cap, state=(states or {}).get(cap, "as_found" if cap == "as-is" else "verified"), text="made",
                    watts=float(cap[:-1]) if cap[0] < ":" and cap.endswith("W") else None) for cap in caps]  # fmt: skip
    windows = [Window(family=family, settle_ns=S, length_ns=LENGTH_NS) for family in families]
    plan = {"windows": windows, "caps": list(caps), "min_passes": 8, "power": made_power(levels, **(power or {}))}
    document = made_run(passes, seed=seed, noise=noise, variants=variants, **(plan | fields))
    rng = random.Random(f"{seed} watts")
    plan_id, limited = document["plan"]["id"], {"a": 1}
    for one in document["passes"]:
        (base,), index = one["blocks"], one["index"]
        blocks = []
        for turn, cap in enumerate(level_order(seed, list(caps), index)):
            slower, hotter = caps[cap]
            own = []
            for number, family in enumerate(families):
                at = (100 + 10 * number) * S
                drift = math.exp(rng.gauss(0, noise))
                own.append(made_window(family, variants, at, WATTS.get(family, 100.0) * hotter * watts, slower * drift))
            block = {k: v for k, v in base.items() if k != "sha256"} | {
                "cap": cap, "windows": own, "plan_id": plan_id,
                "times": base["times"] | {"start_utc_ns": 1000 * index + turn},
                "limits": {"settle_ns": 10 * S, **dict.fromkeys(("asked", "steps", "before", "after"), limited)},
            }  # fmt: skip
            if cap == "as-is":
                block["around_windows"] = made_environment(power_limits=0)
            else:
                block |= {"cells": [], "rounds": [], "environment": made_environment(power_limits=7),
                          "times": block["times"] | {"timed_ns": 0, "rounds_ns": 0, "hook_ns": 0}}  # fmt: skip
            blocks.append(sealed(block))
        one["blocks"] = blocks
    document["idle_after"] = made_log([(0, 0.0), (5 * S, 255.0), (10 * S, 510.0)])
    return sealed(document)


def loaded(document: dict[str, Any]) -> r.Run:
    return msgspec.convert(document, r.Run)
