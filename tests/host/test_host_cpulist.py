from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpubench.host.cpulist import MAX_CPU, format_cpulist, parse_cpulist, read_cpulist


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("", []),
        ("\n", []),
        ("0", [0]),
        ("0\n", [0]),
        ("\t0-3,8\n", [0, 1, 2, 3, 8]),
        ("5-5", [5]),
        ("8,1,1,0-2", [0, 1, 2, 8]),
        ("0-7:2/4", [0, 1, 4, 5]),
        ("1-9:1/3,0", [0, 1, 4, 7]),
        ("0-4:3/4", [0, 1, 2, 4]),
        ("1020-1030,4095", [*range(1020, 1031), 4095]),
        ("007", [7]),
        (str(MAX_CPU), [MAX_CPU]),
    ],
)
def test_a_kernel_list_is_its_ids(text: str, cpus: list[int]) -> None:
    assert parse_cpulist(text) == cpus


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("3-1", "runs backwards"),
        ("-1", "neither an id"),
        ("0,-3", "neither an id"),
        ("0--3", "neither an id"),
        ("a", "neither an id"),
        ("0,", "neither an id"),
        ("0,,1", "neither an id"),
        ("0 1", "neither an id"),
        ("0x3", "neither an id"),
        ("1.5", "neither an id"),
        ("0-3:2", "neither an id"),
        ("4:1/2", "neither an id"),
        ("\u0663", "neither an id"),
        ("0-7:0/4", "takes 0 of each group of 4"),
        ("0-7:5/4", "takes 5 of each group of 4"),
        ("0-7:0/0", "takes 0"),
        ("1000001", "over 1000000"),
        ("0-99999999", "over 1000000"),
        ("9" * 5000, "over 1000000"),
        ("ffffffff,ffffffff", "neither an id"),
        ("0-1000000,7", "names more than 1000001 CPUs"),
        ("0-999999:1/2," * 99999 + "0", "names more than"),
    ],
)
def test_anything_else_is_refused_with_a_short_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as caught:
        parse_cpulist(text)
    assert str(caught.value).startswith("not a CPU list: ")
    assert len(str(caught.value)) < 200


def test_a_list_of_3_kilobytes_is_read_whole() -> None:
    cpus = list(range(0, 1500, 2))
    text = format_cpulist(cpus)
    assert len(text) > 3000
    assert parse_cpulist(text) == cpus


@given(st.sets(st.integers(0, 5000)))
def test_parsing_what_was_formatted_gives_the_same_ids(cpus: set[int]) -> None:
    assert parse_cpulist(format_cpulist(cpus)) == sorted(cpus)


def test_format_is_the_shortest_list_and_refuses_ids_that_cannot_be() -> None:
    assert format_cpulist([8, 3, 2, 1, 0, 1]) == "0-3,8"
    assert format_cpulist([0, 1]) == "0-1"
    assert format_cpulist([]) == ""
    for wrong in ([-1], [MAX_CPU + 1]):
        with pytest.raises(ValueError, match="CPU ids are from 0"):
            format_cpulist(wrong)


def test_an_empty_file_is_no_cpus_and_a_missing_or_spoiled_one_is_none_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "spoiled").write_bytes(b"\xff3-1")
    assert read_cpulist(tmp_path, "empty").value == []
    assert read_cpulist(tmp_path, "none").reason == "/none: no such file"
    assert (read_cpulist(tmp_path, "spoiled").reason or "").startswith("/spoiled: not a CPU list")
