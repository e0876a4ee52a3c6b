"""For ``pytest-benchmark compare``, which takes hooks from ./conftest.py only and never from an installed plugin."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_scale_unit(config: Any, unit: str, benchmarks: Any, best: Any, worst: Any, sort: str) -> Any:
    # Not at the top: a plugin that is imported before pytest registers it is a warning, and warnings are errors here.
    from cpubench.bench.scale import scale_unit

    return scale_unit(config, unit, benchmarks, best, worst, sort)
