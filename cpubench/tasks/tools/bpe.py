"""A byte-pair tokeniser: a text is cut into pieces by a pattern, and each piece's bytes are merged by rank.

As in the tokenisers of language models: pieces are cached, 10,000 at most, and most of a text's pieces are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

PIECES = re.compile(r" ?[A-Za-z]+| ?[0-9]{1,3}| ?[^\sA-Za-z0-9]+|\s+")
CACHED = 10_000

Pair = tuple[int, int]


def joined(tokens: list[int], pair: Pair, made: int) -> list[int]:
    """The tokens with each occurrence of a pair replaced."""
    out: list[int] = []
    for token in tokens:
        if out and (out[-1], token) == pair:
            out[-1] = made
        else:
            out.append(token)
    return out


def train(words: Iterable[tuple[str, int]], merges: int) -> list[Pair]:
    """The most frequent pairs in words with counts, one after another; ties go to the smaller pair."""
    table = [(list(word.encode()), count) for word, count in words]
    made: list[Pair] = []
    for number in range(merges):
        pairs: Counter[Pair] = Counter()
        for tokens, count in table:
            for pair in zip(tokens, tokens[1:]):  # noqa: B905, RUF007  # agents' Pythons are 3.10 and later, and this is the inner loop
                pairs[pair] += count
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        made.append(best)
        table = [(joined(tokens, best, 256 + number), count) for tokens, count in table]
    return made


def merged(piece: str, ranks: dict[Pair, int]) -> list[int]:
    """The tokens of a piece: of its neighbours, those with the lowest rank first."""
    tokens = list(piece.encode())
    while len(tokens) > 1:
        known = [ranks[pair] for pair in zip(tokens, tokens[1:]) if pair in ranks]  # noqa: B905, RUF007
        if not known:
            break
        lowest = min(known)
        pair = next(pair for pair in zip(tokens, tokens[1:]) if ranks.get(pair) == lowest)  # noqa: B905, RUF007
        tokens = joined(tokens, pair, lowest)
    return tokens


def tokenised(text: str, ranks: dict[Pair, int], cache: dict[str, list[int]]) -> list[int]:
    """The tokens of a text; ``cache`` is filled."""
    found: list[int] = []
    for piece in PIECES.findall(text):
        tokens = cache.get(piece)
        if tokens is None:
            if len(cache) >= CACHED:
                cache.clear()
            tokens = cache[piece] = merged(piece, ranks)
        found += tokens
    return found


def load(name: str) -> dict[Pair, int]:
    """The rank of each pair, as the token that it makes, from lines of two numbers."""
    with open(name) as file:
        rows = [row.split() for row in file]
    return {(int(a), int(b)): 256 + number for number, (a, b) in enumerate(rows)}
