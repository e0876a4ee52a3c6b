"""``cpubench host`` as a program: its document, its page, what it loads, and that nothing around it changes it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import cpubench as package
from cpubench.entry import main


def called(environment: dict[str, str] | None = None) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "cpubench", "host", "--json"], capture_output=True, text=True, check=True, cwd="/",
        env=os.environ | (environment or {}),
    )  # fmt: skip
    assert done.stderr == ""
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_the_document_has_four_parts_and_a_reason_for_each_null(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["host", "--json"]) == 0
    told = capsys.readouterr()
    document = json.loads(told.out)
    assert told.err == ""
    assert set(document) == {"stable", "volatile", "reasons", "notes"}
    assert {"build", "imported", "divisor", "cpus_allowed"} <= set(document["stable"])
    assert {"memory_bytes", "load_1_5_15", "uptime_s"} <= set(document["volatile"])
    for part in ("stable", "volatile"):
        for key, value in document[part].items():
            assert (value is None) == (key in document["reasons"]), key
    assert not set(document["stable"]) & set(document["volatile"])
    # The brand strings in pytest-benchmark's files come from the module cpuinfo, which two packages install.
    assert "py-cpuinfo2" in document["stable"]["imported"] or "py-cpuinfo" in document["stable"]["imported"]


def test_the_page_fits_80_columns_and_keeps_apart_what_changes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["host"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines.index("machine") < lines.index("CPUs") < lines.index("now (changes while you read)")


def test_a_checkout_without_its_extension_still_tells(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(package, "_native", raising=False)
    monkeypatch.setitem(sys.modules, "cpubench._native", None)  # type: ignore[arg-type]
    assert main(["host", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["stable"]["build"] is None
    assert "without its extension" in document["reasons"]["build"]
    assert document["stable"]["cpus_allowed"]


def test_language_and_programs_in_the_path_change_nothing(tmp_path: Path) -> None:
    """No lscpu, git or compiler is asked, so none of them can answer in German, late or wrongly."""
    trap = tmp_path / "called"
    for name in ("lscpu", "git", "gcc", "cc", "sysctl", "systemd-detect-virt", "dmidecode", "numactl"):
        (tmp_path / name).write_text(f"#!/bin/sh\ntouch {trap}\necho 'CPU(s): 1,5'\n")
        (tmp_path / name).chmod(0o755)
    plain = called()["stable"]
    for environment in (
        {"LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8", "PATH": str(tmp_path)},
        {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PATH": "/nonexistent"},
        {"LC_ALL": "tr_TR.UTF-8", "LANGUAGE": "tr", "PATH": "", "HOME": "/nonexistent"},
    ):
        assert called(environment)["stable"] == plain
    assert not trap.exists()


def test_nothing_slow_is_loaded() -> None:
    """cpuinfo takes a second where it has to time the TSC, numpy 0.2 s; one process asks once, and none is started."""
    code = (
        "import sys; from cpubench.entry import main; main(['host', '--json'])\n"
        "print({'numpy', 'scipy', 'cpuinfo', 'pytest', 'psutil', 'subprocess'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "set()"
