"""Packed runs: taken wherever a run is, and refused in one line where they are cut, changed or too large."""

from __future__ import annotations

import gzip
import hashlib
import subprocess
from pathlib import Path

import pytest
from broken import fault_of
from made import made_run, truthful, written
from made_reports import reference_of

from cpubench.entry import main
from cpubench.errors import UsageError
from cpubench.recheck import validated
from cpubench.results import packed, parse
from cpubench.results.files import canonical
from cpubench.results.load import load_run
from cpubench.results.packed import check_sum, sum_line, unpacked
from cpubench.results.signature import sign, signer


def pack(folder: Path, raw: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "run.json.gz"
    file.write_bytes(gzip.compress(raw, mtime=0))
    return file


@pytest.fixture(scope="module")
def raw() -> bytes:
    return canonical(truthful(made_run(12)))


def test_a_packed_run_is_the_run_that_was_packed(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "plain.json").write_bytes(raw)
    file = pack(tmp_path / "run", raw)
    assert load_run(file) == load_run(file.parent) == load_run(tmp_path / "plain.json")


def test_every_command_on_runs_takes_packed_ones(
    tmp_path: Path, raw: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    reference = ["--reference", str(reference_of(tmp_path))]
    one, other = pack(tmp_path / "a", raw).parent, pack(tmp_path / "b", canonical(made_run(12, seed=1, host_id="b")))
    for command in (
        ["validate", str(one)], ["validate", str(one / "run.json.gz")], ["score", str(one), *reference],
        ["compare", str(one), str(other), *reference], ["export", str(one), "--to", "csv", "-o", "-"],
        ["reference", str(one), "-o", str(tmp_path / "r.json"), "--name", "packed"],
    ):  # fmt: skip
        assert main(command) == 0, command
    assert "valid: 12 passes" in capsys.readouterr().out


def test_a_plain_run_beside_a_packed_one_is_the_one_that_counts(tmp_path: Path, raw: bytes) -> None:
    folder = written(tmp_path / "run", truthful(made_run(12)))
    pack(folder, canonical(made_run(8, seed=5)))
    assert load_run(folder).stopped.passes == 12


@pytest.mark.parametrize("share", [0.01, 0.5, 0.99])
def test_a_cut_packed_run_is_refused(tmp_path: Path, raw: bytes, share: float) -> None:
    file = pack(tmp_path, raw)
    whole = file.read_bytes()
    file.write_bytes(whole[: int(share * len(whole))])
    assert fault_of(file).code == "cut"
    assert f"cut after {int(share * len(whole))} bytes" in str(fault_of(file))


def test_a_changed_or_odd_packed_run_is_refused(tmp_path: Path, raw: bytes) -> None:
    file = pack(tmp_path, raw)
    whole = file.read_bytes()
    middle = len(whole) // 2
    for content, code in (
        (b"", "empty"), (raw, "packed"), (whole + b"more", "packed"), (whole + whole, "packed"),
        (whole[:-8] + b"\0\0\0\0" + whole[-4:], "packed"), (whole[:middle] + bytes(9) + whole[middle + 9 :], "packed"),
    ):  # fmt: skip
        file.write_bytes(content)
        assert fault_of(file).code == code


def test_a_bomb_is_bounded_by_what_it_unpacks_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse, "MAX_BYTES", 100_000)
    file = pack(tmp_path, bytes(10_000_000))
    fault = fault_of(file)
    assert (fault.code, "at most 100000 are read" in fault.text) == ("too_large", True)
    file = pack(tmp_path, bytes(100_000))
    assert fault_of(file).code != "too_large"


def test_no_more_is_unpacked_than_is_read() -> None:
    """Ten gigabytes of zeros would take longer than this test may."""
    some = gzip.compress(bytes(50_000_000), 1)
    with pytest.raises(UsageError, match="more than 1000 bytes"):
        unpacked(some, 1000)


def test_the_sum_beside_a_packed_run_must_be_its_own(tmp_path: Path, raw: bytes) -> None:
    file = pack(tmp_path, raw)
    beside = file.with_name(file.name + packed.SUM)
    beside.write_text(sum_line(file.read_bytes(), file.name))
    assert validated(file)["valid"]
    beside.write_text(sum_line(b"another", file.name))
    with pytest.raises(UsageError, match="changed on the way") as caught:
        validated(file)
    assert str(file) in str(caught.value)
    beside.write_text("abc")
    with pytest.raises(UsageError, match="no line of sha256sum"):
        validated(tmp_path)


def test_sums_are_those_of_sha256sum(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    made = subprocess.run(["sha256sum", "file"], cwd=tmp_path, capture_output=True, check=True).stdout
    assert made.decode() == sum_line(b"content", "file")
    binary = made.replace(b"  ", b" *")
    assert check_sum(b"content", made) == check_sum(b"content", binary) == hashlib.sha256(b"content").hexdigest()


def test_the_signature_of_a_packed_run_is_that_of_what_it_holds(tmp_path: Path, raw: bytes) -> None:
    key = tmp_path / "key"
    try:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    except FileNotFoundError:
        pytest.skip("there is no ssh-keygen")
    (tmp_path / "signers").write_text(f"me@here {key.with_suffix('.pub').read_text()}")
    plain = tmp_path / "run.json"
    plain.write_bytes(raw)
    sign(plain, key)
    file = pack(tmp_path, raw)
    plain.unlink()
    assert signer(file, tmp_path / "signers") == "me@here"
    pack(tmp_path, canonical(made_run(8, seed=9)))
    with pytest.raises(UsageError, match="as anybody of"):
        signer(file, tmp_path / "signers")
