"""Writes the bundle of an OCI runtime: ``bundle.py FOLDER BOX COMMAND ..``; the host's folders are its root, read only.

The specification is opencontainers/runtime-spec, version 1.0.2.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import Any

LEFT_OUT = {"proc", "sys", "dev", "tmp", "run", "lost+found"}
SPACES = ("pid", "network", "ipc", "uts", "mount", "cgroup")


def bundle(folder: str, box: str, command: list[str]) -> str:
    root = os.path.join(folder, "rootfs")
    os.makedirs(root)
    mounts: list[dict[str, Any]] = [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=65536k"]},
    ]
    for name in sorted(os.listdir("/")):
        inside, outside = os.path.join(root, name), "/" + name
        if os.path.islink(outside):
            os.symlink(os.readlink(outside), inside)
        elif os.path.isdir(outside):
            os.mkdir(inside)
            if name not in LEFT_OUT:
                mounts.append({"destination": outside, "type": "bind", "source": outside, "options": ["rbind", "ro"]})
    if command[0].split("/")[1] in LEFT_OUT:  # an interpreter below /tmp
        prefix = sys.base_prefix
        os.makedirs(root + prefix)
        mounts.append({"destination": prefix, "type": "bind", "source": prefix, "options": ["rbind", "ro"]})
    shutil.copy(box, os.path.join(root, "box"))
    config = {
        "ociVersion": "1.0.2",
        "process": {"user": {"uid": 0, "gid": 0}, "args": ["/box", "--", *command], "cwd": "/",
                    "env": ["PATH=/usr/bin:/bin", "LC_ALL=C"], "noNewPrivileges": True,
                    "capabilities": {"bounding": [], "effective": [], "permitted": []}},
        "root": {"path": "rootfs", "readonly": True}, "hostname": "cpubench-box", "mounts": mounts,
        "linux": {"namespaces": [{"type": one} for one in SPACES]},
    }  # fmt: skip
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config, file)
    return "written"


if __name__ == "__main__":
    print(bundle(sys.argv[1], sys.argv[2], sys.argv[3:]))
