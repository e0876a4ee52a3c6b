"""How much agent work a CPU does, per core and per watt."""

__version__ = "0.1.0"
SUITE_VERSION = 2  # raised whenever the set of scored variants changes: other suites are never compared
