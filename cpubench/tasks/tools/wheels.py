"""Installs wheels into the environment of the interpreter that runs this: ``wheels.py FOLDER``.

Unpacks, checks each file against RECORD, writes and renames it, and compiles the modules: what pip does at least.
"""

from __future__ import annotations

import base64
import compileall
import csv
import hashlib
import io
import os
import sys
import sysconfig
import zipfile


def install(wheel: str, site: str) -> int:
    """The number of files that were written."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        record = next(name for name in names if name.endswith(".dist-info/RECORD"))
        rows = csv.reader(io.StringIO(archive.read(record).decode()))
        wanted = {row[0]: row[1] for row in rows if row[1]}
        for name in names:
            data = archive.read(name)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            if name != record and wanted.get(name) != f"sha256={digest}":
                raise SystemExit(f"{wheel}: {name} is not what RECORD says")
            target = os.path.join(site, name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target + ".new", "wb") as file:
                file.write(data)
            os.replace(target + ".new", target)
        return len(names)


if __name__ == "__main__":
    site = sysconfig.get_paths()["purelib"]
    wheels = sorted(os.path.join(sys.argv[1], name) for name in os.listdir(sys.argv[1]) if name.endswith(".whl"))
    count = sum(install(wheel, site) for wheel in wheels)
    if not compileall.compile_dir(site, quiet=1):
        raise SystemExit("a module does not compile")
    print(f"installed {len(wheels)} wheels, {count} files")
