"""Signatures of run files by ``ssh-keygen`` (PROTOCOL.sshsig): who measured says so, and anybody can check it.

Only ``run.json`` is signed, which holds all that was measured; ``validate`` holds the other files of a folder to it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from cpubench.errors import UsageError
from cpubench.results.files import write_atomic
from cpubench.results.parse import located, read, shown
from cpubench.results.temporary import temporary

NAMESPACE = "cpubench"  # a signature made for another purpose is none here
MOST_BYTES = 1 << 16  # one of an RSA key of 16384 bits is 6 kB
ASK_S = 60.0  # an agent may ask a person, or a token for a touch


def signature_of(file: Path) -> Path:
    """Where the signature of a file is; of a packed one, that of what it holds."""
    return file.with_name(f"{file.name.removesuffix('.gz')}.sig")


def check_key(key: Path) -> None:
    """None if the key signs without asking for anything: to be known before anything is measured."""
    _signature(b"probe", key)


def sign(file: Path, key: Path) -> None:
    """Writes the signature of a file beside it."""
    made = _signature(read(file), key)
    try:
        write_atomic(signature_of(file), made)
    except OSError as error:
        raise UsageError("write", f"cannot be written: {error.strerror}", str(signature_of(file))) from None


def signer(file: Path, signers: Path) -> str:
    """The name, in a file of allowed signers (ssh-keygen(1)), of who signed ``file``.

    UsageError where nobody of them did, or where the file was changed since.
    """
    _read(signers)
    data, signature = _read(file), signature_of(file)
    if not signature.exists():
        raise located(file, UsageError("unsigned", f"is not signed: there is no {shown(signature.name, 60)} beside it"))
    made = _read(signature, MOST_BYTES)
    with temporary() as folder:
        copy = folder / "signature"  # of the bytes that were read, whatever becomes of the file
        copy.write_bytes(made)
        found = _ask(["find-principals", "-s", str(copy), "-f", str(signers)], b"")
        for name in filter(None, found.stdout.decode(errors="replace").splitlines()):
            asked = ["verify", "-n", NAMESPACE, "-s", str(copy), "-f", str(signers), "-I", name]
            verified = _ask(asked, data)
            if verified.returncode == 0:
                return name
            found = verified
    text = f"is not as anybody of {shown(str(signers), 80)} signed it: {_reason(found)}"
    raise located(file, UsageError("signature", text))


def _signature(data: bytes, key: Path) -> bytes:
    if not key.exists():
        raise UsageError("key", "there is no such key", str(key))
    done = _ask(["sign", "-n", NAMESPACE, "-f", str(key)], data)
    if done.returncode or not done.stdout:
        why = _reason(done)
        if "passphrase" in why:
            why = "it needs a passphrase, and nobody is asked while measuring: add it to ssh-agent, and give this again"
        raise UsageError("key", f"cannot sign: {why}", str(key))
    with temporary() as folder:
        copy = folder / "signature"
        copy.write_bytes(done.stdout)
        checked = _ask(["check-novalidate", "-n", NAMESPACE, "-s", str(copy)], data)
    if checked.returncode:
        raise UsageError("key", f"makes signatures that do not verify: {_reason(checked)}", str(key))
    return done.stdout


def _ask(arguments: list[str], data: bytes) -> subprocess.CompletedProcess[bytes]:
    """What ``ssh-keygen -Y`` says: without a terminal, so that it can ask nobody but an agent."""
    program = shutil.which("ssh-keygen")
    if program is None:
        raise UsageError("ssh_keygen", "signatures need ssh-keygen, which is not there: install the OpenSSH client")
    environment = {**os.environ, "LC_ALL": "C", "SSH_ASKPASS_REQUIRE": "never"}
    try:
        return subprocess.run([program, "-Y", *arguments], input=data, capture_output=True, check=False, timeout=ASK_S,
                              env=environment, start_new_session=True)  # fmt: skip
    except subprocess.TimeoutExpired:
        raise UsageError("ssh_keygen", f"ssh-keygen did not answer in {ASK_S:g} s") from None
    except OSError as error:
        raise UsageError("ssh_keygen", f"ssh-keygen cannot be started: {error.strerror}") from None


def _reason(done: subprocess.CompletedProcess[bytes]) -> str:
    """Its complaint on one line, without frames and what it says of work well done."""
    lines = done.stderr.decode(errors="replace").splitlines()
    told = [line.strip() for line in lines if line.strip() and not line.startswith(("@", "Signing data"))]
    return shown("; ".join(told[:2]), 160) or f"ssh-keygen ended with {done.returncode}"


def _read(file: Path, most: int | None = None) -> bytes:
    try:
        return read(file) if most is None else read(file, most)
    except UsageError as fault:
        raise located(file, fault) from None
