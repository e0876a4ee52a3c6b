"""A report and its data appear together, or neither does: a full disk or Ctrl-C leaves what was there before."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cpubench.errors import UsageError
from cpubench.report.html.blocks import Section
from cpubench.report.html.sidecar import DATA, write_data
from cpubench.results.parse import located


@contextmanager
def data_beside(folder: Path | None, doc: Mapping[str, Any], sections: Sequence[Section]) -> Iterator[None]:
    """Nothing; the data of a report are written beside their folder first, and take their places, by renames, after
    the block has written its page. None: a report without data."""
    if folder is None:
        yield
        return
    staged = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    try:
        if folder.exists() and any(folder.iterdir()) and not (folder / DATA).is_file():
            raise located(folder, UsageError("write", f"is there and no data of a report: it holds no {DATA}"))
        write_data(staged, doc, sections)
        yield
        _publish(staged, folder)
    except OSError as error:
        raise located(folder, UsageError("write", f"cannot be written: {error.strerror}")) from None
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _publish(staged: Path, folder: Path) -> None:
    files = [file.relative_to(staged) for file in sorted(staged.rglob("*")) if file.is_file()]
    for kind, ending in (("tables", "csv"), ("figures", "svg"), ("figures", "csv")):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        for old in (folder / kind).glob(f"*.{ending}"):
            if old.relative_to(folder) not in files:
                old.unlink()
    for file in files:
        (staged / file).replace(folder / file)
