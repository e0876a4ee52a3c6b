"""The pytest-benchmark.json of a run folder says what the run says, or is named."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from made import made_run, made_wide_variants

from cpubench.bench.beside import check_export, difference
from cpubench.bench.export import to_pytest_benchmark
from cpubench.errors import UsageError
from cpubench.results.files import canonical
from cpubench.results.load import validate
from cpubench.results.records import Run

Doc = dict[str, Any]


def as_run(document: Doc) -> Run:
    return msgspec.convert(document, Run)


@pytest.fixture
def run() -> Run:
    return as_run(made_run(3))


@pytest.fixture
def exported(run: Run) -> Doc:
    made: Doc = json.loads(json.dumps(to_pytest_benchmark(run)))
    return made


def fault_of(folder: Path, run: Run) -> UsageError:
    with pytest.raises(UsageError) as caught:
        check_export(folder, run)
    line = str(caught.value)
    assert line.startswith(str(folder / "pytest-benchmark.json"))
    assert len(line) < 300
    assert line.isprintable()
    return caught.value


def test_what_is_not_there_is_no_fault(tmp_path: Path, run: Run) -> None:
    check_export(tmp_path, run)


@pytest.mark.parametrize("indent", [None, 1])
def test_what_the_run_exports_is_valid_however_it_is_laid_out(
    tmp_path: Path, run: Run, exported: Doc, indent: int | None
) -> None:
    mean = exported["benchmarks"][0]["stats"]
    mean["mean"] *= 1 + 1e-12  # the last digits are those of a machine
    exported["version"] = "5.9"
    (tmp_path / "pytest-benchmark.json").write_text(json.dumps(exported, indent=indent))
    check_export(tmp_path, run)


CHANGES: dict[str, tuple[Callable[[Doc], object], str]] = {
    "another sample": (lambda d: stats(d)["data"].__setitem__(1, 1e-9), "benchmarks[2].stats.data[1]"),
    "one sample fewer": (lambda d: stats(d)["data"].pop(), "benchmarks[2].stats.data"),
    "another mean": (lambda d: stats(d).update(mean=1e-9), "benchmarks[2].stats.mean"),
    "a row is gone": (lambda d: d["benchmarks"].pop(), "$.benchmarks"),
    "another order": (lambda d: d["benchmarks"].reverse(), "$.benchmarks[0]."),
    "another rate": (lambda d: extra(d).update(ops_per_s=1.0), "benchmarks[0].extra_info.cpubench.ops_per_s"),
    "a number that is a text": (lambda d: extra(d).update(divisor="1"), "extra_info.cpubench.divisor"),
    "a number that is true": (lambda d: extra(d).update(divisor=True), "extra_info.cpubench.divisor"),
    "another machine": (lambda d: d["machine_info"].update(node="other"), "$.machine_info.node"),
    "another run": (lambda d: d["cpubench"].update(sha256="0" * 64), "$.cpubench.sha256"),
    "a failure that is not told": (lambda d: d["cpubench"].pop("failed"), "$.cpubench.failed"),
    "a date": (lambda d: d.update(datetime="2020-01-01T00:00:00Z"), "$.datetime"),
    "a key more": (lambda d: d.update({"\x1b[2J": 1}), "$.\\x1b[2J"),
}  # fmt: skip


def stats(document: Doc) -> Doc:
    found: Doc = document["benchmarks"][2]["stats"]
    return found


def extra(document: Doc) -> Doc:
    found: Doc = document["benchmarks"][0]["extra_info"]["cpubench"]
    return found


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_export_is_named_with_the_place(tmp_path: Path, run: Run, exported: Doc, name: str) -> None:
    change, place = CHANGES[name]
    change(exported)
    (tmp_path / "pytest-benchmark.json").write_bytes(canonical(exported))
    fault = fault_of(tmp_path, run)
    assert (fault.code, place in fault.where) == ("export", True), fault.where
    assert "cpubench export" in fault.text


@pytest.mark.parametrize("raw", [b"", b"[1]", b'{"a": NaN}', b'{"a": 1, "a": 2}', b'{"a"', b"\xff"], ids=repr)
def test_what_is_no_export_is_refused_in_one_line(tmp_path: Path, run: Run, raw: bytes) -> None:
    (tmp_path / "pytest-benchmark.json").write_bytes(raw)
    fault_of(tmp_path, run)


def test_a_folder_or_a_dangling_link_of_that_name_is_refused(tmp_path: Path, run: Run) -> None:
    (tmp_path / "pytest-benchmark.json").symlink_to(tmp_path / "nothing")
    assert fault_of(tmp_path, run).code == "missing"
    (tmp_path / "pytest-benchmark.json").unlink()
    (tmp_path / "pytest-benchmark.json").mkdir()
    assert fault_of(tmp_path, run).code == "not_a_file"


def test_validate_holds_the_folder_to_it(tmp_path: Path, exported: Doc) -> None:
    document = made_run(3)
    (tmp_path / "run.json").write_bytes(canonical(document))
    (tmp_path / "plan.json").write_bytes(canonical(document["plan"]))
    for one in document["passes"]:
        (tmp_path / f"block-{one['index']:03}-as-is.json").write_bytes(canonical(one["blocks"][0]))
    (tmp_path / "pytest-benchmark.json").write_bytes(canonical(exported))
    assert validate(tmp_path, check_export)["valid"]
    (tmp_path / "pytest-benchmark.json").write_bytes(canonical(exported | {"benchmarks": []}))
    with pytest.raises(UsageError, match=r"pytest-benchmark\.json: \$\.benchmarks: differs"):
        validate(tmp_path, check_export)
    assert validate(tmp_path / "run.json", check_export)["valid"]  # a file alone has nothing beside it


def test_the_check_of_a_big_run_takes_seconds_at_most(tmp_path: Path) -> None:
    run = as_run(made_run(60, cpus=256, samples=3, variants=made_wide_variants(256, 40)))
    (tmp_path / "pytest-benchmark.json").write_bytes(canonical(to_pytest_benchmark(run)))
    start = time.perf_counter()
    check_export(tmp_path, run)
    assert time.perf_counter() - start < 5  # 0.3 s on a quiet host


@pytest.mark.parametrize(
    ("found", "wanted", "place"),
    [({}, {}, None), ([1, 2.0], [1.0, 2], None), ({"a": [1]}, {"a": [2]}, "$.a[0]"), (None, 0, "$"), (1, True, "$"),
     ({"a": 1}, [1], "$"), ({"b": 1}, {"a": 1}, "$.a"), ("x", "x", None), (0, 1e-300, "$")],
)  # fmt: skip
def test_difference_names_the_first_place(found: Any, wanted: Any, place: str | None) -> None:
    assert difference(found, wanted, "$") == place
