"""What candidates cost, from a TOML file: points per money and per month; an old price makes none."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from cpubench.errors import UsageError
from cpubench.results.parse import located, shown
from cpubench.results.toml import read_toml

Json = dict[str, Any]
MAX_DAYS = 90  # between a price and the newest run
MOST = 1e12  # of any currency: above is a slip
EXAMPLE = 'date = 2026-11-30, currency = "EUR", [candidate."HOST"] with once = { "server" = 9000 } or monthly = { .. }'


def load_prices(path: Path) -> Json:
    """``{"candidates": {name: {"date", "currency", "months", "once": {item: amount}, "monthly": {..}}}}``."""
    try:
        table = read_toml(path, "prices")
        named = table.pop("candidate", None)
        if not isinstance(named, dict) or not named:
            raise UsageError("prices", f"names no candidate; a file has {EXAMPLE}")
        return {"candidates": {name: _candidate(name, table, own) for name, own in named.items()}}
    except UsageError as fault:
        raise located(path, fault) from None


def _candidate(name: str, common: Mapping[str, Any], own: Any) -> Json:
    where = f"candidate {shown(name, 60)}"
    if not isinstance(own, dict):
        raise UsageError("prices", "is no table", where)
    table = {**common, **own}
    day, currency, months = table.get("date"), table.get("currency"), table.get("months")
    if type(day) is not date:
        raise UsageError("prices", "needs the date of its price, such as date = 2026-11-30", where)
    if not isinstance(currency, str) or not currency.isalpha() or not 1 <= len(currency) <= 8:
        raise UsageError("prices", 'needs a currency, such as currency = "EUR"', where)
    if months is not None and (type(months) not in (int, float) or not 0 < months <= 600):
        raise UsageError("prices", "months, over which it is used, are more than 0 and at most 600", where)
    items = {kind: _items(table.get(kind, {}), kind, where) for kind in ("once", "monthly")}
    if not any(items.values()):
        raise UsageError("prices", "has neither once nor monthly items", where)
    unknown = set(table) - {"date", "currency", "months", "once", "monthly"}
    if unknown:
        raise UsageError("prices", f"has the unknown key {shown(min(unknown), 40)}", where)
    return {"date": day.isoformat(), "currency": currency.upper(), "months": months, **items}


def _items(given: Any, kind: str, where: str) -> dict[str, float]:
    if not isinstance(given, dict):
        raise UsageError("prices", f"{kind} is a table of items and amounts", where)
    for item, amount in given.items():
        if type(amount) not in (int, float) or not 0 <= amount <= MOST:
            raise UsageError("prices", f"{kind}: the amount of {shown(item, 60)} is from 0 to {MOST:g}", where)
    return {shown(item, 100): float(amount) for item, amount in given.items()}


def priced(candidates: Sequence[Json], prices: Mapping[str, Json], newest_utc: str, old_too: bool) -> list[Json]:
    """A row per candidate: its cost in all and a month, and points of the whole host per 1,000 and per unit of these.

    A candidate is looked up by its label, host or folder; UsageError where a name is of none or of several, or two
    are of one. ``old_too``: prices of more than 90 days count.
    """
    own = [{one["label"], one["name"], *one["folders"], *(run["facts"]["host"] for run in one["runs"])}
           for one in candidates]  # fmt: skip
    found: dict[int, str] = {}
    for name in prices:
        told, who = shown(name, 60), [at for at, names in enumerate(own) if name in names]
        labels = " or ".join(candidates[at]["label"] for at in who[:3])
        if not who:
            raise UsageError("prices", f"no candidate has this label, host or folder: {told}", "--prices")
        if len(who) > 1:
            text = f"candidate {told} may be {labels}: give a label, host or folder that one of them alone has"
            raise UsageError("prices", text, "--prices")
        if who[0] in found:
            text = f"candidate {labels} has two prices: {shown(found[who[0]], 60)} and {told}"
            raise UsageError("prices", text, "--prices")
        found[who[0]] = name
    return [_row(one, prices[found[at]] if at in found else None, newest_utc, old_too)
            for at, one in enumerate(candidates)]  # fmt: skip


def _row(candidate: Json, price: Json | None, newest_utc: str, old_too: bool) -> Json:
    row: Json = {"label": candidate["label"], "price": price, "reason": None, "days": None, "once": None,
                 "total": None, "per_month": None, "points_per_1000": None, "points_per_month": None}  # fmt: skip
    if price is None:
        return row | {"reason": "no price given"}
    once, monthly = math.fsum(price["once"].values()), math.fsum(price["monthly"].values())
    months = price["months"]
    row |= {"once": once, "total": once + monthly * months if months else (once if not monthly else None),
            "per_month": monthly + once / months if months else (monthly if not once else None)}  # fmt: skip
    row["days"] = _days(price["date"], newest_utc)
    if row["days"] is None or (row["days"] > MAX_DAYS and not old_too):
        age = "the date of the runs is unknown" if row["days"] is None else f"the price is {row['days']} days older"
        return row | {"reason": f"R13: {age}{' than the newest run' if row['days'] else ''}"}
    head, cores = candidate["score"]["headline"]["per_core"], candidate["score"]["divisor"]["n"]
    if head["value"] is None:
        return row | {"reason": f"no headline: {head['reason']}"}
    if row["total"]:
        row["points_per_1000"] = _scaled(head, 1000 * cores / row["total"])
    if row["per_month"]:
        row["points_per_month"] = _scaled(head, cores / row["per_month"])
    return row | {"reason": _absent(once, monthly, months)}


def _absent(once: float, monthly: float, months: float | None) -> str | None:
    """Why one of the two figures is missing; None where both are there."""
    if not once and not monthly:
        return "it costs nothing"
    if months:
        return None
    what = ["what is monthly has no sum"] * bool(monthly) + ["what is bought once has no share of a month"] * bool(once)
    return f"no months, over which it is used, are given: {' and '.join(what)}"


def _days(day: str, newest_utc: str) -> int | None:
    try:
        return (date.fromisoformat(newest_utc[:10]) - date.fromisoformat(day)).days
    except ValueError:
        return None


def _scaled(made: Json, factor: float) -> Json:
    return made | {end: None if made[end] is None else made[end] * factor for end in ("value", "low", "high")}
