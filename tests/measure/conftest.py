"""Fixtures of the tests of runs."""

import contextlib

import pytest
from stand_ins import Children

from cpubench.measure import child, runner


@pytest.fixture
def children(monkeypatch, tmp_path):
    """The stand-in, on a host where nobody else measures, in an empty working folder."""
    made_up = Children()
    monkeypatch.setattr(child, "run_child", made_up)
    monkeypatch.setattr(runner.place, "host_lock", contextlib.nullcontext)
    monkeypatch.chdir(tmp_path)
    return made_up
