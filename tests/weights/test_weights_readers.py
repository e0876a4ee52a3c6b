"""Each format as it is written in the wild: which calls there are, how long each took by whose word, and who worked."""

from __future__ import annotations

import json
import random
import re
from contextlib import suppress
from pathlib import Path

import pytest

from cpubench.errors import UsageError
from cpubench.traces.classify import classified
from cpubench.traces.find import FORMATS, Source, sources, spans
from cpubench.traces.otel import read as read_otel
from cpubench.traces.span import Span
from cpubench.traces.strace import read as read_strace
from cpubench.weighed import weights_from

SAMPLES = Path(__file__).parent / "samples"
FORMS = {
    "swe.traj": "swe-agent", "openhands": "openhands", "claude.jsonl": "claude", "codex.jsonl": "codex",
    "otel.json": "otel", "otel_old.jsonl": "otel", "spans.jsonl": "trace", "strace.txt": "strace",
}  # fmt: skip


def read(name: str) -> list[Span]:
    (source,) = sources(SAMPLES / name)[0]
    return [classified(span) for span in spans(source)]


def told(name: str) -> list[tuple[str, float | None]]:
    """What each call was and what it counts; a call that is none of this host's is told by who worked."""
    found = [span for span in read(name) if span.kind != "llm"]
    return [(span.cls if span.kind in ("tool", "sandbox") else span.kind, seconds and round(seconds, 6))
            for span in found for seconds in [span.seconds[0]]]  # fmt: skip


def test_every_format_is_told_by_its_content() -> None:
    assert set(FORMS.values()) == set(FORMATS)
    for name, form in FORMS.items():
        assert [one.form for one in sources(SAMPLES / name)[0]] == [form], name
    found, unknown = sources(SAMPLES)
    assert sorted(one.form for one in found) == sorted(FORMS.values())
    assert unknown == 1  # base_state.json


def test_swe_agent_says_what_each_action_took() -> None:
    assert told("swe.traj") == [
        ("search", 0.21), ("read", 0.11), ("edit", 0.12), ("py", 0.62), ("edit", 0.13), ("test", 6.4), ("git", 0.09),
        ("other", 0.08),
    ]  # fmt: skip
    assert {span.seconds[1] for span in read("swe.traj")} == {"caller"}


def test_claude_tells_waits_from_work() -> None:
    assert told("claude.jsonl") == [
        ("read", 0.04), ("search", 0.04), ("edit", 0.1), ("test", 6.0), ("human", 20.0), ("remote", 1.9),
        ("human", 0.15), ("human", 6.0), ("git", 0.2),
    ]  # fmt: skip
    found = read("claude.jsonl")
    grep = next(span for span in found if span.tool == "Grep")
    assert (grep.dur, grep.internal_dur) == (pytest.approx(0.2), 0.04)  # the tool's own word counts
    assert sum(span.dur or 0 for span in found if span.kind == "llm") == pytest.approx(
        4.01 + 3 + 3 + 2 + 2 + 2 + 2 + 3 + 2
    )
    assert [span.exit for span in found if span.tool == "Bash"] == [0, 1, 0]


def test_agents_of_an_agent_have_clocks_of_their_own(tmp_path: Path) -> None:
    """The side agent's messages stand between those of the main one: no gap of one is an answer of the other."""
    lines = [json.loads(line) for line in (SAMPLES / "claude.jsonl").read_text().splitlines()]
    side = json.loads(json.dumps(lines[8]))  # ends an edit
    side |= {"isSidechain": True, "message": {"role": "user", "content": "look"}, "timestamp": "2026-03-01T10:00:00.5Z"}
    file = tmp_path / "x.jsonl"
    file.write_text("\n".join(json.dumps(line) for line in [*lines[:2], side, *lines[2:]]))

    def model(path: Path) -> float:
        return sum(one.dur or 0 for one in spans(Source(path, "claude")) if one.kind == "llm")

    assert model(file) == pytest.approx(model(SAMPLES / "claude.jsonl"))


def test_codex_says_what_its_tools_took_themselves() -> None:
    """The install's output came after 4 s; the runtime had told 2.5. What a poll waits for is the command's time."""
    assert told("codex.jsonl") == [
        ("human", 0.1), ("search", 0.05), ("test", 1.0016), ("test", 4.0), ("edit", 0.1), ("install", 2.5),
        ("remote", None), ("human", 30.0),
    ]  # fmt: skip
    assert {span.seconds[1] for span in read("codex.jsonl") if span.cls in ("test", "edit", "install")} == {"internal"}


def test_openhands_pairs_actions_with_their_observations() -> None:
    assert told("openhands") == [
        ("search", 0.25), ("read", 0.125), ("edit", 0.125), ("test", 5.0), ("human", 10.0), ("other", 0.0),
    ]  # fmt: skip
    assert [span.exit for span in read("openhands") if span.cls in ("search", "test")] == [0, 1]
    assert sum(span.dur or 0 for span in read("openhands") if span.kind == "llm") == pytest.approx(
        2 + 2.75 + 1.875 + 1.875 + 2 + 2
    )


def test_openhands_events_may_be_lines(tmp_path: Path) -> None:
    events = [file.read_text() for file in sorted((SAMPLES / "openhands" / "events").iterdir())]
    file = tmp_path / "events.jsonl"
    file.write_text("\n".join(events))
    (source,) = sources(file)[0]
    own = [(span.cls, span.seconds) for span in map(classified, spans(source))]
    assert own == [(span.cls, span.seconds) for span in read("openhands")]


def test_otel_counts_a_call_once_and_reads_old_names() -> None:
    """The command inside the tool is the same call; the agent around all, and the library's own span, are no calls."""
    assert told("otel.json") == [("test", 6.0), ("db", 1.0), ("remote", 3.0)]
    assert told("otel_old.jsonl") == [("install", 2.0), ("search", 0.5)]
    assert [span.dur for name in ("otel.json", "otel_old.jsonl") for span in read(name) if span.kind == "llm"] == [3, 2]


def otel_span(name: str, kind: str, number: str, parent: str, began_s: int, ended_s: int) -> str:
    return json.dumps({
        "name": name, "context": {"trace_id": "0x1", "span_id": number}, "parent_id": parent,
        "start_time": f"2026-03-01T10:00:{began_s:02}Z", "end_time": f"2026-03-01T10:00:{ended_s:02}Z",
        "attributes": {"span.type": kind, "tool_name": "Bash"},
    })  # fmt: skip


@pytest.mark.parametrize(("waits", "seconds"), [
    ([], 30.0), ([("a", 1, 21)], 10.0), ([("a", 1, 6), ("b", 4, 11)], 20.0), ([("b", 0, 59)], 0.0),
    ([("none", 1, 21)], 30.0), ([("a", 40, 50)], 30.0),
])  # fmt: skip
def test_what_a_call_waited_for_a_permission_is_told_once(
    tmp_path: Path, waits: list[tuple[str, int, int]], seconds: float
) -> None:
    """Also what a call inside it waited; waits at the same time are one."""
    rows = [otel_span("claude_code.tool", "tool", "a", "turn", 0, 30),
            otel_span("claude_code.tool", "tool", "b", "a", 2, 29)]  # fmt: skip
    rows += [otel_span("claude_code.tool.blocked_on_user", "tool.blocked_on_user", f"w{at}", parent, began, ended)
             for at, (parent, began, ended) in enumerate(waits)]  # fmt: skip
    (tmp_path / "x.jsonl").write_text("\n".join(rows))
    found = list(read_otel(tmp_path / "x.jsonl"))
    assert [one.dur for one in found if one.kind == "tool"] == [pytest.approx(seconds, abs=1e-5)]
    assert [one.dur for one in found if one.kind == "human"] == [ended - began for _, began, ended in waits]


def test_spans_that_are_in_each_other_end(tmp_path: Path) -> None:
    rows = [otel_span("tool", "tool", *pair, 0, 9) for pair in (("a", "b"), ("b", "a"))]
    (tmp_path / "x.jsonl").write_text("\n".join([*rows, otel_span("blocked_on_user", "", "w", "a", 1, 2)]))
    assert [one.kind for one in read_otel(tmp_path / "x.jsonl")] == ["human"]


def test_the_normal_form_is_taken_at_its_word() -> None:
    assert told("spans.jsonl") == [("test", 6.0), ("build", 2.0), ("py", 1.0), ("sandbox", 1.5), ("human", 500.0)]
    assert [span.seconds[1] for span in read("spans.jsonl")][1:4] == ["internal", "cpu", "caller"]


def test_strace_is_summed_by_path_and_waits_are_apart() -> None:
    found = read_strace(SAMPLES / "strace.txt")
    assert {"M1", "M3", "M4", "M9", "wait"} <= set(found)
    total = next(line for line in (SAMPLES / "strace.txt").read_text().splitlines() if line.endswith("total")).split()
    assert sum(calls for calls, _ in found.values()) == int(total[3])
    assert sum(seconds for _, seconds in found.values()) == pytest.approx(float(total[1]), abs=1e-3)


BROKEN = {
    "cut line": ("claude.jsonl", lambda raw: raw[: len(raw) - 40], "claude", "line 21: the trace was cut"),
    "cut text": ("swe.traj", lambda raw: raw[: len(raw) // 2], "swe-agent", "was cut"),
    "no json": ("codex.jsonl", lambda raw: b"{'a': 1}\n" + raw, "codex", "line 1: is not JSON"),
    "a list": ("codex.jsonl", lambda raw: b"[1]\n" + raw, "codex", "line 1: holds a JSON list"),
    "no steps": ("swe.traj", lambda raw: b'{"trajectory": 3}', "swe-agent", "holds no list of steps"),
    "no totals": ("strace.txt", lambda raw: raw[: len(raw) - 60], "strace", "was cut"),
    "negative": ("spans.jsonl", lambda raw: raw.replace(b":9.0", b":-9.0"), "trace", "line 3: holds a time below 0"),
    "a kind": ("spans.jsonl", lambda raw: raw.replace(b'"llm"', b'"lamp"'), "trace", "line 2: the kind 'lamp'"),
    "a class": ("spans.jsonl", lambda raw: raw.replace(b'"py"', b'"px"'), "trace", "line 5: the class 'px'"),
    "a type": ("spans.jsonl", lambda raw: raw.replace(b'"step":3', b'"step":"3"'), "trace", "line 5: Expected"),
    "deep": ("codex.jsonl", lambda raw: raw + b'{"a":' * 100_000, "codex", "cut"),
    "packed": ("codex.jsonl", lambda raw: b"\x1f\x8b" + raw, "auto", "is packed with gzip"),
    "empty": ("codex.jsonl", lambda raw: b" \n", "auto", "is empty"),
    "unknown": ("codex.jsonl", lambda raw: b"hello\n", "auto", "its format is none of swe-agent, openhands"),
    "other json": ("codex.jsonl", lambda raw: b'{"a": 1}\n', "auto", "its format is none of"),
}  # fmt: skip


def everything(file: Path, form: str) -> None:
    for source in sources(file, form)[0]:
        if source.form == "strace":
            read_strace(source.path)
        else:
            list(spans(source))


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_refused_by_file_and_place(tmp_path: Path, name: str) -> None:
    sample, change, form, text = BROKEN[name]
    file = tmp_path / f"trace{Path(sample).suffix}"
    file.write_bytes(change((SAMPLES / sample).read_bytes()))
    with pytest.raises(UsageError) as caught:
        everything(file, form)
    assert text in str(caught.value)


def test_long_lines_and_long_texts_are_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpubench.traces.lines.MOST_LINE", 100)
    with pytest.raises(UsageError, match="line 2: a line of more than"):
        list(spans(Source(SAMPLES / "claude.jsonl", "claude")))
    monkeypatch.setattr("cpubench.traces.lines.MAX_BYTES", 100)
    with pytest.raises(UsageError, match="is one JSON text of 0 MB; at most 0 MB are read: give it in lines"):
        list(spans(Source(SAMPLES / "swe.traj", "swe-agent")))


def test_pipes_and_links_in_a_folder_are_passed_over(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "a.jsonl")
    (tmp_path / "b.jsonl").symlink_to("/dev/zero")
    (tmp_path / "c.jsonl").write_bytes((SAMPLES / "codex.jsonl").read_bytes())
    found, unknown = sources(tmp_path)
    assert ([one.path.name for one in found], unknown) == (["c.jsonl"], 2)
    (tmp_path / "c.jsonl").unlink()
    with pytest.raises(UsageError, match="holds no trace"):
        sources(tmp_path)


@pytest.mark.parametrize("name", [name for name in FORMS if name != "openhands"])
def test_nothing_in_a_file_is_a_traceback(tmp_path: Path, name: str) -> None:
    """Bytes that are dropped, doubled or replaced make another trace or a fault of one line."""
    rng, raw = random.Random(name), (SAMPLES / name).read_bytes()
    values = (b"null", b"-1", b"1e400", b"9" * 400, b'"\\ud800"', b"[]", b"{}", b"true", b'"x"', b"\xff", b"1" * 19)
    for _ in range(60):
        at = rng.randrange(len(raw))
        end = at + rng.choice((0, 1, 20, 200))
        file = tmp_path / f"trace{Path(name).suffix}"
        places = [(one.start(1), one.end(1)) for one in re.finditer(rb':\s?("[^"]*"|[-\d.]+|\[[^\[\]]*\])', raw)]
        if places and rng.random() < 0.7:
            at, end = rng.choice(places)
        file.write_bytes(raw[:at] + rng.choice((b"", *values)) + raw[end:])
        with suppress(UsageError):
            weights_from(file, FORMS[name], trace=None if name == "strace.txt" else tmp_path / "s", keep_commands=True)


def tree_span(number: str, parent: str, **attributes: str) -> str:
    """A span of 9 s by its number, the span that it is in, and its attributes."""
    span = json.loads(otel_span(attributes.pop("name", "POST"), "", number, parent, 0, 9))
    return json.dumps(span | {"attributes": {name.replace("__", "."): value for name, value in attributes.items()}})


TOOL = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": "bash"}
AGENT = {"gen_ai__operation__name": "invoke_agent"}
MODEL = {"openinference__span__kind": "LLM"}


@pytest.mark.parametrize(("chain", "calls"), [
    ([TOOL, TOOL], 1), ([TOOL, {}, TOOL], 1), ([TOOL, {}, {}, TOOL, {}, TOOL], 1), ([{}, TOOL, {}, {"name": "GET"}], 1),
    ([AGENT, {}, TOOL, {}, TOOL], 1), ([TOOL, {}, AGENT, {}, TOOL], 2), ([TOOL, MODEL, TOOL], 2),
    ([TOOL, {"name": "invoke_agent x"}, TOOL], 2), ([TOOL, {"openinference__span__kind": "CHAIN"}, TOOL], 1),
])  # fmt: skip
def test_a_tool_at_any_depth_in_a_tool_is_one_call(tmp_path: Path, chain: list[dict[str, str]], calls: int) -> None:
    """The client of the tool's server, and what else lies between, changes nothing; a model or an agent does."""
    rows = [tree_span(f"s{at}", f"s{at - 1}" if at else "", **one) for at, one in enumerate(chain)]
    (tmp_path / "x.jsonl").write_text("\n".join([*reversed(rows), tree_span("else", "")]))  # inner ones end first
    assert [one.kind for one in read_otel(tmp_path / "x.jsonl")].count("tool") == calls


def test_spans_in_each_other_around_a_tool_end(tmp_path: Path) -> None:
    rows = [tree_span(*pair) for pair in (("a", "b"), ("b", "a"), ("c", "c"))]
    rows += [tree_span("d", "b", **TOOL), tree_span("e", "c", **TOOL), tree_span("w", "b", name="blocked_on_user")]
    (tmp_path / "x.jsonl").write_text("\n".join(rows))
    assert [(one.kind, one.dur) for one in read_otel(tmp_path / "x.jsonl")] == [("tool", 9), ("tool", 9), ("human", 9)]


@pytest.mark.parametrize(("name", "tool"), [
    ("psql postgres://u:secret@h/db", ""), ("run secret", ""), ("secret", ""), ("execute_tools secret", ""),
    ("execute_tool bash", "bash"), ("execute_tool", ""),
])  # fmt: skip
def test_the_name_of_a_span_is_a_tool_only_where_it_says_so(tmp_path: Path, name: str, tool: str) -> None:
    """Else it may be a command line, which is written as its hash alone."""
    file, out = tmp_path / "x.jsonl", tmp_path / "spans.jsonl"
    given = {"process__command_line": "psql postgres://u:secret@h/db"}
    file.write_text(tree_span("a", "", name=name, **given) + "\n" + tree_span("b", "", **TOOL))
    assert next(read_otel(file)).tool == tool
    _, told = weights_from(file, trace=out)
    assert told["classes"]["db"]["calls"] == 1
    assert "secret" not in out.read_text() + json.dumps(told)


def longer(record: object, size: int) -> str:
    """The record with so long a text before all else in it."""
    assert isinstance(record, dict)
    return json.dumps({"note": "x" * size} | record)


@pytest.mark.parametrize("size", [1 << 16, 300_000])
@pytest.mark.parametrize("name", [*FORMS][1:-1])
def test_long_lines_at_the_front_change_nothing(tmp_path: Path, name: str, size: int) -> None:
    """Of each format in lines, of one record a line and of all in a list: the first, and what no line before tells."""
    if name == "openhands":
        records = [json.loads(file.read_text()) for file in sorted((SAMPLES / name / "events").iterdir())]
    elif name == "otel.json":
        records = [json.loads((SAMPLES / name).read_text())] * 2
    else:
        records = [json.loads(line) for line in (SAMPLES / name).read_text().splitlines()]
    rows = [longer(record, size if at < 2 else 1) for at, record in enumerate(records)]
    texts = [
        "\n".join(rows),
        "\n" + "\n".join(['{"type": "x"}', *rows] if FORMS[name] in ("claude", "codex") else rows),
    ]
    if FORMS[name] in ("openhands", "otel"):
        texts += [f"[{', '.join(rows)}]", f"[\n{', '.join(rows)}\n]"]
    plain = tmp_path / "plain.jsonl"
    plain.write_text("\n".join(json.dumps(record) for record in records))
    wanted = [(one.kind, one.tool, one.cmd, one.seconds) for one in spans(Source(plain, FORMS[name]))]
    assert wanted
    for at, text in enumerate(texts):
        file = tmp_path / f"{at}.json"
        file.write_text(text)
        for form in ("auto", FORMS[name]):
            (source,) = sources(file, form)[0]
            assert source.form == FORMS[name], at
            assert [(one.kind, one.tool, one.cmd, one.seconds) for one in spans(source)] == wanted, at
