"""``cpubench tasks``: agent tasks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from cpubench.cli import FOLDER, LEVELS, as_json, emit, native
from cpubench.errors import UsageError
from cpubench.explain import explain
from cpubench.tasks_told import publishable, tell

FORMATS = click.Choice(["chrome", "otel"])  # --help loads nothing for them
with_trace = click.option("--trace", type=FOLDER, metavar="FILE", help="Write a trace of all steps.")
with_profile = click.option(
    "--profile", default="standard", show_default=True, metavar="NAME", help="quick or standard."
)
with_format = click.option("--trace-format", type=FORMATS, default="chrome", show_default=True, help="Of that trace.")


@click.group()
def command() -> None:
    """Agent tasks: work made of real tools, where its time goes, and how many agents this host carries."""


command.add_command(explain)


@command.command()
@with_profile
@click.option("--tasks", "names", multiple=True, metavar="T,..", help="Do these only: T1, or a full name.")
@click.option("--agents", metavar="N,..", help="Numbers of agents of T4.  [default: the profile's]")
@click.option("--think", type=click.FloatRange(0, 100), default=1.0, show_default=True, metavar="SCALE",
              help="Scale of the waits for a model in T4; 0: none.")  # fmt: skip
@click.option("--tools", metavar="git,pip", help="Use these too: a variant of T1 and T4 of its own.")
@click.option("--repeats", type=click.IntRange(1, 1000), help="Of tasks of one agent.  [default: the profile's]")
@click.option("--window", metavar="TIME", help="Of many at once: 20s, 1m.  [default: the profile's]")
@click.option("--workdir", type=FOLDER, help="Folder for the agents' files.  [default: the run folder]")
@click.option("--out", type=FOLDER, help="Run folder.  [default: results/HOST-tasks-TIME]")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Seed of orders and waits.  [default: drawn]")
@click.option("--cap", "caps", multiple=True, metavar="LEVEL", help=f"Do them under this too: {LEVELS}.")
@click.option("--cap-external", metavar="W[:SCOPE]", help="A cap that somebody else has set: 600W, 250W:package.")
@click.option("--meter", metavar="NAME", help="Read watts: auto, powercap, redfish:URL, cmd:COMMAND, none, ..")
@click.option("--allow-estimated", is_flag=True, help="Let the meter be one that estimates.")
@click.option("--root", type=click.Path(path_type=Path, file_okay=False), default="/", hidden=True)
@click.option("--times", hidden=True, help="Seconds that are not the profile's, for tests: settle=0.1,idle=0.5.")
@with_trace
@with_format
@click.option("--strict", is_flag=True, help="Exit with 3 where a task failed or the task score is not publishable.")
@as_json
def run(
    profile: str, names: Sequence[str], agents: str | None, think: float, tools: str | None, repeats: int | None,
    window: str | None, workdir: Path | None, out: Path | None, seed: int | None, caps: tuple[str, ...],
    cap_external: str | None, meter: str | None, allow_estimated: bool, root: Path, times: str | None,
    trace: Path | None, trace_format: str, strict: bool, json_: bool,
) -> int:  # fmt: skip
    """Do the tasks: one folder with every step that was done; of several cap levels, one inside for each."""
    native()
    from cpubench.measure.asked import asked_of
    from cpubench.measure.draft import names_of
    from cpubench.measure.profiles import nanoseconds
    from cpubench.report.output import check_output
    from cpubench.report.progress import writer
    from cpubench.tasks.plan import Options
    from cpubench.tasks.run import run as run_tasks

    power = asked_of(caps, cap_external, meter, allow_estimated, root, times)
    if trace is not None:
        if len(power.names) > 1:
            raise UsageError("usage", "is of one level: `cpubench tasks show` makes one of each", "--trace")
        check_output(trace, json_)
    window_s = None if window is None else nanoseconds(window, "--window") / 1e9
    options = Options(
        profile, _tasks(names), _numbers(agents), think, names_of(tools) or (), workdir, out, seed, repeats, window_s,
        power,
    )  # fmt: skip
    folder = run_tasks(options, writer(sys.stderr))
    from cpubench.finish import naming  # numpy with it, once nothing is measured any more

    with naming(folder):
        failed = tell(folder, trace, trace_format, json_)
        if not strict or (not failed and publishable(folder)):
            return 0
    click.echo("cpubench: not publishable: `cpubench score` of the run's folder says why", err=True)
    return 3


@command.command()
@click.argument("path", metavar="RUN", type=FOLDER)
@with_trace
@with_format
@as_json
def show(path: Path, trace: Path | None, trace_format: str, json_: bool) -> None:
    """Compute the measures of a finished run of tasks anew, from its steps."""
    tell(path, trace, trace_format, json_)


@command.command("list")
@with_profile
@as_json
def list_(profile: str, json_: bool) -> None:
    """The tasks of a profile by the names that `tasks run --tasks` takes, and what this host cannot do of them."""
    from cpubench.host.facts import collect, divisor
    from cpubench.host.topology import read_topology
    from cpubench.report.page import console_of, line, pairs
    from cpubench.results.temporary import temporary
    from cpubench.tasks import catalogue, plan, programs, rungs, sandbox

    plan.check_profile(profile)
    with temporary() as scratch:
        found = programs.probe(scratch)
        rungs.try_rungs(found, [*sandbox.RUNGS, *sandbox.ADAPTERS], scratch)
    facts = collect()
    memory, cores = facts["memory_bytes"], divisor(facts, len(read_topology().cores))[1]
    left_out = plan.LEFT_OUT[profile]
    rows: list[dict[str, Any]] = [
        {"task": one.task, "name": one.name, "version": one.version, "doc": catalogue.DOCS[one.task],
         "named_only": one.name in left_out, "here": found.reason(one) or plan.too_many(one, memory)}
        for one in plan.offered(plan.Options(profile), cores, (), memory)
    ]  # fmt: skip
    if json_:
        emit({"profile": profile, "tasks": rows, "programs": found.stored, "missing": found.missing})
        return
    console = console_of(sys.stdout)
    console.print(line(console, f"profile {profile}, {cores:g} cores: {', '.join(set(plan.PROFILES) - {profile})} has"
                                " other numbers of agents"))  # fmt: skip
    pairs(console, [(row["name"], _about(row)) for row in rows])


def _about(row: dict[str, Any]) -> str:
    named = "; only where --tasks names it" if row["named_only"] else ""
    return f"{row['doc']}{named}" + (f"; not here: {row['here']}" if row["here"] else "")


def _tasks(names: Sequence[str]) -> list[str] | None:
    """Names as given: those with parameters hold commas."""
    import re

    found = [name.strip() for text in names for name in re.findall(r"[^,\[]+(?:\[[^\]]*\])?", text) if name.strip()]
    return found if names else None


def _numbers(text: str | None) -> list[int] | None:
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdecimal() and 0 < int(part) <= 100_000 for part in parts):
        raise UsageError("agents", f"{text!r} is no list of numbers such as 1,4,16", "--agents")
    return [int(part) for part in parts]
