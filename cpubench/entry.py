"""The program: signals, and what becomes of an error."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

import click

from cpubench.cli import cli, emit
from cpubench.errors import UsageError

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
MOST_LINE = 2000  # characters of a text of ours: commands that give a limit back are among them
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _interrupt(number: int, frame: Any) -> None:
    for other in STOPS:  # saving takes a second or two, and a second signal must not cut it short
        signal.signal(other, signal.SIG_IGN)
    raise KeyboardInterrupt


def _complain(code: str, text: str, where: str, json_: bool) -> None:
    line = f"{where}: {text}" if where else text
    if json_:
        emit({"error": {"code": code, "text": text, "where": where}})
    click.echo(f"cpubench: {line}", err=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 done, 1 the answer is no, 2 wrong usage or input, 3 not publishable, 130 interrupted.

    70: a limit could not be given back.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    json_ = "--json" in given
    for number in STOPS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup leaves SIGHUP, and a script's `&` SIGINT
            signal.signal(number, _interrupt)
    for name in THREADS:  # numpy would start a thread for each CPU, and at a limit of processes it dies of that
        os.environ.setdefault(name, "1")
    try:
        return cli.main(given, prog_name="cpubench", standalone_mode=False) or 0
    except UsageError as error:
        from cpubench.results.parse import shown  # which --help does without

        _complain(error.code, shown(error.text, MOST_LINE), shown(error.where, MOST_LINE), json_)
        return 130 if error.code == "interrupted" else error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 2
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        _complain("usage", error.format_message(), context.command_path if context else "", json_)
    except MemoryError:
        _complain("memory", "no memory is left to this process", "", json_)
    except (KeyboardInterrupt, click.Abort):
        _complain("interrupted", "interrupted", "", json_)
        return 130
    return 2
