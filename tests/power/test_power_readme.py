"""Each case of the table names a test, and each of those tests exists."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
ROWS = re.findall(r"^\| ([CJ]\d+) \|[^|]+\| (.+) \|$", Path(__file__).with_name("README.md").read_text(), re.MULTILINE)


def test_each_test_of_the_table_exists():
    files = {path.name: path.read_text() for path in (*TESTS.rglob("test_*.py"), *TESTS.glob("lab/boot_*.py"))}
    named = [one for _, held in ROWS for one in re.findall(r"`(\w+\.py)::(test_\w+)`", held)]
    assert len(named) > 60
    assert [f"{file}::{name}" for file, name in named if f"def {name}(" not in files.get(file, "")] == []


def test_every_case_stands_once_in_order_and_is_held():
    names = [name for name, _ in ROWS]
    assert names == sorted(set(names), key=lambda name: (name[0], int(name[1:])))
    assert names[-10:] == [f"J{number}" for number in range(1, 11)]
    assert [name for name, held in ROWS if "::test_" not in held and not held.startswith("the same")] == []
