"""What measured: the build of this cpubench and the versions of what it really imports."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from cpubench import __version__, _native
from cpubench.measure import programs


def build() -> dict[str, Any]:
    """The build's compiler and flags, and hashes of the programs that run the kernels: equal hashes run equal code."""
    hashes = {"copy_sha256": programs.sha256(programs.COPY), "target_sha256": programs.sha256(programs.TARGET)}
    return {**_native.BUILD, **hashes, "static": "-static" in _native.BUILD["link"].split(";")[0]}


def imported() -> dict[str, str]:
    """Versions of what the run used; the brand string comes from the module ``cpuinfo``, which two packages install."""
    found = {"python": platform.python_version(), "cpubench": __version__}
    for name in ("numpy", "scipy", "msgspec", "pytest-benchmark", "py-cpuinfo2", "py-cpuinfo"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
