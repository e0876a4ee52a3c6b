"""Prices: points per money and per month, and when there are none."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_reports import candidate, reference_of

from cpubench.errors import UsageError
from cpubench.report.html.blocks import Table, plain
from cpubench.report.html.evidence import price
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
[candidate.A]
months = 50
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
    assert (one["once"], one["total"], one["per_month"], one["days"]) == (1000, 2500, 50, 13)
    assert one["points_per_1000"]["value"] == pytest.approx(points / 2.5)
    assert one["points_per_month"]["value"] == pytest.approx(points / 50)
    assert one["points_per_month"]["low"] < one["points_per_month"]["value"]
    assert (other["once"], other["points_per_1000"], other["per_month"]) == (0, None, 40)
    assert other["reason"] == "no months, over which it is used, are given: what is monthly has no sum"
    table = price(document).blocks[1]
    assert isinstance(table, Table)
    cells = [[plain(cell) for cell in row] for row in table.rows]
    assert cells[0][4].endswith(" per 1,000 EUR")
    assert (cells[1][4], cells[1][6].endswith(" per USD a month")) == ("-", True)
    said = [rule["text"] for rule in document["refusals"] if rule["id"] == "R13"]
    assert said == ["prices in EUR, USD: not compared with each other"]


def test_what_is_cheap_to_buy_and_dear_to_keep_is_not_cheap(tmp_path: Path) -> None:
    text = f"""date = {DAY}
currency = "EUR"
months = 48
[candidate.A]
once = {{ server = 9000 }}
[candidate.B]
once = {{ setup = 100 }}
monthly = {{ rent = 400 }}
"""
    runs = [candidate(tmp_path / name, at, noise=0.001) for at, name in enumerate("ab")]
    document = report_document(runs, reference=reference_of(tmp_path), prices=written(tmp_path, text))
    a, b = (row["points_per_1000"]["value"] for row in document["prices"]["rows"])
    assert a / b == pytest.approx(19300 / 9000, rel=0.01)
    assert [row["reason"] for row in document["prices"]["rows"]] == [None, None]


def test_a_name_of_two_candidates_and_two_prices_of_one_are_refused(tmp_path: Path) -> None:
    reference, head = reference_of(tmp_path), f'date = {DAY}\ncurrency = "EUR"\n'
    runs = [candidate(tmp_path / "B", 1), candidate(tmp_path / "x", 2)]  # the folder B is A
    twice = [candidate(tmp_path / "one", 3), candidate(tmp_path / "two", 4, host={"hostname": "host3"})]
    for paths, names, told in (
        (runs, ("B",), "candidate B may be A or B"),
        (twice, ("host3",), "candidate host3 may be A or B"),
        (runs, ("A", "host1"), "candidate A has two prices: A and host1"),
    ):
        text = head + "".join(f"[candidate.{name}]\nonce = {{ s = 1 }}\n" for name in names)
        with pytest.raises(UsageError, match=told):
            report_document(paths, reference=reference, prices=written(tmp_path, text))


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
