"""The sections on scaling, memory, the quality of runs, prices, the method, and where all of it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cpubench.report.html.blocks import Block, Section, Table, Text
from cpubench.report.html.facts import in_virtual_machine
from cpubench.report.html.figures.curves import efficiency, ladder, threads
from cpubench.report.html.figures.fleet import fleet
from cpubench.report.html.figures.matrix import matrices
from cpubench.report.html.figures.scores import drift, passes
from cpubench.report.html.words import interval
from cpubench.report.terminal import points

Json = Mapping[str, Any]


def scaling(doc: Json) -> Section:
    every = doc["candidates"]
    note = (
        "Copies run on one core and on all cores; nothing between is measured, and nothing beyond is projected (R11)."
    )
    return Section("scaling", "Scaling", [Text([note]), efficiency(every), threads(every)])


def memory(doc: Json) -> Section:
    every = doc["candidates"]
    blocks: list[Block] = [ladder(every), ladder(every, "base")]
    if any(in_virtual_machine(one) for one in every):
        note = "In a virtual machine the place of a CPU is the hypervisor's: no claim on the cores of the machine (R6)."
        blocks.append(Text([note]))
    return Section("memory", "Memory and caches", [*blocks, *matrices(every)])


def quality(doc: Json) -> Section:
    """What disturbed the runs, and how each of them went; failed tests and notes, none dropped."""
    rows, disturbed = [], []
    for one in doc["candidates"]:
        for run in one["runs"]:
            width = run["half_width_ppm"]
            floor = run["floor_percent"]
            rows.append([one["label"], run["folder"], run["created_utc"], run["profile"], str(run["passes"]),
                         run["stopped"], "-" if width is None else f"±{width / 1e4:.3g} %",
                         "unknown" if floor is None else f"{floor:.2g} %",
                         "yes" if run["publishable"] else "no"])  # fmt: skip
            disturbed.append([one["label"], run["folder"], *_noise(run["noise"])])
    blocks: list[Block] = [] if doc["fleet"] else [passes(doc["candidates"]), drift(doc["candidates"])]
    if not doc["fleet"]:
        strip = fleet(doc["candidates"])
        blocks += [strip] if strip.svg else []
    heads = ["candidate", "run", "started", "profile", ">passes", "stopped by", ">widest interval", ">A/A floor",
             "publishable"]  # fmt: skip
    blocks.append(Table("runs", "Runs, in the order given", heads, rows))
    heads = ["candidate", "run", "blocks flagged", "samples flagged", "busiest others", "not told"]
    blocks.append(Table("disturbance", "What else the hosts did meanwhile", heads, disturbed))
    notes = [[one["label"], note["code"], note["text"], note["where"]]
             for one in doc["candidates"] for note in one["score"]["notes"]]  # fmt: skip
    if notes:
        blocks.append(Table("notes", "Notes on the scores", ["candidate", "note", "text", "where"], notes))
    return Section("quality", "Quality of the runs", blocks)


def _noise(made: Json) -> list[str]:
    blocks, samples = made["blocks"], made["samples"]
    told = f"{blocks['flagged']} of {blocks['count']}{_kinds(blocks['flags'])}" if made["looked"] else "nobody looked"
    again = f", {blocks['set_aside']} measured again" if blocks["set_aside"] else ""
    busy = ", ".join(f"{one['name']} {100 * one['share']:.2g} %" for one in made["busiest"]) or "-"
    flags = ", ".join(f"{code} {count}" for code, count in samples["flags"].items()) or "none"
    return [told + again, f"{flags} (of {samples['count']})", busy, ", ".join(made["doubts"]) or "-"]


def _kinds(flags: Json) -> str:
    named = ", ".join(f"{code} {count}" for code, count in flags.items())
    return f" ({named})" if named else ""


def price(doc: Json) -> Section:
    if doc["prices"] is None:
        return Section(
            "price", "Price", [Text(["No price given: `--prices FILE` adds points per money and per month."])]
        )
    rows, items = [], []
    for row in doc["prices"]["rows"]:
        made, month = row["points_per_1000"], row["points_per_month"]
        cost = row["price"] or {"date": "-", "currency": "", "months": None, "once": {}, "monthly": {}}
        unit = cost["currency"]
        rows.append([row["label"], cost["date"], _money(row["total"], unit), _money(row["per_month"], unit),
                     f"{points(made['value'])} per 1,000 {unit}" if made else "-", interval(made) if made else "-",
                     f"{points(month['value'])} per {unit} a month" if month else "-",
                     interval(month) if month else "-", row["reason"] or ""])  # fmt: skip
        for kind in ("once", "monthly"):
            items += [[row["label"], kind, item, _money(value, cost["currency"])] for item, value in cost[kind].items()]
    heads = ["candidate", "date", ">in all", ">per month", ">points per money in all", "95 % interval",
             ">points per money a month", "95 % interval", "what is missing"]  # fmt: skip
    note = (
        "Points of the whole host: points per core times its cores, divided by what it costs: in all, which is what is "
        "bought once and what is monthly over the months that the price file states, and a month, over which what is "
        "bought once is spread. Prices are the giver's, not checked."
    )
    blocks: list[Block] = [Text([note]), Table("prices", "Points per money", heads, rows)]
    if items:
        blocks.append(Table("items", "Line items", ["candidate", "when", "item", ">amount"], items))
    return Section("price", "Price", blocks)


def _money(value: float | None, currency: str) -> str:
    return "-" if value is None else f"{value:,.2f} {currency}".strip()


def method(doc: Json) -> Section:
    """How the numbers are made, in the words of the method's page."""
    pairs = [pair for pair in doc["pairs"] if pair["headline"] is not None]
    claims = sum(pair["claims"] for pair in pairs)
    blocks: list[Block] = [Text([
        "A kernel performs operations of one kind in C. A sample is one timed batch of about 20 ms; a block measures "
        "every variant in rounds of random order, in a fresh process. One block is a pass; n counts passes or runs.",
        "A row is total operations over total time, untrimmed. A family is the geometric mean over its kernels of the "
        "ratio to the reference, the whole the weighted geometric mean of families, all inside each pass.",
        "Intervals are Student's t on the logs of passes, widened by their correlation; with three or more runs on the "
        "runs. With fewer, every sentence is on this run only.",
    ])]  # fmt: skip
    if pairs:
        blocks.append(Text([
            f"Words hold for all {claims} claims of these comparisons together (Holm in each pair, which has its part "
            "of 5 %): faster or slower beyond 1 % or the A/A floor of the pair, whichever is more; "
            "equivalent within 2 %; else inconclusive. The 95 % CI that is shown is of one claim alone.",
            "A tier is made of these words, not of the overlap of intervals. Ahead in draws: the share of 1,000 draws "
            "of the families' weights, each between half and one and a half of the scenario's.",
        ]))  # fmt: skip
    words = [
        ["per core", "rate of copies on all cores, divided by the cores or vcpus that they occupy"],
        ["speed", "time of an operation of one copy alone"],
        ["scaling efficiency", "rate of a copy with all cores at work over that of one copy alone"],
        ["per watt", "rate of the whole host over the reference's per core, by the mean watts of that window"],
        ["under a cap", "the same load with a power limit set, of which it was measured that it holds"],
        ["A/A floor", "what one kernel under two labels differs by: nothing smaller is called a difference"],
        ["drift, step", "a slope or jump of the passes' points over the run: see the figure of points over the run"],
    ]
    blocks.append(Table("words", "Words", ["word", "meaning"], words))
    return Section("method", "Method", blocks)


def sources(doc: Json) -> Section:
    """The inputs by hash, and how to make this page again."""
    rows = [[one["label"], run["folder"], run["id"], run["created_utc"], run["signer"] or "not asked", run["sha256"]]
            for one in doc["candidates"] for run in one["runs"]]  # fmt: skip
    text = Text([
        f"Made by cpubench {doc['cpubench']} for suite {doc['suite']}; the newest run was started {doc['newest_utc']}.",
        f"SHA-256 of this report's data (report.json): {doc['sha256']}.",
        "The folder beside this file holds that data, the tables as CSV and the figures as SVG; `cpubench report` of "
        "it makes this page again, byte for byte. `cpubench score` of a run recomputes its figures from raw integers.",
    ])  # fmt: skip
    rows += [[one["label"], made["folder"], "tasks", made["created_utc"], "not asked", made["sha256"]]
             for one in doc["candidates"] for made in one["tasks"]]  # fmt: skip
    heads = ["candidate", "run", "id", "started", "signed by", "SHA-256 of its content"]
    return Section("sources", "Sources", [text, Table("inputs", "Run files", heads, rows)])
