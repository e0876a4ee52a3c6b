"""A short self-test of this host, by processes: what it finds, its shape, and that nothing of it stays."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import psutil
import pytest
from pools import lived
from started import started

from cpubench.analysis.cells import measured
from cpubench.entry import main
from cpubench.errors import UsageError
from cpubench.host.quota import NAME, parents
from cpubench.results.load import load_run
from cpubench.selftest import run as selftests
from cpubench.selftest.blocks import Settings, in_turns

Json = dict[str, Any]
# As the command line starts it, with less of everything.
SHORT = """
import sys
from cpubench.entry import main
from cpubench.selftest import run
from cpubench.selftest.blocks import Settings
run.STANDARD = Settings({settings})
sys.exit(main(["selftest", *sys.argv[1:]]))
"""
QUICK = "rounds=3, passes=8, most_passes=10, pairs=2, samples=10, settle_ns=200_000_000, length_ns=1_000_000_000, contended_pairs=1, contended_samples=20"  # noqa: E501


def start(*arguments: object, settings: str = QUICK) -> AbstractContextManager[subprocess.Popen[str]]:
    command = [sys.executable, "-I", "-c", SHORT.format(settings=settings), *map(str, arguments)]
    return started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def leftovers() -> list[Path]:
    """Control groups and temporary folders of self-tests."""
    found = [left for parent in parents() for left in parent.glob(f"{NAME}*")]
    return found + list(Path(tempfile.gettempdir()).glob(f"{selftests.FOLDER}*"))


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Json, str, Path]]:
    """The document of a short self-test, what it told meanwhile, and its folder."""
    out = tmp_path_factory.mktemp("selftest") / "kept"
    with start("--budget", "17s", "--out", out, "--json") as process:
        told, complaint = process.communicate(timeout=120)
    assert process.returncode == 0, complaint
    yield json.loads(told), complaint, out
    assert leftovers() == []


def test_the_document_has_its_shape(short: tuple[Json, str, Path]) -> None:
    document, complaint, out = short
    keys = {"floor_percent", "floor_reason", "band_percent", "separable_percent", "twins", "quota", "contended"}
    assert set(document) == keys | {"sentence", "minutes", "passes", "took_s"}
    assert [twin["true_percent"] for twin in document["twins"]] == [0, 2, 5, 10]
    assert all(set(twin) == {"true_percent", "measured", "found", "covered"} for twin in document["twins"])
    quantities = [twin["measured"] for twin in document["twins"]] + [document["quota"]["ratio"]]
    assert all(set(one) == {"value", "low", "high", "passes", "reason"} for one in quantities)
    assert document["passes"] >= 8
    assert json.loads((out / "selftest.json").read_text()) == document
    assert complaint.startswith("about 17 s: twins ")
    assert f"differences of {document['separable_percent']:.1f} %" in document["sentence"]


def needs_quiet(document: Json) -> None:
    """Others at work (another suite of tests) take what the numbers below are about."""
    if document["contended"]["alone_flagged"] or document["quota"]["free_contended"]:
        pytest.skip(f"others are busy on this host: {document['contended']['alone_others_percent']:.0f} % of a CPU")


def test_a_kernel_is_never_found_to_differ_from_itself(short: tuple[Json, str, Path]) -> None:
    same, *_ = short[0]["twins"]
    assert not same["found"]
    assert short[0]["band_percent"] >= max(1.0, short[0]["floor_percent"])


def test_the_largest_twin_is_found(short: tuple[Json, str, Path]) -> None:
    needs_quiet(short[0])
    *_, largest = short[0]["twins"]
    assert largest["found"]
    assert 5 < largest["measured"]["value"] < 15


def test_what_is_kept_is_an_ordinary_run(short: tuple[Json, str, Path]) -> None:
    run = load_run(short[2] / "twins")
    assert run.stopped.passes == len(run.passes) == short[0]["passes"]
    assert all(measured(cell) for one in run.passes for block in one.blocks for cell in block.cells)


def test_half_of_the_cpus_is_half_of_the_rate_and_is_seen(short: tuple[Json, str, Path]) -> None:
    found = short[0]["quota"]
    if found["reason"]:
        pytest.skip(f"no quota can be set here: {found['reason']}")
    assert found["throttled_periods"] > 0
    needs_quiet(short[0])
    assert 0.35 < found["ratio"]["value"] < 0.65
    assert found["flagged"]
    assert not found["free_flagged"]


def test_a_competitor_on_the_same_cpu_is_seen(short: tuple[Json, str, Path]) -> None:
    found = short[0]["contended"]
    assert found["reason"] is None
    assert found["flagged"]
    needs_quiet(short[0])
    assert found["slower_percent"] > 30  # about 100


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_in_the_middle_leaves_nothing(number: signal.Signals) -> None:
    """In the middle is under the quota; where none can be set, beside the competitor."""
    before, few = leftovers(), QUICK.replace("rounds=3", "rounds=1").replace("most_passes=10", "most_passes=8")
    with start("--budget", "15s", settings=few) as process:
        end = time.monotonic() + 60
        while not [left for left in leftovers() if left.name == f"{NAME}{process.pid}"] and not _beside_busy(process):
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.02)
        pids = [child.pid for child in psutil.Process(process.pid).children(recursive=True)]
        process.send_signal(number)
        _, complaint = process.communicate(timeout=30)
    assert process.returncode == 130
    assert complaint.splitlines()[-1] == "cpubench: interrupted"
    assert not [pid for pid in pids if lived(pid)]
    assert leftovers() == before


def _beside_busy(process: subprocess.Popen[str]) -> bool:
    found = []
    for child in psutil.Process(process.pid).children():
        with contextlib.suppress(psutil.Error):
            found += child.cmdline()
    return "cpubench.selftest.busy" in found


def test_a_temporary_folder_of_a_killed_one_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with subprocess.Popen(["true"]) as dead:
        pass
    for pid in (dead.pid, os.getpid()):
        (tmp_path / f"{selftests.FOLDER}{pid}-x" / "twins").mkdir(parents=True)
    (tmp_path / "somebody").mkdir()
    selftests._sweep()
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{selftests.FOLDER}{os.getpid()}-x", "somebody"]


def test_a_disk_that_is_full_by_then_does_not_keep_the_document_from_being_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    document = {"floor_percent": 1.0}
    monkeypatch.setattr(selftests, "selftest", lambda *_: document)
    assert main(["selftest", "--json", "--out", str(tmp_path / "gone")]) == 2
    told = capsys.readouterr()
    assert json.loads(told.out) == document
    assert told.err == f"cpubench: {tmp_path}/gone/selftest.json: cannot be written: No such file or directory\n"
    assert main(["selftest", "--json", "--out", str(tmp_path)]) == 0
    assert json.loads((tmp_path / "selftest.json").read_text()) == document


def test_a_budget_that_is_too_short_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--budget: 30 s are too short: a self-test takes \d+ s at least"):
        selftests.selftest(30 * 10**9, tmp_path / "none", lambda *_: None)
    assert list(tmp_path.iterdir()) == []


def test_by_default_it_takes_less_than_two_minutes() -> None:
    told: list[str] = []
    with pytest.raises(UsageError, match="another cpubench run"), selftests.host_lock():
        selftests.selftest(None, None, told.append)
    assert told == []  # another run measures: nothing was begun
    assert selftests.BUDGET_NS <= 120 * 10**9
    assert selftests.STANDARD.passes >= 30


def test_disturbed_blocks_take_turns_so_that_a_drift_falls_on_both() -> None:
    assert in_turns(3) == [False, True, True, False, False, True]
    assert Settings().pairs >= 3
    assert Settings().length_ns >= 10**9
