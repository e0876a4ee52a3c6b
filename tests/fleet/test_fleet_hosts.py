"""Real hosts: namespaces with an sshd each, driven by Ansible, some of which fail in every way that is told apart."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fleet import netns
from hosts import short

from cpubench.fleet.layout import RUN, results

Json = dict[str, Any]
NAMES = ["one", "two", "killed", "busy", "full", "wrong"]
DEAD = f"{netns.NET}.99"
VARIANTS = "test_work[steps=1000]@1,switch_pipe[place=same]@1"
TIMES = "expected=4,poll=1,gather=0.3,settle=0,deadline=60"
WHY = netns.reason()
pytestmark = pytest.mark.skipif(WHY is not None, reason=str(WHY))
CPUBENCH = [sys.executable, "-I", "-m", "cpubench"]


@pytest.fixture
def hosts() -> Iterator[netns.Hosts]:
    folder = Path(tempfile.mkdtemp(prefix="cbf"))  # short: a control path of ssh has 108 bytes
    made = netns.Hosts(folder, NAMES, f"cb{os.getpid() % 10000}")
    try:
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
    named["dead"] = {"ansible_host": DEAD}
    document = {"candidates": {"vars": common, "hosts": named}}
    (hosts.folder / "demo" / "inventory.yml").write_text(json.dumps(document))  # JSON is YAML


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
    script = "import socket, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.bind(b'\\0cpubench.run'); " \
             "print(flush=True); sys.stdin.read()"  # fmt: skip
    holder = subprocess.Popen(
        hosts.on("busy", sys.executable, "-c", script), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    holder.stdout.readline()

    def cut(line: str) -> None:
        if line.startswith("killed as-is repeat 1: started"):
            hosts.kill("killed")

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
    holder.communicate()
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
