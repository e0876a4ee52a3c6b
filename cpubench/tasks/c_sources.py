"""The C project of the task that builds: units of whole-number functions, whose results are computed here as well."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from string import Template

from cpubench.tasks.cbuild import BROKEN, UNITS, WIDE

FUNCTIONS, ROUNDS, MASK = 6, 400, 0xFFFFFFFF
COMMON = """#ifndef COMMON_H
#define COMMON_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline uint32_t mixed(uint32_t state, uint32_t value)
{
    state = state * 1664525u + value + 1013904223u;
    return state ^ state >> 13;
}
#endif
"""
WIDE_H = '#ifndef WIDE_H\n#define WIDE_H\n#include "common.h"\n/* shared by some */\n#define ROUNDS 400u\n#endif\n'
FUNCTION = """
static uint32_t step_$N(uint32_t state, uint32_t *rows, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        switch (state >> 29) {
        case 0: rows[i & 63] += mixed(state, i + $A); break;
        case 1: rows[i & 63] ^= state * $B; break;
        case 3: rows[(i + $C) & 63] -= state >> 3; break;
        case 6: for (uint32_t k = 0; k < 8; k++) rows[k * 8] += i * k; break;
        default: rows[i & 63] = state + $B; break;
        }
        state = mixed(state, i ^ $C);
    }
    return state;
}
"""
RUN = """
uint32_t unit_$N(uint32_t state)
{
    uint32_t rows[64];
    memset(rows, 0, sizeof rows);
$CALLS    return state$OFF;
}
"""


def contents(below: Callable[[int], int]) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of each file; ``below`` draws whole numbers."""
    yield "common.h", COMMON.encode()
    yield "wide.h", WIDE_H.encode()
    tests = []
    for unit in range(UNITS):
        header, rounds = ("wide.h", "ROUNDS") if unit % (UNITS // WIDE) == 0 else ("common.h", f"{ROUNDS}u")
        text, state, calls = f'#include "{header}"\n', unit, ""
        for n in range(FUNCTIONS):
            c = below(999)
            text += Template(FUNCTION).substitute(N=n, A=below(90), B=1 + below(9999), C=c)
            calls += f"    state = step_{n}(state, rows, {rounds});\n"
            for i in range(ROUNDS):
                state = (state * 1664525 + (i ^ c) + 1013904223) & MASK
                state ^= state >> 13
        off = " /* off by one */ + 1" if unit == BROKEN else ""
        yield f"unit_{unit:02d}.c", (text + Template(RUN).substitute(N=f"{unit:02d}", CALLS=calls, OFF=off)).encode()
        tests.append((unit, state))
    rows = "".join(f"uint32_t unit_{unit:02d}(uint32_t state);\n" for unit, _ in tests)
    rows += "\nint main(void)\n{\n    int failed = 0;\n"
    rows += "".join(f"    failed += unit_{unit:02d}({unit}u) != {state}u;\n" for unit, state in tests)
    rows += f'    printf("{UNITS} tests, %d failed\\n", failed);\n    return failed > 0;\n}}\n'
    yield "main.c", ('#include "common.h"\n\n' + rows).encode()
