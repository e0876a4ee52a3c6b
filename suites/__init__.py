"""The pytest-benchmark suites, one file per family; installed as ``cpubench.suites``."""
