"""Files of weights: what a person may write, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cpubench.analysis.weights import load_weights
from cpubench.errors import UsageError
from cpubench.results.files import sealed

GOOD = {"schema": "cpubench.weights/1", "name": "mine", "paths": {"M1": 40, "M10": 60.0}}
BAD = {
    "sum": {"paths": {"M1": 40}}, "path": {"paths": {"M1": 40, "M0": 60}}, "negative": {"paths": {"M1": -1, "M2": 101}},
    "nothing": {"paths": {}}, "text": {"paths": {"M1": "100"}}, "tasks": {"tasks": {"T9": 100}},
    "name": {"name": "a\nb"},
    "shipped": {"name": "coding"}, "schema": {"schema": "cpubench.weights/2"}, "hash": {"sha256": "0" * 64},
}  # fmt: skip


def test_weights_by_hand(tmp_path: Path) -> None:
    file = tmp_path / "w.json"
    file.write_text(json.dumps(GOOD | {"tasks": {"T1": 100}}))
    scenario = load_weights(file)
    assert (scenario.families, scenario.uncovered) == ({"spawn": 40.0}, {"interpreter": 60.0})
    assert scenario.tasks == {"T1": 100.0}
    file.write_text(json.dumps(sealed(GOOD)))
    assert load_weights(file).paths == {"M1": 40.0, "M10": 60.0}


@pytest.mark.parametrize("name", BAD)
def test_bad_weights_are_refused(tmp_path: Path, name: str) -> None:
    file = tmp_path / "w.json"
    file.write_text(json.dumps(GOOD | BAD[name]))
    with pytest.raises(UsageError, match=r"w\.json"):
        load_weights(file)
