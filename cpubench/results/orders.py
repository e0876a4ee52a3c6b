"""The order of the variants in each round, which the seed of a plan draws: for the block process, and to check it.

Standard library only: the block process imports this.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any


def orders(plan: dict[str, Any], index: int, cap: str) -> list[list[int]]:
    """The variants' order in each round, as indexes into the plan; those that leave state behind come last in each.

    Files are held to it (``cpubench.recheck``): another way of drawing would refuse all that were measured before.
    """
    rng = random.Random(f"{plan['seed']}:{index}:{cap}")
    rounds = []
    for _ in range(plan["samples"]):
        order = list(range(len(plan["variants"])))
        rng.shuffle(order)
        rounds.append(sorted(order, key=lambda i: "isolate" in plan["variants"][i]["flags"]))
    return rounds


def level_order(seed: int, caps: Sequence[str], index: int) -> list[str]:
    """The cap levels of a pass, each once, in their order.

    As many passes as there are levels make a cyclic Latin square: each level is once at each place, so that what drifts
    or warms up falls on all alike. Each square is drawn anew.
    """
    square, row = divmod(index, len(caps))
    rng = random.Random(f"{seed}:{square}:levels")
    order, starts = list(caps), list(range(len(caps)))
    rng.shuffle(order)
    rng.shuffle(starts)
    return order[starts[row] :] + order[: starts[row]]
