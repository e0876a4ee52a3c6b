"""Files that want to hang, fill or fool the reader: each is refused in one line, within a limit of memory and time."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from broken import fault_of, reseal
from made import made_run, truthful, written

from cpubench.errors import UsageError
from cpubench.recheck import validated
from cpubench.results import parse
from cpubench.results.files import canonical

MEMORY_BYTES = 2 << 30
CPU_S = 60
BIG = 10_000_000  # bytes of text, of at most 200 million
# In one process, which the kernel ends where it takes more: what one file leaves behind, the next would feel.
CHILD = """
import contextlib, io, json, resource, sys
from cpubench.entry import main
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[2]),) * 2)
for file in sys.argv[3:]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["validate", file])
    print(json.dumps([code, out.getvalue(), err.getvalue()]), flush=True)
"""


def sparse(file: Path) -> None:
    with file.open("wb") as out:
        out.truncate(10 << 30)


def deep(file: Path) -> None:
    """A run that is whole, but for facts of the host that are nested too deep to be printed."""
    document = made_run(1)
    document["host"]["later"] = json.loads("[" * 500 + "]" * 500)
    file.write_bytes(canonical(reseal(document)))


def deep_cell(file: Path) -> None:
    document = made_run(1)
    document["passes"][0]["blocks"][0]["cells"][0]["obtained"]["tmpfs"] = json.loads('{"a":' * 300 + "1" + "}" * 300)
    file.write_bytes(canonical(reseal(document)))


def cells(file: Path) -> None:
    document = made_run(1)
    document["passes"][0]["blocks"][0]["cells"] = [{}] * 1_000_000
    file.write_bytes(canonical(document))


def text(made: bytes) -> Callable[[Path], object]:
    return lambda file: file.write_bytes(made)


def filled(start: bytes, unit: bytes, end: bytes) -> Callable[[Path], object]:
    return text(start + unit * (BIG // len(unit)) + end)


HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "ten gigabytes": (sparse, "10737418240 bytes; at most 200000000 are read"),
    "pipe": (os.mkfifo, "is no regular file"),
    "link to a pipe": (lambda file: (os.mkfifo(f"{file}.pipe"), file.symlink_to(f"{file}.pipe")), "is no regular file"),
    "device": (lambda file: file.symlink_to("/dev/zero"), "is no regular file"),
    "link to itself": (lambda file: file.symlink_to(file), "Too many levels of symbolic links"),
    "link to nothing": (lambda file: file.symlink_to(f"{file}.none"), "there is no such file"),
    "gzip": (text(gzip.compress(bytes(BIG))), "is packed with gzip: unpack it first"),
    "byte order mark": (text(b"\xef\xbb\xbf{}"), "is not JSON: Unexpected UTF-8 BOM"),
    "UTF-16": (text('{"a": 1}'.encode("utf-16")), "is not UTF-8 text"),
    "overlong UTF-8": (text(b'{"a": "\xc0\xaf"}'), "is not UTF-8 text"),
    "duplicate key": (text(b'{"\\u001b[2J": 1, "\\u001b[2J": 2}'), "is twice in one object"),
    "lists": (filled(b'{"a":', b"[", b""), "more than 5000000 lists and objects"),
    "deep lists": (text(b'{"a":' + b"[" * 4_000_000), "is nested too deeply"),
    "digits": (filled(b'{"a":', b"7", b"}"), "a number beyond 64 bits"),
    "digits of a fraction": (filled(b'{"a":1.', b"7", b"}"), "is a file without a schema"),
    "exponent": (text(b'{"a":-1e99999999}'), "beyond the range of a double"),
    "quotes": (filled(b'{"a": NaNx, "b": "', b'\\"', b""), "NaN is no number of JSON"),
    "strings": (filled(b'{"a":[', b'"ab",', b"0]}"), "is a file without a schema"),
    "keys": (lambda file: file.write_text("{" + ",".join(f'"{n:x}":0' for n in range(1_000_000)) + "}"),
             "is a file without a schema"),
    "wide characters": (filled(b'{"a":"\xf0\x9f\x98\x80', b"aaaa", b'"}'), "is a file without a schema"),
    "a million cells": (cells, "missing required field `kernel`"),
    "deep facts": (deep, "host: is nested more than 20 deep"),
    "deep evidence": (deep_cell, "passes[0].blocks[0].cells[0].obtained: is nested more than 20 deep"),
}  # fmt: skip


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[int, str, str]]]:
    """(exit code, stdout, stderr) of ``validate`` for each hostile file."""
    folder = tmp_path_factory.mktemp("hostile")
    files = [folder / f"{number}.json" for number in range(len(HOSTILE))]
    for file, (make, _) in zip(files, HOSTILE.values(), strict=True):
        make(file)
    command = [sys.executable, "-I", "-c", CHILD, str(MEMORY_BYTES), str(CPU_S), *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=2 * CPU_S)
    answers = [tuple(json.loads(line)) for line in done.stdout.splitlines()]
    assert done.stderr == ""
    yield dict(zip(HOSTILE, answers, strict=True))
    for file in files:
        file.unlink()  # ten gigabytes, if somebody copies them


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_in_one_line(told: dict[str, tuple[int, str, str]], name: str) -> None:
    code, out, err = told[name]
    assert (code, out) == (2, "")
    (line,) = err.splitlines()
    assert line.isprintable()
    assert len(line) < 320
    assert HOSTILE[name][1] in line


@pytest.mark.parametrize("name", ["block-000-as-is.json", "plan.json", "log.jsonl", "pytest-benchmark.json"])
@pytest.mark.parametrize("target", ["pipe", "/dev/zero", ".", "/proc/self/mem"])
def test_files_of_a_folder_are_no_pipes_devices_or_folders(tmp_path: Path, name: str, target: str) -> None:
    folder = written(tmp_path / "run", truthful(made_run(2)))
    os.mkfifo(folder / "pipe")
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(target)
    with pytest.raises(UsageError, match=r"is no regular file|Input/output error") as caught:
        validated(folder)
    assert name in str(caught.value)


@pytest.mark.parametrize("path", ["a\0b", "x" * 300, "x/" * 3000, "run.json/../run.json", "/proc/self/mem"])
def test_odd_paths_are_refused(tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert fault_of(Path(path)).code in {"unreadable", "missing", "not_a_file", "not_a_run", "empty"}


def test_what_became_a_pipe_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look at a name and its opening somebody puts a pipe there."""
    regular = (tmp_path / "regular").touch()
    assert regular is None
    status = (tmp_path / "regular").stat()
    pipe = tmp_path / "run.json"
    os.mkfifo(pipe)
    monkeypatch.setattr(Path, "stat", lambda self, **options: status)
    monkeypatch.setattr(Path, "is_dir", lambda self: False)
    assert fault_of(pipe).code == "not_a_file"


def test_the_weight_of_a_text_bounds_its_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "run.json"
    file.write_bytes(b'{"a":[' + b'"ab",' * 1000 + b"0]}")
    assert fault_of(file).code == "schema"
    monkeypatch.setattr(parse, "MAX_MEMORY_BYTES", 64_000)
    assert fault_of(file).code == "too_large"


def test_too_little_memory_is_one_line(tmp_path: Path) -> None:
    """Half a gigabyte of strings where there is room for less."""
    file = tmp_path / "run.json"
    file.write_bytes(b'{"a":[' + b'"ab",' * 8_000_000 + b"0]}")
    command = [sys.executable, "-I", "-c", CHILD, str(700 << 20), str(CPU_S), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=2 * CPU_S)
    code, out, err = json.loads(done.stdout)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "there is not enough memory here to read it" in err
