"""The job of Slurm with commands that stand in for Slurm's: each index is tied to its node, and measures that host."""

import os
import subprocess

import pytest

import cpubench.fleet.template as template

STANDS_IN = '#!/bin/sh\necho "$(basename $0) $*" >> "$LOG"\n'


@pytest.fixture
def job(tmp_path):
    """The script, and a function that runs it and returns what was called and what it printed."""
    template.init(tmp_path / "demo")
    programs = tmp_path / "programs"
    programs.mkdir()
    bodies = {
        "sbatch": "echo 77", "srun": "", "cpubench": "",
        "scontrol": 'if [ "$1 $2" = "show hostnames" ]; then printf "n1\\nn2\\nn3\\n"; fi',
    }  # fmt: skip
    for name, body in bodies.items():
        (programs / name).write_text(f"{STANDS_IN}{body}\n")
        (programs / name).chmod(0o755)

    def run(**environment):
        log = tmp_path / "log"
        log.write_text("")
        given = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "LOG": str(log), **environment}
        command = ["bash", str(tmp_path / "demo/slurm/cpubench.sbatch"), "demo", "n[1-3]"]
        done = subprocess.run(command, env=given, capture_output=True, text=True, check=True)
        return log.read_text().splitlines(), done.stdout

    return run


def test_it_submits_itself_with_one_index_for_each_node(job):
    environment = {"SLURM_ARRAY_TASK_ID": ""}
    called, out = job(**environment)
    assert out == "77\n"
    assert called[1].startswith("sbatch --parsable --hold --array=0-2 ")
    assert called[1].endswith("cpubench.sbatch demo n[1-3]")
    assert called[2:5] == [f"scontrol update JobId=77_{at} ReqNodeList=n{at + 1}" for at in range(3)]
    assert called[5:] == ["scontrol release 77"]  # only then may any of them begin


def test_an_index_measures_its_host_alone_on_its_node(job):
    called, _ = job(SLURM_ARRAY_TASK_ID="1")
    assert called[1:] == ["srun --cpu-bind=none cpubench fleet here demo --host n2"]
