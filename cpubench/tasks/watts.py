"""The power of a repeat: a meter in a process of its own, from the first step to the last, or in the window."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cpubench.errors import UsageError
from cpubench.power.energy import energy
from cpubench.power.sampler import Sampler

Json = dict[str, Any]


@dataclass
class Metered:
    """``found`` is what is stored of a repeat: mean watts, or the reason why there are none."""

    sampler: Sampler | None
    found: Json

    def begin(self) -> None:
        if self.sampler is not None:
            self.sampler.begin()

    def end(self) -> None:
        if self.sampler is not None:
            told = energy(self.sampler.end())
            self.found = {"mean_w": told.watts, "power_reason": told.reason if told.watts is None else None}


@contextmanager
def metered(spec: Json) -> Iterator[Metered]:
    """The meter of a run for one repeat; without one nothing is read."""
    made, told = Metered(None, {"mean_w": None, "power_reason": None}), spec.get("power") or {}
    if told.get("meter"):
        try:
            made.sampler = Sampler(told["meter"], Path(told["root"]), told["allow_estimated"])
        except UsageError as error:
            made.found["power_reason"] = error.text
    try:
        yield made
    finally:
        if made.sampler is not None:
            made.sampler.close()
