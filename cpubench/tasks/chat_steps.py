"""The steps of T5 with one session: the host and a client are started, forty turns, an audit of what the host kept."""

from __future__ import annotations

from cpubench.tasks.steps import Place, Step

VERSION = 1
SIZES = {"1k": 2_750, "32k": 89_000, "119k": 331_000}  # bytes of a prompt with about so many tokens
BEFORE = 2  # steps until the host stands
TURNS = 40


def steps(place: Place, context: str) -> list[Step]:
    text, merges = f"{place.inputs}/chat/text.txt", f"{place.inputs}/chat/merges.txt"
    client = place.tool("chat_client", "serve", text, str(SIZES[context]))
    made = [
        Step("copy", "copy", "fs.copy", place.tool("tree", "copy", f"{place.inputs}/chat", "chat"), pythons=1),
        Step("host", "serve", "env.setup", place.tool("chat_host", "serve", "0", merges), "start", "host", "chat",
             fixed=False, pythons=1),
        Step("client", "client", "env.setup", client, "start", "client", "chat", fixed=False, load=True),
    ]  # fmt: skip
    made += [Step(f"turn.{n}", "turn", "net", ("turn", str(n)), "ask", "client", "chat", charged="host")
             for n in range(TURNS)]  # fmt: skip
    return [
        *made,
        Step("client.end", "client", "teardown", action="stop", server="client", folder="chat", fixed=False, load=True),
        Step("host.end", "serve", "teardown", action="stop", server="host", folder="chat", fixed=False),
        Step("audit", "audit", "db", place.tool("chat_host", "audit"), folder="chat", pythons=1),
        Step("remove", "remove", "teardown", place.tool("tree", "delete", "chat"), pythons=1),
    ]
