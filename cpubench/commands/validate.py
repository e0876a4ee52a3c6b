"""``cpubench validate``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from cpubench.cli import FOLDER, as_json, emit


@click.command()
@click.argument("path", metavar="RUN", type=FOLDER)
@click.option("--signers", type=FOLDER, metavar="FILE", help="Who may have signed it, as ssh-keygen(1) lists them.")
@as_json
def command(path: Path, signers: Path | None, json_: bool) -> None:
    """Check a run, of kernels or tasks, or each of a folder: form, hashes, signature, that all that it says agrees.

    What can be is computed anew: sums, orders, half-width and stop of the run, and all in the files beside it.
    """
    from cpubench.recheck import validated

    found = validated(path, signers)
    if json_:
        emit(found)
    else:
        for one in found.get("runs", [found]):
            click.echo(_sentence(one))


def _sentence(found: Mapping[str, Any]) -> str:
    from cpubench.results.parse import shown

    if "tasks" in found:
        what = f"{found['tasks']} tasks, {found['repeats']} repeats, {found['failed']} of them failed"
        what += {"done": "", "running": "; it was killed before its end"}.get(found["stopped"], f"; {found['stopped']}")
    else:
        what = f"{found['passes']} passes, {found['variants']} variants"
    by = f", signed by {shown(found['signed_by'], 80)}" if found["signed_by"] else ""
    text = f"{shown(found['file'], 200)}: valid: {what}{by}"
    return "\n".join([text, *(f"  not checked: {shown(why, 200)}" for why in found["unchecked"])])
