"""Fixtures of the tests of tasks."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # pytest's importlib mode adds none


@pytest.fixture(scope="session")
def generated(tmp_path_factory):
    """The inputs, generated once."""
    from tasks_run import inputs_in

    return inputs_in(tmp_path_factory.mktemp("tasks"))
