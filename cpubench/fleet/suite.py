"""What a plan measures, as a hash: results of other work never count for it. The hosts compute it too."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from cpubench import SUITE_VERSION
from cpubench.fleet.layout import HASH_DIGITS
from cpubench.results.files import canonical


def kernels() -> dict[str, int]:
    """The version of each kernel of this build; ImportError where it has no extension."""
    from cpubench import _native

    return {kernel["name"]: kernel["version"] for kernel in _native.kernels(hidden=True)}


def suite_hash(versions: dict[str, int], arguments: Sequence[str]) -> str:
    """12 hex digits of the suite, its kernels' versions and the arguments of ``cpubench run``, without cap and seed."""
    told = {"suite": SUITE_VERSION, "kernels": versions, "arguments": list(arguments)}
    return hashlib.sha256(canonical(told)).hexdigest()[:HASH_DIGITS]
