"""The exceptions that a person is meant to read."""

from __future__ import annotations

import shlex
from pathlib import Path


class UsageError(Exception):
    """Wrong usage or input: one line that says what, where and what to do; the command line exits with 2.

    ``code`` is a stable word for programs, ``where`` the file, option or place that is wrong.
    """

    exit_code = 2

    def __init__(self, code: str, text: str, where: str = "") -> None:
        super().__init__(f"{where}: {text}" if where else text)
        self.code, self.text, self.where = code, text, where


class Unfinished(UsageError):
    """A run that ended before its stop: ``reason`` says by what, ``folder`` holds the ``passes`` that it finished.

    Its code is "interrupted" after an interrupt, else that of the reason.
    """

    def __init__(self, reason: UsageError | KeyboardInterrupt, folder: Path, passes: int) -> None:
        self.reason, self.folder, self.passes = reason, folder, passes
        kept = "1 pass is kept" if passes == 1 else f"{passes} passes are kept"
        resume = f"go on with `cpubench run --resume {shlex.quote(str(folder))}`"
        what = f"{kept}; {resume}" if passes else "nothing was measured"
        if isinstance(reason, UsageError):
            super().__init__(reason.code, f"{reason.text}; {what}", reason.where)
        else:
            super().__init__("interrupted", f"interrupted; {what}")


class NotGivenBack(UsageError):
    """A limit that this program set, or that another set meanwhile, is not as it was; the command line exits with 70.

    The text ends with the commands that give it back.
    """

    exit_code = 70

    def __init__(self, what: str, commands: str) -> None:
        super().__init__("not_given_back", f"a limit was not given back: {what}; {commands}")
