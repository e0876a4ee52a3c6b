"""What a trace adds up to: calls and seconds by class, and what is left out because no CPU of the host did it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cpubench.traces.classify import LONGEST_S
from cpubench.traces.span import CLASSES, Span

Json = dict[str, Any]
LEFT_OUT = {
    "llm": "waits for a model or another agent", "human": "waits for a person", "remote": "work of other machines",
    "long": f"calls of more than {LONGEST_S:g} s by the caller's clock alone: taken for waits",
    "other": "calls whose work is not known, such as sleeps and notes",
}  # fmt: skip


@dataclass
class Tally:
    """Sums over spans; nothing grows with their number."""

    calls: Counter[str] = field(default_factory=Counter)  # by class
    timed: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    words: Counter[str] = field(default_factory=Counter)  # whose word the seconds are
    left: Counter[str] = field(default_factory=Counter)  # calls that are left out, by why
    left_timed: Counter[str] = field(default_factory=Counter)
    left_s: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    spans: int = 0

    def add(self, span: Span) -> None:
        """Counts a span that is classified."""
        self.spans += 1
        seconds, word = span.seconds
        seconds = None if seconds is None or not math.isfinite(seconds) else seconds
        why = span.kind if span.kind in LEFT_OUT else "other" if span.cls == "other" else ""
        if not why and word == "caller" and (seconds or 0.0) > LONGEST_S:
            why = "long"
        if why:
            self.left[why] += 1
            if seconds is not None:
                self.left_timed[why] += 1
                self.left_s[why] += seconds
            return
        self.calls[span.cls] += 1
        if seconds is not None:
            self.timed[span.cls] += 1
            self.seconds[span.cls] += seconds
            self.words[word] += 1

    def classes(self, step_s: Mapping[str, float]) -> Json:
        """Calls, seconds and share by class. A call without a time gets the mean of its class in this trace, or, where
        the trace has none, ``step_s``: what such a step takes in our own tasks."""
        made: Json = {}
        for cls in CLASSES:
            calls, timed = self.calls[cls], self.timed[cls]
            if not calls:
                continue
            mean = self.seconds[cls] / timed if timed else step_s.get(cls)
            untimed = calls - timed
            seconds = self.seconds[cls] + (mean or 0.0) * untimed
            made[cls] = {"calls": calls, "timed": timed, "seconds": seconds if timed or mean is not None else None,
                         "replayed": untimed if not timed and mean is not None else 0}  # fmt: skip
        total = math.fsum(row["seconds"] or 0.0 for row in made.values())
        for row in made.values():
            row["share"] = row["seconds"] / total if total and row["seconds"] is not None else None
        return made

    def left_out(self) -> list[Json]:
        """What was left out: calls, how many have a time, the seconds of these, None without any, and why."""
        return [{"what": what, "calls": self.left[what], "timed": self.left_timed[what],
                 "seconds": self.left_s[what] if self.left_timed[what] else None, "why": why}
                for what, why in LEFT_OUT.items() if what in self.left]  # fmt: skip
