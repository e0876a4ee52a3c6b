"""Files that hold no JSON document, or one that two readers would read in two ways, are refused with the place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from broken import Doc, block, fault_of, reseal, written
from made import made_run

from cpubench.results import parse
from cpubench.results.files import canonical


@pytest.fixture
def document() -> Doc:
    return made_run(5)


RAW: dict[str, tuple[Callable[[bytes], bytes], str, str]] = {
    "empty": (lambda raw: b"", "empty", "run.json"),
    "blank": (lambda raw: b" \n\t ", "empty", "run.json"),
    "cut": (lambda raw: raw[: len(raw) // 2], "cut", ""),
    "cut in a string": (lambda raw: raw[: raw.index(b"cpubench.block") + 5], "cut", "line 1 column"),
    "cut at the last brace": (lambda raw: raw[:-1], "cut", "line 1 column"),
    "not JSON": (lambda raw: b"<html>\n</html>", "not_json", "line 1 column 1"),
    "binary": (lambda raw: raw[:100] + b"\xff" + raw[100:], "not_json", "byte 100"),
    "two documents": (lambda raw: raw + b"\n" + raw, "not_json", "line 2 column 1"),
    "a list": (lambda raw: b"[1]", "not_an_object", "run.json"),
    "NaN": (lambda raw: b'{\n "a": "NaN",\n "b": NaN}', "number", "line 3 column 7"),
    "Infinity": (lambda raw: b'{"a": [1, -Infinity]}', "number", "line 1 column 11"),
    "too large for a double": (lambda raw: b'{"a": 1e999}', "number", "line 1 column 7"),
    "2**63": (lambda raw: b'{"a": "9223372036854775808", "b": 9223372036854775808}', "number", "line 1 column 35"),
    "-2**63-1": (lambda raw: b'{"a": -9223372036854775809}', "number", "line 1 column 7"),
    "a million digits": (lambda raw: b'{"a": ' + b"7" * 1_000_000 + b"}", "number", "line 1 column 7"),
    "nested": (lambda raw: b'{"a":' * 200_000, "nested", "run.json"),
    "nested lists": (lambda raw: b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested", "run.json"),
    "half a surrogate pair": (lambda raw: raw.replace(b'"made"', b'"\\ud800"'), "not_json", "run.json"),
    "too many lists": (lambda raw: b'{"a":[' + b"[]," * 6_000_000 + b"0]}", "too_large", "run.json"),
}


@pytest.mark.parametrize("name", RAW)
def test_text_that_is_no_json_document_is_refused(tmp_path: Path, document: Doc, name: str) -> None:
    change, code, place = RAW[name]
    file = tmp_path / "run.json"
    file.write_bytes(change(canonical(document)))
    fault = fault_of(file)
    assert fault.code == code
    assert place in fault.where


def test_duplicate_key_is_named(tmp_path: Path, document: Doc) -> None:
    file = tmp_path / "run.json"
    file.write_bytes(canonical(document).replace(b'"copies":"1"', b'"copies":"1","copies":"cores"', 1))
    fault = fault_of(file)
    assert fault.code == "duplicate_key"
    assert "'copies'" in fault.text


def test_foreign_text_cannot_reach_the_terminal(tmp_path: Path, document: Doc) -> None:
    evil = "\x1b]0;owned\x07\u202e\r" + "x" * 5000
    file = tmp_path / "run.json"
    file.write_bytes(b'{"\\u001b[2J\\n' + b"k" * 999 + b'":1,"\\u001b[2J\\n' + b"k" * 999 + b'":2}')
    assert fault_of(file).code == "duplicate_key"
    block(document)["plan_id"] = evil
    fault = fault_of(written(tmp_path, reseal(document)))
    assert "\\x1b]0;owned\\x07\\u202e\\r" in fault.text
    odd = tmp_path / "a\x1b[2J\nb"
    odd.mkdir()
    assert fault_of(odd).code == "not_a_run"


def test_what_is_no_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fault_of(tmp_path / "none").code == "missing"
    assert fault_of(tmp_path).code == "not_a_run"
    assert fault_of(Path("/dev/zero")).code == "not_a_file"
    (tmp_path / "plan.json").write_text("{}")
    assert fault_of(tmp_path).code == "unfinished"
    file = tmp_path / "run.json"
    file.mkdir()
    assert fault_of(tmp_path).code == "not_a_file"
    file.rmdir()
    file.symlink_to(file)
    assert fault_of(file).code == "unreadable"
    monkeypatch.setattr(parse, "MAX_BYTES", 10)
    file.unlink()
    file.write_bytes(b"{" + b" " * 10)
    assert fault_of(file).code == "too_large"
