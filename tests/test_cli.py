"""The command line beyond runs: help, shapes of the JSON, errors, speed, and a checkout that is not built."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import click
import made
import pytest

import cpubench as package
from cpubench.analysis.reference import make_reference
from cpubench.cli import cli
from cpubench.entry import main
from cpubench.errors import UsageError
from cpubench.measure.profiles import nanoseconds
from cpubench.power.levels import parse_level
from cpubench.results.load import load_run

COMMANDS = ["run", "list", "host", "check", "selftest", "score", "compare", "validate", "export", "reference", "report"]


@pytest.fixture
def run(tmp_path):
    """A made-up run in a folder, and a reference that is made of it."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps(made.made_run()))
    reference = tmp_path / "reference.json"
    reference.write_text(json.dumps(make_reference(load_run(folder), "made")))
    return folder, reference


def call(capsys, *arguments):
    """(exit code, stdout, stderr) of a call in this process."""
    code = main([str(argument) for argument in arguments])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_help_names_every_command_and_option_with_its_unit(capsys):
    _, out, _ = call(capsys, "--help")
    assert all(command in out for command in COMMANDS)
    for command in COMMANDS:
        code, out, _ = call(capsys, command, "--help")
        assert code == 0
        assert max(len(line) for line in out.splitlines()) <= 100


def test_check_has_the_documented_shape_and_a_page(capsys):
    code, out, err = call(capsys, "check", "--json")
    found = json.loads(out)
    assert (code, err, set(found)) == (0, "", {"checks"})
    assert {"governor", "turbo", "load", "virtual", "microcode"} <= {check["id"] for check in found["checks"]}
    for check in found["checks"]:
        assert set(check) == {"id", "status", "found", "wanted", "advice"}
    code, out, _ = call(capsys, "check")
    assert code == 0
    assert max(len(line) for line in out.splitlines()) <= 80
    assert all(check["id"] in out for check in found["checks"])


@pytest.mark.parametrize(("status", "expected"), [("ok", 0), ("unknown", 0), ("warn", 1)])
def test_only_a_warning_fails_a_strict_check(capsys, monkeypatch, status, expected):
    made = [{"id": "swap", "status": status, "found": "x", "wanted": "y", "advice": ""}]
    monkeypatch.setattr("cpubench.host.checks.checks", lambda clock_read_ns: made)
    assert call(capsys, "check", "--strict")[0] == expected
    assert call(capsys, "check", "--strict", "--json")[:2] == (expected, json.dumps({"checks": made}, indent=1) + "\n")
    assert call(capsys, "check")[0] == 0


def test_list_has_the_documented_shape(capsys):
    code, out, _ = call(capsys, "list", "--json")
    kernels = json.loads(out)["kernels"]
    assert code == 0
    assert {"spawn_fork_exec", "file_create", "switch_pipe", "lock_mutex", "mem_chase"} <= {k["name"] for k in kernels}
    for kernel in kernels:
        assert set(kernel) == {"name", "family", "unit", "version", "doc", "params", "flags"}
        assert all({"label", "scored", "needs", "here"} <= set(param) for param in kernel["params"])


def test_score_has_the_documented_shape(capsys, run):
    code, out, _ = call(capsys, "score", run[0], "--reference", run[1], "--json")
    document = json.loads(out)
    assert code == 0
    keys = ["suite", "reference", "host", "divisor", "scenario", "covers", "publishable", "notes", "headline"]
    assert set(document) >= {*keys, "families", "variants"}
    assert set(document["headline"]) == {"per_core", "per_watt", "speed", "equal_weights"}
    quantities = [*document["headline"].values(), *document["families"]["spawn"].values()]
    quantities += [document["variants"][0][name] for name in ("ns_per_op", "ops_per_s", "watts", "joules_per_op")]
    assert all(set(q) == {"value", "low", "high", "passes", "reason"} for q in quantities)
    assert document["headline"]["per_core"]["value"] == pytest.approx(1000)


def test_several_runs_are_a_list(capsys, run):
    code, out, _ = call(capsys, "score", run[0], run[0], "--reference", run[1], "--json")
    assert (code, set(json.loads(out)), len(json.loads(out)["runs"])) == (0, {"runs", "ranks"}, 2)
    (pair,) = json.loads(out)["ranks"]
    assert (pair["a"], pair["b"], pair["separable"]) == (0, 1, False)  # a run against itself
    code, out, _ = call(capsys, "score", run[0], run[0], "--reference", run[1])
    assert code == 0
    assert "run 1 and run 2 not separable: in 50 % of the draws" in " ".join(out.split())
    assert "Order per core" not in call(capsys, "score", run[0], "--reference", run[1])[1]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["score", "nowhere"], "missing"),
        (["score", "{run}", "--scenario", "gaming"], "scenario"),
        (["validate", "{run}/run.json/x"], "unreadable"),
        (["score"], "usage"),
        (["frobnicate"], "usage"),
        (["score", "{run}", "--frobnicate"], "usage"),
        (["export", "{run}", "--to", "xml", "-o", "x"], "usage"),
        (["export", "{run}", "--to", "csv", "-o", "no/such/folder/x"], "write"),
        (["export", "nowhere", "--to", "csv", "-o", "-"], "usage"),
        (["reference", "nowhere", "--name", "n", "-o", "-"], "usage"),
    ],
)
def test_errors_are_one_line_and_one_document(capsys, run, arguments, code):
    arguments = [argument.format(run=run[0]) for argument in arguments]
    exit_code, out, err = call(capsys, *arguments, "--json")
    assert exit_code == 2
    assert len(err.splitlines()) == 1
    assert err.startswith("cpubench: ")
    error = json.loads(out)["error"]
    assert set(error) == {"code", "text", "where"}
    assert error["code"] == code
    assert error["text"] in err


def test_the_file_of_inputs_is_a_document_too(capsys):
    assert json.loads(call(capsys, "model", "inputs", "--json")[1]) == {"toml": call(capsys, "model", "inputs")[1]}


def commands(group=cli, path=()):
    """(words, command) of every command that does something."""
    for name in group.list_commands(click.Context(group)):
        one = group.get_command(click.Context(group), name)
        if isinstance(one, click.Group):
            yield from commands(one, (*path, name))
        else:
            yield (*path, name), one


def options(metavar):
    """(words, option) of every option of all commands whose value is called so."""
    for path, command in commands():
        yield from ((path, one) for one in command.params if isinstance(one, click.Option) and one.metavar == metavar)


def test_every_command_takes_json():
    assert {path[0] for path, _ in commands()} >= set(COMMANDS)
    lacking = [
        path for path, command in commands() if "--json" not in [name for o in command.params for name in o.opts]
    ]
    assert lacking == []


def test_every_option_that_sets_a_level_names_all_that_it_takes():
    """`power verify` takes none that a load does not show."""
    found = {path: option for path, option in options("LEVEL") if "--cap" in option.opts}
    assert set(found) == {("run",), ("tasks", "run"), ("fleet", "plan"), ("power", "verify")}
    for path, option in found.items():
        for text in ("as-is", "70%", "proxy:freq=2.4GHz") if path != ("power", "verify") else ("70%",):
            assert text in option.help
            assert parse_level(text).name == text


@pytest.mark.parametrize("form", ["csv", "pytest-benchmark"])
def test_a_written_export_is_told_in_json(capsys, run, tmp_path, form):
    file = tmp_path / "out"
    code, out, err = call(capsys, "export", run[0], "--to", form, "-o", file, "--json")
    assert (code, json.loads(out), err) == (0, {"file": str(file), "form": form}, "")
    assert call(capsys, "export", run[0], "--to", form, "-o", "-")[1] == file.read_text()


def test_a_written_reference_is_told_in_json(capsys, tmp_path, monkeypatch):
    from cpubench.analysis import reference

    folder, file = tmp_path / "run", tmp_path / "r.json"
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps(made.made_run()))
    own = make_reference(load_run(folder), "shipped")
    monkeypatch.setattr(reference, "load_reference", lambda: own)
    code, out, err = call(capsys, "reference", folder, "--name", "mine", "-o", file, "--json")
    written = json.loads(file.read_text())
    assert (code, err) == (0, "")
    assert json.loads(out) == {"file": str(file), "name": "mine", "variants": len(written["variants"])}
    assert written["name"] == "mine"


def test_the_help_of_score_names_every_scenario_as_an_unknown_one_does(capsys, run):
    from cpubench.analysis.scenarios import load_scenarios

    shown, told = call(capsys, "score", "--help")[1], call(capsys, "score", run[0], "--scenario", "gaming")[2]
    named = shown[shown.index("--scenario") : shown.index("--reference")]
    for name in load_scenarios():
        assert name in named
        assert name in told


@pytest.mark.parametrize(
    ("text", "ns"), [("90", 90e9), ("90s", 90e9), ("10m", 600e9), ("1.5h", 5400e9), (" 2 m ", 120e9)]
)
def test_durations(text, ns):
    assert nanoseconds(text) == ns


@pytest.mark.parametrize("text", ["", "0", "0.0m", "0.0000000001", "99999999999h", "m", "-3s", "1d", "1e3", "nan"])
def test_no_durations(text):
    with pytest.raises(UsageError, match="no duration"):
        nanoseconds(text)


def test_a_wrong_duration_is_blamed_on_its_own_option(capsys):
    found = [(path, option.opts[0]) for path, option in options("TIME")]
    assert {name for _, name in found} == {"--budget", "--window", "--deadline"}
    for path, name in found:
        rest = ["nowhere"] if path[0] == "fleet" else []
        code, out, err = call(capsys, *path, *rest, name, "soon", "--json")
        assert (code, err) == (2, f"cpubench: {name}: 'soon' is no duration: write 90s, 10m or 1h\n")
        assert json.loads(out)["error"]["code"] == name.removeprefix("--")


def test_names_of_folders_are_never_printed_as_they_are(capsys, tmp_path):
    folder = tmp_path / "a\n\x1b[31m\udcff b"
    for command in (["score", str(folder)], ["run", "--resume", str(folder)], ["validate", str(folder), "--json"]):
        assert main(command) == 2
        told = capsys.readouterr()
        assert "\x1b" not in told.out + told.err
        assert len(told.err.splitlines()) == 1
        assert "a\\n\\x1b[31m" in told.err


def test_no_memory_is_one_line(capsys, monkeypatch):
    def nothing_left(*_):
        raise MemoryError

    monkeypatch.setattr("cpubench.scored.load_run", nothing_left)
    assert main(["score", "x"]) == 2
    assert capsys.readouterr().err == "cpubench: no memory is left to this process\n"


def test_a_broken_pipe_is_no_traceback(run):
    command = f"{shlex.quote(sys.executable)} -I -m cpubench list --json | head -c 1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""


def best(command, times=5):
    took = []
    for _ in range(times):
        began = time.monotonic()
        subprocess.run(command, capture_output=True, check=True)
        took.append(time.monotonic() - began)
    return min(took)


def test_help_and_score_are_quick_beside_an_empty_python(run):
    """As ratios of one run: `--help` takes 0.1 s and `score` 0.8 s where an empty interpreter takes 0.02 s."""
    python = [sys.executable, "-I"]
    empty = best([*python, "-c", "import json, click"])
    assert best([*python, "-m", "cpubench", "--help"]) < 3 * empty
    heavy = "import sys; sys.argv = ['x', '--help']; from cpubench.entry import main; main()"
    loaded = f"{heavy}; print(*(m for m in ('numpy', 'scipy', 'rich', 'msgspec', 'pytest') if m in sys.modules))"
    done = subprocess.run([*python, "-c", loaded], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == ""


def test_a_checkout_without_the_extension_names_the_fix(tmp_path):
    source = Path(package.__file__).parent
    skip = shutil.ignore_patterns("*.so", "_bin", "__pycache__", "_native.c")
    shutil.copytree(source, tmp_path / "cpubench", ignore=skip)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    # An editable install has a finder that would give the extension all the same.
    script = (
        "import sys; sys.meta_path = [f for f in sys.meta_path if 'ditable' not in repr(f)]; import cpubench.entry as c"
    )
    for command in (["list"], ["run"], ["list", "--json"]):
        python = [sys.executable, "-c", f"{script}; sys.exit(c.main({command!r}))"]
        done = subprocess.run(python, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
        assert "build it with `pip install .`" in done.stderr


def test_the_program_that_may_not_be_executed_is_named(tmp_path, monkeypatch):
    from cpubench.measure import programs

    plain = tmp_path / "cpubench-copy"
    plain.write_text("x")
    monkeypatch.setattr(programs, "COPY", plain)
    assert programs.fault() == f"{plain} may not be executed (no x bit, or a file system mounted noexec)"
    monkeypatch.setattr(programs, "COPY", tmp_path / "none")
    assert "is missing: install cpubench again" in programs.fault()
