"""``cpubench weights``: weights of your own, from a trace of your agents."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from cpubench.cli import FOLDER, as_json, emit
from cpubench.errors import UsageError

# --help loads no reader for them
FORMATS = click.Choice(["auto", "swe-agent", "openhands", "claude", "codex", "otel", "trace", "strace"])


@click.command()
@click.option("--from", "trace", type=FOLDER, required=True, metavar="TRACE", help="A file or a folder.")
@click.option("--format", "form", type=FORMATS, default="auto", show_default=True, help="Of all its files.")
@click.option("-o", "--output", required=True, type=FOLDER, help="File to write the weights to; - for stdout.")
@click.option("--name", default="own", show_default=True, help="What these weights are called.")
@click.option("--matrix", type=FOLDER, metavar="FILE", help="What calls do with the CPU, as you measured it.")
@click.option("--spans", type=FOLDER, metavar="FILE", help="Write each span in the normal form, cpubench.trace/1.")
@click.option("--keep-commands", is_flag=True, help="Write commands to --spans in full, beside their hashes.")
@as_json
def command(
    trace: Path, form: str, output: Path, name: str, matrix: Path | None, spans: Path | None, keep_commands: bool,
    json_: bool,
) -> None:  # fmt: skip
    """Make weights for `score --weights` of a trace of your agents, and say what was understood of it."""
    from cpubench.analysis.scenarios import PATHS, load_scenarios
    from cpubench.report.output import as_text, check_output, write_output
    from cpubench.report.weights import show_weights
    from cpubench.weighed import weights_from

    check_output(output, json_)
    if not 0 < len(name) <= 60 or not name.isascii() or not name.isprintable() or name in load_scenarios():
        raise UsageError("usage", "is no name for your weights: 1 to 60 plain characters, and no scenario's", "--name")
    if keep_commands and spans is None:
        raise UsageError("usage", "commands are only in the spans: give --spans FILE", "--keep-commands")
    for file, option in ((output, "-o"), (spans, "--spans")):
        if file is not None and str(file) != "-":
            if not file.parent.is_dir():  # before a long trace is read, and before the other file is written
                raise UsageError("write", "cannot be written: there is no such folder", str(file))
            if file.exists() and trace.exists() and file.samefile(trace):
                raise UsageError("usage", "would overwrite the trace", option)
    document, told = weights_from(trace, form, name, matrix, spans, keep_commands)
    write_output(output, as_text(document) + "\n")
    if json_:
        emit({"file": str(output), "spans_file": None if spans is None else str(spans), **told})
    else:
        show_weights(told, PATHS, sys.stderr if str(output) == "-" else sys.stdout)
