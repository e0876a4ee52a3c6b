"""What the states of a cap level allow to be said."""

from collections.abc import Mapping
from typing import Any

BASE_CAP = "as-is"  # the level without a cap
CLAIMED = ("verified", "verified(external)", "as_found")  # states that support a claim of efficiency
# Under these a host was shown to draw no more than its cap; of one that is not binding it draws less by itself.
HELD = (*CLAIMED, "not_binding")


def under_cap(document: Mapping[str, Any]) -> bool:
    """Whether the tasks of a document were done under a cap; of one that says nothing of caps there was none."""
    return bool(document.get("cap")) and document["cap"]["level"] != BASE_CAP
