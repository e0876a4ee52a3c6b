"""Fixtures of runs in poor surroundings."""

from __future__ import annotations

from pathlib import Path

import pytest
from hosts.recipes import tools


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the programs that recipes need."""
    return tools(tmp_path_factory.mktemp("tools"))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A folder that everybody may write to."""
    folder = tmp_path / "runs"
    folder.mkdir()
    folder.chmod(0o777)
    return folder
