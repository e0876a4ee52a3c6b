"""The jobs: ``nox -s bench`` measures this machine, ``nox -s tests`` tests the build, ``nox -l`` lists."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import nox

nox.options.default_venv_backend = "venv"
nox.options.error_on_missing_interpreters = False  # one that is not there is skipped by name, in CI too
nox.options.sessions = ["tests", "lint", "types"]
PROJECT = nox.project.load_toml("pyproject.toml")
PYTHONS = ["3.10", "3.11", "3.12", "3.13"]


def group(name: str) -> list[str]:
    """The requirements of a dependency group of pyproject.toml."""
    return list(nox.project.dependency_groups(PROJECT, name))


@nox.session
def bench(session: nox.Session) -> None:
    """Measure this machine; everything after ``--`` goes to ``cpubench run``."""
    session.install("-q", ".[report]")
    # After Ctrl-C it saves what was measured and ends its copies: longer than the 0.3 s that nox gives by itself.
    session.run("cpubench", "run", *session.posargs, interrupt_timeout=30)


@nox.session
def tests(session: nox.Session) -> None:
    """The test suite, against the installed package; everything after ``--`` goes to pytest."""
    session.install("-q", ".[report]", *group("tests"))
    session.run("pytest", *session.posargs)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Files and trees that were changed at random, for three minutes or as many as stand after ``--``."""
    session.install("-q", ".", *group("tests"))
    until = time.monotonic() + 60 * float(session.posargs[0] if session.posargs else 3)
    seed = random.SystemRandom().randrange(2**32)
    while time.monotonic() < until:  # each time other examples; the seed of one that failed is printed
        session.run("pytest", "-q", "-x", f"--hypothesis-seed={seed}", "tests/fuzz", env={"CPUBENCH_EXAMPLES": "400"})
        seed += 1


@nox.session
def lint(session: nox.Session) -> None:
    """ruff, and the C code without a warning."""
    session.install("-q", *group("lint"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    flags = ["-O2", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-fsyntax-only"]
    sources = sorted(str(path) for path in Path("ext").rglob("*.c"))
    session.run(os.environ.get("CC", "cc"), *flags, *sources, external=True)


@nox.session
def types(session: nox.Session) -> None:
    """mypy, strict, and the stub of the extension against the extension."""
    session.install("-q", ".[report]", "nox", *group("types"), *group("tests"))
    session.run("mypy")
    # Outside of the checkout, whose cpubench/ has no built extension.
    allowed = str(Path("tests/stubtest-allowed.txt").resolve())
    session.chdir(session.create_tmp())
    session.run("stubtest", "cpubench._native", "--allowlist", allowed, "--ignore-unused-allowlist")


@nox.session
def sanitize(session: nox.Session) -> None:
    """Every kernel under ASan and UBSan, the threaded ones under TSan, all under valgrind where it is installed."""
    session.install("-q", ".")
    session.run("python", "-I", str(Path("tests/sanitize.py").resolve()), *session.posargs)


@nox.session
def validate(session: nox.Session) -> None:
    """Each kernel beside an independent program, in one run; writes the table of docs/validation.md."""
    session.install("-q", ".", *group("tests"))
    session.run("python", "tests/validate.py", *session.posargs)


@nox.session
def torture(session: nox.Session) -> None:
    """Cappers and runs are killed at random moments, and quick runs go through poor surroundings; two hours.

    Everything after ``--`` goes to ``tests/torture.py``: how many runs of seconds and of ``quick`` are killed.
    """
    session.install("-q", ".", *group("tests"))
    session.run("python", "tests/power/kills.py")
    session.run("python", "tests/torture.py", "--recipes", *session.posargs)


@nox.session
def lab(session: nox.Session) -> None:
    """Meters and caps in virtual machines, whose kernel has power zones of ours; says what to install for that."""
    session.install("-q", ".[report]")
    session.run("python", "tests/lab/boots.py", *session.posargs)


@nox.session
def coverage(session: nox.Session) -> None:
    """How often the intervals of simulated runs hold the truth; writes docs/coverage.md, in four minutes."""
    session.install("-q", ".")
    session.run("python", "tests/covered.py", *session.posargs)


@nox.session
def interleaving(session: nox.Session) -> None:
    """What rounds earn over samples one after the other, on this machine; prints a table, in four minutes."""
    session.install("-q", ".", *group("tests"))
    session.run("python", "tests/interleaving.py", *session.posargs)


@nox.session
def prediction(session: nox.Session) -> None:
    """What kernels foretell of tasks when one thing is changed, on this machine; writes docs/prediction.md, 14 min."""
    session.install("-q", ".", *group("tests"))
    session.run("python", "tests/prediction.py", *session.posargs)


@nox.session(python=PYTHONS)
def pythons(session: nox.Session) -> None:
    """A clean install on each Python, run outside of the checkout: list, a short run, its score."""
    session.install("-q", ".")
    outside(session)


@nox.session
def dist(session: nox.Session) -> None:
    """sdist and wheel, and the wheel at work in a path with spaces."""
    session.install("-q", "build")
    made = Path(session.create_tmp(), "made of").resolve()
    for old in made.glob("*"):
        old.unlink()
    session.run("python", "-m", "build", "-o", str(made))
    session.install("-q", "--force-reinstall", *(str(wheel) for wheel in made.glob("*.whl")))
    outside(session)


def outside(session: nox.Session) -> None:
    """The installed package must work where no checkout is."""
    folder = Path(session.create_tmp(), "a path with spaces")
    folder.mkdir(exist_ok=True)
    session.chdir(folder)
    out = "run of " + session.name
    session.run("python", "-c", f"import shutil; shutil.rmtree({out!r}, ignore_errors=True)")
    session.run("cpubench", "list")
    session.run("cpubench", "run", "--profile", "quick", "--families", "switch,memory", "--budget", "40s", "--out", out)
    session.run("cpubench", "validate", out)
    session.run("cpubench", "score", out)
    session.run("pytest", "-q", "--pyargs", "cpubench.suites", "--cpubench-run", out)
