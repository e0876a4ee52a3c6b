"""What a call was: its class of work, and whether this host did it, another one, a model or a person."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import lru_cache

from msgspec import structs

from cpubench.traces.known import (
    ARGUMENTS,
    CARRIERS,
    MODULES,
    ORDER,
    PROGRAMS,
    RUNNERS,
    SHELLS,
    TOOLS,
    VALUED,
    WORDS,
)
from cpubench.traces.span import Span

LONGEST_S = 3600.0  # of a call by its caller's clock alone; harnesses end theirs after 2 to 10 minutes
MOST = 4000  # characters of a command that are looked at
HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1([^\n]*)\n.*?^\s*\2\s*$", re.DOTALL | re.MULTILINE)
PYTHON = re.compile(r"(python|pypy)[\d.]*$")
TEST_FILE = re.compile(r"(^|/)(run_?tests?|tests?_[^/]*|[^/]*_tests?|tests?)\.(py|js|sh|rb)$")
LOCAL = re.compile(r"localhost|127\.0\.0\.1|\[::1\]|0\.0\.0\.0")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
WHERE = {"human": "human", "llm": "llm", "remote": "remote", "sandbox": "sandbox"}  # classes that are kinds


def classified(span: Span) -> Span:
    """The span with its kind and its class; one that has a class, or that is of no tool, keeps both."""
    if span.cls or span.kind in ("llm", "human", "remote"):
        return span if span.cls else structs.replace(span, cls="other")
    if span.kind == "sandbox":
        return structs.replace(span, cls="sandbox")
    found = work(span.tool, (span.cmd or "")[:MOST])
    kind = WHERE.get(found, "tool")
    return structs.replace(span, kind=kind, cls="other" if kind in ("human", "llm", "remote") else found)


@lru_cache(maxsize=1024)
def work(tool: str, command: str) -> str:
    """The class of a call, or "human", "llm" or "remote" where no CPU of this host worked for it."""
    name = tool.lower()
    found = TOOLS.get(name)
    if found == "editor":
        return "read" if command.split()[:1] == ["view"] else "edit"
    if found == "shell" or (found is None and not name):
        return of_command(command)
    if found is None:
        words = re.split(r"[^a-z0-9]+", name)
        found = next((WORDS[word] for word in words if word in WORDS), None)
        return found or (of_command(command) if command and " " in command else "other")
    return found


def of_command(command: str, depth: int = 0) -> str:
    """The class of a command line: of its heaviest part."""
    found = {_of_part(words, writes, depth) for words, writes in parts(HEREDOC.sub(r"<<\2 \3", command))}
    return next((cls for cls in ORDER if cls in found), "other")


def parts(command: str) -> Iterator[tuple[list[str], bool]]:
    """The simple commands of a command line, as words, each with whether its output goes to a file."""
    words: list[str] = []
    writes, redirected, stream = False, "", ""
    for token in [*_tokens(command), ";"]:
        signs = set(token) <= set("><&|;()\n") and token
        if signs and ("<" in token or ">" in token):
            redirected, stream = token, words.pop() if words[-1:] in (["1"], ["2"]) else ""
        elif signs:
            if words:
                yield words, writes
            words, writes, redirected = [], False, ""
        elif redirected:
            to_file = redirected in (">", ">>", ">|") and not token.startswith("/dev/")
            writes = writes or (to_file and stream != "2")
            redirected = ""
        else:
            words.append(token)


def _tokens(command: str) -> list[str]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace, lexer.commenters, lexer.whitespace_split = " \t\r", "", True
    try:
        return list(lexer)
    except ValueError:  # a quote that is not closed: cut, or text that is no shell
        return re.findall(r"[;&|()\n]+|[^\s;&|()]+", command)


def _of_part(words: list[str], writes: bool, depth: int) -> str:
    while words and (ASSIGNMENT.match(words[0]) or words[0] in CARRIERS or words[0].startswith("-")):
        words = _after_options(words[0], words[1:])[CARRIERS.get(words[0], 0) :]
    if not words:
        return "other"
    program, rest = words[0].rpartition("/")[2], words[1:]
    plain = [word for word in rest if not word.startswith("-")]
    after = _after_options(program, rest)
    if program in RUNNERS and after[:1] == ["run"]:
        return _of_part(_after_options(program, after[1:]), writes, depth)
    if program in SHELLS:
        flag = next((at for at, word in enumerate(rest) if re.fullmatch(r"-[a-z]*c", word)), None)
        inner = " ".join(rest[flag + 1 : flag + 2]) if flag is not None else ""
        return of_command(inner, depth + 1) if inner and depth < 3 else _of_script(plain, "other")
    if PYTHON.match(program) or program in ("node", "ruby", "perl", "php"):
        return _of_interpreter(rest, plain)
    if program in ("str_replace_editor", "file_editor"):
        return "read" if plain[:1] == ["view"] else "edit"
    if program in ARGUMENTS and plain:
        found = ARGUMENTS[program].get(plain[0])
        if found == "build" and plain[0] == "run" and plain[1:] and "test" in plain[1]:
            return "test"  # npm run test
        if found:
            return found
    found = PROGRAMS.get(program) or _of_script([words[0]], "other")
    if found == "net":
        return "net" if any(LOCAL.search(word) for word in plain) else "remote"
    if program == "sed" and any(re.match(r"-[a-zA-Z]*i|--in-place", word) for word in rest):
        return "edit"
    return "edit" if writes and (found == "read" or program in ("echo", "printf", "cat")) else found


def _after_options(program: str, words: list[str]) -> list[str]:
    """The words behind the options at the front, and behind the values of those that have one."""
    valued = VALUED.get(program, "").split()
    while words and words[0].startswith("-"):
        letters = [] if words[0].startswith("--") else [f"-{letter}" in valued for letter in words[0][1:]]
        # Of letters in one word the first that wants a value takes the rest of the word, or else the next one.
        separate = letters.index(True) == len(letters) - 1 if True in letters else words[0] in valued
        words = words[1 + separate :]
    return words


def _of_interpreter(rest: list[str], plain: list[str]) -> str:
    if "-m" in rest:
        module = rest[rest.index("-m") + 1 :][:1]
        return MODULES.get(module[0].partition(".")[0], MODULES.get(module[0], "py")) if module else "py"
    if plain and plain[0].endswith("setup.py"):
        return "build" if any(word.startswith("build") for word in plain[1:]) else "install"
    if plain[:1] and plain[0].endswith("manage.py") and plain[1:2] == ["test"]:
        return "test"
    return "py" if "-c" in rest else _of_script(plain, "py")


def _of_script(plain: list[str], otherwise: str) -> str:
    if plain and TEST_FILE.search(plain[0]):
        return "test"
    return "py" if plain and plain[0].endswith(".py") else otherwise
