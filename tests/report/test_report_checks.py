"""The page of the checks: 80 columns, aligned, and nothing that a file of the host could do to the terminal."""

from __future__ import annotations

import io

from cpubench.report.checks import show_checks


def page(*checks: dict[str, str]) -> str:
    out = io.StringIO()
    show_checks(checks, out)
    return out.getvalue()


def one(name: str, status: str, found: str, advice: str = "") -> dict[str, str]:
    return {"id": name, "status": status, "found": found, "wanted": "quiet: it is timed", "advice": advice}


def test_a_warning_has_its_command_and_an_ok_only_what_was_found() -> None:
    text = page(one("swap", "ok", "none"), one("numa_balancing", "warn", "on (1)", "sudo sysctl x=0"))
    lines = [line.rstrip() for line in text.splitlines()]
    assert lines == [
        "ok    swap            none",
        "warn  numa_balancing  on (1)",
        "                      wanted: quiet: it is timed",
        "                      do: sudo sysctl x=0",
        "",
        "1 ok, 1 warning, 0 unknown; nothing was changed",
    ]


def test_long_findings_stay_in_their_column() -> None:
    text = page(one("governor", "unknown", "word " * 60 + "x" * 200), one("load", "ok", "0.1"))
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert all(line[:19].strip() in ("unknown  governor", "ok       load", "") for line in lines[:-2])
    assert "x" * 61 in text.replace("\n", "").replace(" ", "")


def test_foreign_text_is_neither_markup_nor_control() -> None:
    text = page(one("load", "warn", "\x1b[31m[bold]red[/bold]\x07\r\u202e", "echo [red]"))
    assert not {"\x1b", "\x07", "\r", "\u202e"} & set(text)
    assert "[bold]red[/bold]" in text
    assert "echo [red]" in text
