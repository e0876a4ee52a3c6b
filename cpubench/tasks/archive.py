"""Zip archives whose bytes are the same everywhere.

zlib promises that its output unpacks, not which bytes it is: zlib-ng and other releases compress otherwise. So the
generated wheels are packed by a small encoder: LZ77 with one candidate per hash, and the fixed codes of RFC 1951.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable

LENGTHS = [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227]
LENGTH_BITS = [0] * 8 + [n for n in range(1, 6) for _ in range(4)]
STARTS = [1, 2, 3, 4] + [((2 + half) << n) + 1 for n in range(1, 14) for half in (0, 1)]
START_BITS = [0] * 4 + [n for n in range(1, 14) for _ in (0, 1)]
LONGEST, FARTHEST = 257, 32768  # the length 258 has a code of its own, which is left out


def _reversed(value: int, bits: int) -> int:
    """The bits in the other order: codes go into the stream from their most significant bit."""
    return int(f"{value:0{bits}b}"[::-1], 2)


def _symbol(n: int) -> tuple[int, int]:
    """(code, bits) of a literal or length in the fixed table of RFC 1951, 3.2.6."""
    for first, last, bits, code in ((0, 143, 8, 0x30), (144, 255, 9, 0x190), (256, 279, 7, 0), (280, 287, 8, 0xC0)):
        if first <= n <= last:
            return _reversed(code + n - first, bits), bits
    raise ValueError(n)


SYMBOLS = [_symbol(n) for n in range(288)]


def _coded(n: int, starts: list[int], extra: list[int], codes: list[tuple[int, int]]) -> tuple[int, int]:
    """(code and extra bits, their number) of a length or distance."""
    at = max(place for place, start in enumerate(starts) if start <= n)
    code, bits = codes[at]
    return code | (n - starts[at]) << bits, bits + extra[at]


LENGTH_CODES = [
    _coded(n, LENGTHS, LENGTH_BITS, SYMBOLS[257:]) if n >= LENGTHS[0] else (0, 0) for n in range(LONGEST + 1)
]
DISTANCE_CODES = [(_reversed(n, 5), 5) for n in range(30)]


def deflated(data: bytes) -> bytes:
    """A raw deflate stream of one block."""
    out, held, filled = bytearray(), 0b011, 3  # last block, fixed codes
    latest: dict[bytes, int] = {}
    distances: dict[int, tuple[int, int]] = {}
    at, end = 0, len(data)
    while at < end:
        key = data[at : at + 4]
        before, latest[key] = latest.get(key), at
        if before is None or at - before > FARTHEST or len(key) < 4:
            code, bits = SYMBOLS[data[at]]
            at += 1
        else:
            length = 4
            while length < LONGEST and at + length < end and data[before + length] == data[at + length]:
                length += 1
            code, bits = LENGTH_CODES[length]
            away = at - before
            if away not in distances:
                distances[away] = _coded(away, STARTS, START_BITS, DISTANCE_CODES)
            more, count = distances[away]
            code, bits = code | more << bits, bits + count
            at += length
        held |= code << filled
        filled += bits
        if filled >= 512:
            out += (held & (1 << 512) - 1).to_bytes(64, "little")
            held >>= 512
            filled -= 512
    code, bits = SYMBOLS[256]
    held |= code << filled
    filled += bits
    return bytes(out + held.to_bytes((filled + 7) // 8, "little"))


def zipped(members: Iterable[tuple[str, bytes]]) -> bytes:
    """A zip archive of names and contents, dated 1980-01-01 (APPNOTE.TXT 4.3)."""
    body, directory, count = bytearray(), bytearray(), 0
    for name, data in members:
        packed, label = deflated(data), name.encode()
        facts = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 0x21, zlib.crc32(data), len(packed), len(data), len(label), 0)
        directory += b"PK\1\2" + struct.pack("<H", 0x0314) + facts
        directory += struct.pack("<HHHII", 0, 0, 0, 0o100644 << 16, len(body)) + label
        body += b"PK\3\4" + facts + label + packed
        count += 1
    end = b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, count, count, len(directory), len(body), 0)
    return bytes(body + directory + end)
