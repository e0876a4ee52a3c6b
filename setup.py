"""The extension that the block imports, and three static programs: the copy, which runs kernels, its target, and the
sandbox of tasks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

CFLAGS = ["-O2", "-fno-lto", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra"]
APT, DNF = "`apt-get install gcc libc6-dev python3-dev`", "`dnf install gcc glibc-devel python3-devel`"


def files(pattern: str) -> list[str]:
    return sorted(str(path) for path in Path("ext").glob(pattern))


HEADERS = [*files("*.h"), "ext/kernels.def"]
KERNELS = ["ext/registry.c", *files("kernels/*.c")]
COPY = ["ext/copy.c", "ext/arena.c", "ext/files.c", "ext/group.c", "ext/measure.c", "ext/process.c", "ext/tree.c",
        "ext/work.c", *KERNELS]  # fmt: skip
BOX = files("box/*.c")
SHARED = ["ext/energy.c", "ext/pool.c", "ext/scratch.c", *COPY[1:]]


def compiler() -> list[str]:
    """The C compiler's command; ends the build in one line where there is none, or no Python.h."""
    command = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()
    if not shutil.which(command[0]):
        command = ["cc"]
    if not shutil.which(command[0]):
        sys.exit(f"cpubench: no C compiler: install one by {APT} or {DNF}")
    if not Path(sysconfig.get_paths()["include"], "Python.h").is_file():
        sys.exit(f"cpubench: no Python.h: install it by {APT} or {DNF}")
    return command


def link(cc: list[str], sources: list[str], out: Path, *ways: list[str]) -> str:
    """The options of the first way of ``ways`` in which the program links, joined by spaces."""
    for way in ways:
        made = subprocess.run([*cc, *CFLAGS, *sources, "-o", out, *way], capture_output=True, text=True, check=False)
        if made.returncode == 0:
            return " ".join(way)
    sys.exit(f"cpubench: {out.name} did not build:\n{made.stderr}")


class Build(build_ext):  # type: ignore[misc]  # setuptools is not typed
    """Also builds the programs, into ``cpubench/_bin`` beside the extension."""

    def run(self) -> None:
        cc = compiler()
        folder = Path("cpubench") if self.inplace else Path(self.build_lib, "cpubench")
        programs = folder / "_bin"
        programs.mkdir(parents=True, exist_ok=True)
        # Static: a fork of a dynamic program also copies its libraries' mappings (165 against 268 us measured), and
        # one wheel then runs the same code on every host. Without libc.a it is dynamic, and the run file says so.
        copy = link(cc, COPY, programs / "cpubench-copy", ["-static", "-pthread"], ["-pthread"])
        target = link(cc, ["ext/target.c"], programs / "cpubench-target",
                      ["-static", "-nostdlib", "-Wl,--build-id=none"], ["-static"], [])  # fmt: skip
        link(cc, BOX, programs / "cpubench-box", ["-static"], [])
        version = subprocess.run([*cc, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
        for extension in self.extensions:
            told = {"CB_COMPILER": version, "CB_FLAGS": " ".join(CFLAGS), "CB_LINK": f"{copy}; {target}"}
            for name, value in told.items():
                extension.define_macros.append((name, '"' + value.replace("\\", "").replace('"', "'") + '"'))
        super().run()

    def get_outputs(self) -> list[str]:
        programs = Path(self.build_lib, "cpubench", "_bin")
        return [*super().get_outputs(), *(str(path) for path in programs.glob("*"))]


setup(
    cmdclass={"build_ext": Build},
    ext_modules=[
        Extension(
            "cpubench._native",
            ["cpubench/_native.pyx", *SHARED],
            depends=[*HEADERS, *COPY, "ext/target.c", *BOX, "ext/box/box.h"],
            include_dirs=["ext"],
            extra_compile_args=[*CFLAGS, "-Wno-unused-parameter"],
            extra_link_args=["-pthread", "-fno-lto"],
        )
    ],
)
