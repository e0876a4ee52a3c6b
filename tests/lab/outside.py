"""Outside of the virtual machine: this host reads the run that was capped in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from lab import boot_run

KEEP = "CPUBENCH_LAB_KEEP"


def looked_at(run: Path) -> bool:
    """Whether the run is valid here and a report can be made of it; prints what was wrong."""
    if os.environ.get(KEEP):
        shutil.copytree(run, os.environ[KEEP], dirs_exist_ok=True, ignore=shutil.ignore_patterns(".virtfs_metadata"))
    html = run.parent / "report.html"
    for arguments in (["validate", run], ["score", run], ["report", run, "-o", html]):
        command = [sys.executable, "-I", "-m", "cpubench", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if done.returncode != 0:
            print(f"== on this host, {arguments[0]} of the capped run: BAD\n{done.stdout}{done.stderr}")
            return False
    good = all(f">{level}<" in html.read_text() for level in boot_run.LEVELS)
    print(
        f"== on this host, validate, score, report of the capped run: {'good' if good else 'BAD: levels are missing'}"
    )
    return good
