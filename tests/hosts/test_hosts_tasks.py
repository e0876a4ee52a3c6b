"""Runs of tasks, and the page of the host, where something is lacking, and where something happens in mid-run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hosts.recipes import RECIPES, run
from hosts.surroundings import after, compiled, may_unshare
from started import started

from cpubench.recheck import validated
from cpubench.results.load_tasks import load_tasks

CLI = [sys.executable, "-I", "-m", "cpubench"]
TASKS = [*CLI, "tasks", "run", "--profile", "quick", "--tasks", "T0", "--json", "--seed", "1"]
LACKING = ["nobody", "bare", "PID 1", "no usage", "no prctl", "no sync", "no sockets", "few files"]
NO_EXTENSION = "noexec"  # of which `host` says that, and tells the rest
needs_root = pytest.mark.skipif(not may_unshare(), reason="needs root and mount namespaces")


@needs_root
@pytest.mark.parametrize("name", RECIPES)
def test_the_host_is_told_whatever_is_lacking(name: str, made: Path, out: Path) -> None:
    done = run(RECIPES[name], [*CLI, "host", "--json"], made, out)
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert document["stable"]["cores"]
    assert (document["stable"]["build"] is None) == (name == NO_EXTENSION)
    for part in ("stable", "volatile"):
        assert {key for key, value in document[part].items() if value is None} <= set(document["reasons"])


@needs_root
@pytest.mark.parametrize("name", LACKING)
def test_tasks_are_done_or_say_why_not(name: str, made: Path, out: Path) -> None:
    done = run(RECIPES[name], [*TASKS, "--repeats", "1", "--out", str(out / "t")], made, out)
    assert "Traceback" not in done.stderr
    if done.returncode == 0:
        (row,) = json.loads(done.stdout)["tasks"]
        assert (row["tasks_per_hour"]["value"] is None) == bool(row["failures"])
        assert not row["failures"] or row["tasks_per_hour"]["reason"].partition(": ")[2] in done.stderr
        assert validated(out / "t")["failed"] == row["failures"]
        assert [path.name for path in (out / "t").iterdir()] == ["tasks.json"]
    else:
        assert done.returncode == 2
        assert len([line for line in done.stderr.splitlines() if line.startswith("cpubench: ")]) == 1
        assert list(out.iterdir()) == []


@needs_root
def test_a_disk_that_is_too_small_is_said_before_anything_is_measured(out: Path) -> None:
    for size in ("8k", "600k"):
        mount = after(f"mount -t tmpfs -o size={size} none '{out}'", 'trap "" EXIT')
        script = ["sh", "-c", '"$@"; echo $? $(ls -A "$0")', str(out), *TASKS, "--out", str(out / "t")]
        done = subprocess.run([*mount, *script], capture_output=True, text=True, check=False, timeout=60)
        assert done.stdout.splitlines()[-1] == "2", done.stdout  # and no file
        (line,) = done.stderr.splitlines()
        assert "No space left on device" in line


FILL = 'until [ -e "$0/t/tasks.json" ]; do sleep 0.02; done; cp "$0/t/tasks.json" "$0.first"; '
HAPPENS = {
    "full": ('cat /dev/zero > "$0/fill" 2> "$0.said"', "No space left on device", "kept in "),
    "unmounted": ('umount -l "$0"', "is gone (removed, renamed or unmounted), and with it ", " repeats"),
}


@needs_root
@pytest.mark.parametrize("name", HAPPENS)
def test_a_disk_that_fills_up_or_goes_keeps_what_was_finished_or_says_so(out: Path, name: str) -> None:
    what, said, end = HAPPENS[name]
    (helper := out.parent / "helper.sh").write_text(FILL + what + "\n")
    mounts = (f"mount -t tmpfs -o size=24m none '{out}'", f"{{ sh -c \"$(cat '{helper}')\" '{out}' & }}")
    script = ["sh", "-c", '"$@"; code=$?; cp "$0/t/tasks.json" "$0.kept"; exit $code', str(out), *TASKS]
    done = subprocess.run([*after(*mounts), *script, "--repeats", "500", "--out", str(out / "t")], capture_output=True,
                          text=True, check=False, timeout=120)  # fmt: skip
    assert done.returncode == 2, done.stderr
    text = json.loads(done.stdout)["error"]["text"]
    assert said in text
    assert end in text
    assert "Traceback" not in done.stderr
    if name == "full":
        (out.parent / "tasks.json").write_bytes(Path(f"{out}.kept").read_bytes())
        kept = load_tasks(out.parent)
        assert f"{len(kept.tasks[0].repeats)} repeats are kept" in text
        assert kept.stopped in ("running", "failed")
        first = json.loads(Path(f"{out}.first").read_bytes())["tasks"][0]["repeats"]
        assert json.loads((out.parent / "tasks.json").read_bytes())["tasks"][0]["repeats"][: len(first)] == first


def test_a_second_run_at_once_is_refused_and_a_dead_one_keeps_no_lock(tmp_path: Path) -> None:
    from cpubench.measure.folder import host_lock

    take = "import time; from cpubench.measure.folder import host_lock; lock = host_lock()"
    code = f"{take}; print(flush=True); time.sleep(60)"
    with started([sys.executable, "-I", "-c", code], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        done = subprocess.run([*TASKS, "--out", str(tmp_path / "t")], capture_output=True, text=True, check=False)
        assert (done.returncode, "another cpubench run is measuring" in done.stderr) == (2, True)
        assert list(tmp_path.iterdir()) == []
    host_lock().close()


def test_a_wall_clock_that_is_stepped_all_the_time_moves_no_time(tmp_path: Path) -> None:
    preload = compiled("stepped.c", tmp_path, "-shared", "-fPIC")
    out = tmp_path / "t"
    done = subprocess.run([*TASKS, "--repeats", "2", "--out", str(out)], capture_output=True, text=True, check=False,
                          env={**os.environ, "LD_PRELOAD": str(preload)}, timeout=60)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert validated(out)["failed"] == 0
    walls = [one.wall_ns for one in load_tasks(out).tasks[0].repeats]
    assert len(walls) == 2
    assert all(0 < wall < 60 * 10**9 for wall in walls)
