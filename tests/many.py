"""How many examples a property is tried with: few and always the same, or as many as `nox -s fuzz` asks for."""

import os

from hypothesis import HealthCheck, Phase, settings

EXAMPLES = int(os.environ.get("CPUBENCH_EXAMPLES", "0"))
PHASES = [Phase.explicit, Phase.generate]  # shrinking a document may take five minutes; the seed is printed
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]


def many(usual: int) -> settings:
    """Settings of a test that tries ``usual`` examples, or EXAMPLES of them."""
    return settings(max_examples=EXAMPLES or usual, derandomize=not EXAMPLES, deadline=None, database=None,
                    suppress_health_check=SLOW, print_blob=True, phases=PHASES)  # fmt: skip
