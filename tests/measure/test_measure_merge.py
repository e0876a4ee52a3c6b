"""A real short run whose watts are merged afterwards, from a CSV that the test writes of a series that it knows."""

import json
import math
import re
import shutil
import subprocess
import sys
import threading
import time

import pytest
from pools import CPUS
from stand_ins import cpubench

from cpubench.analysis.watts import log_of
from cpubench.power.channel import now_ns
from cpubench.power.energy import energy
from cpubench.results.files import canonical, sealed
from cpubench.results.load import load_run

pytestmark = pytest.mark.skipif(len(CPUS) < 2, reason="one core: a group has no place")
REST_W, LOAD_W, SWING_W, PERIOD_S = 60.0, 200.0, 20.0, 1.7
RUN = ["run", "--profile", "quick", "--families", "lock", "--copies", "cores", "--meter", "csv", "--budget", "25s",
       "--times", "idle=1,total=1.2,least=0.1"]  # fmt: skip


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The folder of a run, and moments on both clocks that a logger took meanwhile."""
    folder = tmp_path_factory.mktemp("csv")
    moments, over = [], threading.Event()

    def log():
        while not over.wait(0.02):
            moments.append((now_ns(), time.time_ns()))

    logger = threading.Thread(target=log)
    logger.start()
    try:
        command = [sys.executable, "-I", "-m", "cpubench", *RUN, "--out", str(folder / "r")]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, timeout=400)
        time.sleep(0.2)
    finally:
        over.set()
        logger.join()
    assert done.returncode == 0, done.stderr
    assert "watts are to be merged" in done.stderr
    return folder / "r", moments


def rests(run):
    return [(log.clock[0][0], log.clock[-1][0]) for log in (run.plan.power.idle, run.idle_after)]


def joules(t0_ns, t1_ns):
    """What the made-up host draws under load between two moments of the clock of the samples."""
    w = 2 * math.pi / PERIOD_S
    return LOAD_W * (t1_ns - t0_ns) / 1e9 - SWING_W / w * (math.cos(w * t1_ns / 1e9) - math.cos(w * t0_ns / 1e9))


def rows(measured):
    """(Unix time in s, watts) of the made-up host at the logger's moments: the series is one of the other clock."""
    run, made = load_run(measured[0]), []
    for t_ns, unix_ns in measured[1]:
        rest = any(begin <= t_ns <= end for begin, end in rests(run))
        watts = REST_W if rest else LOAD_W + SWING_W * math.sin(2 * math.pi * t_ns / 1e9 / PERIOD_S)
        made.append((unix_ns / 1e9, watts))
    return made


def written(path, made, text="{:.6f},{:.4f}\n"):
    path.write_text("".join(text.format(*row) for row in made))
    return path


def merge(capsys, *arguments):
    return cpubench(capsys, "power", "merge", *arguments)


def state(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_without_its_watts_a_run_has_its_scores_and_a_reason(capsys, measured):
    code, out, err = cpubench(capsys, "score", measured[0], "--json")
    assert (code, err) == (0, [])
    document = json.loads(out)
    (level,) = document["power"]["levels"]
    assert (document["power"]["meter"], document["power"]["scope"]) == ("csv", None)
    figure = level["families"]["lock"]
    assert figure["per_core"]["value"] > 0
    assert (figure["per_watt"]["value"], figure["per_watt"]["reason"]) == (None, "to_merge: watts are to be merged")
    assert cpubench(capsys, "validate", measured[0])[0] == 0
    assert "csv: watts are to be merged" in cpubench(capsys, "score", measured[0])[1]


def test_the_joules_of_each_window_are_those_of_the_series(capsys, measured, tmp_path):
    before = state(measured[0])
    code, out, err = merge(
        capsys, measured[0], written(tmp_path / "w.csv", rows(measured)), "-o", tmp_path / "n", "--json"
    )
    assert (code, err) == (0, [])
    told = json.loads(out)
    assert (told["run"], told["without_watts"], told["flags"], told["unit"]) == (str(tmp_path / "n"), 0, [], "W")
    assert state(measured[0]) == before
    old, run = load_run(measured[0]), load_run(tmp_path / "n")
    assert run.sha256 != old.sha256
    assert run.plan.power.merged.run_sha256 == old.sha256
    assert run.plan.power.merged.sha256 == told["sha256"]
    windows = [w for one in run.passes for b in (*one.blocks, *one.set_aside) for w in b.windows]
    assert told["windows"] == len(windows) >= 8
    for window in windows:
        found = energy(log_of(window.log), window.t0_ns, window.t1_ns)
        assert found.joules == pytest.approx(joules(window.t0_ns, window.t1_ns), rel=1e-3)
    code, out, _ = cpubench(capsys, "validate", tmp_path / "n", "--json")
    assert (code, json.loads(out)["valid"]) == (0, True)
    document = json.loads(cpubench(capsys, "score", tmp_path / "n", "--json")[1])
    power = document["power"]
    assert (power["meter"], power["scope"], power["provenance"]) == ("csv", "wall", "external")
    assert power["idle"]["before_watts"] == pytest.approx(REST_W, rel=1e-3)
    assert power["levels"][0]["families"]["lock"]["per_watt"]["value"] > 0
    assert power["levels"][0]["families"]["lock"]["per_watt_net"]["value"] > 0
    text = " ".join(cpubench(capsys, "score", tmp_path / "n")[1].split())
    assert f"csv: watts of wall, external (CSV {told['sha256'][:12]})" in text
    code, _, err = cpubench(capsys, "compare", measured[0], tmp_path / "n")
    assert (code, "is the same run as" in err[0]) == (2, True)
    assert cpubench(capsys, "report", tmp_path / "n", "-o", tmp_path / "report.html")[0] == 0
    code, _, err = merge(capsys, tmp_path / "n", tmp_path / "w.csv")
    assert (code, len(err)) == (2, 1)
    assert "merge with the run it was made of" in err[0]
    whole = state(tmp_path / "n")
    code, _, err = cpubench(capsys, "run", "--resume", tmp_path / "n")
    assert (code, "its watts are merged: resume the run it was made of" in err[0]) == (2, True)
    assert state(tmp_path / "n") == whole


def test_a_counter_in_a_column_of_its_own_in_another_zone_does_as_well(capsys, measured, tmp_path):
    total, last, made = 0.0, None, []
    for at, watts in rows(measured):
        total += 0 if last is None else (at - last[0]) * (watts + last[1]) / 2
        last = (at, watts)
        made.append((7, at + 3600, total / 1000))
    path = tmp_path / "w.csv"
    path.write_text("outlet;when;energy kJ\n" + "".join(f"{o};{t:.6f};{e:.7f}\n" for o, t, e in made))
    columns = ["--time", "when", "--column", "energy kJ", "-o", tmp_path / "n"]
    code, _, err = merge(capsys, measured[0], path, *columns)
    assert (code, len(err)) == (2, 1)
    assert "; with --offset -3600 it would: is it another time zone?" in err[0]
    code, out, err = merge(capsys, measured[0], path, *columns, "--offset", "-3600", "--scope", "board")
    assert (code, err) == (0, [])
    assert "windows have watts of board" in out
    run = load_run(tmp_path / "n")
    for window in (window for one in run.passes for block in one.blocks for window in block.windows):
        found = energy(log_of(window.log), window.t0_ns, window.t1_ns)
        assert found.joules == pytest.approx(joules(window.t0_ns, window.t1_ns), rel=2e-3)


def spoiled(measured):
    """What a file may be that is not merged, each with what is said of it."""
    made = rows(measured)
    run = load_run(measured[0])
    middle = run.passes[3].blocks[0].windows[0].log.clock[0][1] / 1e9
    half = (made[0][0] + made[-1][0]) / 2
    return {
        "kilowatts": ([(at, watts / 1000) for at, watts in made], "zero: .*; is --unit another"),
        "milliwatts": ([(at, watts * 1000) for at, watts in made], "implausible_high.*; is --unit another"),
        "last week's": (
            [(at - 604_800, watts) for at, watts in made],
            "its times are from .*Z to .*Z, the run's from ",
        ),
        "a zone": ([(at + 7200, watts) for at, watts in made], r"with --offset -7200 it would"),
        "the first half": ([row for row in made if row[0] < half], "the run's from .*; --partial takes the others"),
        "with a gap": ([row for row in made if not 0 <= row[0] - middle < 6], "pass 4 at as-is: gap.*--partial"),
        "another host's": ([(at, 99.0) for at, _ in made], "unresponsive: 99 W at rest and 99 W under load"),
        "a clock that is off": ([(at + 0.4, watts) for at, watts in made], r"clock_skew: .* give --offset -0\.4"),
        "back in time": ([made[0], *made[2:9], made[1], *made[9:]], "line 9: its time goes back"),
        "twice": ([*made[:5], *made[4:]], "line 6: its time is that of the row before"),
    }


def test_a_file_that_is_not_of_the_run_changes_nothing(capsys, measured, tmp_path):
    shutil.copytree(measured[0], tmp_path / "r")
    before = state(tmp_path / "r")
    for name, (made, said) in spoiled(measured).items():
        path = written(tmp_path / "w.csv", made)
        code, _, err = merge(capsys, tmp_path / "r", path, "--json")
        assert (code, len(err)) == (2, 1), (name, err)
        assert re.search(said, err[0]), (name, err)
    assert state(tmp_path / "r") == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r", "w.csv"]


def test_what_a_file_lacks_is_left_without_watts_only_if_told_so(capsys, measured, tmp_path):
    made, _ = spoiled(measured)["with a gap"]
    path = written(tmp_path / "w.csv", made)
    code, out, _ = merge(capsys, measured[0], path, "-o", tmp_path / "n", "--partial", "--json")
    assert code == 0
    told = json.loads(out)
    assert 0 < told["without_watts"] < told["windows"]
    assert cpubench(capsys, "validate", tmp_path / "n")[0] == 0
    run = load_run(measured[0])
    ends = [moment for log in (run.plan.power.idle, run.idle_after) for moment in (log.clock[0][1], log.clock[1][1])]
    made = [row for row in rows(measured) if ends[1] < row[0] * 1e9 < ends[2]]
    path = written(tmp_path / "w.csv", made)
    assert "its times are from" in merge(capsys, measured[0], path)[2][0]
    code, out, _ = merge(capsys, measured[0], path, "-o", tmp_path / "k", "--partial", "--json")
    assert (code, json.loads(out)["flags"], json.loads(out)["without_watts"]) == (0, ["clock_unseen"], 0)
    made, _ = spoiled(measured)["a clock that is off"]
    path = written(tmp_path / "w.csv", made)
    code, out, _ = merge(capsys, measured[0], path, "-o", tmp_path / "m", "--offset", "0", "--json")
    assert (code, json.loads(out)["flags"]) == (0, ["clock_skew"])
    code, _, err = merge(capsys, measured[0], path, "-o", tmp_path / "m", "--offset", "-0.4")
    assert (code, len(err)) == (2, 1)
    assert "choose another folder" in err[0]


@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="no ssh-keygen")
def test_the_run_with_its_watts_is_signed_anew(capsys, measured, tmp_path, monkeypatch):
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "key")], check=True)
    (tmp_path / "signers").write_text(f"lab@vendor.example {(tmp_path / 'key.pub').read_text()}")
    path = written(tmp_path / "w.csv", rows(measured))
    assert merge(capsys, measured[0], path, "-o", tmp_path / "n", "--sign", tmp_path / "none")[0] == 2
    assert not (tmp_path / "n").exists()
    assert merge(capsys, measured[0], path, "-o", tmp_path / "n", "--sign", tmp_path / "key")[0] == 0
    assert cpubench(capsys, "validate", tmp_path / "n", "--signers", tmp_path / "signers")[0] == 0


def test_runs_without_both_clocks_have_no_place_for_watts(capsys, measured, tmp_path):
    path = written(tmp_path / "w.csv", rows(measured))
    document = json.loads((measured[0] / "run.json").read_bytes())
    window = document["passes"][0]["blocks"][0]["windows"][0]
    del window["log"]["clock"]
    document["passes"][0]["blocks"][0] = sealed(document["passes"][0]["blocks"][0])
    (tmp_path / "run.json").write_bytes(canonical(sealed(document)))
    code, _, err = merge(capsys, tmp_path / "run.json", path)
    assert (code, len(err)) == (2, 1)
    assert "its clocks were not read at two moments" in err[0]
    document["plan"]["power"]["meter"] = "cmd"
    (tmp_path / "run.json").write_bytes(canonical(sealed(document)))
    code, _, err = merge(capsys, tmp_path / "run.json", path)
    assert (code, "measure with `cpubench run --meter csv`" in err[0]) == (2, True)
    assert merge(capsys, tmp_path / "nothing", path)[0] == 2
    assert sorted(one.name for one in tmp_path.iterdir()) == ["run.json", "w.csv"]


def test_per_cent_of_a_power_that_is_not_known_yet_are_refused(capsys):
    code, _, err = cpubench(capsys, "run", "--meter", "csv", "--cap", "70%")
    assert (code, len(err)) == (2, 1)
    assert "per cent need a meter" in err[0]
