"""Run folders and documents for tests of the vendor report: made-up candidates of which the truth is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
from made import made_run, made_variants

from cpubench.analysis.reference import make_reference
from cpubench.results.files import sealed
from cpubench.results.records import Run, Variant

EVIL = "<script>alert(1)</script>\"'&amp;]]>$x^{2$\x1b[31m\x00\u202e=cmd|'/c calc'!A1{{7*7}}{%"
FORMULA = '=HYPERLINK("http://evil.example","x")'


def put(folder: Path, document: dict[str, Any], **host: Any) -> Path:
    """The run folder that a document is written to, with these facts of its host."""
    folder.mkdir(parents=True, exist_ok=True)
    whole = sealed({**document, "host": {**document["host"], **host}})
    (folder / "run.json").write_text(json.dumps(whole))
    return folder


def candidate(folder: Path, seed: int, slower: float = 1.0, host: dict[str, Any] | None = None, **made: Any) -> Path:
    """A run of a host of its own."""
    name = f"host{seed}"
    run = made_run(made.pop("passes", 16), seed=seed, slower=slower, host_id=name, **made)
    return put(folder, run, **{"hostname": name, "id": name, "virtual": False, **(host or {})})


def reference_of(folder: Path) -> Path:
    """The file of a reference on which made-up runs have about 1000 points."""
    document = make_reference(msgspec.convert(made_run(8, noise=0), Run), "made")
    file = folder / "reference.json"
    file.write_text(json.dumps(document))
    return file


def shown_variants() -> list[Variant]:
    """The usual made-up variants with a latency ladder, a curve over threads and a matrix of pairs."""
    variants = made_variants()
    chase = next(v for v in variants if v.kernel == "mem_chase" and v.copies == "1")
    sizes = {f"set={kib}K,shown": kib << 10 for kib in (8, 64, 512, 4096)}
    made = [msgspec.structs.replace(chase, params=label, value=size, scored=False) for label, size in sizes.items()]
    lock = next(v for v in variants if v.kernel == "lock_mutex" and v.copies == "1")
    for kernel, labels in (("lock_all", ("threads=1", "threads=2")), ("lock_line", ("cpus=0-1", "cpus=0-2"))):
        made += [msgspec.structs.replace(lock, kernel=kernel, params=label, scored=False) for label in labels]
    return variants + made
