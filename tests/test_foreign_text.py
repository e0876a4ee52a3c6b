"""Whatever the strings of a run file hold, what is printed of them is text: on a terminal, in Markdown, in JSON."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from broken import reseal
from hypothesis import given
from hypothesis import strategies as st
from made import made_run
from many import many

from cpubench.analysis.reference import make_reference
from cpubench.entry import main
from cpubench.errors import UsageError
from cpubench.report.html.page import can_report
from cpubench.results.files import canonical
from cpubench.results.load import load_run

Doc = dict[str, Any]
Path_ = tuple[str | int, ...]
EVIL = "\x1b]0;own\x07\x1b[2J\r\n\x00\x7f\x9b1m\u202e\u2028<script>alert(1)</script>[x](javascript:y)|`@all`"
PARTS = ["<img src=x>", "[bold]", "\ud7ff", "\U0001f600", "a", "\x85", "=1+1"]
TEXT = st.lists(st.sampled_from([*EVIL, *PARTS]), max_size=30)


def base() -> Doc:
    """A run that has a string in every place where there can be one."""
    document = made_run(8)
    document["host"] |= {"cpu_vendor": "v", "arch": "a", "kernel": "k", "governor": "g", "cpus_allowed": "0-1",
                         "mitigations": {"meltdown": "no"}, "virtual": "kvm", "microcode": "m", "reasons": {"a": "b"},
                         "notes": {"a": "b"}, "caches": [{"kind": "Data"}]}  # fmt: skip
    document["notes"] = ["note"]
    document["plan"]["skipped"] = [{"variant": "io_read@1", "reason": "why", "scored": True}]
    document["plan"]["side"] = {"pair": "p", "label": "a", "settings": {"NAME": "value"}}
    for one in document["passes"]:
        cells, where = one["blocks"][0]["cells"], one["blocks"][0]
        cells[3]["obtained"] |= {"tmpfs": "private", "file_system": "ext4", "mount_options": "rw", "shell": "dash"}
        empty = {name: [] for name in cells[5]["samples"]}
        cells[5] |= {"error": "EPERM", "samples": empty, "copy_ops": [], "copy_elapsed_ns": []}
        counters: dict[str, Any] = {"before": {"t_ns": 1}, "after": {"t_ns": 2}, "reasons": {"irq_ns": "why"}}
        where["environment"] = counters | {"busiest": [{"name": "gcc", "took_ns": 1}]}
    return document


def places(value: Any, at: Path_ = ()) -> Iterator[Path_]:
    """Where strings stand in a document, and where keys of objects do (as their path and the key "")."""
    if isinstance(value, str):
        yield at
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from places(one, (*at, number))
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from places(one, (*at, key))


def kind(at: Path_) -> str:
    return ".".join(str(step) for step in at if not isinstance(step, int))


def put(document: Doc, wanted: str, text: str) -> Doc:
    """The document with a text in each place of a kind, sealed."""
    made = copy.deepcopy(document)
    for at in list(places(made)):
        if kind(at) == wanted:
            where = made
            for step in at[:-1]:
                where = where[step]  # type: ignore[index]
            where[at[-1]] = text  # type: ignore[index]
            if wanted in ("host.mitigations.meltdown", "plan.build.flags", "imported.numpy", "host.reasons.a"):
                where[text] = where.pop(at[-1])  # type: ignore[index,call-overload]
    return reseal(made)


KINDS = sorted({kind(at) for at in places(base())} - {"sha256", "passes.blocks.sha256"})
# What is no word of ours is text: all others are refused where they hold anything else.
FREE = [
    "host.arch", "host.caches.kind", "host.cpu_model", "host.cpu_vendor", "host.cpus_allowed", "host.governor",
    "host.hostname", "host.id", "host.kernel", "host.microcode", "host.mitigations.meltdown", "host.notes.a",
    "host.reasons.a", "host.virtual", "imported.numpy", "notes", "passes.blocks.cells.error",
    "passes.blocks.cells.obtained.file_system", "passes.blocks.cells.obtained.mount_options",
    "passes.blocks.cells.obtained.shell", "passes.blocks.cells.obtained.tmpfs",
    "passes.blocks.environment.busiest.name", "passes.blocks.environment.reasons.irq_ns", "plan.build.compiler",
    "plan.build.copy_sha256", "plan.build.flags", "plan.cpubench", "plan.created_utc", "plan.host_id",
    "plan.side.pair", "plan.side.settings.NAME", "plan.skipped.reason",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run to compare with, and a reference; ``evil.json`` is made in each test."""
    made = tmp_path_factory.mktemp("text")
    (made / "plain.json").write_bytes(canonical(made_run(8, seed=1)))
    (made / "reference.json").write_text(json.dumps(make_reference(load_run(made / "plain.json"), "made")))
    return made


@pytest.mark.parametrize("name", KINDS)
def test_every_string_is_a_word_of_ours_or_free(folder: Path, name: str) -> None:
    file = folder / "evil.json"
    file.write_bytes(canonical(put(base(), name, EVIL)))
    if name in FREE:
        load_run(file)
        return
    with pytest.raises(UsageError) as caught:
        load_run(file)
    assert str(caught.value).isprintable()


def harmless(folder: Path) -> list[int]:
    """The exit codes of all commands that read the evil run; nothing that they print acts on what shows it."""
    evil, plain, reference = (str(folder / f"{name}.json") for name in ("evil", "plain", "reference"))
    commands = [
        ["validate", evil], ["validate", evil, "--json"],
        *(["score", *runs, "--reference", reference, *more]
          for runs in ([evil], [evil, plain]) for more in ([], ["--json"])),
        *(["compare", plain, evil, "--reference", reference, *more] for more in ([], ["--json"], ["--markdown"])),
        *(["export", evil, "--to", form, "-o", "-"] for form in ("csv", "pytest-benchmark")),
        *(["report", *runs, "--reference", reference, "-o", "-"] for runs in ([evil, plain],) if can_report()),
    ]  # fmt: skip
    codes = []
    for command in commands:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            codes.append(main(command))
        told = out.getvalue()
        for stream in (told, err.getvalue()):
            broken = {"\u200b"} if "--markdown" in command else set()  # after "@" and ":", or they would be live
            assert {c for c in stream if not c.isprintable()} <= {"\n"} | broken, command
        assert "<script" not in told or command[0] != "report"
        if "--markdown" in command:
            assert not re.search(r"(?<!\\)<|(?<!\\)\[x|javascript://|@all", told)
            assert all(line.count(" | ") == 0 or line.startswith("| ") for line in told.splitlines())
        if codes[-1] == 0 and ("--json" in command or "pytest-benchmark" in command):
            json.loads(told)
    return codes


def test_all_free_strings_at_once_are_harmless(folder: Path) -> None:
    document = base()
    for name in FREE:
        document = put(document, name, EVIL)
    (folder / "evil.json").write_bytes(canonical(document))
    codes = harmless(folder)
    assert codes.count(0) >= 8, codes  # what refuses says little


@many(5)
@given(texts=st.lists(TEXT.map("".join), min_size=len(FREE), max_size=len(FREE)))
def test_any_text_is_harmless(folder: Path, texts: list[str]) -> None:
    document = base()
    for name, text in zip(FREE, texts, strict=True):
        document = put(document, name, text)
    (folder / "evil.json").write_bytes(canonical(document))
    harmless(folder)
