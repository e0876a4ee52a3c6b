"""Everything that is installed on a host, gathered here: wheels for its Python and processor, and pip itself.

``DIR/wheelhouse/<tag>.tar`` holds the files of a tag such as cp311-x86_64, ``wheelhouse.json`` their hashes. A wheel of
cpubench can be built for this processor and for each Python that is installed here; elsewhere it is built on the host.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from cpubench.errors import UsageError
from cpubench.fleet.state import write
from cpubench.results.files import canonical
from cpubench.results.parse import parse, read, shown

Json = dict[str, Any]
INDEX = "wheelhouse.json"
MANYLINUX = ("2_28", "2_27", "2_24", "2_17", "2_12", "2_5")  # each also under its old name, as pip wants it
OLD_NAMES = {"2_17": "2014", "2_12": "2010", "2_5": "1"}
PYTHONS = range(10, 100)
# pip takes markers of this Python for those of --python-version: what older ones need besides is named here.
OLDER = {10: ["exceptiongroup>=1", "tomli>=2", "typing-extensions>=4.6"]}
BUILD = ["setuptools>=77", "cython>=3.1,<4"]  # of pyproject.toml: hosts that build need them


def make(
    folder: Path, pythons: Sequence[str], archs: Sequence[str], source: str | None, sdist: bool,
    say: Callable[[str], None],
) -> Json:  # fmt: skip
    """The record of each tag, by tag; those of other tags that are there already stay."""
    minors = [_minor(text) for text in pythons] or [sys.version_info.minor]
    made = load(folder)
    for minor in minors:
        for arch in archs or [platform.machine()]:
            say(f"gathering wheels for Python 3.{minor} on {arch}")
            made[f"cp3{minor}-{arch}"] = _one(folder / "wheelhouse", minor, arch, source or _installed(), sdist)
            write(folder / "wheelhouse" / INDEX, canonical(made))
    return made


def load(folder: Path) -> Json:
    """The records of the tags that are there; their files are where the folder is now."""
    file = folder / "wheelhouse" / INDEX
    if not file.exists():
        return {}
    made = parse(read(file))
    return {tag: {**one, "tar": str(file.resolve().parent / f"{tag}.tar")} for tag, one in made.items()}


def _minor(text: str) -> int:
    match = re.fullmatch(r"3\.(\d{1,2})", text)
    if not match or int(match[1]) not in PYTHONS:
        raise UsageError("python", f"{text[:20]!r} is no Python from 3.10 on, such as 3.11", "--python")
    return int(match[1])


def _installed() -> str:
    """The checkout that cpubench was installed from; else its name and version, for the index."""
    dist = metadata.distribution("cpubench")
    try:
        url = urlparse(json.loads(dist.read_text("direct_url.json") or "{}").get("url", ""))
    except ValueError:
        url = urlparse("")
    path = unquote(url.path)
    return path if url.scheme == "file" and Path(path).exists() else f"cpubench=={dist.version}"


def _one(home: Path, minor: int, arch: str, source: str, sdist: bool) -> Json:
    tag = f"cp3{minor}-{arch}"
    with tempfile.TemporaryDirectory(prefix="cpubench-wheels-") as scratch:
        wheels = Path(scratch)
        python = None if sdist or arch != platform.machine() else _python(minor)
        kind = "sdist" if python is None else "wheel"
        if python is not None:
            _call(python, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(wheels), source)
        else:
            _sdist(source, wheels)
        wanted = [*_requirements(minor), *OLDER.get(minor, ()), *(BUILD if kind == "sdist" else ()), "pip>=23"]
        _call(sys.executable, "-m", "pip", "download", "-q", "-d", str(wheels), *_target(minor, arch), *wanted)
        files = sorted(wheels.iterdir())
        tar = home / f"{tag}.tar"
        try:
            home.mkdir(parents=True, exist_ok=True)
            with tarfile.open(tar, "w") as out:
                for file in files:
                    out.add(file, file.name)
        except OSError as error:
            raise UsageError("write", f"cannot be written: {error.strerror}", str(tar)) from None
    return {
        "tar": str(tar), "sha256": hashlib.sha256(tar.read_bytes()).hexdigest(), "kind": kind,
        "glibc": platform.libc_ver()[1] or "0", "files": len(files), "bytes": tar.stat().st_size,
    }  # fmt: skip


def _python(minor: int) -> str | None:
    """The command of this Python on this machine; None where it is not installed."""
    return sys.executable if minor == sys.version_info.minor else shutil.which(f"python3.{minor}")


def _requirements(minor: int) -> list[str]:
    """What cpubench needs when it runs, without its extras."""
    from packaging.requirements import Requirement

    found = [Requirement(text) for text in metadata.requires("cpubench") or ()]
    there = {"python_version": f"3.{minor}", "python_full_version": f"3.{minor}.0", "extra": ""}
    return [f"{one.name}{one.specifier}" for one in found if one.marker is None or one.marker.evaluate(there)]


def _target(minor: int, arch: str) -> Iterable[str]:
    """The options of pip download for wheels of another machine."""
    yield from ("--only-binary", ":all:", "--implementation", "cp", "--python-version", f"3.{minor}")
    for abi in (f"cp3{minor}", "abi3", "none"):
        yield from ("--abi", abi)
    for glibc in MANYLINUX:
        yield from ("--platform", f"manylinux_{glibc}_{arch}")
        if glibc in OLD_NAMES:
            yield from ("--platform", f"manylinux{OLD_NAMES[glibc]}_{arch}")


def _sdist(source: str, wheels: Path) -> None:
    if Path(source).is_dir():
        _call(sys.executable, "-m", "build", "-q", "--sdist", "-o", str(wheels), source)
    elif source.endswith(".tar.gz"):
        shutil.copy(source, wheels)
    else:
        _call(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "cpubench", "-d", str(wheels),
              source)  # fmt: skip


def _call(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        told = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        lines = [line for line in told if line.startswith("ERROR")] or told or ["nothing was said"]
        raise UsageError("wheelhouse", shown(f"{' '.join(command[2:4])}: {lines[-1]}", 400))
