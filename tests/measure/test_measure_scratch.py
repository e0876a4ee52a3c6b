"""A block's folder on tmpfs: which mount it is on, what is taken for tmpfs, and that it is removed."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pools import lived

from cpubench.host.mounts import parse_mountinfo
from cpubench.measure.scratch import file_system, mount_options


def wait_for(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_without_a_private_mount_files_lie_in_dev_shm_and_are_removed(tmp_path):
    """As another user, for whom mount is refused."""
    if os.geteuid() != 0:
        pytest.skip("needs root to become another user")
    script = (
        "import os, sys, pathlib; from cpubench.measure.scratch import open_scratch, guard\n"
        "place, had = open_scratch(pathlib.Path(sys.argv[1]), 1 << 20)\n"
        "(place / 'left').write_text('x'); print(place, had['tmpfs'], oct(place.stat().st_mode & 0o777))"
    )
    tmp_path.chmod(0o777)
    command = ["unshare", "--user", sys.executable, "-I", "-c", script, str(tmp_path)]  # a user of no rights outside
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    place, kind, mode = done.stdout.split()
    assert (kind, mode) == ("dev_shm", "0o700")
    wait_for(lambda: not Path(place).exists())


def test_a_disk_at_dev_shm_is_no_tmpfs(tmp_path):
    """As in some containers: the row is a reason, never a disk's time under the name of tmpfs."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount another folder over /dev/shm")
    script = (
        "import pathlib, sys; from cpubench import _native; from cpubench.measure import scratch\n"
        "def refused(*a): raise PermissionError(1, 'x')\n"
        "_native.private_tmpfs = refused\n"
        "print(scratch.open_scratch(pathlib.Path(sys.argv[1]), 1 << 20)[1])"
    )
    disk = Path(__file__).parent  # of the checkout or its clone: whatever it is, no tmpfs is assumed
    if file_system(disk) in ("tmpfs", ""):
        pytest.skip("the checkout itself lies on tmpfs or on a device that no mount lists")
    inner = shlex.join([sys.executable, "-I", "-c", script, str(tmp_path)])
    command = ["unshare", "-m", "sh", "-c", f"mount --bind {shlex.quote(str(disk))} /dev/shm && exec {inner}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert f"/dev/shm is {file_system(disk)}" in done.stdout, done.stderr
    assert "file_system" not in done.stdout


def mountinfo_of(folder, tmp_path, point):
    """A table with a root, the mount of the folder's device at ``point``, and a part of that device bound elsewhere."""
    device = folder.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    mountinfo = tmp_path / "mountinfo"
    mountinfo.write_text(
        "1 0 999:1 / / rw,relatime shared:1 - ext4 /dev/root rw,errors=remount-ro\n"
        f"2 1 {number} / {point} rw,nosuid shared:2 master:1 - tmpfs tmpfs rw,size=100k\n"
        f"3 1 {number} /part /elsewhere ro - tmpfs tmpfs rw,size=100k\n",
        encoding="latin-1",
    )
    return mountinfo


@pytest.mark.parametrize("point", ["/dev/shm", "/run/a\\040b", "/run/\\303\\244", "/run/\xe4", "/x\\134y"])
def test_the_mount_is_that_of_the_device_however_its_point_is_spelt(tmp_path, point):
    mountinfo = mountinfo_of(tmp_path, tmp_path, point)
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    for folder in (tmp_path, link, Path(os.path.relpath(tmp_path))):
        assert file_system(folder, mountinfo) == "tmpfs"
        assert mount_options(folder, mountinfo) == "rw,nosuid rw,size=100k"


def test_a_device_without_a_mount_and_a_missing_table_are_empty(tmp_path):
    mountinfo = tmp_path / "mountinfo"
    mountinfo.write_text("1 0 999:1 / / rw - ext4 /dev/root rw\n")
    for table in (mountinfo, tmp_path / "none"):
        assert (file_system(tmp_path, table), mount_options(tmp_path, table)) == ("", "")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a private tmpfs")
def test_a_private_tmpfs_behind_a_link_has_its_own_options(tmp_path):
    (tmp_path / "\u00e4 b").mkdir()
    (tmp_path / "link").symlink_to("\u00e4 b")
    script = (
        "import pathlib, sys; from cpubench.measure.scratch import open_scratch\n"
        "print(open_scratch(pathlib.Path(sys.argv[1]), 1 << 20)[1])"
    )
    command = [sys.executable, "-I", "-X", "utf8", "-c", script, str(tmp_path / "link")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    if "'private'" not in done.stdout:
        pytest.skip("a mount is not allowed here")
    assert "size=65536k" in done.stdout


def test_a_program_that_outlives_the_block_does_not_keep_its_folder(tmp_path):
    """As a copy would that hangs: it has no end of the pipe that the guard watches."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    script = (
        "import pathlib, subprocess, sys; from cpubench.measure.scratch import guard\n"
        "guard(pathlib.Path(sys.argv[1]))\n"
        "print(subprocess.Popen(['sleep', '30'], close_fds=False, stdout=subprocess.DEVNULL).pid)"
    )
    with subprocess.Popen([sys.executable, "-I", "-c", script, str(folder)], stdout=subprocess.PIPE) as block:
        pid = int(block.stdout.readline())
    try:
        wait_for(lambda: not folder.exists())
        assert lived(pid)
    finally:
        os.kill(pid, signal.SIGKILL)


def test_odd_mount_points_of_others_end_nothing(tmp_path):
    """The kernel escapes blank, tab, newline and backslash alone; other ends of lines stand in a name as they are."""
    device = tmp_path.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    table = tmp_path / "mountinfo"
    odd = "20 1 0:99 / /mnt/a\x0bb\u2028c rw - fuse.x y rw\n\n21\n22 1 0:98 / /x rw - \n"
    table.write_text(f"{odd}30 1 {number} / /here rw,nosuid - ext4 /dev/vda rw,discard\n")
    assert file_system(tmp_path, table) == "ext4"
    assert mount_options(tmp_path, table) == "rw,nosuid rw,discard"
    assert parse_mountinfo(table.read_text())[0].point == "/mnt/a\x0bb\u2028c"
