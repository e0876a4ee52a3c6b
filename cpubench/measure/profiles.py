"""What ``quick``, ``standard`` and ``strict`` mean: how much is measured, and when a run may stop."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cpubench.errors import UsageError

# Averages over the duty cycles of clock and power control (Intel PL1, AMD PPT: milliseconds). One copy whose batches
# have a limit (max_ops) may take less: 7.5 ms of spawn_reap, 12 of file_tree_delete, 15 of mem_touch, 19 of mem_cow.
SAMPLE_NS = 20_000_000


@dataclass(frozen=True)
class Profile:
    """Samples of each variant in a block, passes, and the half-width in ppm at which every headline is narrow enough.

    Passes are many and samples few: twelve passes of two samples vary less from run to run than five of eight.
    """

    samples: int
    min_passes: int
    max_passes: int
    target_ppm: int
    budget_ns: int
    shown: bool  # also the variants that are not scored, with one copy
    strict: bool  # also the ones that only `strict` measures


PROFILES = {
    "quick": Profile(2, 12, 60, 20_000, 110 * 10**9, shown=False, strict=False),
    "standard": Profile(3, 16, 60, 20_000, 570 * 10**9, shown=True, strict=False),
    "strict": Profile(4, 16, 200, 10_000, 3600 * 10**9, shown=True, strict=True),
}


def nanoseconds(text: str, where: str = "--budget") -> int:
    """ "90", "90s", "10m" or "1h" in nanoseconds; UsageError that blames the option ``where`` for anything else."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|h)?", text.strip())
    ns = round(float(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2] or "s"] * 1e9) if match else 0
    if not 0 < ns < 2**63:  # 0 would mean none at all, and the file holds 64 bits
        text = f"{text[:40]!r} is no duration: write 90s, 10m or 1h"
        raise UsageError(where.removeprefix("--"), text, where)
    return ns
