"""Prices: points per money and per month, and when there are none."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_reports import candidate, reference_of

from cpubench.errors import UsageError
from cpubench.report.html.prices import load_prices
from cpubench.vendor import report_document

DAY = "2025-12-20"  # the made-up runs are of 2026-01-02


def written(folder: Path, text: str) -> Path:
    file = folder / "prices.toml"
    file.write_text(text)
    return file


def test_points_per_money_are_those_of_the_whole_host(tmp_path: Path) -> None:
    text = f"""date = {DAY}
currency = "eur"
months = 50
[candidate.A]
once = {{ server = 900, memory = 100.0 }}
monthly = {{ power = 30 }}
[candidate.host2]
currency = "USD"
monthly = {{ instance = 40 }}
"""
    a, b = candidate(tmp_path / "a", 1), candidate(tmp_path / "b", 2)
    document = report_document([a, b], reference=reference_of(tmp_path), prices=written(tmp_path, text))
    one, other = document["prices"]["rows"]
    points = 2 * document["candidates"][0]["score"]["headline"]["per_core"]["value"]
    assert (one["once"], one["per_month"], one["days"]) == (1000, 50, 13)
    assert one["points_per_1000"]["value"] == pytest.approx(points)
    assert one["points_per_month"]["value"] == pytest.approx(points / 50)
    assert one["points_per_month"]["low"] < one["points_per_month"]["value"]
    assert (other["once"], other["points_per_1000"], other["per_month"]) == (0, None, 40)
    said = [rule["text"] for rule in document["refusals"] if rule["id"] == "R13"]
    assert said == ["prices in EUR, USD: not compared with each other"]


def test_an_old_price_makes_no_figure_unless_it_is_asked_for(tmp_path: Path) -> None:
    run, reference = candidate(tmp_path / "a", 1), reference_of(tmp_path)
    prices = written(tmp_path, 'date = 2025-10-01\ncurrency = "EUR"\n[candidate.a]\nonce = { server = 500 }\n')
    document = report_document([run], reference=reference, prices=prices)
    (row,) = document["prices"]["rows"]
    assert row["points_per_1000"] is None
    assert row["reason"] == "R13: the price is 93 days older than the newest run"
    allowed = report_document([run], reference=reference, prices=prices, allow=["R13"])
    assert allowed["prices"]["rows"][0]["points_per_1000"]["value"] > 0
    assert {"id": "R13", "kind": "allowed", "text": "the price is 93 days older than the newest run", "who": ["A"]} in (
        allowed["refusals"]
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "names no candidate"),
        ("x = [", "is not TOML"),
        ("[candidate.a]\nonce = { s = 1 }", "needs the date"),
        (f"date = {DAY}\n[candidate.a]\nonce = {{ s = 1 }}", "needs a currency"),
        (f'date = {DAY}\ncurrency = "EUR"\n[candidate.a]', "neither once nor monthly"),
        (f'date = {DAY}\ncurrency = "EUR"\n[candidate.a]\nonce = {{ s = -1 }}', "the amount of s"),
        (f'date = {DAY}\ncurrency = "EUR"\n[candidate.a]\nonce = {{ s = nan }}', "the amount of s"),
        (f'date = {DAY}\ncurrency = "EUR"\n[candidate.a]\nonce = {{ s = true }}', "the amount of s"),
        (f'date = {DAY}\ncurrency = "EUR"\nmonths = 0\n[candidate.a]\nonce = {{ s = 1 }}', "months"),
        (f'date = {DAY}\ncurrency = "EUR"\nprice = 1\n[candidate.a]\nonce = {{ s = 1 }}', "unknown key price"),
        (f'date = {DAY}\ncurrency = "<b>"\n[candidate.a]\nonce = {{ s = 1 }}', "needs a currency"),
    ],
)
def test_a_bad_file_is_one_line_with_its_name(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(UsageError, match=r"prices\.toml") as caught:
        load_prices(written(tmp_path, text))
    assert told in str(caught.value)


def test_a_price_of_nobody_is_an_error(tmp_path: Path) -> None:
    prices = written(tmp_path, f'date = {DAY}\ncurrency = "EUR"\n[candidate.Z]\nonce = {{ s = 1 }}')
    with pytest.raises(UsageError, match="no candidate has this label, host or folder: Z"):
        report_document([candidate(tmp_path / "a", 1)], reference=reference_of(tmp_path), prices=prices)
