from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import cpubench.suites
import msgspec
import pytest
from made import made_run, made_variants

from cpubench.bench.export import OPTIONS, to_csv, to_pytest_benchmark
from cpubench.results.files import sealed
from cpubench.results.records import Missing, Run

pytest_plugins = ["pytester"]

SUITES = Path(cpubench.suites.__file__).parent
CHECKOUT = Path(__file__).parents[2]


def as_run(document: dict[str, Any]) -> Run:
    return msgspec.convert(document, Run)


def test_the_export_is_what_a_replay_writes(pytester: pytest.Pytester, tmp_path: Path) -> None:
    document = made_run(5, skipped=[Missing("mem_tlb@1", "no pages")])
    (tmp_path / "run.json").write_text(json.dumps(document))
    options = ("--cpubench-run", str(tmp_path), "--benchmark-json=out.json")
    pytester.runpytest_inprocess(str(SUITES), "-p", "no:cacheprovider", *options).assert_outcomes(passed=17, skipped=2)
    replayed = json.loads((pytester.path / "out.json").read_text())
    exported = json.loads(json.dumps(to_pytest_benchmark(as_run(document))))
    assert replayed.keys() == exported.keys()
    for key in ("machine_info", "cpubench", "version"):
        assert replayed[key] == exported[key]
    assert replayed["commit_info"].keys() == exported["commit_info"].keys()
    by_name = [{b["fullname"]: b for b in one["benchmarks"]} for one in (replayed, exported)]
    assert by_name[0].keys() == by_name[1].keys()
    for name, mine in by_name[1].items():
        theirs = by_name[0][name]
        assert mine["options"].keys() == theirs["options"].keys()
        assert {k: v for k, v in mine.items() if k != "options"} == {k: v for k, v in theirs.items() if k != "options"}


def test_options_that_had_no_part_are_null() -> None:
    assert {name for name, value in OPTIONS.items() if value is None} == {
        "min_rounds", "max_time", "min_time", "precision", "confidence",
    }  # fmt: skip


def test_a_failed_variant_is_left_out_and_named() -> None:
    document = made_run(1)
    cell = document["passes"][0]["blocks"][0]["cells"][0]
    cell |= {"samples": {name: [] for name in cell["samples"]}, "error": "EPERM", "copy_ops": []}
    exported = to_pytest_benchmark(as_run(document))
    assert len(exported["benchmarks"]) == 16
    assert exported["cpubench"]["failed"] == [{"variant": "spawn_fork_exec[rss=8M]@1", "reason": "EPERM (pass 0)"}]
    json.dumps(exported, allow_nan=False)


def test_the_export_of_a_run_is_always_the_same() -> None:
    assert to_pytest_benchmark(as_run(made_run(2))) == to_pytest_benchmark(as_run(made_run(2)))


@pytest.fixture
def exported(pytester: pytest.Pytester) -> Path:
    for name, slower in (("a", 1.0), ("b", 1.2)):
        run = as_run(made_run(4, slower=slower))
        (pytester.path / f"{name}.json").write_text(json.dumps(to_pytest_benchmark(run)))
    return pytester.path


def compare(folder: Path, *args: str) -> str:
    program = Path(sys.executable).with_name("pytest-benchmark")  # as a person calls it
    command = [program, "compare", "a.json", "b.json", *args]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def test_the_compare_program_pairs_two_exports(exported: Path) -> None:
    lines = compare(exported, "--group-by=fullname", "--columns=mean", "-k", "16K and cores").splitlines()
    named = [line for line in lines if line.startswith("test_memory")]
    assert len(named) == 2
    assert "(1.20)" in "".join(named)
    assert "Increase" not in compare(exported, "--between=median", "-k", "spawn")


def test_the_compare_program_plots_and_writes_csv(exported: Path) -> None:
    compare(exported, "--histogram=plot", "--csv=out.csv", "-k", "lock")
    assert (exported / "plot-lock@1.svg").exists()
    assert (exported / "out.csv").read_text().count("::test_lock[lock_mutex") == 6


def test_a_session_compares_with_an_exported_file(pytester: pytest.Pytester, exported: Path, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(made_run(4)))
    store = pytester.mkdir(".benchmarks")
    (store / "0001_old.json").write_text((exported / "a.json").read_text())
    options = ("--cpubench-run", str(tmp_path), "--benchmark-compare=0001", "-k", "file")
    result = pytester.runpytest_inprocess(str(SUITES), "-p", "no:cacheprovider", *options)
    result.stdout.fnmatch_lines(["*file_create-1] (0001_old)*"])
    assert "machine_info is different" not in result.stderr.str()


def test_the_compare_program_in_a_checkout_keeps_the_unit_of_operations(exported: Path) -> None:
    (exported / "tests").mkdir()
    for name in ("conftest.py", "pyproject.toml"):  # the latter makes every warning of pytest an error
        (exported / name).write_text((CHECKOUT / name).read_text())
    assert "OPS (Kops/s)" in compare(exported, "--time-unit=ns", "-k", "file")


def test_csv_has_a_line_for_each_variant_copies_and_pass() -> None:
    run = as_run(made_run(3, noise=0, cpus=4))
    rows = list(csv.DictReader(io.StringIO(to_csv(run))))
    assert len(rows) == 3 * len(run.plan.variants)
    one = next(r for r in rows if (r["variant"], r["copies"], r["pass"]) == ("file_create", "cores", "2"))
    assert float(one["ns_per_op"]) == pytest.approx(3e4)
    assert float(one["ops_per_s"]) == pytest.approx(4 / 3e-5)
    assert float(one["elapsed_ns"]) / float(one["ops"]) == float(one["ns_per_op"])
    assert (one["cap"], one["error"]) == ("as-is", "")


def test_csv_leaves_a_failed_cell_empty_and_says_why() -> None:
    document = made_run(1)
    document["passes"][0]["blocks"][0]["cells"][0] |= {"error": "EPERM", "copy_ops": [0], "copy_elapsed_ns": [0]}
    one = next(csv.DictReader(io.StringIO(to_csv(as_run(document)))))
    assert (one["ns_per_op"], one["ops_per_s"], one["error"]) == ("", "", "EPERM")


def test_csv_of_a_vendor_starts_no_formula() -> None:
    variants = [msgspec.structs.replace(v, kernel="=HYPERLINK(1)", params="") for v in made_variants()[:1]]
    document = made_run(1, variants=made_variants()[:1])
    document["plan"]["variants"] = msgspec.to_builtins(variants)
    document["passes"][0]["blocks"][0]["cells"][0] |= {"kernel": "=HYPERLINK(1)", "params": "", "error": "@x"}
    one = next(csv.DictReader(io.StringIO(to_csv(as_run(sealed(document))))))
    assert (one["variant"], one["error"]) == ("'=HYPERLINK(1)", "'@x")
