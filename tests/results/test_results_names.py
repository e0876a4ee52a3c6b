"""One spelling of a row's name, for records, scores and the block process alike."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
from made import made_run

from cpubench.results.names import kernel_of, row_key, row_name, split_key
from cpubench.results.records import Run

ROOT = Path(__file__).parents[2]


def test_names_and_keys_and_back() -> None:
    assert row_name("mem_chase", "set=16K") == "mem_chase[set=16K]"
    assert row_name("file_create", "") == "file_create"
    assert row_key("file_create", "cores") == "file_create@cores"
    assert split_key("mem_chase[set=16K]@1") == ("mem_chase[set=16K]", "1")
    assert split_key("file_create") == ("file_create", "")
    assert {kernel_of(name) for name in ("mem_chase", "mem_chase[set=16K]", "mem_chase@1")} == {"mem_chase"}


def test_a_cell_has_the_key_of_its_variant() -> None:
    run = msgspec.convert(made_run(1), Run)
    assert [cell.key for cell in run.passes[0].blocks[0].cells] == [variant.key for variant in run.plan.variants]


def test_the_block_process_can_import_names_without_msgspec() -> None:
    code = "import sys, cpubench.results.names; print([m for m in ('msgspec', 'numpy') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True).stdout == "[]\n"
