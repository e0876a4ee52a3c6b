"""Real runs in surroundings that lack something: whole, with rows that say why they are none, or refused beforehand."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hosts import short
from hosts.recipes import HOSTNAME, RECIPES, run
from hosts.surroundings import may_unshare
from pools import CPUS

from cpubench import recheck
from cpubench.measure.profiles import PROFILES
from cpubench.results.load import load_run
from cpubench.results.records import Run

Json = dict[str, Any]
VARIANTS = ["test_work[steps=1000]@1", "lock_mutex[cs=200ns]@1", "lock_mutex[cs=200ns]@cores", "file_create@cores",
            "spawn_vfork_exec[rss=8M]@1", "spawn_shell@1", "switch_pipe[place=other]@1", "mem_chase[set=256M]@1",
            "storage_create@1"]  # fmt: skip
SHORT = [sys.executable, "-I", str(Path(short.__file__)), ",".join(VARIANTS)]
RUN = [*SHORT, "run", "--profile", "quick", "--json", "--seed", "1", "--out"]
REFUSED = [name for name, recipe in RECIPES.items() if recipe.refusal]
SETTINGS = ("proc/sys/kernel", "proc/sys/vm", "sys/kernel/mm/transparent_hugepage", "sys/devices/system/cpu/cpufreq")
pytestmark = [
    pytest.mark.skipif(not may_unshare(), reason="needs root and mount namespaces"),
    pytest.mark.skipif(len(CPUS) < 2, reason="one core: a group has no place"),
]


@pytest.fixture(autouse=True)
def unchanged() -> Iterator[None]:
    """The settings of the kernel and what is mounted are afterwards what they were, and /dev/shm holds nothing new."""
    before = settings()
    yield
    assert settings() == before


def settings() -> dict[str, str]:
    found = {"mounts": Path("/proc/self/mountinfo").read_text(), "name": os.uname().nodename}
    found["left"] = " ".join(sorted(path.name for path in Path("/dev/shm").glob("cpubench-[!t]*")))
    for file in (file for folder in SETTINGS for file in Path("/", folder).glob("*")):
        if file.is_file() and file.stat().st_mode & 0o200 and file.stat().st_mode & 0o400:
            try:
                found[str(file)] = file.read_text(errors="replace")
            except OSError as error:
                found[str(file)] = str(error)
    # What the kernel itself moves, and what tests beside this one could.
    return {k: v for k, v in found.items() if not k.endswith(("ns_last_pid", "random", "khugepaged"))}


def whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The run of a folder, once it has passed validation."""
    monkeypatch.setitem(PROFILES, "quick", short.QUICK)
    monkeypatch.setattr(recheck, "SAMPLE_NS", short.SAMPLE_NS)
    assert recheck.validated(folder)["valid"]
    return load_run(folder)


def told(found: Run) -> dict[str, str]:
    """The reason of each row that has none, or not everywhere, a number; all others have one in each block."""
    reasons = {missing.variant: missing.reason for missing in found.plan.skipped}
    for block in (block for one in found.passes for block in one.blocks):
        for cell in block.cells:
            if cell.error:
                reasons[cell.key] = cell.error
            else:
                assert all(ops > 0 for ops in cell.copy_ops), cell.key
    assert {*reasons, *(variant.key for variant in found.plan.variants)} == set(VARIANTS)
    return reasons


@pytest.mark.parametrize("name", [name for name in RECIPES if name not in REFUSED])
def test_a_run_is_whole_or_its_rows_say_why_they_are_none(
    name: str, made: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = RECIPES[name]
    done = run(recipe, [*RUN, str(out / "r")], made, out)
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr
    found = whole(out / "r", monkeypatch)
    reasons = told(found)
    assert {key for key in VARIANTS if key.startswith(tuple(recipe.reasons))} == set(reasons)
    for start, text in recipe.reasons.items():
        assert all(text in reason for key, reason in reasons.items() if key.startswith(start))
    document = json.loads(done.stdout)
    assert {row["variant"] for row in document["failed"] + document["skipped"]} == set(reasons)
    assert [path.name for path in out.iterdir()] == ["r"]
    assert not list((out / "r").glob(".*"))
    chases = [cell for cell in found.passes[0].blocks[0].cells if cell.kernel == "mem_chase"]
    if name in ("spare calls", "bare"):  # huge pages are asked for by madvise()
        assert chases[0].obtained["huge_ppm"] == 0
    if name == "bare":
        one, other = (one.blocks[0].times.start_utc_ns for one in found.passes)
        assert abs(other - one) > 30 * 60 * 10**9  # the wall clock was another one
        assert found.host["hostname"] == HOSTNAME.decode(errors="backslashreplace")
        assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize("name", REFUSED)
def test_a_run_is_refused_in_one_line_before_anything_is_measured(name: str, made: Path, out: Path) -> None:
    recipe = RECIPES[name]
    done = run(recipe, [*RUN, str(out / "r")], made, out)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("calibrating")]
    assert (done.returncode, len(lines)) == (2, 1), done.stderr
    assert recipe.refusal in lines[0]
    assert json.loads(done.stdout)["error"]["text"] in lines[0]
    assert list(out.iterdir()) == []
