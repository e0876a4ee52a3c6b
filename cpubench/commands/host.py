"""``cpubench host``: what this machine is."""

from __future__ import annotations

import sys
from typing import Any

import click

from cpubench.cli import as_json, emit, native
from cpubench.errors import UsageError


@click.command()
@as_json
def command(json_: bool) -> None:
    """What this machine is, as a run stores it, and what holds now; each unknown with its reason."""
    from cpubench.host.describe import describe

    document = describe()
    _add_build(document)
    if json_:
        emit(document)
    else:
        from cpubench.report.host import show_host

        show_host(document, sys.stdout)


def _add_build(document: dict[str, Any]) -> None:
    """Compiler, flags and versions of what would measure here; without the extension the rest is still told."""
    stable, reasons = document["stable"], document["reasons"]
    try:
        native()
        from cpubench.measure.build import build, imported

        stable["build"], stable["imported"] = build(), imported()
    except (UsageError, OSError) as error:
        stable["build"] = stable["imported"] = None
        reasons["build"] = reasons["imported"] = str(error)
