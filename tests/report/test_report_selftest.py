"""The page of a self-test, at 80 columns, with every part missing once."""

from __future__ import annotations

import io
from typing import Any

from cpubench.report.selftest import show_selftest


def document(**parts: Any) -> dict[str, Any]:
    measured = {"value": 2.03, "low": 1.9, "high": 2.16, "passes": 40, "reason": None}
    lost = {"value": None, "low": None, "high": None, "passes": 3, "reason": "in 3 of 40 passes, 8 are needed"}
    twins = [(0.0, measured | {"value": 0.01, "low": -0.2, "high": 0.2}, False), (2.0, measured, True)]
    rows = [{"true_percent": t, "measured": m, "found": f, "covered": True} for t, m, f in [*twins, (5.0, lost, False)]]
    quota = {"ratio": measured | {"value": 0.501, "low": 0.49, "high": 0.51}, "flagged": True, "free_flagged": False}
    quota["free_contended"] = False
    contended = {"flagged": True, "alone_flagged": False, "slower_percent": 101.2, "others_percent": 49.9,
                 "alone_others_percent": 0.4, "reason": None}  # fmt: skip
    return {
        "floor_percent": 0.2, "floor_reason": None, "band_percent": 1.0, "twins": rows, "quota": quota,
        "contended": contended, "sentence": "this host can separate differences of 1.3 % in 1.0 minutes", **parts,
    }  # fmt: skip


def page(**parts: Any) -> str:
    out = io.StringIO()
    show_selftest(document(**parts), out)
    assert max(map(len, out.getvalue().splitlines())) <= 80
    return out.getvalue()


def test_the_page_says_what_was_true_what_was_measured_and_what_was_found() -> None:
    lines = page().splitlines()
    two = next(line for line in lines if "+2 %" in line)
    assert all(text in two for text in ("+2.03 %", "+1.90 .. +2.16", "40", " found"))
    assert "not found" in next(line for line in lines if line.startswith("one kernel, two labels"))
    text = " ".join(" ".join(lines).split())
    assert "+5 % in 3 of 40 passes, 8 are needed" in text
    assert "half of the CPU time gave 0.501 (0.490 .. 0.510) of the rate; flagged in every window" in text
    assert "beside a busy process +101 % time, others had 50 % of a CPU: flagged; alone not flagged (0.4 %)" in text
    assert lines[-1] == "this host can separate differences of 1.3 % in 1.0 minutes"


def test_parts_that_could_not_be_had_give_their_reason_and_foreign_text_is_harmless() -> None:
    nothing = {"value": None, "low": None, "high": None, "passes": 0, "reason": "x"}
    quota = {"ratio": nothing, "flagged": False, "free_flagged": None, "reason": "/sys/\x1b[31m: Read-only"}
    contended = {"slower_percent": None, "reason": "busy: ended"}
    text = page(quota=quota, contended=contended, floor_percent=None)
    assert "\x1b" not in text
    assert "not tested: /sys/" in text
    assert "not tested: busy: ended" in text
    assert "A/A floor" in text
    assert "unknown" in text


def test_what_was_not_noticed_is_loud() -> None:
    quota = document()["quota"] | {"flagged": False, "free_flagged": True, "free_contended": True}
    contended = document()["contended"] | {"flagged": False, "alone_flagged": True}
    text = " ".join(page(quota=quota, contended=contended).split())
    assert "NOT flagged in every window; without it flagged too; others were busy meanwhile" in text
    assert ": NOT flagged; alone flagged (0.4 %)" in text
