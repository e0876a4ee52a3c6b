"""What happens on a host, without a login: the job; and what the events of Ansible say of it."""

import json
import os
import shlex
import subprocess
import sys
import time
from importlib.resources import files
from pathlib import Path

import pytest
from hosts import short

from cpubench.fleet import job
from cpubench.fleet.layout import Cell, job_name
from cpubench.fleet.suite import kernels, suite_hash
from cpubench.fleet.told import hear, left
from cpubench.measure.folder import host_lock

ROLES = files("cpubench.fleet.playbook") / "roles"

SHORT = f"{sys.executable} -I {short.__file__} test_work[steps=1000]@1,switch_pipe[place=same]@1"
QUICK = ["--profile", "quick"]


def asked(**more):
    return {"arguments": QUICK, "suite": suite_hash(kernels(), QUICK), "cap": "as-is", "deadline_s": 60, "settle_s": 0,
            "free_mb": 0.1, "command": SHORT} | more  # fmt: skip


def program(tmp_path, text):
    """A command in the place of cpubench, which is given what that is given."""
    file = tmp_path / "program.py"
    file.write_text(f"import json, pathlib, signal, sys, time\nout = pathlib.Path(sys.argv[-1])\n{text}\n")
    return f"{sys.executable} -I {file}"


def until(condition):
    end = time.monotonic() + 30
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    assert condition()


@pytest.mark.parametrize(
    ("more", "state", "words"),
    [
        ({}, "ready", None),
        ({"suite": "0" * 12}, "refused", "install its version"),
        ({"free_mb": 1e12}, "refused", "MB are free"),
    ],
)
def test_a_host_says_whether_it_may_measure(tmp_path, more, state, words):
    found = job.check(tmp_path / "a", asked(**more))
    assert found["state"] == state
    assert words is None or words in found["text"]


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    found = job.check(tmp_path / "file" / "a", asked())
    assert found["state"] == "refused"
    assert "cannot be written" in found["text"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("print(json.dumps({'error': {'code': 'busy', 'text': 'x', 'where': ''}})); sys.exit(2)",
         {"exit": 2, "error": {"code": "busy", "text": "x", "where": ""}, "measured": False}),
        ("out.mkdir(); (out / 'block-1.json').write_text('{}'); sys.exit('no space')",
         {"exit": 1, "error": {"code": "ended", "text": "the run ended with 1: no space"}, "measured": True}),
        ("out.mkdir(); (out / 'run.json').write_text('{}'); print('{}')", {"exit": 0, "error": None, "bytes": 22}),
        ("out.mkdir(); (out / 'run.json').write_text('{}'); sys.exit(130)", {"exit": 130}),
        ("signal.signal(signal.SIGTERM, lambda *_: sys.exit(130)); time.sleep(60)", {"exit": 130, "timed_out": True}),
    ],
)  # fmt: skip
def test_how_a_run_ended_is_written_down(tmp_path, text, wanted, capfd):
    folder = tmp_path / "cell"
    folder.mkdir()
    (folder / "log.txt").write_text("no space\n")
    deadline_s = 0.5 if "timed_out" in wanted else 30
    found = job.work(folder, asked(command=program(tmp_path, text), deadline_s=deadline_s))
    assert {key: found.get(key) for key in wanted} == wanted
    assert json.loads((folder / "outcome.json").read_text()) == found
    assert ("sha256" in found) == (found["exit"] == 0)
    assert job.look(folder) == "done"


def call(verb, folder, told):
    """What a verb prints, called as Ansible does."""
    command = [sys.executable, "-m", "cpubench.fleet.job", verb, str(folder), told]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)
    return json.loads(done.stdout)


def test_a_run_outlives_its_login_is_taken_up_and_is_ended(tmp_path):
    folder = tmp_path / "cell"
    text = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(130)); out.mkdir(); time.sleep(60)"
    told = json.dumps(asked(command=program(tmp_path, text)))
    assert call("start", folder, told) == {"state": "started"}
    until((folder / "run").is_dir)
    for verb in ("check", "start"):
        found = call(verb, folder, told)
        assert found["state"] == "running"
        assert found["ran_s"] >= 0
    pid = int(next(folder.glob("pid-*")).read_text())
    assert call("clean", folder, "keep")["state"] == "cleaned"
    until(lambda: not Path(f"/proc/{pid}").exists() or "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text())
    assert json.loads((folder / "outcome.json").read_text())["exit"] == 130
    assert call("clean", folder, "remove")["restore"]["exit"] in (0, 2)  # 2: /run may not be written here
    assert not folder.exists()
    assert job.look(folder) == "gone"


def test_what_a_killed_host_left_is_thrown_away(tmp_path):
    folder = tmp_path / "cell"
    folder.mkdir()
    (folder / f"pid-{job.BOOT.read_text().strip()}").write_text("999999999")
    (folder / "left.json").write_text("")
    (folder / "pid-of-another-boot").write_text(str(os.getpid()))
    assert job.look(folder) == "gone"
    assert call("start", folder, json.dumps(asked(command=program(tmp_path, "print('{}')")))) == {"state": "started"}
    until((folder / "outcome.json").exists)
    assert not (folder / "left.json").exists()


def ask(home, folder):
    """What a host's own Python says before an installation, called as the role does."""
    command = [sys.executable, "-I", "-c", (ROLES / "facts/files/ask.py").read_text(), str(home), str(folder)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout)


def look_of_the_role(home, host, name):
    """What the shell of the role `collect` says of a job."""
    yaml, jinja2 = pytest.importorskip("yaml"), pytest.importorskip("jinja2")
    task = yaml.safe_load((ROLES / "collect/tasks/main.yml").read_text())[0]
    given = {"job_folder": f"{home}//jobs/{host}/{name}", "inventory_hostname": host, "cell": {"name": name}}
    environment = jinja2.Environment()
    environment.filters["quote"] = shlex.quote
    for key, text in task["vars"].items():
        given[key] = environment.from_string(text).render(given)
    script = environment.from_string(task["ansible.builtin.raw"]).render(given)
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def test_before_an_installation_a_host_says_what_goes_on_there(tmp_path):
    folder = tmp_path / "jobs" / "h" / "cell"
    found = ask(tmp_path, folder)
    assert (found["state"], found["tag"][:3]) == ("ready", "cp3")
    text = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(130)); out.mkdir(); time.sleep(60)"
    call("start", folder, json.dumps(asked(command=program(tmp_path, text))))
    try:
        found = ask(tmp_path, folder)
        assert (found["state"], found["ran_s"] >= 0) == ("running", True)
        assert look_of_the_role(tmp_path, "h", "cell") == {"state": "running"}
        other = ask(tmp_path, folder.with_name("other"))  # nothing has the lock: the run has not begun, or is over
        assert (other["state"], "another cpubench run" in other["text"]) == ("busy", True)
        until((folder / "run").is_dir)
    finally:
        call("clean", folder, "keep")
    assert look_of_the_role(tmp_path, "h", "cell")["exit"] == 130
    assert ask(tmp_path, folder)["state"] == "ready"
    with host_lock():
        assert ask(tmp_path, folder)["state"] == "busy"


def test_a_run_of_one_plan_is_no_other_fleets(tmp_path):
    """The same host name, level, repeat and suite: another fleet finds it busy, takes and ends nothing."""
    names = [job_name(Cell("h", "as-is", 1, "0" * 12), seal * 64) for seal in "ab"]
    mine, theirs = (tmp_path / "jobs" / "h" / name for name in names)
    text = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(130)); out.mkdir(); time.sleep(60)"
    call("start", mine, json.dumps(asked(command=program(tmp_path, text))))
    try:
        assert (ask(tmp_path, mine)["state"], ask(tmp_path, theirs)["state"]) == ("running", "busy")
        found = [look_of_the_role(tmp_path, "h", name)["state"] for name in names]
        assert found == ["running", "gone"]
        assert call("clean", theirs, "remove")["state"] == "cleaned"
        assert job.look(mine) == "running"
    finally:
        call("clean", mine, "keep")
    assert [job.look(folder) for folder in (mine, theirs)] == ["done", "gone"]
    call("clean", theirs, "remove")
    assert look_of_the_role(tmp_path, "h", names[0])["state"] == "done"


def test_a_process_that_has_the_number_of_a_dead_job_is_none(tmp_path):
    folder = tmp_path / "jobs" / "h" / "cell"
    folder.mkdir(parents=True)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True) as stranger:
        (folder / f"pid-{job.BOOT.read_text().strip()}").write_text(str(stranger.pid))
        assert job.look(folder) == "gone"
        assert ask(tmp_path, folder)["state"] == "ready"
        assert look_of_the_role(tmp_path, "h", "cell") == {"state": "gone"}
        assert call("clean", folder, "remove")["state"] == "cleaned"
        assert stranger.poll() is None
        stranger.communicate(b"\n")
    assert stranger.returncode == 0


def event(kind, task, host="h", **res):
    return {"event": f"runner_on_{kind}", "event_data": {"host": host, "task": task, "res": res}}


def heard(phase, *events):
    memory = {}
    return [told for one in events if (told := hear(memory, phase, one)) is not None], memory


def test_events_of_a_start():
    ready = event("ok", "preflight", stdout='banner\n{"state": "ready"}\n')
    (told,), _ = heard("start", ready, event("ok", "start", stdout='{"state": "started"}'))
    assert told.state == "started"
    (told,), _ = heard("start", event("ok", "preflight", stdout='{"state": "busy", "text": "x"}'))
    assert (told.state, told.text) == ("busy", "x")
    (told,), _ = heard("start", event("ok", "facts", stdout='{"tag": "cp311-x86_64", "state": "busy", "text": "y"}'))
    assert (told.state, told.text) == ("busy", "y")
    (told,), _ = heard("start", event("ok", "facts", stdout='{"state": "running", "ran_s": 7}'))
    assert (told.state, told.outcome["ran_s"]) == ("running", 7)
    (told,), _ = heard("start", event("ok", "preflight", stdout='{"state": "done"}'))
    assert told.state == "done"
    assert heard("start", event("ok", "facts", stdout='{"tag": "cp311-x86_64", "state": "ready"}'))[0] == []
    (told,), _ = heard("start", event("failed", "compiler", msg="non-zero return code", stderr="", stdout="no cc\n"))
    assert (told.state, told.text) == ("failed", "compiler: no cc")
    (told,), _ = heard("start", event("unreachable", "facts", msg="Failed\nto connect", unreachable=True))
    assert (told.state, told.text, told.begun) == ("unreachable", "Failed to connect", False)


def test_a_start_of_which_the_end_was_not_heard_may_have_begun():
    ready = event("ok", "preflight", stdout='{"state": "ready"}')
    for kind, task, begun in (("unreachable", "start", True), ("failed", "start", True), ("ok", "start", True),
                              ("unreachable", "preflight", False), ("failed", "install", False)):  # fmt: skip
        (told,), _ = heard("start", ready, event(kind, task, msg="x", stdout=""))
        assert told.begun == begun
    _, memory = heard("start", ready)
    assert (left(memory, "start", "h", "ended").begun, left(memory, "start", "other", "ended").begun) == (True, False)
    assert not left(memory, "finish", "h", "ended").begun


def test_events_of_a_finish():
    done = event("ok", "look", stdout='{"state": "done", "exit": 0, "sha256": "x"}')
    clean = event("ok", "clean", stdout='{"state": "cleaned", "restore": {"exit": 0}}')
    (told,), _ = heard("finish", done, event("ok", "fetch"), clean)
    assert (told.state, told.fetched, told.outcome["sha256"]) == ("done", True, "x")
    (told,), _ = heard("finish", done, event("failed", "fetch", msg="no such file"), clean)
    assert (told.state, told.fetched, told.text) == ("done", False, "fetch: no such file")
    stuck = event("ok", "clean", stdout='{"state": "cleaned", "restore": {"exit": 70, "text": "y"}}')
    (told,), _ = heard("finish", done, event("ok", "fetch"), stuck)
    assert told.outcome["restore"] == {"exit": 70, "text": "y"}
    none, memory = heard("finish", event("ok", "look", stdout='{"state": "running"}'))
    assert none == []
    assert left(memory, "finish", "h", "ended").state == "running"
    assert left({}, "finish", "h", "ended") == left(memory, "finish", "other", "ended")._replace(host="h")
