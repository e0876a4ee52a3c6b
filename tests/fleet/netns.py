"""Hosts for tests of a fleet: network namespaces, each with an sshd, a host name and so a lock of runs of its own.

They share processors and files with this machine. Everything of theirs ends with ``closed``.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
NET = "10.213.77"


def reason() -> str | None:
    """Why there can be no such hosts here; None where there can."""
    if os.geteuid() != 0:
        return "needs root"
    if SSHD is None or not all(shutil.which(name) for name in ("ip", "ssh", "ssh-keygen")):
        return "needs openssh-server, openssh-client and iproute2"
    try:
        import ansible  # noqa: F401
        import ansible_runner  # noqa: F401
    except ImportError:
        return "needs the extra fleet"
    made = subprocess.run(["unshare", "-mnu", "true"], capture_output=True, check=False)
    return None if made.returncode == 0 else "needs network namespaces"


def sh(script: str) -> str:
    done = subprocess.run(["sh", "-ec", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Hosts:
    """``names`` on a bridge in a namespace of the controller, ``inside`` which commands are run."""

    def __init__(self, folder: Path, names: list[str], tag: str) -> None:
        self.folder, self.names, self.tag = folder, names, tag
        self.key = folder / "key"

    def open(self) -> None:
        """Makes keys, namespaces and sshd."""
        folder, tag = self.folder, self.tag
        for key in ("key", "stranger", *self.names):
            sh(f"ssh-keygen -q -t ed25519 -N '' -f {folder / key}")
        (folder / "authorized").write_text((folder / "key.pub").read_text())
        (folder / "authorized").chmod(0o600)
        Path("/run/sshd").mkdir(exist_ok=True)
        sh(f"ip netns add {tag}; ip -n {tag} link set lo up; ip -n {tag} link add br0 type bridge;"
           f"ip -n {tag} addr add {NET}.1/24 dev br0; ip -n {tag} link set br0 up")  # fmt: skip
        for at, name in enumerate(self.names):
            space = self.space(name)
            sh(f"ip netns add {space}; ip -n {space} link set lo up;"
               f"ip -n {tag} link add v{at} type veth peer name e0 netns {space};"
               f"ip -n {tag} link set v{at} master br0 up; ip -n {space} addr add {self.address(name)}/24 dev e0;"
               f"ip -n {space} link set e0 up")  # fmt: skip
            self.boot(name)

    def space(self, name: str) -> str:
        return f"{self.tag}{name}"

    def address(self, name: str) -> str:
        return f"{NET}.{11 + self.names.index(name)}"

    def boot(self, name: str, before: str = ":") -> None:
        """Starts the sshd of a host, after a command that may mount something for it alone."""
        config = self.folder / f"{name}.conf"
        config.write_text(
            f"HostKey {self.folder / name}\nPidFile {self.folder / name}.pid\nAuthorizedKeysFile "
            f"{self.folder}/authorized\nUsePAM no\nStrictModes no\nPasswordAuthentication no\n"
            "PermitRootLogin yes\nSubsystem sftp internal-sftp\nMaxStartups 100\n"
        )
        # In a mount namespace of its own, which `ip netns exec` makes.
        script = f"{before}; hostname {name}; exec {SSHD} -f {config}"
        sh(f"ip netns exec {self.space(name)} unshare --uts sh -ec {shlex.quote(script)}")

    def pids(self, name: str) -> list[int]:
        done = subprocess.run(["ip", "netns", "pids", self.space(name)], capture_output=True, text=True, check=False)
        return [int(pid) for pid in done.stdout.split()]

    def kill(self, name: str) -> None:
        """As when its power fails: nothing of it goes on."""
        until = time.monotonic() + 10
        while (pids := self.pids(name)) and time.monotonic() < until:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def inside(self, *command: str) -> list[str]:
        """The command on the controller."""
        return ["ip", "netns", "exec", self.tag, *command]

    def on(self, name: str, *command: str) -> list[str]:
        return ["ip", "netns", "exec", self.space(name), *command]

    @contextlib.contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Another run measures on the host: its lock is held."""
        script = (
            "import socket, sys; lock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM);"
            r"lock.bind(b'\0cpubench.run'); print(flush=True); sys.stdin.read()"
        )
        command = self.on(name, sys.executable, "-c", script)
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"\n"
            yield
            holder.communicate()

    def closed(self) -> None:
        for name in self.names:
            self.kill(name)
            subprocess.run(["ip", "netns", "del", self.space(name)], capture_output=True, check=False)
        subprocess.run(["ip", "netns", "del", self.tag], capture_output=True, check=False)
