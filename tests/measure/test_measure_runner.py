"""Whole runs by the command line: the folder, its files, resuming, interrupting, and what is refused."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from pools import CPUS, lived
from started import started

from cpubench.analysis.twins import CONTROL
from cpubench.results.load import load_run
from cpubench.results.names import is_control

COMMAND = [sys.executable, "-I", "-m", "cpubench"]
SHORT = ["run", "--profile", "quick", "--families", "lock", "--seed", "7"]


def cpubench(*arguments, cwd, check=None):
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, check=False, timeout=120
    )
    assert "Traceback" not in done.stderr
    if check is not None:
        assert done.returncode == check, done.stderr
    return done


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run and what was printed."""
    if len(CPUS) < 2:
        pytest.skip("one core: a group has no place")
    folder = tmp_path_factory.mktemp("runs")
    done = cpubench(*SHORT, "--budget", "15s", "--out", "r", "--json", cwd=folder, check=0)
    return folder / "r", done


def test_a_run_leaves_a_folder_of_finished_files(run):
    folder, done = run
    document = json.loads(done.stdout)
    passes = document["stopped"]["passes"]
    blocks = [f"block-{index:03d}-as-is.json" for index in range(passes)]
    expected = [*blocks, "log.jsonl", "plan.json", "pytest-benchmark.json", "run.json"]
    # Others at work on this machine flag blocks, which are measured again; a report is left where it can be made.
    left = sorted(path.name for path in folder.iterdir() if not path.name.endswith("-again.json"))
    assert [name for name in left if not name.startswith("report.")] == expected
    assert document["run"] == str(folder)
    assert document["failed"] == document["skipped"] == []
    assert document["stopped"]["by"] in ("budget", "target", "max")
    assert passes >= 8
    events = [json.loads(line)["event"] for line in (folder / "log.jsonl").read_text().splitlines()]
    assert [event for event in events if event != "again"] == ["planned", *["pass"] * passes, "stopped"]


def test_progress_says_the_predicted_time_first_and_a_line_for_each_pass(run):
    lines, planned = run[1].stderr.splitlines(), len(load_run(run[0]).plan.variants)
    assert lines[0].startswith(f"calibrating {planned} variants, about ")
    assert f"{planned} variants, 0 left out; quick: 12 to 60 passes of about" in lines[1]
    assert ", at most 0:" in lines[1]
    passes = [line for line in lines if line.startswith("pass ") and "measured again" not in line]
    assert len(passes) == json.loads(run[1].stdout)["stopped"]["passes"]


def test_the_run_validates_and_is_scored_alike_each_time(run):
    folder, _ = run
    assert json.loads(cpubench("validate", folder, "--json", cwd="/", check=0).stdout)["valid"] is True
    first = json.loads(cpubench("score", folder, "--json", cwd="/", check=0).stdout)
    assert first == json.loads(cpubench("score", folder / "run.json", "--json", cwd="/", check=0).stdout)
    assert first["families"]["lock"]["per_core"]["value"] > 0
    assert first["families"]["lock"]["per_watt"] == {
        "value": None, "low": None, "high": None, "passes": 0, "reason": "no_meter"}  # fmt: skip
    assert first["headline"]["per_core"]["value"] is None  # the other families were not measured
    assert "spawn" in first["headline"]["per_core"]["reason"]
    assert cpubench("score", folder, "--strict", cwd="/").returncode == 3


def test_the_schema_accepts_the_run(run):
    import jsonschema

    from cpubench.results.schema import run_schema

    jsonschema.validate(json.loads((run[0] / "run.json").read_text()), run_schema())


def test_exports_are_read_by_the_usual_tools(run, tmp_path):
    folder, _ = run
    exported = tmp_path / "b.json"
    cpubench("export", folder, "--to", "pytest-benchmark", "-o", exported, cwd="/", check=0)
    assert json.loads(exported.read_text()) == json.loads((folder / "pytest-benchmark.json").read_text())
    compare = [Path(sys.executable).parent / "pytest-benchmark", "compare", exported, folder / "pytest-benchmark.json"]
    shown = subprocess.run(compare, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert "lock_mutex[cs=200ns]-cores" in shown
    csv = cpubench("export", folder, "--to", "csv", "-o", "-", cwd="/", check=0).stdout
    loaded = load_run(folder)
    assert [v.key for v in loaded.plan.variants if is_control(v.key)] == list(CONTROL)
    assert len(csv.splitlines()) == 1 + (len(loaded.plan.variants) - 2) * len(loaded.passes)
    assert "test_work" not in csv
    assert "test_work" not in exported.read_text()


def test_a_changed_number_a_dropped_block_and_a_swapped_block_are_found(run, tmp_path):
    folder = tmp_path / "r"
    shutil.copytree(run[0], folder)
    text = (folder / "run.json").read_text()
    ops = load_run(folder).passes[0].blocks[0].cells[0].copy_ops[0]
    (folder / "run.json").write_text(text.replace(str(ops), str(ops + 1), 1))
    assert "changed" in cpubench("validate", folder, cwd="/", check=2).stderr
    (folder / "run.json").write_text(text)
    (folder / "block-003-as-is.json").rename(tmp_path / "away")
    assert "pass 3" in cpubench("validate", folder, cwd="/", check=2).stderr
    shutil.copy(folder / "block-004-as-is.json", folder / "block-003-as-is.json")
    assert "block-00" in cpubench("validate", folder, cwd="/", check=2).stderr


def test_resuming_keeps_finished_blocks_byte_for_byte(run, tmp_path):
    folder = tmp_path / "r"
    shutil.copytree(run[0], folder)
    files = sorted(folder.glob("block-*.json"))
    told = ("run.json", "pytest-benchmark.json", "log.jsonl")  # a log may tell of more passes than will come
    for path in (*(folder / name for name in told), *files[5:]):
        path.unlink()
    (folder / ".block-005-as-is.json.1.tmp").write_text("half a bl")
    before = {path.name: path.read_bytes() for path in files[:5]}
    done = cpubench("run", "--resume", folder, "--json", cwd="/", check=0)
    assert {name: (folder / name).read_bytes() for name in before} == before
    assert json.loads(done.stdout)["stopped"]["passes"] > 5
    assert not list(folder.glob(".*"))
    cpubench("validate", folder, cwd="/", check=0)


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("host_id", "another", "was made on another host"),
        ("cpubench", "0.0.9", "was made by another build"),
        ("machine", {"boot": "0" * 16, "hostname": "0" * 16}, "may be of another machine with this one's id"),
    ],
)
def test_resuming_elsewhere_is_refused(run, tmp_path, field, value, text):
    folder = tmp_path / "r"
    shutil.copytree(run[0], folder)
    plan = json.loads((folder / "plan.json").read_text())
    (folder / "plan.json").write_text(json.dumps(plan | {field: value}))
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert text in cpubench("run", "--resume", folder, cwd="/", check=2).stderr
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_saves_what_was_measured_and_leaves_no_process(tmp_path, number):
    out = tmp_path / "r"
    command = [*COMMAND, *SHORT, "--budget", "60s", "--out", out]
    with started(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        wait_for(lambda: (out / "block-001-as-is.json").exists())
        pids = [child.pid for child in psutil.Process(process.pid).children(recursive=True)]
        process.send_signal(number)
        _, complaint = process.communicate(timeout=20)
    assert process.returncode == 130
    assert complaint.splitlines()[-1].endswith(f"kept; go on with `cpubench run --resume {out}`")
    assert not [pid for pid in pids if lived(pid)]
    assert not [path for path in out.iterdir() if path.name.startswith(".")]
    assert load_run(out).stopped.by == "interrupted"
    assert (out / "pytest-benchmark.json").exists()


def test_a_signal_that_was_ignored_at_the_start_stays_ignored(tmp_path):
    """As nohup does with SIGHUP: the terminal may go, the run may not. SIGTERM still ends it."""
    out = tmp_path / "r"
    command = ["nohup", *COMMAND, *SHORT, "--budget", "60s", "--out", str(out)]
    with started(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        wait_for(lambda: (out / "plan.json").exists())
        process.send_signal(signal.SIGHUP)
        passes = len(list(out.glob("block-???-as-is.json")))  # not those that were measured again
        wait_for(lambda: len(list(out.glob("block-???-as-is.json"))) >= passes + 2)
        process.send_signal(signal.SIGTERM)
        _, complaint = process.communicate(timeout=20)
    assert process.returncode == 130, complaint
    assert load_run(out).stopped.passes >= passes + 2


def test_a_killed_run_leaves_no_process_and_can_be_resumed(tmp_path):
    out = tmp_path / "r"
    command = [*COMMAND, *SHORT, "--budget", "15s", "--out", out]
    with started(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        wait_for(lambda: (out / "block-002-as-is.json").exists())
        time.sleep(0.15)
        pids = [child.pid for child in psutil.Process(process.pid).children(recursive=True)]
        process.kill()
    wait_for(lambda: not [pid for pid in pids if lived(pid)])

    assert not list(Path("/dev/shm").glob("cpubench-[!t]*"))
    assert "unfinished" in json.loads(cpubench("score", out, "--json", cwd="/", check=2).stdout)["error"]["code"]
    cpubench("run", "--resume", out, cwd="/", check=0)
    cpubench("validate", out, cwd="/", check=0)


def wait_for(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_second_run_at_once_is_refused(tmp_path):
    from cpubench.measure.folder import host_lock

    with host_lock():
        done = cpubench(*SHORT, cwd=tmp_path, check=2)
    assert "another cpubench run is measuring on this host" in done.stderr
    assert list(tmp_path.iterdir()) == []


NOT_ALLOWED = max(os.sched_getaffinity(0)) + 1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--families", "spwan"], "unknown family 'spwan'; known: file, lock, memory, spawn, storage, switch"),
        (["--families", ""], "no family is named"),
        (["--copies", "two"], "unknown copies 'two'; known: 1, cores, cpus"),
        (["--profile", "fast"], "unknown profile 'fast'; known: quick, standard, strict"),
        (["--cpus", ""], "the list of CPUs is empty"),
        (["--cpus", "7-3"], "--cpus: "),
        (["--cpus", str(NOT_ALLOWED)], f"CPU {NOT_ALLOWED} is not allowed here"),
        (["--workdir", "missing"], "missing: is no folder"),
        (["--workdir", "a-file"], "a-file: is no folder"),
        (["--out", "a-file"], "a-file: is a file, not a folder"),
        (["--out", "full"], "holds another run; resume it with --resume"),
        (["--out", "other"], "is not empty"),
        (["--budget", "soon"], "'soon' is no duration: write 90s, 10m or 1h"),
        (["--budget", "1s"], "cannot hold 8 passes"),
        (["--seed", "-1"], "-1"),
        (["--resume", "none"], "holds no plan.json"),
        (["--resume", "full", "--seed", "1"], "the plan of the run stays as it is"),
        (["--caps", "3"], "No such option"),
    ],
)
def test_bad_input_is_one_line_and_exit_2_and_leaves_everything_as_it_was(tmp_path, arguments, text):
    (tmp_path / "a-file").write_text("mine")
    for name, file in (("full", "plan.json"), ("other", "notes.txt")):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text("mine")
    before = sorted(path for path in tmp_path.rglob("*"))
    quick = ["run"] if "--profile" in arguments or "--resume" in arguments else ["run", "--profile", "quick"]
    if "--families" not in arguments and "--resume" not in arguments:
        quick += ["--families", "lock"]
    done = cpubench(*quick, *arguments, cwd=tmp_path, check=2)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("calibrating")]
    assert len(lines) == 1
    assert text in lines[0]
    assert sorted(path for path in tmp_path.rglob("*")) == before
    assert (tmp_path / "a-file").read_text() == (tmp_path / "full" / "plan.json").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small and a read-only file system")
@pytest.mark.parametrize(
    ("options", "text"),
    [("size=64k", "cannot be written: No space left on device"), ("ro", "cannot be written: Read-only file system")],
)
def test_a_full_or_read_only_workdir_is_refused(tmp_path, options, text):
    work = tmp_path / "w"
    work.mkdir()
    inner = shlex.join([*COMMAND, *SHORT, "--workdir", str(work), "--out", str(tmp_path / "r")])
    command = ["unshare", "-m", "sh", "-c", f"mount -t tmpfs -o {options} none {work} && exec {inner}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, text in done.stderr) == (2, True)
    assert not (tmp_path / "r").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small file system")
def test_a_disk_that_fills_up_loses_nothing_that_was_finished(tmp_path):
    out = tmp_path / "d"
    out.mkdir()
    inner = shlex.join([*COMMAND, *SHORT, "--budget", "20s", "--out", f"{out}/r"])
    script = (
        f"mount -t tmpfs -o size=28k none {out} && {inner}; echo status $?; ls {out}/r; cp -r {out}/r {tmp_path}/kept"
    )
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert "status 2" in done.stdout
    assert "No space left on device" in done.stderr.splitlines()[-1]
    blocks = sorted((tmp_path / "kept").glob("block-*.json"))
    assert len(blocks) >= 1
    resumed = cpubench("run", "--resume", tmp_path / "kept", cwd="/", check=0)
    assert resumed.returncode == 0
    cpubench("validate", tmp_path / "kept", cwd="/", check=0)
