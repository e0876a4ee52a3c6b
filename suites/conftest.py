"""Lets pytest collect the ``bench_*.py`` files of this folder."""

from __future__ import annotations

import pytest

from cpubench.bench.session import expect_suites


def pytest_configure(config: pytest.Config) -> None:
    expect_suites(config)
