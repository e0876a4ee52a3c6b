"""Where a document goes that was asked for with ``-o``: a file, or "-" for stdout."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from cpubench.errors import UsageError
from cpubench.results.files import write_atomic


def as_text(document: Any) -> str:
    """The document as JSON of plain ASCII, in which nothing is left that a terminal would act on."""
    return json.dumps(document, indent=1).replace("\x7f", "\\u007f")  # DEL is the one that JSON need not escape


def check_output(output: Path, json_: bool) -> None:
    """UsageError where the document and that of ``--json`` would both go to stdout."""
    if json_ and str(output) == "-":
        raise UsageError("usage", "with --json, stdout is for its document: give -o a file, or leave --json out", "-o")


def write_output(output: Path, text: str) -> None:
    """Writes all of the text or nothing of it; UsageError with the file's name where that fails."""
    if str(output) == "-":
        sys.stdout.write(text)
        return
    try:
        write_atomic(output, text.encode())
    except (OSError, ValueError) as error:  # the latter: a name such as "." or "/"
        reason = getattr(error, "strerror", None) or "it is no file name"
        raise UsageError("write", f"cannot be written: {reason}", str(output)) from None
