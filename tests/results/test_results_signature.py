"""Signatures of real keys: who signed is named, and whatever else there is refused in one line."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cpubench.errors import UsageError
from cpubench.results import signature
from cpubench.results.signature import check_key, sign, signer

pytestmark = pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="no ssh-keygen")


@pytest.fixture(autouse=True)
def agentless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


def made_key(folder: Path, name: str, passphrase: str = "") -> Path:
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "", "-f", str(folder / name)]
    subprocess.run(command, check=True)
    return folder / name


def allowed(folder: Path, *rows: tuple[str, Path], options: str = "") -> Path:
    """A file of allowed signers."""
    public = {key: key.with_name(f"{key.name}.pub").read_text().strip() for _, key in rows}
    file = folder / "signers"
    file.write_text("".join(f"{name} {options}{public[key]}\n" for name, key in rows))
    return file


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return made_key(tmp_path, "key")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "run.json"
    made.write_bytes(b'{"a": 1}')
    return made


def refusal(call: Callable[[], object]) -> UsageError:
    with pytest.raises(UsageError) as caught:
        call()
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400
    return caught.value


def test_who_signed_is_named(tmp_path: Path, key: Path, file: Path) -> None:
    other = made_key(tmp_path, "other")
    check_key(key)
    assert not file.with_name("run.json.sig").exists()
    sign(file, key)
    assert signer(file, allowed(tmp_path, ("o@x", other), ("lab@vendor.example", key))) == "lab@vendor.example"
    sign(file, other)  # anew, without asking
    assert signer(file, allowed(tmp_path, ("o@x", other))) == "o@x"


def test_a_changed_file_an_unknown_signer_and_no_signature_are_refused(tmp_path: Path, key: Path, file: Path) -> None:
    signers = allowed(tmp_path, ("lab@vendor.example", key))
    assert refusal(lambda: signer(file, signers)).code == "unsigned"
    sign(file, key)
    file.write_bytes(b'{"a": 2}')
    fault = refusal(lambda: signer(file, signers))
    assert (fault.code, "incorrect signature" in fault.text) == ("signature", True)
    sign(file, key)
    stranger = allowed(tmp_path, ("o@x", made_key(tmp_path, "other")))
    assert "No principal matched" in refusal(lambda: signer(file, stranger)).text
    for broken in (b"", b"\x1b[2J\xff" * 99, b"-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n"):
        file.with_name("run.json.sig").write_bytes(broken)
        assert refusal(lambda: signer(file, signers)).code == "signature"
    file.with_name("run.json.sig").write_bytes(b"x" * (1 << 17))
    assert refusal(lambda: signer(file, signers)).code == "too_large"
    assert refusal(lambda: signer(file, tmp_path / "none")).code == "missing"


def test_a_signature_for_another_purpose_is_none(tmp_path: Path, key: Path, file: Path) -> None:
    command = ["ssh-keygen", "-q", "-Y", "sign", "-n", "git", "-f", str(key), str(file)]
    subprocess.run(command, check=True, capture_output=True)
    assert refusal(lambda: signer(file, allowed(tmp_path, ("lab@x", key)))).code == "signature"
    sign(file, key)
    assert (
        refusal(lambda: signer(file, allowed(tmp_path, ("lab@x", key), options='namespaces="git" '))).code
        == "signature"
    )
    assert signer(file, allowed(tmp_path, ("lab@x", key), options='namespaces="cpubench" ')) == "lab@x"


def test_a_key_that_would_ask_is_refused_before(tmp_path: Path) -> None:
    fault = refusal(lambda: check_key(made_key(tmp_path, "locked", "secret")))
    assert fault.code == "key"
    assert "needs a passphrase" in fault.text
    assert "ssh-agent" in fault.text


def test_what_is_no_key_is_refused(tmp_path: Path, key: Path, file: Path) -> None:
    assert refusal(lambda: check_key(tmp_path / "none")).text == "there is no such key"
    assert refusal(lambda: check_key(file)).code == "key"
    assert refusal(lambda: check_key(tmp_path)).code == "key"
    key.chmod(0o644)
    assert "Permissions 0644" in refusal(lambda: check_key(key)).text


def test_a_host_without_ssh_keygen_says_so(tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert refusal(lambda: check_key(file)).code == "ssh_keygen"


def test_an_ssh_keygen_that_hangs_or_lies_is_no_signature(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "ssh-keygen"
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(signature, "ASK_S", 0.2)
    program.write_text("#!/bin/sh\nexec sleep 30\n")
    program.chmod(0o755)
    assert "did not answer" in refusal(lambda: check_key(file)).text
    program.write_text("#!/bin/sh\ncat >/dev/null\n")
    monkeypatch.setattr(signature, "ASK_S", 60.0)
    assert refusal(lambda: check_key(file)).code == "key"  # it says nothing
    program.write_text("#!/bin/sh\ncat >/dev/null; [ $2 = sign ] && echo made; [ $2 = sign ]\n")
    assert "do not verify" in refusal(lambda: check_key(file)).text
