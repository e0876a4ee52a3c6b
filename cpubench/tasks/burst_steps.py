"""The steps of T6 and the memory that it takes, scaled in steps to what the host has, so that equal names are equal."""

from __future__ import annotations

from collections.abc import Sequence

from cpubench.tasks.steps import Place, Step

VERSION = 1
BURST, OUTSIDE, DURING = range(3)  # places of the steps
BURST_S, FIRST_S, EVERY_S = 1.5, 3.0, 6.0  # length of a burst; when the first begins in a window, and how often
BASES_MB, BURSTS_MB = (185, 92, 46), (2048, 1024, 512)
SIZES = {(f"{base}MB", f"{burst}MB") for base in BASES_MB for burst in BURSTS_MB}
BESIDE_MB = 40  # of an agent beside its baseline: its process and its tool
WORK = (
    "import hashlib, json; rows = [{'id': n, 'text': 'row %d' % (n * 7919)} for n in range(4000)]; "
    "text = json.dumps(rows); back = json.loads(text); assert back == rows; "
    "print(hashlib.sha256(text.encode()).hexdigest()[:16])"
)
DIGEST = "221bf5b82ee6bb8c"


def steps(place: Place) -> list[Step]:
    """The burst, and a neighbour's tool outside of it and during it."""
    argv = (place.shell, "-c", f'{place.python} -c "{WORK}"\nexit $?')
    tools = [Step(kind, kind, "snippet", argv, expect=f"^{DIGEST}$", fixed=False, pure=True, pythons=1, shells=1)
             for kind in ("outside", "during")]  # fmt: skip
    return [Step("burst", "burst", "sandbox.create", fixed=False, pure=True), *tools]


def place_at(at_s: float, begins_s: Sequence[float]) -> int:
    """The place of a neighbour's step that begins at this second of a window with these bursts."""
    return DURING if any(begin <= at_s < begin + BURST_S for begin in begins_s) else OUTSIDE


def bursts(window_s: float) -> list[float]:
    """When bursts begin, in seconds of the window: only such as end in it."""
    made, at = [], FIRST_S
    while at + BURST_S <= window_s:
        made.append(at)
        at += EVERY_S
    return made


def sizes(memory_bytes: int | None, agents: int) -> tuple[str, str] | None:
    """Baseline of each agent and size of the burst: the largest of which half of the memory holds all; None if none."""
    for base in BASES_MB:
        for burst in BURSTS_MB:
            if memory_bytes is None or (agents * (base + BESIDE_MB) + burst) << 20 <= memory_bytes // 2:
                return f"{base}MB", f"{burst}MB"
    return None
