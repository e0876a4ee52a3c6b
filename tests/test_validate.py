"""Every kernel has a peer, and every peer compiles without a warning; nothing is measured here."""

import shutil
import subprocess

import pytest
from peers.page import BEGIN, END, PAGE
from peers.table import ARGUMENTS, EXPLAINED, TOOLS
from pools import KERNELS, LISTED
from validate import PEERS, build, narrow, source

SOURCES = sorted(path.stem for path in PEERS.glob("*.c"))
needs_cc = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")


@pytest.mark.parametrize("kernel", LISTED)
def test_every_kernel_has_a_peer_that_is_told_what_to_do(kernel):
    assert source(kernel).stem in SOURCES
    assert kernel in ARGUMENTS


def test_what_the_tables_name_exists():
    names = {f"{name}[{p['label']}]" if p["label"] else name for name in KERNELS for p in KERNELS[name]["params"]}
    assert set(SOURCES) == {source(name).stem for name in ARGUMENTS}
    assert set(ARGUMENTS) <= set(KERNELS)
    assert {*TOOLS, *EXPLAINED} <= names


@needs_cc
@pytest.mark.parametrize("kernel", SOURCES)
def test_every_peer_compiles_without_a_warning_and_refuses_too_few_arguments(kernel, tmp_path):
    program = build(kernel, tmp_path)  # with -Wall -Wextra -Werror
    assert subprocess.run([program, "1"], capture_output=True, check=False).returncode in (1, 2)


def test_the_page_has_one_place_for_the_table():
    text = PAGE.read_text()
    assert text.count(BEGIN) == text.count(END) == 1
    assert text.index(BEGIN) < text.index(END)


def test_pairs_are_taken_until_the_median_is_known():
    assert narrow([1.0] * 9)
    assert not narrow([0.9, 1.1] * 20)
    assert narrow([1 + i / 1000 for i in range(61)])
