"""Calls are told apart by their tools and commands as agents write them."""

from __future__ import annotations

import pytest

from cpubench.traces.classify import classified, of_command, work
from cpubench.traces.lines import command_of
from cpubench.traces.span import Span

COMMANDS = {
    "test": [
        "pytest", "cd /testbed && python -m pytest tests/ -x 2>&1 | tail -20", "python3 -m unittest discover -v",
        "CI=1 npm test -- --watch=false", "npm run test:unit", "yarn test", "go test ./...", "cargo test --all",
        "make check",
        "python manage.py test app", "./tests/runtests.py admin", "bash -lc 'pytest -q'", "uv run pytest",
        "tox -e py311",
        "timeout 120 python tests/test_cart.py", "poetry run python -m pytest", "mvn -q test",
        "ctest --output-on-failure",
        "python -m coverage run -m pytest", "sudo -E env A=1 pytest", "pip install -e . && pytest",
    ],
    "install": ["pip install -r requirements.txt", "python -m pip install .", "apt-get update && apt-get install -y jq",
                "npm ci", "uv pip install x", "python -m venv .venv", "python setup.py develop", "go mod download"],
    "build": ["make -j4", "gcc -O2 a.c -o a", "cargo build --release", "python setup.py build_ext --inplace",
        "npm run build",
              "cmake -B build && cmake --build build", "go vet ./..."],
    "py": ["python -c 'import pytest; print(1)'", "python script.py",
        "python3 - <<'EOF'\nimport pytest\npytest.main()\nEOF",
           "node -e 'console.log(1)'", "./tools/report.py"],
    "git": ["git status", "git diff HEAD~1 | head -50", "cd a; git log --oneline"],
    "search": ["grep -rn 'def total' . | head", "find . -name '*.py'", "rg --files", "search_dir total shop"],
    "read": ["cat a.py", "ls -la", "sed -n '1,80p' a.py", "head -20 a.py | nl", "open shop/cart.py 10",
             "str_replace_editor view /a.py", "cat /proc/cpuinfo > /dev/null", "2>/dev/null cat x"],
    "edit": ["sed -i 's/a/b/' x.py", "cat > x.py <<'EOF'\nimport pytest\nmake test\nEOF", "echo x >> y", "rm -rf build",
             "mkdir -p a/b && cp x a/b", "str_replace_editor create /a.py", "apply_patch <<EOF\nx\nEOF"],
    "db": ["sqlite3 shop.db 'select 1'", "psql -c 'select 1'"],
    "net": ["curl -s http://localhost:8000/health", "wget -qO- 127.0.0.1:80"],
    "remote": ["curl https://example.org", "git push origin main", "gh pr create", "ssh host make test",
        "git clone https://x/y"],
    "sandbox": ["docker run --rm x true", "bwrap --ro-bind / / true"],
    "other": ["", "sleep 30", "echo done", "cd /x", "export A=1", "true # make test", "'"],
}  # fmt: skip


@pytest.mark.parametrize("cls", COMMANDS)
def test_commands(cls: str) -> None:
    assert {command: of_command(command) for command in COMMANDS[cls]} == dict.fromkeys(COMMANDS[cls], cls)


def test_tools() -> None:
    made = {
        name: work(name, "") for name in ("Read", "Grep", "Write", "WebSearch", "ExitPlanMode", "Task", "TodoWrite")
    }
    assert made == {"Read": "read", "Grep": "search", "Write": "edit", "WebSearch": "remote", "ExitPlanMode": "human",
                    "Task": "llm", "TodoWrite": "other"}  # fmt: skip
    assert [work(f"mcp__{name}", "") for name in ("postgres__query", "github__get_issue", "fs__read_file", "x__y")] == [
        "db", "remote", "read", "other",
    ]  # fmt: skip


def test_a_class_that_is_given_stays() -> None:
    given = Span(kind="tool", cls="net", cmd="pytest")
    assert classified(given) is given
    assert classified(Span(kind="human", cmd="pytest")).cls == "other"
    assert classified(Span(kind="sandbox")).cls == "sandbox"
    assert (classified(Span(tool="WebFetch")).kind, classified(Span(tool="bash", cmd="pytest")).kind) == (
        "remote",
        "tool",
    )


def test_no_text_is_too_strange() -> None:
    for text in (
        "((((",
        "a'b\"c",
        "<<<<EOF",
        "\x00\x1b[31m",
        "é" * 5000,
        "bash -c " * 500,
        "\n;\n&&||",
        "2>&1 > x",
        "<",
    ):
        assert of_command(text) in (*COMMANDS,)


CARRIED = [
    "nice -n 10", "nice -10", "nice --adjustment 5", "timeout -k 5 60", "timeout -s KILL 1m", "timeout --signal=KILL 9",
    "timeout --kill-after 5 -v 60", "timeout 60", "sudo -u postgres", "sudo -Eu postgres", "sudo -upostgres -n",
    "sudo --user postgres --", "xargs -0 -P 4 -n1", "xargs -I {}", "xargs -d '\\n' -L 1", "env -u A -C x B=1",
    "env --unset A", "ionice -c 2 -n 7", "ionice -c3", "stdbuf -o L -eL", "time -f '%e s'", "time -p", "exec -a x",
    "A=1 sudo -u x nice -n 5 timeout -k 1 9", "conda run -n testbed", "uv run --with x -p 3.12", "poetry -C app run",
    "xargs -n 1", "uv --directory app run", "npx -p x", "find . | xargs -n 1",
]  # fmt: skip


@pytest.mark.parametrize("carrier", CARRIED)
def test_options_of_what_carries_a_command_and_their_values_are_none_of_its(carrier: str) -> None:
    found = {
        command: of_command(f"{carrier} {command}") for command in ("pytest -n 4", "psql -c 'select 1'", "make -j8")
    }
    assert found == {"pytest -n 4": "test", "psql -c 'select 1'": "db", "make -j8": "build"}
    assert of_command(carrier) in ("other", "search")  # nothing is carried


@pytest.mark.parametrize("words", [
    ["bash", "-lc", 'echo "done here" && pytest -q'], ["bash", "-lc", "echo it\\'s; pytest -k 'a b'"],
    ["sh", "-c", "cat > x <<'EOF'\n\"a\nEOF\npytest"], ["pytest", "-k", "a and (b"], ["timeout", 60, "pytest"],
])  # fmt: skip
def test_a_command_in_words_is_the_same_as_in_text(words: list[object]) -> None:
    """A word may hold spaces, quotes and lines; the list is under a name, or is all there is."""
    for given in (words, {"command": words}, {"cmd": words, "workdir": "/x"}):
        assert of_command(command_of(given)) == "test"
    assert command_of({"command": "a b"}) == command_of("a b") == "a b"
    assert [command_of(given) for given in ([], {"command": []}, [{"role": "user"}], None, 3)] == [""] * 5
