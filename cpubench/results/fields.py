"""The types that the records of a run folder are made of."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

Copies = Literal["1", "cores", "cpus"]
Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(gt=0)]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$(?!\n)")]
# Our own words, which other tools print as they are (pytest-benchmark compare): no control character, no other script.
Name = Annotated[str, Meta(pattern="^[ -~]{0,120}$(?!\n)")]
