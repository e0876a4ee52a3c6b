"""Runs are signed when they end, however they end; a key that cannot sign ends them before they begin."""

import shutil
import subprocess
from pathlib import Path

import pytest
from stand_ins import cpubench

pytestmark = pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="no ssh-keygen")
RUN = ["run", "--profile", "quick", "--families", "file", "--seed", "7", "--out", "r"]


@pytest.fixture
def key(tmp_path, monkeypatch):
    """A key; beside it the file ``signers`` that allows it."""
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "key")], check=True)
    (tmp_path / "signers").write_text(f"lab@vendor.example {(tmp_path / 'key.pub').read_text()}")
    return tmp_path / "key"


def test_a_run_is_signed_and_its_signer_named(capsys, children, key):
    assert cpubench(capsys, *RUN, "--sign", key)[0] == 0
    code, out, _ = cpubench(capsys, "validate", "r", "--signers", "signers")
    assert (code, out.splitlines()[0]) == (0, out.splitlines()[0])
    assert "signed by lab@vendor.example" in out
    assert "signature: give --signers" in cpubench(capsys, "validate", "r")[1]
    text = Path("r/run.json").read_text()
    Path("r/run.json").write_text(text + " ")
    assert cpubench(capsys, "validate", "r")[0] == 0  # the same content
    code, _, err = cpubench(capsys, "validate", "r", "--signers", "signers")
    assert (code, "is not as anybody of signers signed it" in err[-1]) == (2, True)
    Path("r/run.json.sig").unlink()
    code, _, err = cpubench(capsys, "validate", "r", "--signers", "signers")
    assert (code, "is not signed: there is no run.json.sig beside it" in err[-1]) == (2, True)


def test_an_interrupted_run_is_signed_and_signed_again_when_it_is_finished(capsys, children, key):
    children.ends[5] = KeyboardInterrupt()
    assert cpubench(capsys, *RUN, "--sign", key)[0] == 130
    assert cpubench(capsys, "validate", "r", "--signers", "signers")[0] == 0
    children.ends.clear()
    code, _, err = cpubench(capsys, "run", "--resume", "r")
    assert code == 0
    assert any("its signature removed: --sign makes another" in line for line in err)
    assert not Path("r/run.json.sig").exists()
    assert cpubench(capsys, "run", "--resume", "r", "--sign", key)[0] == 0
    assert cpubench(capsys, "validate", "r", "--signers", "signers")[0] == 0


def test_both_sides_are_signed(capsys, children, key):
    cpubench(capsys, *RUN, "--ab-set", "A=1", "--budget", "1h", "--sign", key)
    code, out, err = cpubench(capsys, "validate", "r", "--signers", "signers")
    assert (code, out.count("signed by lab@vendor.example")) == (0, 2), err
    Path("r/b/run.json.sig").unlink()
    assert cpubench(capsys, "validate", "r", "--signers", "signers")[0] == 2


@pytest.mark.parametrize("way", ["no key", "no program"])
def test_what_cannot_sign_ends_a_run_before_it_begins(capsys, children, key, monkeypatch, tmp_path, way):
    if way == "no program":
        monkeypatch.setenv("PATH", str(tmp_path))
    code, _, err = cpubench(capsys, *RUN, "--sign", "none" if way == "no key" else key)
    assert (code, len(err)) == (2, 1)
    assert ("no such key" if way == "no key" else "need ssh-keygen") in err[0]
    assert children.started == []
    assert not Path("r").exists()


def test_a_key_that_is_gone_at_the_end_leaves_the_run(capsys, children, key, monkeypatch):
    measured = type(children).__call__

    def vanishing(self, *arguments):
        key.unlink(missing_ok=True)
        return measured(self, *arguments)

    monkeypatch.setattr(type(children), "__call__", vanishing)
    code, _, err = cpubench(capsys, *RUN, "--sign", key)
    assert (code, "no such key; the run is kept in" in err[-1]) == (2, True)
    assert len(list(Path("r").glob("block-*.json"))) == 12
