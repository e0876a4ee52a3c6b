"""Time units for the tables of pytest-benchmark."""

from __future__ import annotations

from typing import Any


def scale_unit(
    config: Any, unit: str, benchmarks: Any, best: dict[str, float], worst: dict[str, float], sort: str
) -> tuple[str, float]:
    """The prefix and the factor for a column of seconds or of operations per second.

    With ``--benchmark-time-unit=ns`` pytest-benchmark 5.3 scales operations too, to "411,438,720,563,822,464 nops/s".
    """
    from pytest_benchmark import plugin

    theirs: Any = plugin.pytest_benchmark_scale_unit
    scaled: tuple[str, float] = theirs(None if unit == "operations" else config, unit, benchmarks, best, worst, sort)
    return scaled
