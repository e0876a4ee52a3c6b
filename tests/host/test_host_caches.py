from __future__ import annotations

from pathlib import Path

import pytest
from host import trees

from cpubench.host.caches import Cache, llc_bytes, parse_size, read_caches


@pytest.mark.parametrize(
    ("text", "size"), [("32K", 32768), ("1024K", 1 << 20), ("32M", 32 << 20), ("512", 512), ("1G", 1 << 30)]
)
def test_a_size_is_bytes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "K", "0K", "-1K", "32k", "256 KiB (8 instances)", "1.5M", "32KB", "0x20K", "9" * 40]
)
def test_other_words_for_a_size_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a cache size"):
        parse_size(text)


def test_data_and_unified_caches_come_by_level_and_instruction_caches_do_not(tmp_path: Path) -> None:
    trees.xeon(tmp_path)
    socket = (4, 5, 6, 7, 12, 13, 14, 15)
    assert read_caches(5, tmp_path).value == (
        Cache(1, "Data", 32 << 10, (5, 13)),
        Cache(2, "Unified", 1 << 20, (5, 13)),
        Cache(3, "Unified", 32 << 20, socket),
    )
    assert llc_bytes(read_caches(5, tmp_path)).value == 32 << 20


def test_no_cache_folder_is_none_with_a_reason_and_never_a_default(tmp_path: Path) -> None:
    trees.cpus(tmp_path, [(0, 0, (0,))], caches=False)
    caches = read_caches(0, tmp_path)
    assert (caches.value, caches.reason) == (None, "/sys/devices/system/cpu/cpu0/cache: no such folder")
    assert (llc_bytes(caches).value, llc_bytes(caches).reason) == (None, caches.reason)


def test_without_an_l3_the_l2_is_the_last_level(tmp_path: Path) -> None:
    trees.cpus(tmp_path, [(0, None, (0,))])
    assert llc_bytes(read_caches(0, tmp_path)).value == 1 << 20


@pytest.mark.parametrize("size", [None, "0K", "unknown"])
def test_a_last_level_without_size_is_not_replaced_by_the_level_before(tmp_path: Path, size: str | None) -> None:
    trees.cpus(tmp_path, [(0, None, (0,))])
    trees.cache(tmp_path, 0, 9, 3, "Unified", size, [0])
    caches = read_caches(0, tmp_path)
    assert [c.size_bytes for c in caches.value or ()] == [32 << 10, 1 << 20, None]
    assert llc_bytes(caches).value is None
    assert "index9/size" in (llc_bytes(caches).reason or "")


def test_an_index_that_cannot_be_read_may_be_the_last_level(tmp_path: Path) -> None:
    trees.xeon(tmp_path)
    (tmp_path / "sys/devices/system/cpu/cpu0/cache/index3/level").unlink()
    caches = read_caches(0, tmp_path)
    assert len(caches.value or ()) == 2
    assert llc_bytes(caches).value is None
    assert "index3/level" in (llc_bytes(caches).reason or "")


def test_an_unreadable_sharing_list_is_none_beside_the_size(tmp_path: Path) -> None:
    trees.xeon(tmp_path)
    trees.write(tmp_path, {"sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list": "7-0"})
    last = (read_caches(0, tmp_path).value or ())[-1]
    assert (last.size_bytes, last.shared_cpus) == (32 << 20, None)
    assert "runs backwards" in (last.reason or "")
