"""SWE-agent's ``.traj``: one JSON document with a list of steps; newer ones say how long each action took."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cpubench.errors import UsageError
from cpubench.traces.lines import document, field, number, size_of
from cpubench.traces.span import Span


def read(path: Path) -> Iterator[Span]:
    """A span for each action. Nothing tells how long the model took."""
    steps = document(path).get("trajectory")
    if not isinstance(steps, list):
        raise UsageError("record", "holds no list of steps", "trajectory")
    for step, one in enumerate(steps):
        action = field(one, "action")
        if not isinstance(action, str):
            raise UsageError("record", "has no action", f"trajectory[{step}]")
        if action.strip():  # the model answered without one
            yield Span(step=step, tool="bash", cmd=action, dur=number(field(one, "execution_time")), task=str(path),
                       in_bytes=size_of(action), out_bytes=size_of(field(one, "observation")))  # fmt: skip
