"""Ansible, by ansible-runner: each play is a process of its own, whose events are read as they come."""

from __future__ import annotations

import contextlib
import json
import queue
import shutil
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cpubench.errors import UsageError
from cpubench.fleet.inventory import INSTALL
from cpubench.fleet.layout import Cell, incoming, job_name, outcome_file
from cpubench.fleet.state import write
from cpubench.fleet.told import Told, hear, left
from cpubench.results.parse import shown

Json = dict[str, Any]
PLAYS = 4  # at once: each is a process of 60 MB and its forks
SETTLE_S = 5.0  # between the login that starts a run and the run: sessions end 2 s after their last task
ENDED = (0, 2, 4)  # exit codes of ansible-playbook: good, some hosts failed, some were not reached


def check_ansible() -> Path:
    """The folder of ansible-playbook; UsageError that says what to install where it or ansible-runner is missing."""
    try:
        import ansible_runner  # noqa: F401
    except ImportError:
        raise UsageError("no_ansible", f"ansible-runner is not installed: {INSTALL}") from None
    own = str(Path(sys.executable).parent)
    found = shutil.which("ansible-playbook", path=own) or shutil.which("ansible-playbook")
    if found is None:
        raise UsageError("no_ansible", f"ansible-playbook is not installed: {INSTALL}")
    return Path(found).parent


def keep(memory: dict[str, Json], event: Json, asked: Json) -> None:
    """Writes what a host said of its run beside where the result is fetched to: a controller may be killed."""
    host = str((event.get("event_data") or {}).get("host"))
    before = memory.get(host, {})
    said = before.get("look", {})
    if host in asked and said.get("state") == "done" and before.get("kept") is not said:
        before["kept"] = said
        with contextlib.suppress(UsageError):  # where the results cannot be written, that is told when they are taken
            write(outcome_file(Path(asked[host]["incoming"])), json.dumps(said).encode())


class Plays:
    """The engine of ``drive``: plays in threads, whose ends come through a queue."""

    def __init__(self, folder: Path, fleet: Path, plan: Json, wheels: Json, forks: int, settle_s: float) -> None:
        self.folder, self.fleet, self.plan, self.wheels = folder.resolve(), fleet.resolve(), plan, wheels
        self.forks, self.settle_s, self.path = forks, settle_s, check_ansible()
        self.heard: queue.Queue[Told | UsageError] = queue.Queue()
        self.cancelled = threading.Event()
        self.threads: list[threading.Thread] = []

    def incoming(self, cell: Cell) -> Path:
        """Where a result that was fetched lies until it was checked."""
        return incoming(self.fleet, cell)

    def start(self, cells: Sequence[Cell]) -> None:
        job = {"arguments": self.plan["arguments"], "deadline_s": self.plan["deadline_s"], "settle_s": self.settle_s}
        asked = {
            cell.host: {"name": self._name(cell), "job": {**job, "suite": cell.suite, "cap": cell.cap}}
            for cell in cells
        }
        self._play("start", asked)

    def finish(self, cells: Mapping[Cell, bool]) -> None:
        asked = {
            cell.host: {"name": self._name(cell), "incoming": str(self.incoming(cell)), "stop": stop}
            for cell, stop in cells.items()
        }
        self._play("finish", asked)

    def _name(self, cell: Cell) -> str:
        return job_name(cell, self.plan["sha256"])

    def free(self) -> bool:
        """Whether another play may begin."""
        self.threads = [thread for thread in self.threads if thread.is_alive()]
        return len(self.threads) < PLAYS

    def wait(self, seconds: float) -> list[Told]:
        """What was told until now, or the first that is within these seconds."""
        try:
            found = [self.heard.get(timeout=min(seconds, 1.0))]  # the end of a play is news too, and puts nothing here
        except queue.Empty:
            return []
        while not self.heard.empty():
            found.append(self.heard.get_nowait())
        fault = next((one for one in found if isinstance(one, UsageError)), None)
        if fault is not None:
            raise fault
        return [one for one in found if isinstance(one, Told)]

    def stop(self) -> None:
        """Ends the plays, not the runs."""
        self.cancelled.set()
        for thread in self.threads:
            thread.join(20)

    def _play(self, phase: str, asked: Json) -> None:
        thread = threading.Thread(target=self._in_thread, args=(phase, asked), daemon=True)
        self.threads.append(thread)
        thread.start()

    def _in_thread(self, phase: str, asked: Json) -> None:
        memory: dict[str, Json] = {}
        open_ = set(asked)

        def handler(event: Json) -> bool:
            told = hear(memory, phase, event)
            if phase == "finish":
                keep(memory, event, asked)
            if told is not None and told.host in open_:
                open_.discard(told.host)
                self.heard.put(told)
            return False  # nothing of it is kept on disk

        try:
            with tempfile.TemporaryDirectory(prefix="cpubench-fleet-") as private:
                ended, output = self._run(Path(private), phase, asked, handler)
        except Exception as error:  # of ansible-runner: told in the thread that can
            ended, output = None, repr(error)
        if ended not in ENDED and not memory and not self.cancelled.is_set():
            self.heard.put(UsageError("ansible", f"Ansible ended with {ended}: {shown(output, 600)}", str(self.folder)))
        for host in sorted(open_):
            self.heard.put(left(memory, phase, host, f"Ansible ended with {ended}"))

    def _run(self, private: Path, phase: str, asked: Json, handler: Any) -> tuple[int | None, str]:
        import ansible_runner

        hosts = private / "hosts"
        hosts.write_text("\n".join(asked) + "\n")
        path = f"{self.path}:{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
        done = ansible_runner.run(
            private_data_dir=str(private), project_dir=str(self.folder), playbook=str(self.folder / "site.yml"),
            inventory=str(self.folder / "inventory.yml"), limit=f"@{hosts}", tags=phase, forks=self.forks, quiet=True,
            extravars={"cells": asked, "wheelhouse": self.wheels}, event_handler=handler, ident=phase,
            cancel_callback=self.cancelled.is_set,
            envvars={"ANSIBLE_CONFIG": str(self.folder / "ansible.cfg"), "PATH": path, "ANSIBLE_NOCOLOR": "1",
                     "PYTHONWARNINGS": "ignore"},
        )  # fmt: skip
        output = private / "artifacts" / phase / "stdout"
        return done.rc, output.read_text(errors="replace")[-2000:].strip() if output.exists() else ""
