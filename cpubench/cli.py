"""The command line: one function per sub-command, no logic; heavy imports happen inside, `--help` needs none.

A room's own commands are in ``cpubench/commands/NAME.py``, as ``command``, and are found there.
"""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from cpubench import __version__, commands
from cpubench.errors import UsageError

NOT_BUILT = "this is a checkout without its extension: build it with `pip install .` (or `pip install -e .`)"
WEIGHTS = "Weights of the families: equal, chat, coding, tools or multitenant."  # --help loads no table of them
LEVELS = "250W, 70%, as-is, or proxy:freq=2.4GHz, a limit of frequency and no cap of power"
FOLDER = click.Path(path_type=Path)
as_json = click.option(
    "--json", "json_", is_flag=True, help="Print one JSON document on stdout, and nothing else there."
)


def emit(document: Any) -> None:
    """Prints one JSON document on stdout."""
    from cpubench.report.output import as_text

    click.echo(as_text(document))


def native() -> Any:
    """The built extension; UsageError with the way out where there is none."""
    try:
        from cpubench import _native
    except ImportError as error:
        if "failed to map segment" in str(error):  # of the dynamic linker
            text = "may not be executed: is its file system mounted noexec? Install cpubench elsewhere"
            raise UsageError("noexec", text, str(Path(__file__).parent)) from None
        raise UsageError("not_built", f"{NOT_BUILT} ({error})") from None
    return _native


class Rooms(click.Group):
    """The commands of this file, and those of the rooms."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(
            {*super().list_commands(ctx), *(module.name for module in pkgutil.iter_modules(commands.__path__))}
        )

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        here = super().get_command(ctx, name)
        if here is None and name in self.list_commands(ctx):
            here = import_module(f"cpubench.commands.{name}").command
        return here


@click.group(cls=Rooms, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="cpubench")
def cli() -> None:
    """How much agent work a CPU does, per core and per watt."""


@cli.command("list")
@as_json
def list_(json_: bool) -> None:
    """The kernels of this build: what one operation is, their values, what is scored, and what can run here."""
    native_kernels = native().kernels()
    from cpubench.measure.catalogue import catalogue

    kernels = catalogue(native_kernels)
    if json_:
        kept = ("name", "family", "unit", "version", "doc", "params", "flags")
        emit({"kernels": [{name: kernel[name] for name in kept} for kernel in kernels]})
    else:
        from cpubench.report.listing import show_list

        show_list(kernels, sys.stdout)


@cli.command()
@click.option("--strict", is_flag=True, help="Exit with 1 where a check warns.")
@as_json
def check(strict: bool, json_: bool) -> int:
    """What on this host would disturb a measurement, and how to change it; it changes nothing itself."""
    from cpubench.host.checks import checks
    from cpubench.report.checks import show_checks

    found = checks(min(native().clock_read_ns() for _ in range(5)))  # the least: an interruption only adds
    if json_:
        emit({"checks": found})
    else:
        show_checks(found, sys.stdout)
    return 1 if strict and any(one["status"] == "warn" for one in found) else 0


@cli.command()
@click.argument("runs", metavar="RUN.. [TASKS]", type=FOLDER, nargs=-1, required=True)
@click.option("--scenario", metavar="S", help=f"{WEIGHTS}  [default: equal]")
@click.option("--weights", type=FOLDER, metavar="FILE", help="Weights of your own; `cpubench weights` makes them.")
@click.option("--reference", type=FOLDER, help="Another reference file.")
@click.option("--task-reference", type=FOLDER, help="Another reference file of tasks.")
@click.option("--strict", is_flag=True, help="Exit with 3 where a result is not publishable.")
@click.option("--markdown", is_flag=True, help="Print Markdown.")
@as_json
def score(
    runs: Sequence[Path], scenario: str | None, weights: Path | None, reference: Path | None,
    task_reference: Path | None, strict: bool, markdown: bool, json_: bool,
) -> int:  # fmt: skip
    """Compute the scores of finished runs anew, from their raw numbers.

    The folder of a run of tasks may follow each run: its task score stands beside the path score.
    """
    from cpubench.scored import publishable, scored, tell, weighing

    if json_ and markdown:
        raise UsageError("usage", "stdout holds one document: --json or --markdown", "--markdown")

    document = scored(runs, weighing(scenario, weights), reference, task_reference)
    tell(document, runs, json_, markdown)
    return 3 if strict and not publishable(document) else 0


@cli.command()
@click.argument("runs", metavar="RUN..", type=FOLDER, nargs=-1, required=True)
@click.option("--fail-on", metavar="slower[:3%]", help="Exit with 1 where B is slower (by more than that).")
@click.option("--scenario", default="equal", show_default=True, metavar="S", help=WEIGHTS)
@click.option("--reference", type=FOLDER, help="Another reference file; it says which rows are scored.")
@click.option("--markdown", is_flag=True, help="Print Markdown.")
@as_json
def compare(
    runs: Sequence[Path], fail_on: str | None, scenario: str, reference: Path | None, markdown: bool, json_: bool
) -> int:
    """Compare B with A: two runs, the folder of a run --ab, two folders of runs, or the runs of two hosts, by host."""
    from cpubench.versus import compared, tell

    return tell(compared(runs, fail_on, scenario, reference), json_, markdown)


@cli.command()
@click.argument("path", metavar="RUN", type=FOLDER)
@click.option("--to", "form", required=True, type=click.Choice(["pytest-benchmark", "csv"]))
@click.option("-o", "--output", required=True, type=FOLDER, help="File to write; - for stdout.")
@as_json
def export(path: Path, form: str, output: Path, json_: bool) -> None:
    """Write a run in another form."""
    from cpubench.bench.export import to_csv, to_pytest_benchmark
    from cpubench.report.output import as_text, check_output, write_output
    from cpubench.results.load import load_run

    check_output(output, json_)
    loaded = load_run(path)
    write_output(output, to_csv(loaded) if form == "csv" else as_text(to_pytest_benchmark(loaded)) + "\n")
    if json_:
        emit({"file": str(output), "form": form})


@cli.command()
@click.argument("path", metavar="RUN|TASKS", type=FOLDER)
@click.option("-o", "--output", required=True, type=FOLDER, help="File to write; - for stdout.")
@click.option("--name", required=True, help="What this reference is called.")
@click.option("--description", default="", help="One sentence on the machine.")
@as_json
def reference(path: Path, output: Path, name: str, description: str, json_: bool) -> None:
    """Make a reference of a run or of a run of tasks: the scale on which others are 1000 when equal to it."""
    from cpubench.report.output import as_text, check_output, write_output
    from cpubench.scored import reference_of

    check_output(output, json_)
    kind, document = reference_of(path, name, description)
    write_output(output, as_text(document) + "\n")
    if json_:
        emit({"file": str(output), "name": name, kind: len(document[kind])})
