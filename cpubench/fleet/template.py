"""A new folder of a fleet: a copy of the playbook, whose inventory is then edited."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from importlib.resources import as_file, files
from pathlib import Path

from cpubench.errors import UsageError

PLAYBOOK = ("site.yml", "ansible.cfg", "inventory.yml")


def init(folder: Path) -> list[str]:
    """The files that were written into ``folder``; UsageError where one of them is there."""
    try:
        playbook = files("cpubench.fleet.playbook")
    except ModuleNotFoundError:  # of an editable install that was made before there was one
        text = "its playbook is not in this installation: install cpubench again"
        raise UsageError("not_installed", text, "fleet init") from None
    with as_file(playbook) as source:
        every = sorted(_files(source))
        there = [str(file) for file in every if (folder / file).exists()]
        if there:
            text = f"holds {there[0]}: choose a new folder, or remove it first"
            raise UsageError("exists", text, str(folder))
        try:
            for file in every:
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source / file, folder / file)
        except OSError as error:
            raise UsageError("write", f"cannot be written: {os.strerror(error.errno or 0)}", str(folder)) from None
    return [str(file) for file in every]


def _files(source: Path) -> Iterator[Path]:
    for file in source.rglob("*"):
        if file.is_file() and file.suffix in (".yml", ".cfg", ".sbatch", ".py") and file.name != "__init__.py":
            yield file.relative_to(source)


def check_folder(folder: Path) -> Path:
    """The folder of a fleet; UsageError where it is none."""
    missing = [name for name in PLAYBOOK if not (folder / name).is_file()]
    if missing:
        text = f"is no folder of a fleet: it holds no {missing[0]}; make one with `cpubench fleet init DIR`"
        raise UsageError("not_a_fleet", text, str(folder))
    return folder
