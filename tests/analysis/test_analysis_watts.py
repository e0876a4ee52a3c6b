"""Figures per watt and cap levels, of made-up runs whose truth is known."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from made import made_run
from made_watts import CHANNEL, WATTS, loaded, made_capped_run, made_log

from cpubench.analysis.curves import curves_of
from cpubench.analysis.over_runs import score_over_runs
from cpubench.analysis.reference import make_reference
from cpubench.analysis.score import score
from cpubench.report.watts import said_of
from cpubench.results.check import check_run
from cpubench.results.records import Run
from cpubench.results.recount import check_counts
from cpubench.results.windows import Level

Doc = dict[str, Any]
FAMILIES = {"spawn": 1, "file": 1, "switch": 1, "lock": 1, "memory": 1}


@pytest.fixture(scope="module")
def reference() -> Doc:
    return make_reference(msgspec.convert(made_run(8, noise=0), Run), "made")


def scored(document: Doc, reference: Doc) -> Doc:
    made = score(loaded(document), reference)
    json.dumps(made, allow_nan=False)
    return made


def level(doc: Doc, name: str) -> Doc:
    return next(row for row in doc["power"]["levels"] if row["level"] == name)


def test_a_made_run_is_one_that_validate_takes() -> None:
    run = loaded(made_capped_run(9))
    check_run(run)
    check_counts(run)


@pytest.fixture(scope="module")
def unhooked(reference: Doc) -> Doc:
    """Of exactly the reference's speed, without noise; the family of the hooked kernel has no points per watt."""
    return scored(made_capped_run(12, noise=0), reference)


def test_points_per_watt_are_those_of_the_whole_host_by_the_mean_watts_of_the_family(unhooked: Doc) -> None:
    """Two cores do what the reference's two do: 1000 points each."""
    for family in ("spawn", "file", "memory"):
        made = unhooked["families"][family]["per_watt"]
        assert made["value"] == pytest.approx(2 * 1000 / WATTS[family], rel=1e-6)
        assert made["passes"] == 12
    assert unhooked["families"]["lock"]["per_watt"]["reason"] == "no row of lock is metered: all have untimed work"
    assert unhooked["headline"]["per_watt"]["value"] is None
    assert "lock" in unhooked["headline"]["per_watt"]["reason"]
    assert unhooked["headline"]["per_core"]["value"] == pytest.approx(1000)


def test_the_headline_weighs_families_inside_each_pass(reference: Doc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("made_watts.HOOKED", set())
    doc = scored(made_capped_run(12, noise=0), reference)
    logs = [math.log(doc["families"][family]["per_watt"]["value"]) for family in FAMILIES]
    assert doc["headline"]["per_watt"]["value"] == pytest.approx(math.exp(sum(logs) / len(logs)), rel=1e-9)
    assert doc["covers"] == pytest.approx(1.0)


def test_net_is_above_the_idle_power_before_and_after(unhooked: Doc) -> None:
    gross, net = (level(unhooked, "as-is")["families"]["spawn"][m]["value"] for m in ("per_watt", "per_watt_net"))
    assert unhooked["power"]["idle"] == {"before_watts": 50.0, "after_watts": 51.0, "reason": None}
    assert net / gross == pytest.approx(200 / (200 - 50.5), rel=1e-6)
    assert {n["code"] for n in unhooked["notes"]}.isdisjoint({"idle_drift", "shortened", "over_cap", "cap_state"})


def test_levels_are_ratios_to_as_is_paired_by_pass(reference: Doc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("made_watts.HOOKED", set())
    doc = scored(made_capped_run(12, noise=0), reference)
    row = level(doc, "200W")
    assert row["ratio"]["per_core"]["value"] == pytest.approx(1 / 1.25, rel=1e-6)
    assert row["ratio"]["per_watt"]["value"] == pytest.approx(1 / 1.25 / 0.6, rel=1e-6)
    assert row["ratio"]["per_watt"]["passes"] == 12
    assert level(doc, "as-is")["ratio"]["per_core"]["value"] is None
    best = doc["power"]["most_efficient"]
    assert (best["level"], best["next"], best["separable"]) == ("200W", "as-is", True)
    both = [level(doc, name)["per_watt"]["value"] for name in ("as-is", "200W")]
    assert doc["power"]["efficiency"]["value"] == pytest.approx(math.sqrt(both[0] * both[1]), rel=1e-9)
    assert row["watts"]["value"] == pytest.approx(0.6 * level(doc, "as-is")["watts"]["value"], rel=2e-3)


def test_a_cap_that_was_not_shown_to_hold_is_no_most_efficient_level(reference: Doc) -> None:
    doc = scored(made_capped_run(12, states={"200W": "not_binding"}), reference)
    assert doc["power"]["most_efficient"]["level"] is None
    assert ("cap_state", "200W") in {(note["code"], note["where"]) for note in doc["notes"]}
    assert doc["publishable"] is True


def test_watts_above_the_cap_take_the_word_verified_away(reference: Doc) -> None:
    doc = scored(made_capped_run(12, caps={"as-is": (1.0, 1.0), "100W": (1.2, 0.8)}), reference)
    row = level(doc, "100W")
    assert (row["state"], row["shown"], row["over_cap_passes"]) == ("over_cap", "verified", 12)
    other = made_capped_run(12, caps={"as-is": (1.0, 1.0), "100W": (1.2, 0.8)}, power={"cap_scope": "board"})
    assert level(scored(other, reference), "100W")["state"] == "verified"  # watts of a package are not a board's


def test_one_family_above_the_cap_is_not_hidden_by_the_others(reference: Doc) -> None:
    """Memory draws 180 W under 170 W in five passes, and all families together 118 W."""
    document = made_capped_run(12, caps={"as-is": (1.0, 1.0), "170W": (1.2, 0.72)})
    for one in document["passes"][5:]:
        block = next(block for block in one["blocks"] if block["cap"] == "170W")
        memory = next(window for window in block["windows"] if window["family"] == "memory")
        for reading in memory["log"]["readings"]:
            reading[1] = [reading[1][0] // 2]
    row = level(scored(document, reference), "170W")
    assert row["watts"]["value"] < 170
    assert (row["state"], row["shown"], row["over_cap_passes"], row["passes"]) == ("over_cap", "verified", 5, 12)
    curves = curves_of(loaded(document))
    assert curves is not None
    assert (curves.levels["170W"].state, curves.levels["as-is"].state) == ("over_cap", "as_found")


@pytest.mark.parametrize(("scope", "over"), [("package", 12), ("wall", 0), (None, 0)])
def test_a_cap_from_outside_is_judged_by_a_meter_of_what_it_limits(
    reference: Doc, scope: str | None, over: int
) -> None:
    """None: a file of before the scope was told."""
    document = made_capped_run(12, caps={"external=100W": (1.2, 0.8)}, power={"cap_scope": ""})
    told = {"name": "external=100W", "state": "verified(external)", "text": "made", "watts": 100.0}
    run = loaded(document)
    power = msgspec.structs.replace(
        run.plan.powered, levels=[msgspec.convert(told | ({"scope": scope} if scope else {}), Level)]
    )
    row = level(score(msgspec.structs.replace(run, plan=msgspec.structs.replace(run.plan, power=power)), reference),
                "external=100W")  # fmt: skip
    assert row["over_cap_passes"] == over
    assert row["shown"] == "external_claim"  # of a file that says more: the load without the cap was not measured
    assert row["state"] == ("over_cap" if over else "external_claim")


def test_passes_that_drew_no_more_than_idle_are_not_left_out(reference: Doc, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean of the others would be of those passes that drew more by chance."""
    monkeypatch.setattr("made_watts.HOOKED", set())
    document = made_capped_run(12, noise=0)
    for one in document["passes"][:4]:
        block = next(block for block in one["blocks"] if block["cap"] == "as-is")
        memory = next(window for window in block["windows"] if window["family"] == "memory")
        for reading in memory["log"]["readings"]:
            reading[1] = [reading[1][0] // 6]
    row = level(scored(document, reference), "as-is")
    why = "missing: memory (in 4 of 12 passes the windows drew no more than idle)"
    for figure in (row["families"]["memory"]["per_watt_net"], row["per_watt_net"]):
        assert (figure["value"], figure["reason"]) == (None, why)
    assert row["families"]["memory"]["per_watt"]["passes"] == 12
    assert row["families"]["spawn"]["per_watt_net"]["passes"] == 12


def test_the_mean_over_levels_is_of_eight_passes_and_of_caps_that_hold(
    reference: Doc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("made_watts.HOOKED", set())

    def mean(passes: int = 8, **fields: Any) -> Doc:
        found: Doc = scored(made_capped_run(passes, **fields), reference)["power"]["efficiency"]
        return found

    assert mean()["value"] > 0
    assert mean(states={"200W": "not_binding"})["value"] > 0
    assert mean(7)["reason"] == "8 passes are needed; 7 of 7 are complete"
    assert mean(states={"200W": "set_unverified"})["reason"] == "not shown to hold: 200W (set_unverified)"
    over = mean(caps={"as-is": (1.0, 1.0), "100W": (1.2, 0.8)})
    assert (over["value"], over["reason"]) == (None, "not shown to hold: 100W (over_cap)")


def test_rows_have_watts_and_joules_where_readings_stand_at_their_ends(unhooked: Doc) -> None:
    rows = {(row["name"], row["copies"], row["cap"]): row for row in unhooked["variants"]}
    row = rows["mem_chase[set=256M]", "cores", "as-is"]
    assert row["watts"]["value"] == pytest.approx(250, rel=1e-6)
    assert row["joules_per_op"]["value"] == pytest.approx(250 / (2 / 110e-9), rel=1e-6)
    assert rows["mem_chase[set=256M]", "1", "as-is"]["watts"]["reason"] == "watts are those of scored rows on all cores"
    assert rows["lock_mutex[cs=200ns]", "cores", "as-is"]["watts"]["reason"] == "its untimed work draws power too"
    assert {row["cap"] for row in unhooked["variants"]} == {"as-is"}  # a row is looked up by its name
    assert level(unhooked, "as-is")["variants"] == []
    capped = next(r for r in level(unhooked, "200W")["variants"] if r["name"] == "mem_chase[set=256M]")
    assert (capped["source"], capped["watts"]["value"]) == ("windows", pytest.approx(150, rel=1e-6))
    assert capped["ns_per_op"]["value"] == pytest.approx(110 * 1.25, rel=1e-6)


def test_a_row_between_readings_has_no_watts_of_its_own(reference: Doc) -> None:
    document = made_capped_run(12, noise=0)
    for one in document["passes"]:
        for block in one["blocks"]:
            for window in block["windows"]:
                readings = window["log"]["readings"]
                window["log"]["readings"] = [readings[0], readings[-1]]
    doc = scored(document, reference)
    row = next(r for r in doc["variants"] if (r["name"], r["copies"]) == ("mem_chase[set=16K]", "cores"))
    assert row["watts"]["reason"].startswith("edges")
    assert doc["families"]["memory"]["per_watt"]["value"] == pytest.approx(2000 / 250, rel=1e-6)


def test_evidence_is_of_the_windows_and_by_level(unhooked: Doc) -> None:
    row = level(unhooked, "200W")
    assert row["frequency"]["mean_mhz"] == pytest.approx(2900)
    assert row["throttles"] == {"thermal": 0, "power_limit": 7 * 12}
    assert level(unhooked, "as-is")["throttles"]["power_limit"] == 0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda log: log.update(lost="vanished: it ended", readings=[]), "vanished: it ended"),
        (lambda log: log.update(readings=[[t, [7], [""]] for t, _, _ in log["readings"]]), "constant: "),
        (lambda log: log.update(readings=[[t, [None], ["permission"]] for t, _, _ in log["readings"]]), "permission: "),
        (lambda log: log.update(sockets=[0, 1]), "partial_sockets: "),
    ],
)
def test_watts_that_are_not_known_are_null_with_the_reason_of_the_meter(
    reference: Doc, change: Any, reason: str
) -> None:
    document = made_capped_run(12)
    for one in document["passes"]:
        for block in one["blocks"]:
            for window in block["windows"]:
                change(window["log"])
    doc = scored(document, reference)
    assert doc["families"]["memory"]["per_watt"]["value"] is None
    assert doc["families"]["memory"]["per_watt"]["reason"].startswith(reason)
    assert doc["families"]["memory"]["per_core"]["value"] == pytest.approx(1000, rel=0.02)
    assert level(doc, "200W")["families"]["memory"]["ratio"]["per_core"]["value"] == pytest.approx(0.8, rel=0.02)
    row = next(r for r in doc["variants"] if (r["name"], r["copies"]) == ("mem_chase[set=16K]", "cores"))
    assert row["watts"]["value"] is None


def test_a_pass_without_watts_is_left_out_of_what_needs_them_alone(reference: Doc) -> None:
    document = made_capped_run(12)
    document["passes"][3]["blocks"][0]["windows"][4]["log"]["readings"] = []
    cap = document["passes"][3]["blocks"][0]["cap"]
    doc = scored(document, reference)
    row = level(doc, cap)["families"]
    assert (row["memory"]["per_watt"]["passes"], row["spawn"]["per_watt"]["passes"]) == (11, 12)
    assert row["memory"]["per_core"]["passes"] == 12


def second(log: Doc, ahead_uj: Any, mirrors: bool) -> None:
    """A log gets a die whose counter is ahead of the first one's, by what a function of the reading's number says."""
    dies = [{**CHANNEL, "die": die, "mirrors": mirrors} for die in (0, 1)]
    log["channels"] = [dies[0], {**dies[1], "id": "powercap:package-0-die-1"}]
    log["readings"] = [[t * 2, [*raw, raw[0] + ahead_uj(at)], errors * 2]
                       for at, (t, raw, errors) in enumerate(log["readings"])]  # fmt: skip


def test_dies_that_mirror_one_counter_are_one_in_windows_and_in_rows(reference: Doc, unhooked: Doc) -> None:
    """A tick of 1 ms falls between both reads at each second reading."""
    document = made_capped_run(12, noise=0)
    for window in (w for one in document["passes"] for block in one["blocks"] for w in block["windows"]):
        tick_uj = round(WATTS.get(window["family"], 100.0) * 1000)
        second(window["log"], lambda at, tick_uj=tick_uj: at % 2 * tick_uj // 2, True)
    doc = scored(document, reference)
    mine, truth = ([row["watts"]["value"] or 0.0 for row in one["variants"]] for one in (doc, unhooked))
    assert mine == pytest.approx(truth, rel=1e-6)
    assert level(doc, "as-is")["watts"]["value"] == pytest.approx(level(unhooked, "as-is")["watts"]["value"], rel=1e-6)
    assert level(doc, "as-is")["energy_flags"] == {"deduped_die": 48}


def test_a_window_that_lacks_a_channel_of_the_others_has_no_watts(reference: Doc, unhooked: Doc) -> None:
    document = made_capped_run(12, noise=0)
    lacking = next(block for block in document["passes"][5]["blocks"] if block["cap"] == "as-is")["windows"][0]
    for window in (w for one in document["passes"] for block in one["blocks"] for w in block["windows"]):
        second(window["log"], lambda at: 7, False)
        if window is lacking:
            window["log"]["channels"] = window["log"]["channels"][:1]
            window["log"]["readings"] = [[column[:1] for column in row] for row in window["log"]["readings"]]
    row = level(scored(document, reference), "as-is")
    assert (row["watts"]["value"], row["watts"]["passes"]) == (
        pytest.approx(2 * level(unhooked, "as-is")["watts"]["value"], rel=1e-6), 11)  # fmt: skip
    assert row["energy_flags"] == {"partial": 1}


def test_windows_that_all_lack_a_channel_of_the_rest_before_them_have_no_watts(reference: Doc) -> None:
    document = made_capped_run(12, noise=0)
    second(document["plan"]["power"]["idle"], lambda at: 7, False)
    figure = scored(document, reference)["families"]["memory"]["per_watt"]
    assert (figure["value"], figure["reason"]) == (
        None, "partial: powercap:package-0-die-1 was read at other times of the run alone")  # fmt: skip


def unread(block: Doc, window: Doc) -> None:
    window["log"]["readings"] = window["log"]["readings"][:1]


def without_log(block: Doc, window: Doc) -> None:
    del window["log"]


def without_window(block: Doc, window: Doc) -> None:
    block["windows"].remove(window)


def without_rows(block: Doc, window: Doc) -> None:
    for cell in window["cells"]:
        cell.update(copy_ops=[], copy_elapsed_ns=[], error="killed")


@pytest.mark.parametrize("lose", [unread, without_log, without_window, without_rows])
@pytest.mark.parametrize("family", ["spawn", "memory"])
@pytest.mark.parametrize("passes", [range(0, 12, 2), [5]])
def test_watts_drawn_are_of_the_passes_in_which_every_family_has_some(
    reference: Doc, unhooked: Doc, lose: Any, family: str, passes: Any
) -> None:
    """The mean of the others would be of other work; what is not metered at all lacks in no pass."""
    whole = level(unhooked, "as-is")["watts"]
    assert whole["passes"] == 12
    document = made_capped_run(12, noise=0)
    for at in passes:
        block = next(one for one in document["passes"][at]["blocks"] if one["cap"] == "as-is")
        lose(block, next(one for one in block["windows"] if one["family"] == family))
    found = level(scored(document, reference), "as-is")["watts"]
    assert (found["value"], found["passes"]) == (pytest.approx(whole["value"], rel=1e-6), 12 - len(passes))


@pytest.mark.parametrize("lose", [unread, without_log, without_rows])
@pytest.mark.parametrize("family", ["spawn", "memory"])
def test_without_the_watts_of_a_family_there_are_no_watts_drawn(reference: Doc, lose: Any, family: str) -> None:
    document = made_capped_run(12, noise=0)
    for block in (block for one in document["passes"] for block in one["blocks"]):
        lose(block, next(one for one in block["windows"] if one["family"] == family))
    doc = scored(document, reference)
    found = level(doc, "as-is")["watts"]
    assert (found["value"], found["low"]) == (None, None)
    assert found["reason"].startswith("not measured" if lose is without_log else f"{family}: ")
    assert any("as-is" in who and text == f"no watts: {found['reason']}" for who, text in said_of(doc["power"]))


@pytest.mark.parametrize(
    ("caps", "alike"),
    [(["200W", "200W", "200W"], True), (["200W", "150W", "150W"], False), (["200W", "200W", None], False),
     ([None, "200W"], False)],
)  # fmt: skip
def test_the_mean_over_levels_of_several_runs_is_of_the_same_levels(
    reference: Doc, monkeypatch: pytest.MonkeyPatch, caps: list[str | None], alike: bool
) -> None:
    monkeypatch.setattr("made_watts.HOOKED", set())
    levels = [{"as-is": (1.0, 1.0)} | ({cap: (1.25, 0.5)} if cap else {}) for cap in caps]
    documents = [scored(made_capped_run(12, seed=at, caps=own), reference) for at, own in enumerate(levels)]
    own = [one["power"]["efficiency"]["value"] for one in documents]
    found = score_over_runs(documents)["power"]["efficiency"]
    if alike:
        assert min(own) <= found["value"] <= max(own)
    else:
        assert (found["value"], found["reason"]) == (None, "its runs have other cap levels")


def test_a_block_in_which_a_limit_changed_does_not_count(reference: Doc) -> None:
    document = made_capped_run(12)
    block = next(b for b in document["passes"][5]["blocks"] if b["cap"] == "200W")
    block["limits"] = {**block["limits"], "after": {"a": 2}}
    doc = scored(document, reference)
    row = level(doc, "200W")
    assert (row["changed_passes"], row["families"]["file"]["per_core"]["passes"]) == (1, 11)
    assert doc["publishable"] is False
    assert "cap_changed" in {note["code"] for note in doc["notes"]}


def test_without_a_meter_there_are_levels_and_no_watts(reference: Doc) -> None:
    document = made_capped_run(12, power={"meter": "", "problem": "no_interface: nothing", "scope": ""})
    for one in document["passes"]:
        for block in one["blocks"]:
            for window in block["windows"]:
                del window["log"]
    doc = scored(document, reference)
    assert doc["headline"]["per_watt"]["reason"] == "no_meter"
    assert level(doc, "200W")["ratio"]["per_core"]["value"] == pytest.approx(0.8, rel=0.02)
    assert {level(doc, "200W")[m]["reason"] for m in ("watts", "per_watt", "per_watt_net")} == {"no_meter"}
    assert "no_watts" in {note["code"] for note in doc["notes"]}


def test_under_caps_alone_there_are_levels_and_no_headline(reference: Doc) -> None:
    doc = scored(made_capped_run(12, caps={"200W": (1.25, 0.6), "150W": (1.5, 0.5)}), reference)
    assert doc["headline"]["per_core"]["value"] is None
    assert doc["headline"]["per_watt"]["reason"] == "the run has no passes without a cap"
    assert level(doc, "200W")["families"]["memory"]["per_watt"]["value"] > 0
    assert level(doc, "200W")["ratio"]["per_core"]["reason"] == "the run has no level as-is"
    assert doc["publishable"] is False


@pytest.mark.parametrize(
    ("fields", "code"), [({"shortened": True}, "shortened"), ({"provenance": "estimated"}, "estimated")]
)
def test_what_is_no_measurement_is_not_published(reference: Doc, fields: Doc, code: str) -> None:
    doc = scored(made_capped_run(12, power=fields), reference)
    assert doc["publishable"] is False
    assert code in {note["code"] for note in doc["notes"]}


def test_idle_that_drifted_is_said(reference: Doc) -> None:
    document = made_capped_run(12)
    document["idle_after"] = made_log([(0, 0.0), (10**10, 600.0)])
    assert "idle_drift" in {note["code"] for note in scored(document, reference)["notes"]}


def test_a_run_without_meter_and_caps_has_no_power(reference: Doc) -> None:
    doc = scored(made_run(12), reference)
    assert doc["power"] is None
    assert doc["headline"]["per_watt"]["reason"] == "no_meter"


def test_absurd_counters_stay_numbers(reference: Doc) -> None:
    document = made_capped_run(9)
    for one in document["passes"]:
        for block in one["blocks"]:
            for window in block["windows"]:
                window["log"]["channels"] = [{**window["log"]["channels"][0], "unit": 1e300, "max_w": 1e308}]
    assert scored(document, reference)["families"]["memory"]["per_watt"]["value"] is None
