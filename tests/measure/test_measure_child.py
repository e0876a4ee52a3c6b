"""Child processes: they find this very package where nothing but its own place leads to it."""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cpubench
from cpubench.errors import UsageError
from cpubench.measure import child


def test_a_child_finds_its_module_in_the_package_folder_alone(tmp_path, monkeypatch):
    """-I leaves out the working folder, PYTHONPATH and the user's own site folder."""
    (tmp_path / "only here").mkdir()
    (tmp_path / "only here" / "lonely.py").write_text("import sys; print(*sys.argv[1:3]); sys.exit('as asked')\n")
    with pytest.raises(UsageError, match="as asked"):
        child.run_child("lonely", [], tmp_path, random.Random(1), child.Installed(packages=tmp_path / "only here"))
    monkeypatch.chdir(tmp_path / "only here")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "only here"))
    with pytest.raises(UsageError, match="No module named lonely"):
        child.run_child("lonely", [], tmp_path, random.Random(1), child.Installed(packages=tmp_path))


def test_a_child_enters_its_control_group_before_anything_else(tmp_path):
    """What it writes into the group's file is itself; a group that it cannot enter is one line."""
    (tmp_path / "early.py").write_text("import pathlib, sys; sys.exit(pathlib.Path(sys.argv[1]).read_text())\n")
    procs = tmp_path / "cgroup.procs"
    into = child.Installed(packages=tmp_path, group=procs)
    with pytest.raises(UsageError, match=r"early: 0$"):
        child.run_child("early", [str(procs)], tmp_path, random.Random(1), into)
    nowhere = child.Installed(packages=tmp_path, group=tmp_path / "none" / "cgroup.procs")
    with pytest.raises(UsageError, match="No such file or directory"):
        child.run_child("early", [str(procs)], tmp_path, random.Random(1), nowhere)


def test_a_child_that_is_killed_or_cannot_be_started_is_one_line(tmp_path):
    (tmp_path / "dies.py").write_text("import os; os.kill(os.getpid(), 9)\n")
    for fault, module, into in (
        (r"^dies: killed by SIGKILL \(9\)$", "dies", child.Installed(packages=tmp_path)),
        (r"^dies: cannot be started: No such file or directory$", "dies", child.Installed(python="/nonexistent")),
    ):
        with pytest.raises(UsageError, match=fault):
            child.run_child(module, [], tmp_path, random.Random(1), into)
    with pytest.raises(UsageError, match="gone: cannot hold a scratch folder: No such file or directory"):
        child.run_child("dies", [], tmp_path / "gone", random.Random(1))
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("linked", [False, True])
def test_an_install_by_user_or_pythonpath_measures_with_itself(tmp_path, linked):
    """With an interpreter that has no cpubench: the parent has it from PYTHONPATH, its block from the parent alone."""
    bare, site = tmp_path / "bare", tmp_path / "user site"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    package = Path(cpubench.__file__).parent
    site.mkdir()
    if linked:
        (site / "cpubench").symlink_to(package)
    else:
        shutil.copytree(package, site / "cpubench", ignore=shutil.ignore_patterns("__pycache__"))
    script = (
        "import pathlib, random, sys\n"
        "from cpubench.errors import UsageError\n"
        "from cpubench.measure.child import run_child\n"
        "arguments = ['no-plan', '0', 'as-is', 'out']\n"
        "try: run_child('cpubench.measure.block', arguments, pathlib.Path('.'), random.Random(1))\n"
        "except UsageError as error: print(error)"
    )
    done = subprocess.run(
        [bare / "bin" / "python", "-c", script], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "block: no-plan: No such file or directory\n", done.stderr
