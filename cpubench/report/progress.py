"""Progress of a run on stderr: one moving line on a terminal, a line for each pass elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TextIO

from cpubench.results.parse import shown

ENDS = {"interrupted": "interrupted", "failed": "given up"}  # the others are reasons to stop


def writer(out: TextIO) -> Callable[..., None]:
    """A function that writes a line; on a terminal one that does not stay is overwritten by the next.

    Where it cannot be written (the terminal is gone, the disk of the log is full) the run goes on without it.
    """
    moving = out.isatty()

    def line(text: str, stays: bool = True) -> None:
        with suppress(OSError):
            if moving:
                out.write(f"\r\x1b[K{text}\n" if stays else f"\r\x1b[K{text[:79]}")
            else:
                out.write(text + "\n")
            out.flush()

    return line


def progress(out: TextIO) -> Callable[[str, Any], None]:
    """A function that the runner tells each event: it says what is done, how wide the interval is, the time left."""
    line, moving = writer(out), out.isatty()

    def tell(event: str, state: Any) -> None:
        plan, passes, left = state.plan, state.passes, f"at most {clock(state.most_left_ns)}"
        if event == "calibrating":
            line(f"calibrating {len(plan.variants)} variants, about {1 + len(plan.variants) // 6} s", stays=not moving)
        elif event.startswith("levels "):
            line(event)
        elif event == "planned":
            line(
                f"{len(plan.variants)} variants, {len(plan.skipped)} left out; {plan.profile}: {plan.min_passes} to "
                f"{plan.max_passes} passes of about {plan.predicted_pass_ns / 1e9:.1f} s, {left}"
            )
        elif event == "pass":
            what = "ratio" if state.turns else "interval"
            width = "" if state.half_width is None else f", widest {what} +-{100 * state.half_width:.3g} %"
            line(f"pass {passes}{width} (target {plan.target_ppm / 1e4:g} %), {left} left", stays=False)
        elif event.startswith("again: "):
            line(f"measured {event}")
        elif event.startswith("stopped by "):
            by = event.removeprefix("stopped by ")
            line(f"{passes} passes, {ENDS.get(by, event)}")
        elif event.startswith("warning"):
            line(event)
        else:
            line(f"pass {passes + 1} {shown(event)}")

    return tell


def clock(ns: float) -> str:
    """Nanoseconds as m:ss."""
    seconds = round(ns / 1e9)
    return f"{seconds // 60}:{seconds % 60:02d}"
