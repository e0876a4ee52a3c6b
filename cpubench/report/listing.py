"""The kernels of a build as a person reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, Any

from cpubench.report.page import console_of, line, pairs

Json = Mapping[str, Any]


def show_list(kernels: Sequence[Json], out: IO[str]) -> None:
    """Nothing; writes the kernels by family, each with what it does, its parameters and its flags."""
    console = console_of(out)
    families: dict[str, list[Json]] = {}
    for kernel in kernels:
        families.setdefault(str(kernel["family"]), []).append(kernel)
    width = max((len(str(kernel["name"])) for kernel in kernels), default=0)
    for number, (family, members) in enumerate(families.items()):
        if number:
            console.print()
        console.print(line(console, family, "bold"))
        lines = []
        for kernel in members:
            facts = f"one operation: a {kernel['unit']}; version {kernel['version']}"
            if kernel["flags"]:
                facts += f"; {', '.join(kernel['flags'])}"
            lines += [(f"  {kernel['name']}", str(kernel["doc"])), ("", facts)]
            values = [p["label"] + (" *" if p["scored"] else "") for p in kernel["params"] if p["label"]]
            if values:
                lines.append(("", ", ".join(values)))
            lines += [("", wants) for wants in _wants(kernel["params"])]
        pairs(console, lines, min(width + 2, 30))
    console.print(line(console, "\n* scored; a kernel without values is scored as it is"))


def _wants(params: Sequence[Json]) -> list[str]:
    """What the values of a kernel need, and which of them this host cannot have."""
    needs = list(dict.fromkeys(need for param in params for need in param["needs"] if not need.endswith("MiB")))
    most = max((need for param in params for need in param["needs"] if need.endswith("MiB")), key=_mib, default=None)
    lines = [f"needs {', '.join([*needs, *([f'up to {most} a copy'] if most else [])])}"] if needs or most else []
    reasons: dict[str, list[str]] = {}
    for param in params:
        if param["here"]:
            reasons.setdefault(param["here"], []).append(param["label"])
    for reason, labels in reasons.items():
        lines.append(f"not here: {', '.join(filter(None, labels)) or 'any of it'}: {reason}")
    return lines


def _mib(need: str) -> int:
    return int(need.split()[0])
