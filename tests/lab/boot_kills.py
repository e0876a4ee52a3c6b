"""Inside: cappers that are killed. The last case leaves one that only the end of the machine cuts off."""

from __future__ import annotations

import os
import signal

from lab import guest
from lab.guest import CAP, cpubench, limits, zone
from power import kills

from cpubench.power import journal, registers

KILLS = 20
LIMIT_S = kills.LIMIT_S
LOWEST_W = 200  # of the 90 W at rest and 330 W under load of a socket: at 100 W a CPU works 4 % of its time
LEFT = []


def slow_write(path, text):
    """As in the tree of the other kills: so that kills come between writes too."""
    kills.pause()
    registers.write_file(path, text)
    kills.pause()


def prepare(root):
    registers.write_file(zone("package-1") / "enabled", "0")


def test_the_old_limits_stand_again_after_every_kill(as_found):
    assert cpubench("power", "restore").code == 0  # loads what the next start needs, as a disk that was read has it
    rows = [kills.kill(registers.ROOT, kills.WAYS[n % 4], n, prepare, slow_write, 0.5, LOWEST_W) for n in range(KILLS)]
    registers.write_file(zone("package-1") / "enabled", "1")
    for way in kills.WAYS:
        mine = [row for row in rows if row["way"] == way]
        guest.figure(
            f"{way}: given back {sum(row['good'] for row in mine)} of {len(mine)}, the longest in "
            f"{max(row['took_s'] for row in mine):.2f} s; a limit was changed in {sum(r['changed'] for r in mine)}"
        )
    assert [row for row in rows if not row["good"]] == []
    assert sum(row["changed"] for row in rows) > KILLS / 4


def capped():
    return limits()["package-1 constraint_1_power_limit_uw"] == 200_000_000


def test_a_killed_capper_is_followed_by_its_guardian_and_a_second_one_waits(as_found):
    with guest.started("power", "set", *CAP, "--", "sleep", "300") as first:
        guest.seconds_until(capped)
        second = cpubench("power", "set", "--watts", "300")
        assert (second.code, f"process {first.pid} caps this host" in second.err) == (2, True)
        first.kill()
        took = guest.seconds_until(lambda: limits() == as_found and journal.load(registers.ROOT) is None)
    guest.figure(f"a command that was killed: given back {took:.2f} s later")
    assert took < LIMIT_S


def test_a_terminated_capper_gives_back_by_itself(as_found):
    with guest.started("power", "set", *CAP, "--", "sleep", "300") as first:
        guest.seconds_until(capped)
        first.terminate()
        assert first.wait(30) == 130


def test_a_capper_that_was_killed_with_its_guardian_is_named_at_the_next_start(as_found):
    with guest.started("power", "set", *CAP, "--", "sleep", "300") as first:
        guest.seconds_until(capped)
        os.kill(guest.guardian_of(first.pid), signal.SIGKILL)
        first.kill()
    assert capped()
    assert cpubench("power", "show", "--json").json["journal"]["state"] == "stale"
    said = cpubench("power", "set", *CAP)
    assert (said.code, f"process {first.pid} ended without giving its limits back" in said.err) == (2, True)
    assert cpubench("power", "restore").code == 0


def test_leaves_a_capper_behind():
    """Nothing ends it but the machine: boot two looks at what is left."""
    LEFT.append(guest.started("power", "set", *CAP, "--", "sleep", "300"))
    guest.seconds_until(capped)
