"""Sandboxes on every rung that this host allows: what they hold, what they leave, and what a denied one says."""

import json
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
from started import started
from tasks_run import agent_of

from cpubench.measure.programs import BOX
from cpubench.tasks import programs, rungs, sandbox
from cpubench.tasks.catalogue import Task
from cpubench.tasks.plan import many

ASK = '{"jsonrpc": "2.0", "id": 7}\n'


def denied(rung, folder):
    found = programs.probe(folder)
    rungs.try_rungs(found, [rung], folder)
    return found.missing.get(f"T3 {rung}")


def box(*arguments, code="print(1)", asked=ASK):
    return subprocess.run([BOX, *arguments, "--", sys.executable, "-I", "-c", code], input=asked, text=True,
                          capture_output=True, timeout=60)  # fmt: skip


@pytest.mark.parametrize("rung", [*sandbox.RUNGS, *sandbox.ADAPTERS])
def test_a_sandbox_is_made_used_and_taken_down(generated, tmp_path, rung):
    """The interpreter inside looks for what the rung promises: its output is pinned."""
    reason = denied(rung, tmp_path)
    if reason:
        pytest.skip(reason)
    before = sorted(Path(sandbox.group() or "/nowhere").glob("cpubench-box-*"))
    found = agent_of(Task("T3", (rung,)), generated, tmp_path)
    assert (found["failures"], found["leftovers"]) == ([], [])
    spans = found["spans"]
    assert spans["background"].count(True) == sandbox.CYCLES  # what making and taking down cost
    used = [user + kernel for user, kernel in zip(spans["user_us"], spans["sys_us"], strict=True)]
    runs = [used[at] for at, step in enumerate(spans["step"]) if step % 3 == 1 and rung in sandbox.RUNGS]
    assert all(runs)
    assert sorted(Path(sandbox.group() or "/nowhere").glob("cpubench-box-*")) == before


def test_many_sandboxes_at_once_go_on_in_the_order_of_steps(generated, tmp_path):
    found = agent_of(Task("T3", ("bare",), agents=2), generated, tmp_path, window_ns=700_000_000)
    assert (found["failures"], found["leftovers"]) == ([], [])
    columns = [found["spans"][name] for name in ("step", "agent", "background")]
    steps = [step for step, agent, back in zip(*columns, strict=True) if agent == 0 and not back]
    assert {(later - one) % 30 for one, later in pairwise(steps)} <= {1}


def test_a_box_tells_what_its_command_printed_and_used():
    done = box(code="print('a\"b\\\\', end='\\x01')\nsum(range(10**6))")
    ready, answer = (json.loads(row) for row in done.stdout.splitlines())
    assert (done.returncode, done.stderr) == (0, "")
    assert ready["ready"] == "box"
    assert (answer["id"], answer["result"]) == (7, 'a"b\\\x01')
    assert sum(answer["usage"][:2]) > 1000
    assert len(answer["usage"]) == 6


def test_a_command_that_fails_is_an_error_with_its_words():
    answers = [json.loads(row) for row in box(code="raise SystemExit('no')", asked=ASK * 2).stdout.splitlines()]
    assert [one.get("error") for one in answers] == [None, "no\n", "no\n"]
    done = subprocess.run([BOX, "--", "/nowhere/python"], input=ASK, text=True, capture_output=True, timeout=60)
    assert json.loads(done.stdout.splitlines()[1])["error"] == "/nowhere/python: No such file or directory"


def test_a_filter_refuses_and_lets_the_rest_through():
    code = "import ctypes, os; libc = ctypes.CDLL(None, use_errno=True); print(libc.unshare(0), ctypes.get_errno())"
    answers = [json.loads(box(*flags, code=code).stdout.splitlines()[1])["result"] for flags in ((), ("-s",))]
    assert answers == ["0 0\n", "-1 1\n"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [(("-g", "/nowhere"), "/nowhere: No such file or directory"),
     (("-o", "/nowhere"), "overlay folder: No such file or directory")],
)  # fmt: skip
def test_what_cannot_be_had_is_told_in_one_line(arguments, text):
    done = box(*arguments)
    if "namespaces:" in done.stderr:
        pytest.skip("no namespaces here")
    assert (done.returncode, done.stderr.strip()) == (1, text)


def test_a_box_without_a_command_is_refused():
    assert subprocess.run([BOX, "-n"], timeout=60, check=False).returncode == 2


def test_nothing_outlives_a_box_that_was_killed(tmp_path):
    if denied("namespaces", tmp_path):
        pytest.skip("no namespaces here")
    code = "import time; print(1, flush=True); time.sleep(300)"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "start_new_session": True}
    with started([BOX, "-n", "--", sys.executable, "-c", code], **pipes) as child:
        assert b"ready" in child.stdout.readline()
        child.stdin.write(ASK.encode())
        child.stdin.flush()
        child.send_signal(signal.SIGKILL)
        child.wait()
        end = time.monotonic() + 20
        while time.monotonic() < end and in_session(child.pid):
            time.sleep(0.01)
        assert in_session(child.pid) == []


def in_session(number):
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z" and int(fields[3]) == number:
            found.append(pid)
    return found


def test_an_adapter_that_is_not_there_and_a_failing_one_are_reasons(tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox, "PATH", str(tmp_path))
    (tmp_path / "one").mkdir()
    assert denied("runsc", tmp_path / "one") == "there is no runsc along the path"
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'setting up uid map: Permission denied' >&2\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    (tmp_path / "two").mkdir()
    assert denied("bwrap", tmp_path / "two") == "setting up uid map: Permission denied"
    assert not list((tmp_path / "two").glob("trial-*"))


def test_a_plain_users_denied_rung_has_its_reason(tmp_path):
    if os.geteuid():
        pytest.skip("needs root to become a plain user")
    group = sandbox.group()
    if group is None:
        pytest.skip("no unified hierarchy of control groups")
    done = subprocess.run([BOX, "-g", group, "--", "/bin/true"], user=65534, group=65534, extra_groups=[], input="",
                          text=True, capture_output=True, timeout=60)  # fmt: skip
    if done.returncode == 0:
        pytest.skip("a plain user may make groups here")
    assert done.stderr.strip() == f"{group}: Permission denied"


def test_sandboxes_at_once_are_as_many_as_cores():
    assert [task.agents for task in many("standard", 6, None) if task.task == "T3"] == [6, 24]
