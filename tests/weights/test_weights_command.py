"""From a trace to a file of weights and to a score: what is printed, what is kept, and what bad input leaves behind."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import made
import pytest

from cpubench.analysis.reference import make_reference
from cpubench.analysis.scenarios import PATHS, load_scenarios, of_paths
from cpubench.analysis.weights import load_weights
from cpubench.entry import main
from cpubench.errors import UsageError
from cpubench.results.files import content_hash
from cpubench.results.load import load_run
from cpubench.traces.span import CLASSES
from cpubench.traces.weigh import load_matrix, of_classes, of_system_calls
from cpubench.weighed import weights_from

SAMPLES = Path(__file__).parent / "samples"
EVERY = [
    "swe.traj",
    "openhands",
    "claude.jsonl",
    "codex.jsonl",
    "otel.json",
    "otel_old.jsonl",
    "spans.jsonl",
    "strace.txt",
]


def call(capsys: Any, *arguments: object) -> tuple[int, str, str]:
    code = main([str(one) for one in arguments])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_the_prior_matrix_is_that_of_the_method() -> None:
    matrix = load_matrix()
    assert matrix.name == "prior"
    assert set(matrix.classes) == set(CLASSES) - {"other"}
    assert matrix.classes["test"] == {"M10": 60, "M2": 15, "M3": 8, "M9": 7, "M4": 6, "M1": 4}
    assert matrix.classes["sandbox"] == {"M14": 60, "M5": 25, "M1": 15}


def test_weights_are_shares_of_time_by_what_a_class_does() -> None:
    document, told = weights_from(SAMPLES / "spans.jsonl")
    shares = {"test": 6 / 10.5, "build": 2 / 10.5, "py": 1 / 10.5, "sandbox": 1.5 / 10.5}
    assert {cls: row["share"] for cls, row in told["classes"].items()} == pytest.approx(shares)
    by_hand = {
        path: sum(share * load_matrix().classes[cls].get(path, 0) for cls, share in shares.items()) for path in PATHS
    }
    assert document["paths"] == pytest.approx({path: weight for path, weight in by_hand.items() if weight}, abs=1e-3)
    assert sum(document["paths"].values()) == pytest.approx(100, abs=0.01)
    assert {row["what"]: (row["calls"], row["seconds"]) for row in told["left_out"]} == {
        "llm": (1, 2.0),
        "human": (1, 500.0),
    }
    assert document["sha256"] == content_hash(document)
    assert told["weights_sha256"] == of_paths("own", "", document["paths"], None).sha256


@pytest.mark.parametrize("name", EVERY)
def test_every_sample_makes_weights_that_load(tmp_path: Path, capsys: Any, name: str) -> None:
    file = tmp_path / "w.json"
    code, out, err = call(capsys, "weights", "--from", SAMPLES / name, "-o", file, "--json")
    assert (code, err) == (0, "")
    told, scenario = json.loads(out), load_weights(file)
    assert told["weights_sha256"] == scenario.sha256
    assert scenario.tasks is None
    assert sum(scenario.paths.values()) == pytest.approx(100, abs=0.01)
    assert sum(scenario.families.values()) / 100 == pytest.approx(told["covers"], abs=1e-3)
    code, out, err = call(capsys, "weights", "--from", SAMPLES / name, "-o", file)
    assert (code, err) == (0, "")
    assert max(len(line) for line in out.splitlines()) <= 80
    assert told["weights_sha256"] in out


def test_the_normal_form_gives_the_same_weights_again(tmp_path: Path) -> None:
    for name in EVERY[:-1]:
        file = tmp_path / "spans.jsonl"
        first, _ = weights_from(SAMPLES / name, trace=file)
        again, _ = weights_from(file)
        assert again["paths"] == pytest.approx(first["paths"], abs=1e-3), name


def test_commands_and_names_stay_in_the_trace(tmp_path: Path) -> None:
    """Neither commands nor sessions nor folders are in what is written, unless commands are asked for."""
    file = tmp_path / "spans.jsonl"
    document, told = weights_from(SAMPLES / "claude.jsonl", trace=file)
    text = file.read_text() + json.dumps(document) + json.dumps(told)
    for secret in ("pytest", "git commit", "5d1e0000", "/work/shop", str(SAMPLES)):
        assert secret not in text
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    commits = [
        one["cmd_hash"] for one in lines[1:] if one["class"] == "git" or (one["kind"] == "human" and one["cmd_hash"])
    ]
    assert len(commits) == 2
    assert len(set(commits)) == 1
    weights_from(SAMPLES / "claude.jsonl", trace=file, keep_commands=True)
    assert "git commit -am" in file.read_text()


def test_calls_without_times_are_counted_with_ours(tmp_path: Path) -> None:
    trace = json.loads((SAMPLES / "swe.traj").read_text())
    for step in trace["trajectory"]:
        del step["execution_time"]
    file = tmp_path / "old.traj"
    file.write_text(json.dumps(trace))
    document, told = weights_from(file)
    assert document["confidence"] == "low"
    assert "counts only" in document["evidence"]
    assert any(note.startswith("7 of 7 calls have no time, nor has any of their class") for note in told["notes"])
    trace["trajectory"][5]["execution_time"] = 9.0
    trace["trajectory"].append(dict(trace["trajectory"][5], execution_time=None))
    file.write_text(json.dumps(trace))
    _, told = weights_from(file)
    assert told["classes"]["test"]["seconds"] == 18.0  # the other one has the mean of its class
    assert any("1 of 8 calls have no time: counted with the mean of their class" in note for note in told["notes"])


def test_a_night_before_a_permission_is_no_test(tmp_path: Path) -> None:
    lines = (SAMPLES / "claude.jsonl").read_text().splitlines()
    late = [line.replace("2026-03-01T10:00", "2026-03-02T10:00") if at >= 10 else line for at, line in enumerate(lines)]
    file = tmp_path / "x.jsonl"
    file.write_text("\n".join(late))
    _, told = weights_from(file)
    assert "test" not in told["classes"]
    assert next(row for row in told["left_out"] if row["what"] == "long")["seconds"] == 86406.0


def test_a_matrix_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    own = {"schema": "cpubench.matrix/1", "name": "mine", "classes": {"test": {"M1": 100.0}}}
    file.write_text(json.dumps(own))
    document, told = weights_from(SAMPLES / "spans.jsonl", matrix=file)
    assert document["paths"] == {"M1": 100.0}
    assert "the matrix mine has no row of build, py, sandbox: they have no part in the weights" in told["notes"]
    for bad in ({"test": {"M1": 99.0}}, {"test": {"M99": 100.0}}, {"tests": {"M1": 100.0}}, {"test": {}}):
        file.write_text(json.dumps(own | {"classes": bad}))
        with pytest.raises(UsageError, match=r"m\.json: classes\."):
            load_matrix(file)
    assert of_classes({"test": {"share": 1.0}}, load_matrix()) == (load_matrix().classes["test"], [])


def test_strace_splits_the_kernels_part_and_nothing_else() -> None:
    paths, by = of_system_calls({"M1": (10, 0.3), "M3": (900, 0.1), "wait": (5, 9.0), "other": (7, 1.0)})
    prior = load_scenarios()["coding"].paths
    assert by == "seconds"
    assert (paths["M1"], paths["M3"]) == pytest.approx((30.0, 10.0))  # of the 40 that the scenario gives the kernel
    assert {path: paths[path] for path in ("M2", "M10", "M15")} == {path: prior[path] for path in ("M2", "M10", "M15")}
    assert of_system_calls({"M1": (10, 0.0), "M3": (30, 0.0)})[1] == "calls"


def test_weights_of_ones_own_weigh_a_score(tmp_path: Path, capsys: Any) -> None:
    folder, reference, file = tmp_path / "run", tmp_path / "r.json", tmp_path / "w.json"
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps(made.made_run()))
    reference.write_text(json.dumps(make_reference(load_run(folder), "made")))
    call(capsys, "weights", "--from", SAMPLES / "spans.jsonl", "-o", file, "--name", "ours")
    code, out, _ = call(capsys, "score", folder, "--weights", file, "--reference", reference, "--json")
    document, scenario = json.loads(out), load_weights(file)
    assert code == 0
    assert (document["scenario"], document["weights_sha256"]) == ("ours", scenario.sha256)
    assert document["covers"] == pytest.approx(sum(scenario.families.values()) / 100, abs=1e-3)
    code, out, _ = call(capsys, "score", folder, folder, "--weights", file, "--reference", reference)
    assert code == 0
    assert "run 1 and run 2 not separable" in " ".join(out.split())
    code, _, err = call(capsys, "score", folder, "--weights", file, "--scenario", "chat")
    assert (code, err) == (2, "cpubench: --weights: give a scenario or a file of weights, not both\n")


@pytest.mark.parametrize("name", ["cut", "unknown", "nothing", "nowhere", "no folder", "mixed", "keep", "strace spans"])
def test_bad_input_is_one_line_and_leaves_nothing(tmp_path: Path, capsys: Any, name: str) -> None:
    trace, output, spans = tmp_path / "trace.jsonl", tmp_path / "w.json", tmp_path / "s.jsonl"
    raw = (SAMPLES / "codex.jsonl").read_bytes()
    trace.write_bytes({"cut": raw[:-30], "unknown": b"x\n", "nothing": raw.splitlines()[0] + b"\n"}.get(name, raw))
    more = ["--spans", spans]
    if name == "nowhere":
        trace.unlink()
    elif name == "no folder":
        more = ["--spans", tmp_path / "no" / "s.jsonl"]
    elif name == "mixed":
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / "a.jsonl").write_bytes(raw)
        (tmp_path / "folder" / "b.txt").write_bytes((SAMPLES / "strace.txt").read_bytes())
        trace = tmp_path / "folder"
    elif name == "keep":
        more = ["--keep-commands"]
    elif name == "strace spans":
        trace.write_bytes((SAMPLES / "strace.txt").read_bytes())
    code, out, err = call(capsys, "weights", "--from", trace, "-o", output, *more, "--json")
    assert code == 2
    assert len(err.splitlines()) == 1
    assert set(json.loads(out)) == {"error"}
    assert {file.name for file in tmp_path.iterdir()} <= {"trace.jsonl", "folder"}


def test_a_large_trace_takes_little_memory(tmp_path: Path) -> None:
    """100 MB of a session: read line by line, and what the process grows by is a part of it."""
    head, *lines = (SAMPLES / "codex.jsonl").read_bytes().splitlines(keepends=True)
    payload = {"type": "message", "role": "assistant", "content": "x" * 1_000_000}
    filler = json.dumps({"timestamp": "2026-03-21T10:06:01Z", "type": "response_item", "payload": payload}) + "\n"
    file = tmp_path / "long.jsonl"
    with file.open("wb") as out:
        out.write(head)
        for _ in range(100):
            out.write(filler.encode())
        out.writelines(lines)
    code = (
        "import json, resource, sys\nfrom pathlib import Path\nfrom cpubench.weighed import weights_from\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "_, told = weights_from(Path(sys.argv[1]))\n"
        "print(json.dumps([told['spans'], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before]))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, str(file)], capture_output=True, text=True, check=True, timeout=120
    )
    spans, grown_kib = json.loads(done.stdout)
    assert spans > 8
    assert grown_kib < 40_000


def trace_of(name: str) -> str:
    if name == "openhands":
        return "\n".join(file.read_text() for file in sorted((SAMPLES / name / "events").iterdir()))
    return (SAMPLES / name).read_text()


@pytest.mark.parametrize("drawn", [False, True])
@pytest.mark.parametrize("name", ["claude.jsonl", "codex.jsonl", "openhands", "otel_old.jsonl"])
def test_a_copy_of_a_call_is_not_counted_again(tmp_path: Path, name: str, drawn: bool) -> None:
    """By its name and its time, or by its name alone where that is drawn: a copy may have times of its own then."""
    raw, folder, out = trace_of(name), tmp_path / "traces", tmp_path / "spans.jsonl"
    folder.mkdir()
    if drawn:
        raw = re.sub(r"\b(toolu|call)_(\d+)\b", lambda found: f"{found[1]}_01{'Ab3' * 6}{found[2]:0>4}", raw)
    (folder / "a.jsonl").write_text(raw)
    _, once = weights_from(folder)
    (folder / "b.jsonl").write_text(raw)
    _, twice = weights_from(folder, trace=out)
    assert (twice["classes"], twice["weights_sha256"]) == (once["classes"], once["weights_sha256"])
    copies = sum(row["calls"] for row in once["classes"].values())
    (note,) = [note for note in twice["notes"] if "are copies" in note]
    assert int(note.split()[0]) >= copies
    assert len(out.read_text().splitlines()) == 1 + twice["spans"]
    other = re.sub(r"\b202[56]-", "2024-", raw)
    (folder / "b.jsonl").write_text(other)
    _, more = weights_from(folder)
    known = drawn and name in ("claude.jsonl", "codex.jsonl")
    assert {cls: row["calls"] for cls, row in more["classes"].items()} == {
        cls: row["calls"] * (1 if known else 2) for cls, row in once["classes"].items()
    }


def test_a_fork_counts_by_what_it_adds(tmp_path: Path) -> None:
    raw = trace_of("claude.jsonl")
    (tmp_path / "a.jsonl").write_text(raw)
    _, once = weights_from(tmp_path)
    added = [
        line.replace("toolu_4", "toolu_9").replace("T10:", "T11:") for line in raw.splitlines() if "toolu_4" in line
    ]
    fork = "\n".join([*raw.splitlines(), *added]).replace("5d1e0000-", "5d1e0001-")
    for at in ("0", "b"):  # read before the other or after it
        (tmp_path / f"{at}.jsonl").write_text(fork)
        _, told = weights_from(tmp_path)
        (tmp_path / f"{at}.jsonl").unlink()
        calls = {cls: row["calls"] + (cls == "test") for cls, row in once["classes"].items()}
        assert {cls: row["calls"] for cls, row in told["classes"].items()} == calls


def test_calls_that_are_left_out_without_a_time_have_no_seconds(tmp_path: Path, capsys: Any) -> None:
    """Of some that have one, these are summed and counted: what is not known is never 0."""
    spans = [{"kind": "tool", "tool": "bash", "cmd": "pytest", "dur": 2.0}, *[{"kind": "llm"}] * 3]
    spans += [{"kind": "human", "dur": 4.0}, {"kind": "human"}, {"kind": "remote", "dur": 0.0}]
    file, out = tmp_path / "x.jsonl", tmp_path / "w.json"
    file.write_text("\n".join(map(json.dumps, [{"schema": "cpubench.trace/1"}, *spans])))
    code, page, _ = call(capsys, "weights", "--from", file, "-o", out)
    rows = {
        row["what"]: (row["calls"], row["timed"], row["seconds"]) for row in json.loads(out.read_text())["left_out"]
    }
    assert code == 0
    assert rows == {"llm": (3, 0, None), "human": (2, 1, 4.0), "remote": (1, 1, 0.0)}
    cells = [line.split()[-2:] for line in page.splitlines() if line.startswith(("waits", "work"))]
    assert cells == [["3", "-"], ["timed)", "4"], ["1", "0"]]
    assert "2 (1 timed)" in page
