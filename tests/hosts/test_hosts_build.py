"""Where and for what cpubench is built."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from hosts import short

import cpubench
from cpubench import _native

PACKAGE = Path(cpubench.__file__).parent


def test_the_build_is_for_any_cpu_of_its_architecture() -> None:
    """What is built for one CPU dies of an illegal instruction on another (pynauty#49), and differs from one to the
    next; a flag of x86 does not compile on Arm (Stim#294)."""
    words = f"{_native.BUILD['flags']} {_native.BUILD['link']}".split()
    assert "-O2" in words
    assert [word for word in words if word.startswith("-m")] == []


@pytest.mark.parametrize("name", ["a b:c", "a\n\x1b[31m\udcff'\"$(id)"])
def test_it_works_from_a_path_with_blanks_and_a_colon(tmp_path: Path, name: str) -> None:
    """From there, and with its run folder there; what is no text is stored and printed as escapes."""
    place = tmp_path / name
    place.mkdir()
    shutil.copytree(PACKAGE, place / "cpubench", ignore=shutil.ignore_patterns("__pycache__"))
    script = (
        "import runpy, sys; package, short, *sys.argv[1:] = sys.argv[1:]; sys.path.insert(0, package)\n"
        "sys.meta_path = [finder for finder in sys.meta_path if 'ditable' not in repr(finder)]\n"
        "runpy.run_path(short, run_name='__main__')"
    )
    arguments = ["spawn_shell@1,storage_create@1", "run", "--profile", "quick", "--json", "--out", str(place / "r")]
    done = subprocess.run(
        [sys.executable, "-I", "-c", script, str(place), str(Path(short.__file__)), *arguments],
        capture_output=True, text=True, check=False, cwd="/",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["failed"] == document["skipped"] == []
    assert "\x1b" not in done.stdout + done.stderr
    assert (place / "r/run.json").exists()


def test_the_extension_does_not_turn_the_gil_on() -> None:
    """An extension that does not say that it can do without turns it on for the whole process (cython#6239)."""
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        code = "import sys; from cpubench import _native; print(sys._is_gil_enabled())"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "False"
    else:
        first = (Path(__file__).parents[2] / "cpubench/_native.pyx").read_text().splitlines()[0]
        assert "freethreading_compatible=True" in first
