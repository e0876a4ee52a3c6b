"""``cpubench power``: what this host can measure and limit, setting and judging a cap, giving the limits back."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from cpubench.cli import FOLDER, as_json, emit
from cpubench.errors import UsageError

under = click.option("--root", type=click.Path(path_type=Path, file_okay=False), default="/", hidden=True)


@click.group()
def command() -> None:
    """What can be measured and limited; limits are given back."""


@command.command()
@click.option("--meter", metavar="NAME", help="This meter only: powercap, redfish:URL, cmd:COMMAND, ..")
@click.option("--require-power", is_flag=True, help="Exit with 1 where no meter can be used.")
@under
@as_json
def probe(meter: str | None, require_power: bool, root: Path, json_: bool) -> int:
    """Meters and caps, and why others are none."""
    from cpubench.power import probe as room

    found = room.probe(root) if meter is None else room.probe_one(meter, root)
    if json_:
        emit(found)
    else:
        from cpubench.report.power import show_probe

        show_probe(found, sys.stdout)
    return 1 if require_power and not any(one["usable"] for one in found["meters"]) else 0


@command.command()
@under
@as_json
def show(root: Path, json_: bool) -> None:
    """Watts now, the limits in force, and which are ours."""
    from cpubench.power.probe import watts_now
    from cpubench.power.registers import Host
    from cpubench.power.show import limits

    watts, document = watts_now(root), limits(Host(root))
    if json_:
        emit({"watts": watts["watts"], **document, "problems": [*watts["problems"], *document["problems"]]})
    else:
        from cpubench.report.caps import show_limits
        from cpubench.report.power import show_watts

        show_watts(watts, sys.stdout)
        show_limits(document, sys.stdout)


@command.command("set", context_settings={"ignore_unknown_options": False})
@click.option("--watts", metavar="N", required=True, help="Watts of the whole host, shared by its zones.")
@under
@as_json
@click.argument("program", metavar="[-- COMMAND..]", nargs=-1)
def set_(watts: str, root: Path, json_: bool, program: tuple[str, ...]) -> int:
    """Set a cap for COMMAND, or until `power restore`.

    The exit code is that of COMMAND, or 128 and the number of the signal that ended it.
    """
    from cpubench.power import caps, session
    from cpubench.power.levels import Level, parse_watts
    from cpubench.power.registers import Host

    level = Level(watts, watts=parse_watts(watts, "--watts"))
    if json_ and program:
        raise UsageError("usage", "with COMMAND, stdout is its own: leave --json out", "--json")
    with session.capping(Host(root)) as open_:
        value = caps.value_of(level, open_.controls, where="--watts")
        applied = session.apply(open_, value or 0)
        document = applied_document(applied, open_, level)
        if not applied.stands:
            raise UsageError(applied.state.value, f"{applied.state.sentence} ({applied.text})", "--watts")
        if program:
            return _while(program)
        session.keep(open_)
    if json_:
        emit(document)
    else:
        each = f"{document['each_watts']:g} W in each of {document['zones']} {document['backend']} zones"
        click.echo(f"set: {each}, read back; `cpubench power restore` gives the old limits back")
    return 0


def _while(program: tuple[str, ...]) -> int:
    """The exit code of a program, which is ended before the limits are given back."""
    try:
        child = subprocess.Popen(program)
    except OSError as error:
        raise UsageError("command", f"cannot be started: {error.strerror}", shlex.join(program)) from None
    try:
        code = child.wait()
    except BaseException:
        child.terminate()
        try:
            child.wait(5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        raise
    return code if code >= 0 else 128 - code


def applied_document(applied: Any, session: Any, level: Any) -> dict[str, Any]:
    """What was asked for, written and read back."""
    return {
        "state": applied.state.value, "watts": level.watts, "each_watts": applied.value / 1e6,
        "zones": len(session.controls), "backend": session.controls[0].backend, "scope": session.controls[0].scope,
        "read_watts": {key: got / 1e6 for key, got in applied.read.items() if not key.endswith("/enabled")},
    }  # fmt: skip


@command.command()
@click.option("--cap", "caps_", metavar="LEVEL", multiple=True, help="Set it for this: 250W, 70% of uncapped.")
@click.option("--cap-external", metavar="W[:SCOPE]", help="A cap that somebody else has set: 600W, 250W:package.")
@click.option("--seconds", type=click.FloatRange(0.2, 600), default=20.0, show_default=True, help="Of each load.")
@click.option("--settle", type=click.FloatRange(0, 600), default=10.0, show_default=True, help="Seconds before it.")
@under
@as_json
def verify(
    caps_: tuple[str, ...], cap_external: str | None, seconds: float, settle: float, root: Path, json_: bool
) -> int:
    """Show under full load whether caps hold.

    The limits are as before afterwards. Exit 1 where a cap is not verified.
    """
    from cpubench.power.checked import checked, external
    from cpubench.power.levels import parse_external, parse_level
    from cpubench.power.registers import Host
    from cpubench.power.verify import Times

    times = Times(uncapped_s=seconds, settle_s=settle, measure_s=seconds)
    if bool(caps_) == (cap_external is not None):
        raise UsageError("usage", "give --cap once or more, or --cap-external", "verify")
    if cap_external is not None:
        cap = parse_external(cap_external)
        rows = external(cap, gauge(root, f"auto:{cap.scope}"), times)
    else:
        rows = checked([parse_level(text) for text in caps_], Host(root), gauge(root), times)
    if json_:
        emit({"levels": rows})
    else:
        from cpubench.report.caps import show_levels

        show_levels(rows, sys.stdout)
    return 0 if all(row["state"].startswith("verified") for row in rows) else 1


def gauge(root: Path, name: str = "auto") -> Any:
    """A meter of this host's own, as ``verify`` wants it; None where there is none."""
    from cpubench.power.gauge import gauge as meter
    from cpubench.power.verify import Gauge

    try:
        return Gauge(*meter(name, root))
    except UsageError:
        return None


@command.command()
@click.argument("run", metavar="RUN", type=FOLDER)
@click.argument("csv", metavar="FILE.csv", type=FOLDER)
@click.option("--time", "time_", default="", metavar="NAME", help="Column of the times.  [default: the first]")
@click.option("--column", default="", metavar="NAME", help="Column of the watts or joules.  [default: the second]")
@click.option("--unit", type=click.Choice(["W", "kW", "mW", "J", "kJ"]), help="[default: as the file says, else W]")
@click.option("--scope", type=click.Choice(["wall", "board", "package", "soc", "module", "superchip"]), default="wall",
              show_default=True, help="What the watts are of.")  # fmt: skip
@click.option("--offset", type=float, metavar="S", help="Seconds to add to the times; 0: they are right.")
@click.option("--partial", is_flag=True, help="Leave without watts what the file lacks.")
@click.option("-o", "--output", type=FOLDER, help="Folder of the run with its watts.  [default: RUN-watts]")
@click.option("--sign", type=FOLDER, metavar="KEY", help="Sign its run.json with this key of SSH.")
@as_json
def merge(
    run: Path, csv: Path, time_: str, column: str, unit: str | None, scope: str, offset: float | None, partial: bool,
    output: Path | None, sign: Path | None, json_: bool,
) -> None:  # fmt: skip
    """Give a run of `run --meter csv` its watts, in a folder of its own."""
    from cpubench.merging import merge as merged
    from cpubench.power.table import Asked
    from cpubench.report.power import show_merged

    document = merged(run, csv, Asked(time_, column, unit or "", scope, offset), output, partial, sign)
    if json_:
        emit(document)
    else:
        show_merged(document, sys.stdout)


@command.command()
@click.option("--force", is_flag=True, help="Write the old values over what somebody else has set meanwhile.")
@click.option("--accept", is_flag=True, help="Leave limits as they are now, and forget the old ones.")
@under
@as_json
def restore(force: bool, accept: bool, root: Path, json_: bool) -> None:
    """Give back limits that were left set."""
    from cpubench.power import giveback, journal
    from cpubench.power.registers import Host

    if force and accept:
        raise UsageError("usage", "one of --force and --accept", "restore")
    lock = journal.lock(root)
    outcomes: list[giveback.Outcome] = []
    try:
        left = journal.load(root)
        if left is None:
            text = "nothing to give back"
        elif accept or left.boot_id != journal.boot_id(root):
            journal.remove(root, left)
            why = "left as they are" if accept else "of another boot, which ended with it"
            text = f"{len(left.entries)} limits are {why}; their journal is removed"
        else:
            outcomes = giveback.give_back(Host(root), left, force)
            text = "; ".join(f"{one.key} {one.text}" for one in outcomes)
    finally:
        os.close(lock)
    if json_ and all(one.good for one in outcomes):
        emit({"text": text, "limits": [{"key": one.key, "state": one.state, "text": one.text} for one in outcomes]})
    elif not json_:
        click.echo(text)
    giveback.check(outcomes)
