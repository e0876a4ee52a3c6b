"""What the states of a cap level allow to be said."""

BASE_CAP = "as-is"  # the level without a cap
CLAIMED = ("verified", "verified(external)", "as_found")  # states that support a claim of efficiency
# Under these a host was shown to draw no more than its cap; of one that is not binding it draws less by itself.
HELD = (*CLAIMED, "not_binding")
