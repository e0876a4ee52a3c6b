"""Real hosts: namespaces with an sshd each, driven by Ansible, some of which fail in every way that is told apart."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import resource
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hosts import short

from cpubench.fleet.layout import RUN, results
from fleet import netns

Json = dict[str, Any]
NAMES = ["one", "two", "killed", "busy", "full", "wrong"]
DEAD = f"{netns.NET}.99"
VARIANTS = "test_work[steps=1000]@1,switch_pipe[place=same]@1"
TIMES = "expected=4,poll=1,gather=0.3,settle=0,deadline=60"
WHY = netns.reason()
pytestmark = pytest.mark.skipif(WHY is not None, reason=str(WHY))
CPUBENCH = [sys.executable, "-I", "-m", "cpubench"]


@pytest.fixture
def hosts(request: pytest.FixtureRequest) -> Iterator[netns.Hosts]:
    folder = Path(tempfile.mkdtemp(prefix="cbf"))  # short: a control path of ssh has 108 bytes
    made = netns.Hosts(folder, request.param, f"cb{os.getpid() % 10000}")
    try:
        made.open()
        yield made
    finally:
        made.closed()
        shutil.rmtree(folder, ignore_errors=True)


def call(hosts: netns.Hosts, *arguments: str, watch: Any = None) -> tuple[int, Json, str]:
    """Exit code, document and stderr of a command of the controller; ``watch`` sees each line of stderr."""
    environment = {**os.environ, "HOME": str(hosts.folder)}
    command = hosts.inside(*CPUBENCH, "fleet", *arguments, "--json")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=hosts.folder, env=environment
    ) as done:
        told: list[str] = []

        def listen() -> None:
            for line in done.stderr or ():
                told.append(line)
                if watch is not None:
                    watch(line)

        listener = threading.Thread(target=listen)
        listener.start()
        out = done.stdout.read() if done.stdout else ""
        listener.join(60)
    assert out, "".join(told)
    return done.returncode, json.loads(out), "".join(told)


def wheel(folder: Path, module: str, version: str) -> None:
    """A wheel of a package as it is installed here; of what cpubench needs, only what a job does."""
    more = "Requires-Dist: msgspec\n" if module == "cpubench" else ""
    found = importlib.util.find_spec(module)
    assert found is not None
    assert found.origin is not None
    root, info = Path(found.origin).parent, f"{module}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{module}-{version}-py3-none-any.whl", "w") as out:
        for file in sorted(root.rglob("*")):
            if file.is_file() and file.suffix != ".pyc":
                out.write(file, Path(module) / file.relative_to(root))
        out.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {module}\nVersion: {version}\n{more}")
        out.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        out.writestr(f"{info}/RECORD", "")


def wheelhouse(folder: Path) -> None:
    """A wheelhouse without an index: enough of cpubench for a job, whose runs are of another Python here."""
    wheels = folder / "made"
    wheels.mkdir(parents=True)
    for module, version in (("cpubench", "0"), ("msgspec", "0"), ("pip", "99")):
        wheel(wheels, module, version)
    tag = f"cp3{sys.version_info.minor}-{platform.machine()}"
    with tarfile.open(folder / f"{tag}.tar", "w") as out:
        for file in wheels.iterdir():
            out.add(file, file.name)
    document = {tag: {"kind": "wheel", "glibc": "2.0", "sha256": "f" * 64, "files": 3, "bytes": 1}}
    (folder / "wheelhouse.json").write_text(json.dumps(document))


def inventory(hosts: netns.Hosts, **own: Json) -> None:
    """The inventory of all names and the dead one; ``own`` adds variables to a host."""
    common = {
        "ansible_python_interpreter": sys.executable, "ansible_user": "root", "cpubench_python": sys.executable,
        "ansible_ssh_private_key_file": str(hosts.key), "cpubench_free_mb": 0.2,
        "ansible_ssh_common_args": f"-o UserKnownHostsFile={hosts.folder}/known -o ConnectTimeout=4",
        "cpubench_command": f"{sys.executable} -I {short.__file__} {VARIANTS}",
        "cpubench_home": f"{hosts.folder}/home/" + "{{ inventory_hostname }}",
    }  # fmt: skip
    named = {name: {"ansible_host": hosts.address(name), **own.get(name, {})} for name in hosts.names}
    if "wrong" in hosts.names:
        named["dead"] = {"ansible_host": DEAD}
    document = {"candidates": {"vars": common, "hosts": named}}
    (hosts.folder / "demo" / "inventory.yml").write_text(json.dumps(document))  # JSON is YAML


@pytest.mark.parametrize("hosts", [NAMES], indirect=True, ids=["six"])
def test_every_failure_has_its_row_and_the_others_are_unhurt(hosts: netns.Hosts) -> None:
    assert call(hosts, "init", "demo")[0] == 0
    pair = {"power_group": "chassis"}
    wrong = {"ansible_ssh_private_key_file": str(hosts.folder / "stranger")}
    inventory(hosts, one=pair, two=pair, wrong=wrong)
    code, planned, _ = call(hosts, "plan", "demo", "--profile", "quick", "--repeats", "1", "--seed", "1")
    assert (code, planned["runs"], planned["hosts"]) == (0, 7, 7)

    hosts.kill("full")
    home = hosts.folder / "home" / "full"
    home.mkdir(parents=True)
    hosts.boot("full", f"mount -t tmpfs -o size=100k none {home}")

    def cut(line: str) -> None:
        if line.startswith("killed as-is repeat 1: started"):
            hosts.kill("killed")

    with hosts.locked("busy"):
        code, first, log = call(hosts, "run", "demo", "--times", TIMES, watch=cut)
    rows = {row["host"]: (row["state"], row["class"]) for row in first["rows"]}
    assert rows == {
        "one": ("done", None), "two": ("done", None), "dead": ("failed", "unreachable"),
        "killed": ("failed", "unreachable"), "busy": ("failed", "busy"), "full": ("failed", "preflight refused"),
        "wrong": ("failed", "unreachable"),
    }, log  # fmt: skip
    texts = {row["host"]: row["text"] for row in first["rows"]}
    assert "another cpubench run" in texts["busy"]
    assert "MB are free" in texts["full"] or "No space left" in texts["full"]
    assert "in mid-run" in texts["killed"]
    assert "Permission denied" in texts["wrong"]
    assert code == 1
    steps = [line.partition(":")[2].strip() for line in log.splitlines() if line.startswith(("one ", "two "))]
    assert steps == ["started", "done", "started", "done"]  # of one power group: never two at once

    # What was wrong is put right, but for the dead one: the second call does what is missing and nothing else.
    fleet = hosts.folder / "results" / "demo"
    before = {cell.host: file.stat().st_mtime_ns for cell, file in results(fleet)}
    assert set(before) == {"one", "two"}
    for name in ("killed", "full"):
        hosts.kill(name)
        hosts.boot(name)
    inventory(hosts, one=pair, two=pair)
    code, second, log = call(hosts, "run", "demo", "--times", TIMES)
    assert (code, second["done"], second["failures"]) == (1, 6, {"unreachable": 1}), log
    after = {cell.host: file.stat().st_mtime_ns for cell, file in results(fleet)}
    assert {name: after[name] for name in before} == before
    assert not [line for line in log.splitlines() if line.startswith(("one ", "two "))]
    assert all((fleet / row["host"]).is_dir() for row in second["rows"])
    assert sum(1 for _ in fleet.glob(f"*/*/{RUN}")) == 6


def documented() -> list[list[str]]:
    """The commands of a fleet in the first block of docs/fleet.md, as words."""
    text = (Path(__file__).parents[2] / "docs" / "fleet.md").read_text()
    block = text.split("```sh\n")[1].split("```")[0]
    lines = [line.partition("#")[0] for line in block.splitlines()]
    return [shlex.split(line)[2:] for line in lines if line.startswith("cpubench fleet ")]


@pytest.mark.parametrize("hosts", [["node1", "node2"]], indirect=True, ids=["two"])
def test_the_documented_commands_lead_to_results(
    hosts: netns.Hosts, capsys: pytest.CaptureFixture[str], record_property: Any
) -> None:
    """As written, but that the wheelhouse is made here, without an index, and that runs take seconds."""
    commands = documented()
    assert [command[0] for command in commands][:6] == ["init", "wheelhouse", "plan", "run", "status", "collect"]
    init, _, plan, run, status, collect = commands[:6]
    assert call(hosts, *init)[0] == 0
    inventory(hosts)
    text = (hosts.folder / "demo" / "inventory.yml").read_text()
    document = json.loads(text)
    del document["candidates"]["vars"]["cpubench_python"]
    document["candidates"]["vars"]["cpubench_free_mb"] = 1
    (hosts.folder / "demo" / "inventory.yml").write_text(json.dumps(document))
    code, planned, _ = call(hosts, *plan)
    assert (code, planned["hosts"], planned["runs"]) == (0, 2, 6)

    code, found, log = call(hosts, *run, "--times", TIMES)  # there is no wheelhouse yet
    assert (code, found["failures"]) == (1, {"preflight refused": 6}), log
    assert "make them with `cpubench fleet wheelhouse`" in found["rows"][0]["text"]

    wheelhouse(hosts.folder / "demo" / "wheelhouse")
    once = [*plan[:2], "--profile", "quick", "--repeats", "1"]
    assert call(hosts, *once)[0] == 0
    code, found, log = call(hosts, *run, "--times", TIMES)
    assert (code, found["done"], found["planned"]) == (0, 2, 2), log
    marks = [hosts.folder / "home" / name / "venv" / "wheelhouse.sha256" for name in hosts.names]
    before = [mark.stat().st_mtime_ns for mark in marks]

    assert call(hosts, *once[:-1], "2")[0] == 0  # one run more of each host, which are installed
    began = usage()
    code, found, log = call(hosts, *run, "--times", TIMES)
    record_property("controller CPU-s per host", (usage() - began) / 2)
    with capsys.disabled():
        print(f"controller: {(usage() - began) / 2:.2f} CPU-s per host")
    assert (code, found["done"], found["planned"]) == (0, 4, 4), log
    assert [mark.stat().st_mtime_ns for mark in marks] == before
    assert call(hosts, *status)[1] == found
    code, table, log = call(hosts, *collect)
    assert (code, table["counts"]["results"], table["counts"]["missing"], table["bad"]) == (0, 4, 0, []), log
    assert {one["host"]: one["results"] for one in table["hosts"]} == dict.fromkeys(hosts.names, 2)
    assert all(one["faults"] for one in table["units"])  # runs of seconds are no results to publish
    assert not list((hosts.folder / "home").glob("*/jobs/*/*"))  # nothing stays on the hosts but the installation

    # Other wheels are to be installed, and a run of somebody else goes on at one of the two: its files stay.
    wheels = hosts.folder / "demo" / "wheelhouse" / "wheelhouse.json"
    wheels.write_text(wheels.read_text().replace("f" * 64, "e" * 64))
    assert call(hosts, *once[:-1], "3")[0] == 0
    with hosts.locked("node1"):
        code, found, log = call(hosts, *run, "--times", TIMES)
    assert (code, found["done"], found["failures"]) == (1, 5, {"busy": 1}), log
    assert [mark.read_text().strip()[0] for mark in marks] == ["f", "e"]
    assert marks[0].stat().st_mtime_ns == before[0]


def usage() -> float:
    """CPU seconds of the commands of the controller so far, with all that they started; the hosts' are not theirs."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime
