"""The cap levels of a run of tasks, which take turns: each has a document, and a folder, of its own.

A file of one level is a run of tasks like any other: everything that reads one reads it too.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from cpubench.errors import UsageError
from cpubench.measure import folder as place
from cpubench.measure.levels import shown_ns
from cpubench.measure.powered import Powered, power_of, shown
from cpubench.results.files import sealed
from cpubench.results.states import BASE_CAP
from cpubench.results.windows import Power

FILE = "tasks.json"

Json = dict[str, Any]


@dataclass
class Level:
    """A level, and what was done at it."""

    cap: str
    folder: Path
    document: Json
    written: bool = False

    @property
    def repeats(self) -> int:
        return sum(len(row["repeats"]) for row in self.document["tasks"])

    @property
    def rows(self) -> dict[str, Json]:
        return {row["name"]: row for row in self.document["tasks"]}

    @property
    def gone(self) -> bool:
        """Whether what was written is there no more."""
        return self.written and not (self.folder / FILE).exists()

    def save(self) -> None:
        """Writes the file; without a repeat there is none."""
        if not self.repeats:
            return
        first = not self.written and not self.folder.exists()
        if first:
            place.make(self.folder)
        try:
            place.write_json(self.folder / FILE, sealed(self.document))
        except UsageError:
            if first:
                with suppress(OSError):
                    self.folder.rmdir()
            raise
        self.written = True


def levels_of(
    document: Json, folder: Path, state: Powered | None, tell: Callable[[str], None]
) -> tuple[list[Level], Power | None]:
    """The levels of a run, and how it measures watts and sets caps: without caps there is one, in the run's own folder.

    Caps are shown to hold first, as those of kernels are (``measure.powered``). UsageError where one cannot be set.
    """
    if state is None:
        document |= {"meter": "", "meter_problem": "none was asked for: --meter"}
        return [Level(BASE_CAP, folder, document)], None
    power, caps = power_of(document["profile"], state), state.asked.names
    document |= {"meter": power.meter, "meter_problem": power.problem, "meter_scope": power.scope,
                 "meter_provenance": power.provenance}  # fmt: skip
    if not caps:
        return [Level(BASE_CAP, folder, document)], power
    tell(f"levels {', '.join(caps)}: {shown_ns(power, caps) / 1e9:.0f} s at rest and under loads before the tasks")
    power = shown(power, caps, state)
    told = msgspec.to_builtins(power)
    made = [{**copy.deepcopy(document), "cap": cap, "power": told} for cap in caps]
    own = [folder / re.sub(r"[^A-Za-z0-9.%]+", "-", cap) if len(caps) > 1 else folder for cap in caps]
    return [Level(*parts) for parts in zip(caps, own, made, strict=True)], power
