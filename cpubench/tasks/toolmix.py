"""T2: a tool-heavy agent: 200 short calls, each a fresh process, or all answered by one server over stdio.

The draw is weighted: database 25 %, transform 20, read 15, grep 12, script 12, settings 8, local HTTP 8. Nobody has
published a trace of such an agent: the shares define the task.
"""

from __future__ import annotations

from collections.abc import Callable

from cpubench.tasks.inputs import SEED, Source
from cpubench.tasks.steps import Place, Step

VERSION = 1
CHANNELS = ("process", "server")
COUNTS = {"sqlite": 50, "transform": 40, "read": 30, "grep": 24, "script": 24, "config": 16, "http": 16}
PHASES = {"sqlite": "db", "transform": "snippet", "read": "explore", "grep": "explore", "script": "snippet",
          "config": "edit", "http": "net"}  # fmt: skip
FOLDER = "mix"


def steps(place: Place, channel: str) -> list[Step]:
    """The steps of the task, always in the same order: a draw that changed from run to run would be other work."""
    source = Source(SEED + 2)
    kinds = [kind for kind, count in COUNTS.items() for _ in range(count)]
    kinds = [kinds[at] for at in sorted(range(len(kinds)), key=lambda _: source.getrandbits(32))]
    toolbox = place.tool("toolbox")
    made = [
        Step("copy", "copy", "fs.copy", place.tool("tree", "copy", f"{place.inputs}/mix", FOLDER), pythons=1),
        Step("load", "load", "db", (*toolbox, "load", "."), folder=FOLDER, pythons=1),
        Step("web", "serve", "env.setup", place.tool("web"), "start", "web", FOLDER, fixed=False, pythons=1),
    ]
    if channel == "server":
        made.append(Step("tools", "serve", "env.setup", (*toolbox, "serve"), "start", "tools", FOLDER, pythons=1))
    for number, kind in enumerate(kinds):
        label, argument = f"{kind}.{number}", _ARGUMENTS[kind](source)
        nested = int(kind == "script")
        if channel == "server":
            step = Step(label, kind, PHASES[kind], (kind, argument), "ask", "tools", FOLDER, pythons=nested)
        else:
            argv = (*toolbox, "call", kind, argument)
            step = Step(label, kind, PHASES[kind], argv, folder=FOLDER, pythons=1 + nested)
        made.append(step)
    if channel == "server":
        made.append(Step("tools.end", "serve", "teardown", action="stop", server="tools", folder=FOLDER, fixed=False))
    made.append(Step("web.end", "serve", "teardown", action="stop", server="web", folder=FOLDER, fixed=False))
    made.append(Step("remove", "remove", "teardown", place.tool("tree", "delete", FOLDER), pythons=1))
    return made


def _sqlite(source: Source) -> str:
    what = ("point", "point", "point", "range", "range", "write", "write", "scan", "join")[source.below(9)]
    return f"{what}:{source.below(19_000)}"


def _script(source: Source) -> str:
    n = 2000 + source.below(8000)
    return f"import json, re\nprint(sum(int(x) for x in re.findall('[0-9]+', json.dumps(list(range({n}))))))"


def _config(source: Source) -> str:
    ending = ("json", "ini")[source.below(2)]
    return f"settings_{source.below(5)}.{ending}:{source.below(1000)}"


def _http(source: Source) -> str:
    return f"{('GET', 'POST')[source.below(2)]}:{(200, 2000, 2000, 20_000)[source.below(4)]}"


_ARGUMENTS: dict[str, Callable[[Source], str]] = {
    "sqlite": _sqlite,
    "transform": lambda source: f"sales_{source.below(10)}.csv",
    "read": lambda source: f"text_{source.below(10)}.txt",
    "grep": lambda source: f"log_{source.below(4)}.txt:{source.word()}_[0-9]*{source.below(10)}:",
    "script": _script,
    "config": _config,
    "http": _http,
}
