"""Progress of a run on stderr: one moving line on a terminal, a line for each pass elsewhere."""

from __future__ import annotations

import time
from typing import Any, TextIO


class Progress:
    """Told by the runner of each event; says what is done, how wide the interval is, and the time left."""

    def __init__(self, out: TextIO) -> None:
        self.out, self.moving, self.began_s = out, out.isatty(), time.monotonic()

    def tell(self, event: str, state: Any) -> None:
        plan, passes = state.plan, len(state.blocks)
        spent_s = time.monotonic() - self.began_s
        if event == "planned":
            most_s = plan.budget_ns / 1e9 if plan.budget_ns else plan.max_passes * plan.predicted_pass_ns / 1e9
            most_s = min(most_s, spent_s + plan.max_passes * plan.predicted_pass_ns / 1e9)
            self.line(
                f"{len(plan.variants)} variants, {len(plan.skipped)} left out; {plan.profile}: {plan.min_passes} to "
                f"{plan.max_passes} passes of about {plan.predicted_pass_ns / 1e9:.1f} s, at most {clock(most_s)} in all"
            )
            return
        if event.startswith("failed"):
            self.line(f"pass {passes} {event}")
            return
        pass_s = spent_s / max(1, passes)
        left_s = max(0, plan.max_passes - passes) * pass_s
        if plan.budget_ns:
            left_s = min(left_s, max(0.0, plan.budget_ns / 1e9 - spent_s))
        width = "" if state.half_width is None else f", widest interval +-{100 * state.half_width:.1f} %"
        text = f"pass {passes}{width} (target {plan.target_ppm / 1e4:g} %), at most {clock(left_s)} left"
        if self.moving:
            self.out.write(f"\r\x1b[K{text[:79]}")
            self.out.flush()
        else:
            self.line(text)

    def line(self, text: str) -> None:
        self.out.write(("\r\x1b[K" if self.moving else "") + text + "\n")
        self.out.flush()

    def end(self) -> None:
        if self.moving:
            self.out.write("\r\x1b[K")
            self.out.flush()


def clock(seconds: float) -> str:
    """Seconds as m:ss."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
