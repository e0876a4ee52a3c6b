"""The program: signals, streams, and what becomes of an error."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import click

from cpubench.cli import cli, emit
from cpubench.errors import UsageError

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
MOST_LINE = 2000  # characters of a text of ours: commands that give a limit back are among them
# Of a full disk, a pipe whose reader has gone, a terminal that has.
UNWRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EPIPE, errno.EIO, errno.EBADF)
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _interrupt(number: int, frame: Any) -> None:
    for other in STOPS:  # saving takes a second or two, and a second signal must not cut it short
        signal.signal(other, signal.SIG_IGN)
    raise KeyboardInterrupt


def _complain(code: str, text: str, where: str, json_: bool) -> None:
    line = f"{where}: {text}" if where else text
    with suppress(OSError):  # nobody reads it any more
        click.echo(f"cpubench: {line}", err=True)
    if json_:
        with suppress(OSError):
            emit({"error": {"code": code, "text": text, "where": where}})


def _open_streams() -> None:
    """Gives a stream that was closed before the start (``>&-``) the null device: else the next file that is opened,
    perhaps one of the run, would have its number, and what a child prints would be written into that."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w" if number else "r"))  # noqa: SIM115


def _drop(stream: TextIO) -> None:
    """What a stream still holds goes nowhere, lest the interpreter stumbles over it again at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), stream.fileno())


def _lost(error: OSError, json_: bool) -> int:
    """2, after saying what the system refused; it was stdout where nothing is named, since all else has a name."""
    if error.filename is None and error.errno in UNWRITTEN:
        _drop(sys.stdout)
        if not isinstance(error, BrokenPipeError):  # its reader has seen enough, as of `| head`
            _complain("write", f"cannot be written: {error.strerror}", "stdout", json_=False)
        return 2
    from cpubench.results.parse import shown

    where = shown(str(error.filename), MOST_LINE) if error.filename else ""
    _complain("system", error.strerror or str(error), where, json_)
    return 2


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 done, 1 the answer is no, 2 wrong usage or input, 3 not publishable, 130 interrupted.

    70: a limit could not be given back.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    json_ = "--json" in given
    _open_streams()
    for number in STOPS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup leaves SIGHUP, and a script's `&` SIGINT
            signal.signal(number, _interrupt)
    for name in THREADS:  # numpy would start a thread for each CPU, and at a limit of processes it dies of that
        os.environ.setdefault(name, "1")
    try:
        return _called(given, json_)
    except OSError as error:
        return _lost(error, json_)
    finally:
        try:
            sys.stderr.flush()
        except OSError:  # progress and complaints that nobody can read are no reason for another exit code
            _drop(sys.stderr)


def _called(given: Sequence[str], json_: bool) -> int:
    try:
        code: int = cli.main(given, prog_name="cpubench", standalone_mode=False) or 0
        sys.stdout.flush()  # what does not arrive is no success
        return code
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
    except SystemExit:  # of click and rich: the reader of stdout has gone
        pass
    except (KeyboardInterrupt, click.Abort):
        _complain("interrupted", "interrupted", "", json_)
        return 130
    return 2
