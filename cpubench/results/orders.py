"""The order of the variants in each round, which the seed of a plan draws: for the block process, and to check it.

Standard library only: the block process imports this.
"""

from __future__ import annotations

import random
from typing import Any


def orders(plan: dict[str, Any], index: int, cap: str) -> list[list[int]]:
    """The variants' order in each round, as indexes into the plan; those that leave state behind come last.

    Files are held to it (``cpubench.recheck``): another way of drawing would refuse all that were measured before.
    """
    rng = random.Random(f"{plan['seed']}:{index}:{cap}")
    rounds = []
    for _ in range(plan["samples"]):
        order = list(range(len(plan["variants"])))
        rng.shuffle(order)
        rounds.append(sorted(order, key=lambda i: "isolate" in plan["variants"][i]["flags"]))
    return rounds
