"""``cpubench selftest``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from cpubench.cli import FOLDER, as_json, emit, native


@click.command()
@click.option("--budget", metavar="TIME", help="Take this long in all: 90s, 5m.  [default: 100s]")
@click.option("--out", type=FOLDER, help="Keep what was measured in this folder.  [default: nothing is kept]")
@as_json
def command(budget: str | None, out: Path | None, json_: bool) -> int:
    """Which differences this host can tell apart, and whether it notices a CPU quota and a busy neighbour."""
    native()
    from cpubench.measure.profiles import nanoseconds
    from cpubench.report.progress import writer
    from cpubench.report.selftest import show_selftest
    from cpubench.results.parse import shown
    from cpubench.selftest.run import keep, selftest

    document = selftest(None if budget is None else nanoseconds(budget), out, writer(sys.stderr))
    fault = None if out is None else keep(document, out)
    if json_:
        emit(document)
    else:
        show_selftest(document, sys.stdout)
    if fault is not None:
        click.echo(f"cpubench: {shown(fault)}", err=True)
    return 0 if fault is None else 2
