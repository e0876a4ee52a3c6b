"""Steps with real processes: what is counted, and which work is refused."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from started import started as running
from tasks_run import desk_at

from cpubench.tasks import verify
from cpubench.tasks.spans import Span, started


def in_child(tmp_path, body):
    """Runs a test's body in a process of its own, since an agent changes folders, signals and parenthood."""
    code = f"import sys; sys.path[:0] = {sys.path!r}\n" + body
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, str(tmp_path / "agent")], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


BEGIN = """
import os, signal, time
from pathlib import Path
from tasks_run import desk_at
from cpubench.tasks import desk, verify
from cpubench.tasks.steps import Step
desk.adopt_orphans(); desk.on_alarm()
table = desk_at(Path(sys.argv[1]))
def step(command, **other):
    return Step("s", "k", "test", (table.place.shell, "-c", command), fixed=False, **other)
def fails(one):
    try:
        desk.do(table, 0, one)
    except desk.Failed as error:
        return str(error)
    return "passed"
"""


def test_a_span_counts_what_the_step_and_its_children_used(tmp_path):
    told = in_child(tmp_path, BEGIN + """
burn = f"{table.place.python} -c 'sum(range(3000000))'"
span = desk.do(table, 0, step(f"{burn}; {burn}; printf 0123456789 > out"))
print(span.user_us + span.sys_us > 20000, span.wall_ns > 1000 * span.user_us * 0.5, span.peak_bytes > 1 << 20)
print(span.forks >= 3, span.written_bytes >= 10, span.minor_faults > 100)
span = desk.do(table, 0, step("sleep 0.2"))
print(span.wall_ns > 190_000_000, span.user_us + span.sys_us < 100_000)
""")  # fmt: skip
    assert told.split() == ["True"] * 8


def test_a_process_that_stays_is_a_failure_and_is_killed(tmp_path):
    told = in_child(tmp_path, BEGIN + """
print(fails(step("sleep 300 & exit 0")))
print(verify.children())
print(fails(step("(sleep 0.05 & ) ; sleep 0.3")))
""")  # fmt: skip
    first, *rest = told.splitlines()
    assert first in ("s: process left behind: sleep", "s: process left behind: sh")  # it may not have executed yet
    assert rest == ["set()", "passed"]


@pytest.mark.parametrize("late", [False, True])
def test_what_strays_have_started_is_killed_too(tmp_path, late):
    chain = "setsid sh -c '( (sleep 300; :); :); :' & "  # each a process
    rest, times = ("sleep 300", ", timeout_s=0.5") if late else ("sleep 0.3", "")
    told = in_child(tmp_path, BEGIN + f"""
print(fails(step("{chain}{rest}"{times})))
print(verify.children())
""")  # fmt: skip
    first, left = told.splitlines()
    assert first == "s: not done after 0.5 s" if late else first.startswith("s: process left behind: sh, sh, s")
    assert left == "set()"


def test_a_step_that_does_not_end_is_killed_with_its_children(tmp_path):
    told = in_child(tmp_path, BEGIN + """
print(fails(step("sleep 300; exit 0", timeout_s=0.3)))
print(verify.children())
""")  # fmt: skip
    assert told.splitlines() == ["s: not done after 0.3 s", "set()"]


def test_wrong_status_output_and_bytes_are_failures(tmp_path):
    told = in_child(tmp_path, BEGIN + """
print(fails(step("echo no; exit 3")))
print(fails(step("kill -9 $$")))
print(fails(step("echo Ran 9 tests", expect="Ran 10 tests")))
table.pins = {"s": verify.digest(b"yes\\n")}
print(fails(Step("s", "k", "test", (table.place.shell, "-c", "echo yes"))))
print(fails(Step("s", "k", "test", (table.place.shell, "-c", "echo other"))))
print(fails(Step("other", "k", "test", (table.place.shell, "-c", "echo yes"))))
""")  # fmt: skip
    assert told.splitlines() == [
        "s: ended with 3, not 0: no",
        "s: ended by signal 9, not 0",
        "s: the output has no 'Ran 10 tests': Ran 9 tests",
        "passed",
        "s: the output is not what it is on other hosts: other",
        "other: the output is not what it is on other hosts: yes",
    ]


def test_a_server_that_dies_is_a_failed_step(tmp_path):
    told = in_child(tmp_path, BEGIN + """
code = "import sys\\nprint('{}', flush=True)\\nsys.stdin.readline()"
desk.do(table, 0, Step("b", "k", "net", (table.place.python, "-c", code), "start", "x", fixed=False))
print(fails(Step("a", "k", "net", ("read", "f"), "ask", "x", fixed=False)))
desk.clear(table)
print(verify.children())
""")  # fmt: skip
    assert told.splitlines() == ['a: ended with 1, not 0: "the server ended"', "set()"]


def test_more_cpu_time_than_the_cpus_had_is_impossible():
    assert verify.impossible(Span(0, 0, 0, 10**9, user_us=1_990_000, sys_us=0), "s", 2) is None
    assert "2.100 s of CPU time in 1.000 s on 2 CPUs" in verify.impossible(
        Span(0, 0, 0, 10**9, 2_000_000, 100_000), "s", 2
    )


def test_pids_that_begin_anew_are_counted_on():
    assert started(100, 103, 32768) == 3
    assert started(32766, 302, 32768) == 4


def test_mounts_and_files_that_stay_are_named(tmp_path):
    assert verify.grown("mount", ["/", "/a", "/a"], ["/", "/a", "/a", "/a", "/b"]) == [
        "mount left behind: /a",
        "mount left behind: /b",
    ]
    table = desk_at(tmp_path / "agent")
    assert verify.files_left(table.place.root) == []
    (tmp_path / "agent" / "home" / ".x").touch()
    assert verify.files_left(table.place.root) == ["home/.x"]
    os.close(table.counters.io)
    os.close(table.counters.pids)


def test_the_end_of_a_window_cuts_a_step_without_a_failure(tmp_path):
    told = in_child(tmp_path, BEGIN + """
try:
    desk.do(table, 0, step("sleep 300; exit 0"), time.monotonic_ns() + 200_000_000)
except desk.Late:
    print("late", verify.children(), len(table.spans))
""")  # fmt: skip
    assert told.split() == ["late", "set()", "0"]


@pytest.mark.parametrize("number", [signal.SIGTERM])
def test_an_agent_that_is_stopped_leaves_no_process(tmp_path, number):
    body = (
        BEGIN
        + """
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print("begun", flush=True)
desk.do(table, 0, step("sleep 301; exit 0"))
"""
    )
    code = f"import sys; sys.path[:0] = {sys.path!r}\n" + body
    command = [sys.executable, "-I", "-c", code, tmp_path / "agent"]
    with running(command, stdout=subprocess.PIPE, start_new_session=True) as child:
        assert child.stdout.readline() == b"begun\n"
        time.sleep(0.2)
        child.send_signal(number)
        assert child.wait(timeout=20) == 7
    with pytest.raises(ProcessLookupError):  # its group and that of the step are in its session
        os.killpg(child.pid, 0)
    assert not [pid for pid in os.listdir("/proc") if pid.isdecimal() and session(pid) == child.pid]


def session(pid):
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else int(fields[3])


def test_nothing_of_the_callers_environment_reaches_a_step(tmp_path, monkeypatch):
    monkeypatch.setenv("BASH_ENV", "/etc/profile")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    table = desk_at(tmp_path / "agent")
    assert {"BASH_ENV", "PYTHONPATH"} & table.env.keys() == set()
    assert table.env["HOME"].startswith(str(tmp_path))


def test_a_window_that_ends_while_a_server_is_stopped_loses_no_span(tmp_path):
    """The end of its input was given, and is not given again when all that is left is cleared."""
    told = in_child(tmp_path, BEGIN + """
serve = "echo '{}'; cat > /dev/null; sleep 0.4"
begun = Step("s", "k", "test", (table.place.shell, "-c", serve), action="start", server="one", fixed=False)
desk.do(table, 0, begun)
try:
    desk.do(table, 1, Step("e", "k", "test", (), action="stop", server="one"), time.monotonic_ns() + 100_000_000)
except desk.Late:
    print("late", table.servers["one"].asked)
desk.clear(table)
print(len(table.servers), len(table.spans), verify.children())
""")  # fmt: skip
    assert told.split("\n")[:2] == ["late -1", "0 1 set()"]
