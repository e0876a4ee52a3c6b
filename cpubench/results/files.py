"""Writing files so that a kill leaves the old one or the new one, and sealing them with a hash of their content.

Standard library only: the block process imports this, and nothing heavier.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any


def canonical(document: Any) -> bytes:
    """The bytes that a hash is taken over: sorted keys, no white space, UTF-8, NaN and infinity refused."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def content_hash(document: dict[str, Any]) -> str:
    """SHA-256, in hex, of a document without its own ``sha256``."""
    return hashlib.sha256(canonical({k: v for k, v in document.items() if k != "sha256"})).hexdigest()


def sealed(document: dict[str, Any]) -> dict[str, Any]:
    """The document with ``sha256`` set to the hash of the rest of it."""
    return {**document, "sha256": content_hash(document)}


def write_atomic(path: Path, data: bytes) -> None:
    """Write through a temporary name in the folder, synced, then renamed; raises OSError and leaves no half file."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
