"""``cpubench compare``: forms of output, exit codes, bad input, which runs a path means, and how long it takes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from broken import cell, reseal, written
from made import made_controls, made_run, made_variants, made_wide_variants

from cpubench.analysis.reference import make_reference
from cpubench.entry import main
from cpubench.errors import UsageError
from cpubench.results.gather import run_files
from cpubench.results.load import load_run
from cpubench.results.records import Side
from cpubench.versus import fail_band

Doc = dict[str, Any]


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    file = tmp_path / "reference.json"
    (tmp_path / "scale").mkdir()
    scale = load_run(written(tmp_path / "scale", made_run(8, noise=0)))
    file.write_text(json.dumps(make_reference(scale, "made")))
    return file


def saved(folder: Path, document: Doc) -> Path:
    folder.mkdir(parents=True)
    written(folder, document)
    return folder


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """A run, and one that takes a tenth more time."""
    return saved(tmp_path / "a", made_run(40, seed=1)), saved(tmp_path / "b", made_run(40, seed=2, slower=1.1))


def call(capsys: Any, reference: Path, *arguments: Any) -> tuple[int, str, str]:
    code = main(["compare", "--reference", str(reference), *map(str, arguments)])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_page_says_who_which_way_and_how_sure_at_80_columns(capsys: Any, reference: Path, two: Any) -> None:
    code, out, err = call(capsys, reference, *two)
    text = " ".join(out.split())
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    said = r"per core: B needs \d+\.\d % more time than A \(95 % CI \d+\.\d\.\.\d+\.\d, "
    assert re.search(said + r"40 \+ 40 passes, unpaired, this run only\): slower", text)
    for part in ("This run only: no claim on the hosts.", "rate of B / rate of A: above 1, B is faster",
                 "per watt: not compared: no meter was read", "Holm", "the floor is unknown",
                 "A and B are one host", "file_create * cores 0.9"):  # fmt: skip
        assert part in text


def test_slower_is_exit_1_only_where_it_is_asked_for(capsys: Any, reference: Path, two: Any) -> None:
    assert call(capsys, reference, *two)[0] == 0
    code, _, err = call(capsys, reference, *two, "--fail-on", "slower")
    assert (code, "cpubench: B is slower: headline per_core" in err) == (1, True)
    assert call(capsys, reference, *two, "--fail-on", "slower:3%")[0] == 1
    assert call(capsys, reference, *two, "--fail-on", "slower:20%")[0] == 0
    assert call(capsys, reference, *reversed(two), "--fail-on", "slower")[0] == 0
    code, out, _ = call(capsys, reference, *two, "--fail-on", "slower", "--json")
    assert (code, len(json.loads(out)["slower"])) == (1, 29)  # the whole, five families by two measures, 17 rows


@pytest.mark.parametrize("text", ["faster", "slower:", "slower:x%", "slower:-3%", "slower:3", "slower:nan%", ""])
def test_other_questions_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="slower:3%"):
        fail_band(text)


def test_json_is_one_document(capsys: Any, reference: Path, two: Any) -> None:
    code, out, err = call(capsys, reference, *two, "--json")
    document = json.loads(out)
    assert (code, err, document["scope"]) == (0, "", "this run only")
    assert document["headline"]["per_core"]["verdict"] == "slower"
    assert set(document["headline"]) == {"per_core", "speed", "per_watt"}
    assert call(capsys, reference, *two, "--json", "--markdown")[0] == 2


def test_markdown_has_tables_and_nothing_foreign_in_force(capsys: Any, reference: Path, tmp_path: Path) -> None:
    document = made_run(16, seed=1)
    document["host"]["hostname"] = "[x](http://e.vil) <b> @team | `c` _d_"
    a, b = saved(tmp_path / "a", reseal(document)), saved(tmp_path / "b", made_run(16, seed=2))
    code, out, _ = call(capsys, reference, a, b, "--markdown")
    assert code == 0
    assert "| variant (\\* scored) | copies | B / A | 95 % CI | this run only |" in out
    for raw in ("[x](", "http://e", "<b>", "@team", " `c`", " _d_"):
        assert raw not in out
    rows = [line for line in out.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in rows} == {6}


def test_folders_of_runs_are_sides(capsys: Any, reference: Path, tmp_path: Path) -> None:
    for seed in range(6):
        side = "old" if seed < 3 else "new"
        saved(tmp_path / side / f"run{seed}", made_run(12, seed=seed, slower=1 if seed < 3 else 0.8))
    code, out, _ = call(capsys, reference, tmp_path / "old", tmp_path / "new")
    text = " ".join(out.split())
    assert code == 0
    assert "A: made, made CPU, 2 x vcpu: 3 runs over 0 h, 36 passes" in text
    assert "Claims are on the hosts" in text
    assert "The runs of A are of one day" in text
    assert re.search(r"less time than A \([^)]*3 \+ 3 runs, 36 \+ 36 passes, unpaired\): faster", text)


@pytest.fixture
def turns(tmp_path: Path) -> Path:
    """The folder of a run --ab whose second side takes 4 % more time; its label of the control kernel 1 %."""
    variants = made_variants() + made_controls()
    for seed, (label, slower) in enumerate((("a", 1.0), ("b", 1.04))):
        mark = Side(pair="one", label=label, settings={"MALLOC_ARENA_MAX": "1"} if seed else {})  # type: ignore[arg-type]
        saved(tmp_path / "turns" / label, made_run(16, seed=seed, noise=0.004, moments=(9, 0.1), slower=slower,
                                                   variants=variants, side=mark))  # fmt: skip
    return tmp_path / "turns"


def test_the_folder_of_two_sides_is_compared_pass_by_pass(capsys: Any, reference: Path, turns: Path) -> None:
    code, out, err = call(capsys, reference, turns)
    text = " ".join(out.split())
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    assert re.search(
        r"per core: B needs [34]\.\d % more time than A \([^)]*, 16 paired passes, this run only\): slower", text
    )
    assert re.search(r"A/A floor 0\.\d+ %: one kernel under two labels\.", text)
    for part in ("Paired: 16 passes of both, measured in turns", "setting MALLOC_ARENA_MAX A: -; B: 1"):
        assert part in text
    assert call(capsys, reference, turns / "a", turns / "b")[1] == out
    assert "faster" in call(capsys, reference, turns / "b", turns / "a")[1]
    code, out, _ = call(capsys, reference, turns, "--markdown")
    rows = [line for line in out.splitlines() if line.startswith("|")]
    assert (code, {len(re.findall(r"(?<!\\)\|", line)) for line in rows}) == (0, {6})


def test_a_gate_on_two_sides_does_not_speak_of_other_hosts(capsys: Any, reference: Path, turns: Path) -> None:
    code, _, err = call(capsys, reference, turns, "--fail-on", "slower:2%")
    assert (code, len(err.splitlines())) == (1, 1)
    assert call(capsys, reference, turns, "--fail-on", "slower:5%")[0] == 0


def test_a_gate_within_the_floor_says_that_it_cannot_tell(capsys: Any, reference: Path, tmp_path: Path) -> None:
    variants, off = made_variants() + made_controls(), {"test_work[steps=1000,again]": 1.2}
    a, b = (saved(tmp_path / name, made_run(16, seed=seed, slower=slower, variants=variants, factors=off))
            for seed, (name, slower) in enumerate((("a", 1.0), ("b", 1.1))))  # fmt: skip
    code, _, err = call(capsys, reference, a, b, "--fail-on", "slower:3%")
    assert code == 0
    assert re.search(r"the A/A floor of these runs is 2\d %: what B is slower in by less cannot be told", err)
    assert "floor" not in call(capsys, reference, a, b, "--fail-on", "slower:50%")[2]


def test_two_folders_of_sides_are_not_mixed(capsys: Any, reference: Path, turns: Path, tmp_path: Path) -> None:
    shutil.copytree(turns, tmp_path / "again")
    code, _, err = call(capsys, reference, turns, tmp_path / "again")
    assert (code, "side A holds both sides of run --ab" in err) == (2, True)


def test_a_side_that_is_not_there_is_named(capsys: Any, reference: Path, turns: Path) -> None:
    (turns / "b" / "run.json").unlink()
    assert "two runs, or two folders" in call(capsys, reference, turns)[2]
    (turns / "b" / "plan.json").write_text("{}")
    assert re.search(r"b: holds a plan but no run\.json", call(capsys, reference, turns)[2])


def test_runs_of_two_hosts_are_put_together_by_host(capsys: Any, reference: Path, tmp_path: Path) -> None:
    runs = [saved(tmp_path / f"r{n}", made_run(12, seed=n, host_id="ab"[n % 2])) for n in range(6)]
    for given in (runs, [tmp_path]):
        shutil.rmtree(tmp_path / "scale", ignore_errors=True)
        code, out, _ = call(capsys, reference, *given, "--json")
        sides = json.loads(out)["sides"]
        assert (code, len(sides["a"]["runs"]), sides["b"]["host_id"]) == (0, 3, "b")


def test_a_path_is_a_run_a_file_or_a_folder_of_runs(tmp_path: Path) -> None:
    run = saved(tmp_path / "runs" / "one", made_run(2))
    (tmp_path / "runs" / "notes").mkdir()
    assert run_files(run) == run_files(run / "run.json") == run_files(tmp_path / "runs") == [run / "run.json"]
    (tmp_path / "runs" / "half").mkdir()
    (tmp_path / "runs" / "half" / "plan.json").write_text("{}")
    with pytest.raises(UsageError, match=r"half: holds a plan but no run\.json"):
        run_files(tmp_path / "runs")


def test_reasons_of_missing_rows_are_on_the_page(capsys: Any, reference: Path, two: Any, tmp_path: Path) -> None:
    left = [v for v in made_variants() if v.family != "lock"]
    code, out, _ = call(capsys, reference, two[0], saved(tmp_path / "c", made_run(16, seed=3, variants=left)))
    text = " ".join(out.split())
    assert code == 0
    assert "per core: not compared: missing: lock_mutex[cs=200ns]@cores (B: not in the plan)" in text
    assert "per core of a subset, no headline: B needs" in text
    assert "subset: 6 of 7 scored rows" in text
    assert "lock_mutex[cs=200ns]@1, lock_mutex[cs=200ns]@cores" in text
    _, _, err = call(capsys, reference, two[0], tmp_path / "c", "--fail-on", "slower")
    assert "2 scored rows are not compared" in err


def negative(document: Doc) -> None:
    cell(document)["copy_elapsed_ns"][0] = -1


def zero(document: Doc) -> None:
    cell(document)["copy_elapsed_ns"][0] = 0


def other_schema(document: Doc) -> None:
    document["schema"] = "cpubench.run/2"


def unit(document: Doc) -> None:
    document["plan"]["variants"][0]["unit"] = "hour"


def version(document: Doc) -> None:
    document["plan"]["variants"][-1]["version"] = 7


def no_name(document: Doc) -> None:
    document["plan"]["variants"][-1]["copies"] = "all"


def text_for_number(document: Doc) -> None:
    document["passes"][0]["index"] = "first"


BROKEN: dict[str, tuple[Callable[[Doc], None], str]] = {
    "negative time": (negative, "Expected `int` >= 0"),
    "zero time": (zero, "operations in no time"),
    "schema": (other_schema, "schema cpubench.run/2 is unknown"),
    "unit": (unit, "an operation of spawn_fork_exec is a"),
    "version": (version, "mem_chase is version"),
    "copies": (no_name, "Invalid enum value 'all'"),
    "a text for a number": (text_for_number, "Expected `int`, got `str`"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_bad_runs_are_one_clear_sentence(capsys: Any, reference: Path, two: Any, tmp_path: Path, name: str) -> None:
    change, text = BROKEN[name]
    document = made_run(16, seed=3)
    change(document)
    paths = (two[0], saved(tmp_path / "c", reseal(document)))
    for given in (paths, paths[::-1]):
        code, out, err = call(capsys, reference, *given)
        assert (code, out, len(err.splitlines())) == (2, "", 1)
        assert text in err


def test_nan_is_refused_with_its_place(capsys: Any, reference: Path, two: Any) -> None:
    file = two[1] / "run.json"
    file.write_text(file.read_text().replace('"prepare_ns":1000', '"prepare_ns":NaN', 1))
    code, _, err = call(capsys, reference, *two)
    assert (code, "NaN is no number of JSON" in err) == (2, True)


PATHS = {
    "the same file": (["a", "a"], "is the same run as"), "a copy": (["a", "copy"], "is the same run as"),
    "no run": (["a", "empty"], "is no run folder"), "nothing": (["a", "gone"], "there is no such file"),
    "no pass": (["a", "none"], "nothing can be compared"), "one pass": (["a", "single"], "8 passes are needed"),
    "one path": (["a"], "two runs, or two folders"), "three of one host": (["a", "b", "more"], "are of one host"),
    "no runs inside": (["a", "outer"], "holds none"), "part": (["a", "part"], "B: not in the plan"),
    "pytest-benchmark": (["a", "bench.json"], "is a file of pytest-benchmark; wanted is cpubench.run/1"),
    "other JSON": (["a", "list.json"], "holds a JSON list"), "no JSON": (["a", "text.json"], "is not JSON"),
    "a block": (["a", "block.json"], "of schema 'cpubench.block/1'"),
}  # fmt: skip


@pytest.mark.parametrize("name", PATHS)
def test_what_is_no_comparison_exits_with_2(capsys: Any, reference: Path, two: Any, tmp_path: Path, name: str) -> None:
    shutil.copytree(two[0], tmp_path / "copy")
    (tmp_path / "empty").mkdir()
    (tmp_path / "outer" / "inner").mkdir(parents=True)
    saved(tmp_path / "none", made_run(0, seed=4))
    saved(tmp_path / "single", made_run(1, seed=5))
    saved(tmp_path / "more", made_run(16, seed=6))
    saved(tmp_path / "part", made_run(16, seed=7, variants=made_wide_variants(2, 2)))
    (tmp_path / "bench.json").write_text('{"machine_info": {}, "commit_info": {}, "benchmarks": [], "version": "5"}')
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "text.json").write_text("nothing")
    (tmp_path / "block.json").write_text(json.dumps(made_run(1)["passes"][0]["blocks"][0]))
    paths, text = PATHS[name]
    code, out, err = call(capsys, reference, *(tmp_path / path for path in paths))
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert text in err
    code, out, _ = call(capsys, reference, *(tmp_path / path for path in paths), "--json")
    assert (code, set(json.loads(out)["error"])) == (2, {"code", "text", "where"})


def test_two_standard_runs_take_at_most_two_seconds_and_fifty_twenty(reference: Path, tmp_path: Path) -> None:
    """In processes of their own, imports included; six runs of 60 passes stand for fifty, loading being most of it."""
    for seed in range(6):
        saved(tmp_path / "ab"[seed % 2] / f"run{seed}", made_run(60, seed=seed, samples=3, slower=1 + seed % 2 / 10))
    program = [sys.executable, "-m", "cpubench", "compare", "--reference", str(reference)]

    def seconds(*paths: Path) -> float:
        started = time.perf_counter()
        subprocess.run([*program, *map(str, paths)], check=True, capture_output=True)
        return time.perf_counter() - started

    assert min(seconds(tmp_path / "a" / "run0", tmp_path / "b" / "run1") for _ in range(2)) < 2
    assert min(seconds(tmp_path / "a", tmp_path / "b") for _ in range(2)) * 50 / 6 < 20
