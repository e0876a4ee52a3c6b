"""Breaking made runs, and what a refusal must look like."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cpubench.errors import UsageError
from cpubench.results.files import canonical, sealed
from cpubench.results.load import load_run

Doc = dict[str, Any]


def reseal(document: Doc) -> Doc:
    """The changed document with hashes that fit."""
    for one in document["passes"]:
        one["blocks"] = [sealed(block) for block in one["blocks"]]
    return sealed(document)


def written(folder: Path, document: Doc) -> Path:
    """The ``run.json`` that holds the document."""
    file = folder / "run.json"
    file.write_bytes(canonical(document))
    return file


def fault_of(path: Path) -> UsageError:
    """The refusal of a file: one printable line of fewer than 300 characters."""
    with pytest.raises(UsageError) as caught:
        load_run(path)
    line = str(caught.value)
    assert len(line) < 300
    assert line.isprintable()
    return caught.value


def block(document: Doc, number: int = 3) -> Doc:
    return document["passes"][number]["blocks"][0]


def cell(document: Doc, at: int = 2) -> Doc:
    return block(document)["cells"][at]
