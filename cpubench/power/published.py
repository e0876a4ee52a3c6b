"""The log of a meter as a file may hold it."""

from __future__ import annotations

from typing import Any

MOST = 2**63  # other readers of JSON take no larger integers; sentinels of drivers are


def public_name(name: str) -> str:
    """A meter's name as it may be published: commands and URLs may hold passwords."""
    kind = name.partition(":")[0]
    return kind if kind in ("cmd", "redfish") else name[:120]


def public_log(log: dict[str, Any]) -> dict[str, Any]:
    """A dumped log without what may hold a password, and with large integers as floats."""
    rows = [[at, [float(v) if isinstance(v, int) and abs(v) >= MOST else v for v in raw], errors]
            for at, raw, errors in log["readings"]]  # fmt: skip
    secret = public_name(log["meter"]) in ("cmd", "redfish")
    channels = [{**one, "path": "" if secret else one["path"]} for one in log["channels"]]
    return {**log, "meter": public_name(log["meter"]), "channels": channels, "readings": rows}
