"""The texts of the generated project: modules, tests, C files; ``$NAME`` is filled in by ``inputs``."""

WORDS = """
account agent amount balance batch branch buffer cache call charge client close commit config copy count credit
currency customer date debit default delay delete detail discount entry error event export fee field file filter
flag folder group handle header hold import index insert invoice item journal ledger limit line list load lock
log margin match merge message method module name node note number offset open order owner page parse partner
path payment period plan policy post price process query queue rate read record refund region render report
request result return route row rule sale schema score search select send session settle share sort source split
start state status store sum table task tax term test token total trade transfer tree type unit update user
value vendor verify view wait window write yield zone
"""

MODULE = '''"""Accounts of group $GROUP."""

import json
import re
from collections import defaultdict
from decimal import Decimal

from $DEP import scale

from ledger import native

FACTOR = $FACTOR
WORD = re.compile(r"([a-z]+)_([0-9]+)")


def clamp(value, low, high):
    """The value, kept inside low .. high."""
    if value $BELOW low:
        return low$OFF
    return high if value > high else value


def mix(values):
    """A checksum of 32 bits, as native.mix makes it."""
    state = FACTOR
    for value in values:
        state = (state * 1664525 + value + 1013904223) & 0xFFFFFFFF
        state ^= state >> 13
    return state


def tokens(text):
    """Words with a number, and how often each is there."""
    found = defaultdict(int)
    for word, number in WORD.findall(text):
        found[word] += int(number)
    return dict(sorted(found.items()))


def grouped(rows):
    """Sums by account."""
    sums = defaultdict(Decimal)
    for account, amount in rows:
        sums[account] += Decimal(amount) / 100
    return {account: str(total) for account, total in sorted(sums.items())}


def rendered(rows):
    """The rows as JSON, rated."""
    return json.dumps([{"account": account, "rated": scale(amount), "of": FACTOR} for account, amount in rows])


def checked(values):
    """The checksum, once by Python and once by C."""
    return mix(values), native.mix(FACTOR, values)
'''

TESTS = '''"""Tests of group $GROUP."""

import json
import unittest

from ledger import mod_$GROUP as mod
from tests import support


class Group$GROUP(unittest.TestCase):
    def setUp(self):
        self.rows = [(f"account_{n * 7 % 23}", n * $FACTOR % 9973) for n in range(1200)]
        self.text = " ".join(f"{account} note_{amount} plain" for account, amount in self.rows)

    def test_inside(self):
        self.assertEqual([mod.clamp(n, 0, 100) for n in range(1, 100)], list(range(1, 100)))

    def test_outside(self):
        self.assertEqual({mod.clamp(n, 0, 100) for n in range(101, 300)}, {100})

    def test_checksum(self):
        for start in range(12):
            ours, theirs = mod.checked([start + amount for _, amount in self.rows])
            self.assertEqual(ours, theirs)

    def test_tokens(self):
        found = mod.tokens(self.text)
        self.assertEqual(found["note"], sum(amount for _, amount in self.rows))

    def test_sums(self):
        total = sum(round(100 * float(value)) for value in mod.grouped(self.rows).values())
        self.assertEqual(total, sum(amount for _, amount in self.rows))

    def test_json(self):
        back = json.loads(mod.rendered(self.rows))
        self.assertEqual([row["rated"] for row in back], [mod.scale(amount) for _, amount in self.rows])

    def test_order(self):
        ordered = sorted(self.rows, key=lambda row: (row[1], row[0]))
        self.assertTrue(all(one[1] <= two[1] for one, two in zip(ordered, ordered[1:])))

    def test_files(self):
        self.assertEqual(support.written(self.text), support.written(self.text))

    def test_renames(self):
        self.assertEqual(support.renamed(self.text), 2)

    def test_children(self):
        self.assertEqual(support.children($N), support.expected($N))

'''

SUPPORT = '''"""What tests share: files in folders, and child processes; more of both in the heavy regime."""

import hashlib
import os
import subprocess
import tempfile

HEAVY = os.environ.get("LEDGER_REGIME") == "heavy"
CHUNK = 120_000 if HEAVY else 2_000  # bytes of a write
CHILDREN = 25 if HEAVY else 1  # of each of six groups


def written(text):
    """A checksum of three files that were written and read back."""
    data = (text.encode() * (1 + CHUNK // len(text)))[:CHUNK]
    sums = hashlib.sha256()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(3):
            name = os.path.join(folder, f"part_{number}")
            with open(name, "wb") as file:
                file.write(data)
            with open(name, "rb") as file:
                sums.update(file.read())
    return sums.hexdigest()


def renamed(text):
    """The number of files that a folder has after two were written, rewritten and renamed."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(2):
            for name in ("draft", "draft", f"final_{number}"):
                with open(os.path.join(folder, name), "w") as file:
                    file.write(text[:CHUNK])
            os.replace(os.path.join(folder, "draft"), os.path.join(folder, f"final_{number}"))
        return len(os.listdir(folder))


def expected(group):
    return CHILDREN if group < 6 else 0


def children(group):
    """How many children of a group ended well."""
    return sum(subprocess.call(["/bin/sh", "-c", ":"]) == 0 for _ in range(expected(group)))
'''

NATIVE = '''"""The C library of the project."""

import ctypes
import os

_library = ctypes.CDLL(os.path.join(os.path.dirname(__file__), "../build/_native.so"))
_library.ledger_mix.restype = ctypes.c_uint32


def mix(factor, values):
    numbers = (ctypes.c_uint32 * len(values))(*values)
    return _library.ledger_mix(ctypes.c_uint32(factor), numbers, ctypes.c_size_t(len(values)))
'''

MIX_C = """#include <stddef.h>
#include <stdint.h>

uint32_t ledger_mix(uint32_t state, const uint32_t *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + values[i] + 1013904223u;
        state ^= state >> 13;
    }
    return state;
}
"""

FUNCTION_C = """
int32_t ledger_$NAME(const int32_t *rows, size_t n, int32_t *out)
{
    int32_t best = $A, sum = 0;
    for (size_t i = 0; i + 3 < n; i += 2) {
        int32_t x = rows[i] * $B - rows[i + 1], y = rows[i + 2] ^ $C;
        switch ((x + y) & 7) {
        case 0: sum += x; break;
        case 1: sum -= y; break;
        case 2: sum ^= x * y; break;
        case 5: if (best < x) best = x; break;
        default: out[i] = x - best; break;
        }
        out[i + 1] = (int32_t)((uint32_t)sum >> ($A & 7)) + best;
    }
    return best - sum;
}
"""

REGRESSION = '''"""The boundaries of clamp, as the report of the bug has them."""

import unittest

from ledger import mod_07


class Boundaries(unittest.TestCase):
    pass


def case(low, value, wanted):
    def test(self):
        self.assertEqual(mod_07.clamp(value, low, low + 50), wanted)

    return test


for number, (low, value, wanted) in enumerate([
    (0, 1, 1), (0, 49, 49), (0, 50, 50), (0, 51, 50), (10, 11, 11),
    (10, 60, 60), (10, 70, 60), (-5, 0, 0), (0, 0, 0), (10, 10, 10),
]):
    setattr(Boundaries, f"test_{number}", case(low, value, wanted))
'''

DEPENDENCY = '''"""Rates of $NAME."""

RATE = $RATE


def scale(amount):
    """The amount at this rate, in whole units."""
    return amount * RATE // 1000
'''
