"""A comparison as Markdown, for an issue or a pull request; foreign text in it can be neither markup nor a link."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from cpubench.report.comparison import Lines, differing, header, lists, rules, sentences, tables
from cpubench.results.parse import shown

Json = Mapping[str, Any]


def as_markdown(doc: Json) -> str:
    """The comparison document as GitHub's Markdown."""
    parts = ["\n".join(f"- {plain(text)}" for text in [*header(doc), *sentences(doc)]), *_lists(differing(doc))]
    parts += [table(heads, lines) for heads, lines in tables(doc)]
    return "\n\n".join([*parts, *_lists(lists(doc)), plain(rules(doc))]) + "\n"


def _lists(found: list[Lines]) -> list[str]:
    return [f"**{title}**\n\n" + "\n".join(f"- {plain(name)}: {plain(text)}" for name, text in named)
            for title, named in found]  # fmt: skip


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; heads of numbers begin with ">"."""
    rule = ["---:" if head.startswith(">") else "---" for head in heads]
    lines = [[plain(head.removeprefix(">")) for head in heads], rule, *([plain(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def plain(text: str) -> str:
    """The text on one line as Markdown shows it as it is; "@" is broken, or GitHub would call a user."""
    escaped = re.sub(r"([\\`*{}\[\]<>#|~!&]|\b_|_\b)", r"\\\1", shown(text, 2000))
    return re.sub(r"@(?=\w)", "@\u200b", escaped).replace("://", ":\u200b//")
