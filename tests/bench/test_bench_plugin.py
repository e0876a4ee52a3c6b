"""A finished run under a real pytest: what pytest-benchmark makes of it, and what other sessions see of the plugin."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import cpubench.suites
import pytest
from made import made_run, made_variants

import cpubench.results.load
from cpubench.results.files import sealed
from cpubench.results.records import Missing

pytest_plugins = ["pytester"]

SUITES = str(Path(cpubench.suites.__file__).parent)
QUIET = ("-p", "no:cacheprovider")
SPAWN = "spawn_fork_exec[rss=384M]"


def write_run(folder: Path, document: dict[str, Any]) -> Path:
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps(document))
    return folder


def without_samples(document: dict[str, Any], name: str, copies: str, error: str) -> dict[str, Any]:
    """The run, resealed, in which each sample of a variant failed."""
    passes = []
    for the_pass in document["passes"]:
        (block,) = the_pass["blocks"]
        for cell in block["cells"]:
            if (f"{cell['kernel']}[{cell['params']}]", cell["copies"]) == (name, copies):
                nothing = {column: [] for column in cell["samples"]}
                cell |= {"samples": nothing, "error": error, "copy_ops": [], "copy_elapsed_ns": []}
        passes.append({"index": the_pass["index"], "blocks": [sealed(block)]})
    return sealed({**document, "passes": passes})


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", made_run(4))


def replay(pytester: pytest.Pytester, run: Path, *args: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess(SUITES, *QUIET, "--cpubench-run", str(run), *args)


def replay_apart(pytester: pytest.Pytester, run: Path, *args: str) -> pytest.RunResult:
    """In a process of its own, for what an inner session does to its process."""
    return pytester.runpytest_subprocess(SUITES, *QUIET, "--cpubench-run", str(run), *args)


def benchmarks(file: Path) -> dict[str, Any]:
    return {b["fullname"]: b for b in json.loads(file.read_text())["benchmarks"]}


def test_a_replay_shows_every_variant_of_the_plan(pytester: pytest.Pytester, run: Path) -> None:
    result = replay(pytester, run, "--benchmark-json=out.json")
    result.assert_outcomes(passed=17, skipped=1)
    result.stdout.fnmatch_lines([f"cpubench: shows {run} (made-0, profile quick, 4 passes, cap as-is)"])
    shown = benchmarks(pytester.path / "out.json")
    assert len(shown) == 17
    one = shown[f"suites/bench_spawn.py::test_spawn[{SPAWN}-cores]"]
    assert one["name"] == f"test_spawn[{SPAWN}-cores]"
    assert one["params"] == {"variant": SPAWN, "copies": "cores"}
    assert one["stats"]["rounds"] == 8
    assert one["stats"]["mean"] == pytest.approx(0.024, rel=0.2)
    assert one["extra_info"]["cpubench"]["ops_per_s"] == pytest.approx(2 / 0.024, rel=0.1)
    assert one["options"]["timer"] == "cpubench.recorded"


def test_times_are_the_recorded_ones_to_the_last_bit(pytester: pytest.Pytester, run: Path) -> None:
    replay(pytester, run, "--benchmark-json=out.json", "-k", "mem_chase")
    document = json.loads((run / "run.json").read_text())
    cells = [cell for one in document["passes"] for cell in one["blocks"][0]["cells"]]
    for size in ("set=16K", "set=256M"):
        samples = [cell["samples"] for cell in cells if (cell["params"], cell["copies"]) == (size, "1")]
        wanted = [e / o * 1e-9 for s in samples for e, o in zip(s["elapsed_ns"], s["ops"], strict=True)]
        test = f"suites/bench_memory.py::test_memory[mem_chase[{size}]-1]"
        assert benchmarks(pytester.path / "out.json")[test]["stats"]["data"] == wanted


def test_json_holds_stable_facts_of_the_host_apart_from_those_of_the_run(pytester: pytest.Pytester, run: Path) -> None:
    other = write_run(run.parent / "other", made_run(4, seed=7))
    replay(pytester, run, "--benchmark-json=a.json", "-k", "spawn")
    replay(pytester, other, "--benchmark-json=b.json", "-k", "spawn")
    a, b = (json.loads((pytester.path / name).read_text()) for name in ("a.json", "b.json"))
    assert a["machine_info"] == b["machine_info"]
    assert a["machine_info"]["node"] == "made"
    assert (a["cpubench"]["run"], b["cpubench"]["run"]) == ("made-0", "made-7")
    assert "id" in a["commit_info"]


def test_a_selection_shows_only_what_it_names(pytester: pytest.Pytester, run: Path) -> None:
    replay(pytester, run, "-k", "spawn and cores").assert_outcomes(passed=1, deselected=17)
    test = f"{SUITES}/bench_memory.py::test_memory[mem_chase[set=16K]-1]"
    pytester.runpytest_inprocess(test, *QUIET, "--cpubench-run", str(run)).assert_outcomes(passed=1)


def test_a_failed_variant_fails_with_its_reason_and_the_others_are_in_the_json(
    pytester: pytest.Pytester, run: Path
) -> None:
    reason = "killed by signal 11"
    broken = write_run(run.parent / "broken", without_samples(made_run(4), SPAWN, "cores", reason))
    result = replay(pytester, broken, "--benchmark-json=out.json")
    result.assert_outcomes(passed=16, failed=1, skipped=1)
    result.stdout.fnmatch_lines([f"*test_spawn[[]{SPAWN.replace('[', '[[]')}-cores]*", f"{reason} (pass 0)"])
    assert "Traceback" not in result.stdout.str()
    assert len(benchmarks(pytester.path / "out.json")) == 16
    facts = json.loads((pytester.path / "out.json").read_text())["cpubench"]
    assert facts["failed"] == [{"variant": f"{SPAWN}@cores", "reason": f"{reason} (pass 0)"}]


def test_a_skipped_variant_is_skipped_with_its_reason(pytester: pytest.Pytester, tmp_path: Path) -> None:
    skipped = [Missing("switch_pipe[place=sibling]@1", "no core has two threads")]
    result = replay(pytester, write_run(tmp_path / "run", made_run(2, skipped=skipped)))
    result.assert_outcomes(passed=17, skipped=2)
    result.stdout.fnmatch_lines(["SKIPPED*no core has two threads"])


def test_a_family_that_the_run_has_not_is_one_skip(pytester: pytest.Pytester, tmp_path: Path) -> None:
    variants = [v for v in made_variants() if v.family == "lock"]
    result = replay(pytester, write_run(tmp_path / "run", made_run(2, variants=variants)))
    result.assert_outcomes(passed=len(variants), skipped=5)
    result.stdout.fnmatch_lines(["SKIPPED*there is no variant of spawn"])


def test_one_cap_level_is_shown_and_another_on_request(pytester: pytest.Pytester, tmp_path: Path) -> None:
    document = made_run(2, caps=["as-is", "70%"])
    for the_pass in document["passes"]:
        (block,) = the_pass["blocks"]
        slower = json.loads(json.dumps(block).replace('"as-is"', '"70%"'))
        for cell in slower["cells"]:
            for times in (cell["samples"], cell):
                name = "elapsed_ns" if times is not cell else "copy_elapsed_ns"
                times[name] = [2 * e for e in times[name]]
        the_pass["blocks"].append(sealed(slower))
    run = write_run(tmp_path / "run", sealed(document))
    replay(pytester, run, "--benchmark-json=a.json", "-k", "file")
    replay(pytester, run, "--benchmark-json=b.json", "-k", "file", "--cpubench-cap=70%")
    a, b = (benchmarks(pytester.path / name) for name in ("a.json", "b.json"))
    assert a.keys() == b.keys()
    for name in a:
        assert b[name]["stats"]["mean"] == pytest.approx(2 * a[name]["stats"]["mean"])
    result = replay(pytester, run, "--cpubench-cap=250W")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "no cap level '250W', only as-is, 70%" in result.stderr.str()


@pytest.mark.parametrize("content", [None, "", "{}", '{"schema": "cpubench.run/9"}'])
def test_a_bad_run_is_one_line_and_a_usage_error(
    pytester: pytest.Pytester, tmp_path: Path, content: str | None
) -> None:
    folder = tmp_path / "bad"
    if content is not None:
        folder.mkdir()
        (folder / "run.json").write_text(content)
    result = replay(pytester, folder)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = [line for line in result.stderr.lines if line]
    assert line.startswith("ERROR: --cpubench-run: ")
    assert str(folder) in line


def test_saved_runs_compare_and_plot(pytester: pytest.Pytester, run: Path) -> None:
    # pygal's importlib_metadata takes the standard library's finder away: later inner sessions would have no plugins
    slower = write_run(run.parent / "slower", made_run(4, slower=1.5))
    replay(pytester, run, "--benchmark-save=base", "-k", "mem").assert_outcomes(passed=5, deselected=13)
    result = replay_apart(pytester, slower, "--benchmark-compare", "--benchmark-histogram=plot/h", "-k", "mem")
    result.stdout.fnmatch_lines(["*set=16K]-1] (0001_base)*", "*set=16K]-1] (NOW)*"])
    assert "machine_info is different" not in result.stdout.str() + result.stderr.str()
    assert sorted(p.name for p in pytester.path.glob("plot/*")) == ["h-memory@1.svg", "h-memory@cores.svg"]
    fail = ("--benchmark-compare", "--benchmark-compare-fail=mean:10%", "-k", "16K")
    result = replay_apart(pytester, slower, *fail)
    assert result.ret != 0
    assert "Performance has regressed" in result.stderr.str()
    replay(pytester, run, *fail).assert_outcomes(passed=2, deselected=16)
    (saved,) = (pytester.path / ".benchmarks").glob("*/*.json")
    assert "data" not in json.loads(saved.read_text())["benchmarks"][0]["stats"]
    assert json.loads(saved.read_text())["cpubench"]["run"] == "made-0"


def test_comparing_two_machines_warns_and_goes_on(pytester: pytest.Pytester, run: Path) -> None:
    there = made_run(4)
    other = write_run(run.parent / "other", sealed(there | {"host": there["host"] | {"hostname": "there"}}))
    replay(pytester, run, "--benchmark-save=base", "-k", "spawn")
    result = replay_apart(pytester, other, "--benchmark-compare", "-k", "spawn")
    result.assert_outcomes(passed=3, deselected=15)
    assert "machine_info is different" in result.stderr.str()


def test_operations_keep_their_own_unit_beside_nanoseconds(pytester: pytest.Pytester, run: Path) -> None:
    result = replay(pytester, run, "--benchmark-time-unit=ns", "-k", "switch")
    result.stdout.fnmatch_lines(["Name (time in ns)*OPS (Kops/s)*"])
    assert "nops/s" not in result.stdout.str()


def test_options_that_call_the_target_once_more_do_no_harm(pytester: pytest.Pytester, run: Path) -> None:
    replay(pytester, run, "--benchmark-cprofile=tottime", "--benchmark-cprofile-loops=9").assert_outcomes(
        passed=17, skipped=1
    )
    replay(pytester, run, "--benchmark-disable").assert_outcomes(passed=17, skipped=1)
    replay(pytester, run, "--benchmark-only", "--benchmark-disable-gc").assert_outcomes(passed=17, skipped=1)
    replay(pytester, run, "--benchmark-skip").assert_outcomes(skipped=18)


def test_names_for_compare_are_the_same_by_path_by_name_and_from_a_wheel(pytester: pytest.Pytester, run: Path) -> None:
    replay(pytester, run, "--benchmark-json=path.json")
    by_name = ("--pyargs", "cpubench.suites", "--cpubench-run", str(run))
    pytester.runpytest_inprocess(*by_name, *QUIET, "--benchmark-json=name.json").assert_outcomes(passed=17, skipped=1)
    site, package = pytester.mkdir("site"), Path(SUITES).parent / "cpubench"
    if not package.exists():  # installed: the suites are inside
        package = Path(SUITES).parent
    left_out = shutil.ignore_patterns("__pycache__", "_native*", "_bin", "suites")
    shutil.copytree(package, site / "cpubench", ignore=left_out)
    shutil.copytree(SUITES, site / "cpubench" / "suites")
    elsewhere = pytester.mkdir("elsewhere")
    command = [sys.executable, "-m", "pytest", *by_name, *QUIET, "--benchmark-json=wheel.json"]
    env = os.environ | {"PYTHONPATH": str(site)}
    where = [sys.executable, "-c", "import cpubench.suites; print(cpubench.suites.__file__)"]
    for one, said in ((where, str(site)), (command, "17 passed")):
        told = subprocess.run(one, cwd=elsewhere, env=env, check=True, capture_output=True, text=True).stdout
        assert said in told
    names = [benchmarks(f).keys() for f in (pytester.path / "path.json", pytester.path / "name.json")]
    assert names[0] == names[1] == benchmarks(elsewhere / "wheel.json").keys()


def test_a_replay_needs_no_extension(pytester: pytest.Pytester, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cpubench._native", None)
    replay(pytester, run).assert_outcomes(passed=17, skipped=1)


def test_a_foreign_run_cannot_write_to_the_terminal(pytester: pytest.Pytester, tmp_path: Path) -> None:
    document = made_run(2, skipped=[Missing("lock_all@1", "no\x1b[31m reason")], id="made\x1b[31m")
    result = replay(pytester, write_run(tmp_path / "run", document), "-v")
    result.assert_outcomes(passed=17, skipped=2)
    assert "\x1b" not in result.stdout.str()
    text = json.dumps(document).replace('"file_create"', '"file_\\u001b[2Jcreate"')  # names of kernels are plain
    result = replay(pytester, write_run(tmp_path / "other", json.loads(text)), "-v")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "\x1b" not in result.stdout.str() + result.stderr.str()
