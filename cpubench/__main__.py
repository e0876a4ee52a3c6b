"""The start of the program, which loads nothing before a signal may come."""

import signal
import sys


def main() -> int:
    """The exit code of the program, see ``cpubench.entry.main``."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # until ``entry`` has it: it would raise amid an import

    from cpubench import entry

    return entry.main()


if __name__ == "__main__":
    sys.exit(main())
