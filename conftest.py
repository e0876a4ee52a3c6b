"""For ``pytest-benchmark compare``, which takes hooks from ./conftest.py only and never from an installed plugin."""

import pytest

from cpubench.bench.scale import scale_unit

pytest_benchmark_scale_unit = pytest.hookimpl(optionalhook=True)(scale_unit)
