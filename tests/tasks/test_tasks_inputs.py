"""Inputs are the same bytes everywhere, the wheels unpack with anybody's zip, and tampered ones are refused."""

import ast
import random
import subprocess
import sys
import zipfile
import zlib

import pytest

from cpubench.errors import UsageError
from cpubench.tasks import archive, inputs


def test_the_generated_bytes_are_the_pinned_ones(generated):
    made = inputs.manifest(generated)
    assert sum(name.startswith("repo/") for name in made) == inputs.FILES
    assert sum(name.startswith("wheels/") for name in made) == inputs.WHEELS
    # generate() has compared the manifest's hash with the pin; a changed byte changes it
    (generated / "repo" / "extra").write_text("x")
    changed = inputs.manifest_hash(generated)
    (generated / "repo" / "extra").unlink()
    assert changed != inputs.manifest_hash(generated)


def test_other_inputs_than_the_pinned_ones_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "contents", lambda: [("a", b"b")])
    with pytest.raises(UsageError, match="not those of this suite"):
        inputs.generate(tmp_path)


@pytest.mark.parametrize("seed", range(12))
def test_what_was_packed_unpacks(seed):
    rng = random.Random(seed)
    words = [bytes(rng.choices(b"abcdefgh\n\xff", k=rng.randrange(1, 40))) for _ in range(20)]
    data = b"".join(rng.choices(words, k=rng.randrange(0, 4000))) + b"z" * rng.randrange(0, 1000)
    assert zlib.decompress(archive.deflated(data), wbits=-15) == data


def test_text_is_packed_to_less_than_half():
    data = b"".join(b"account_%d: the balance of a ledger\n" % n for n in range(2000))
    assert len(archive.deflated(data)) < len(data) / 2


def test_the_wheels_hold_and_their_modules_parse(generated):
    for path in sorted((generated / "wheels").iterdir())[:2]:
        with zipfile.ZipFile(path) as wheel:
            assert wheel.testzip() is None
            for name in wheel.namelist():
                if name.endswith(".py"):
                    ast.parse(wheel.read(name))


def test_sizes_of_files_are_those_of_real_projects(generated):
    sizes = sorted(path.stat().st_size for path in (generated / "repo" / "docs").rglob("*") if path.is_file())
    assert 4000 < sizes[len(sizes) // 2] < 8000
    assert 20_000 < sizes[len(sizes) * 9 // 10] < 45_000


@pytest.mark.parametrize(("name", "broken"), [("context", "-nothing like it\n"), ("count", "-\n-\n-\n")])
def test_a_patch_that_does_not_fit_is_refused(tmp_path, name, broken):
    (tmp_path / "a").write_text("one\ntwo\nthree\n")
    (tmp_path / "p").write_text(f"--- a/a\n+++ b/a\n@@ -1,1 +1,1 @@\n{broken}+uno\n")
    tool = str(inputs.TOOLS / "edit.py")
    done = subprocess.run([sys.executable, tool, "patch", str(tmp_path), str(tmp_path / "p")], capture_output=True)
    assert done.returncode == 1
    assert (tmp_path / "a").read_text() == "one\ntwo\nthree\n"
    (tmp_path / "p").write_text("--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three\n")
    assert not subprocess.run([sys.executable, tool, "patch", str(tmp_path), str(tmp_path / "p")]).returncode
    assert (tmp_path / "a").read_text() == "one\nzwei\nthree\n"
