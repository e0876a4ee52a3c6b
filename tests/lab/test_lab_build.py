"""The lab without a machine: what it says where packages are missing, and what the kernel unpacks."""

import struct

import pytest
from lab import image, packages


def elf(dynamic):
    """The head of a program, with one program header."""
    return b"\x7fELF\x02" + bytes(27) + struct.pack("<Q", 64) + bytes(14) + struct.pack("<HH", 56, 1) + bytes(6) + (
        b"\3\0\0\0" if dynamic else b"\1\0\0\0")  # fmt: skip


@pytest.fixture
def host(tmp_path):
    """A Debian with everything, and a kernel that has no headers."""
    for version in ("6.1.0-9-amd64", "6.1.0-57-amd64"):
        (tmp_path / "lib/modules" / version / "build").mkdir(parents=True)
        (tmp_path / "lib/modules" / version / "build/Makefile").write_text("")
    for name in ("boot", "bin", "elsewhere/boot"):
        (tmp_path / name).mkdir(parents=True)
    for version in ("6.1.0-9-amd64", "6.1.0-57-amd64", "6.1.0-99-amd64"):
        (tmp_path / "boot" / f"vmlinuz-{version}").write_text("")
    (tmp_path / "bin/busybox").write_bytes(elf(False))
    for name in ("make", "qemu-system-x86_64"):
        (tmp_path / "bin" / name).write_text("")
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def find(root, unpacked=""):
    return packages.find(root, unpacked, str(root / "bin"))


def test_the_newest_kernel_with_headers_is_taken(host):
    found = find(host)
    assert (found.version, found.kernel) == ("6.1.0-57-amd64", host / "boot/vmlinuz-6.1.0-57-amd64")
    assert found.headers == host / "lib/modules/6.1.0-57-amd64/build"


def test_a_kernel_that_is_only_unpacked_will_do(host):
    name = "boot/vmlinuz-6.1.0-57-amd64"
    (host / name).rename(host / "elsewhere" / name)
    assert find(host).version == "6.1.0-9-amd64"
    found = find(host, str(host / "elsewhere"))
    assert found.modules == host / "elsewhere/lib/modules/6.1.0-57-amd64"


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (lambda host: (host / "bin/qemu-system-x86_64").unlink(), "qemu-system-x86_64"),
        (lambda host: (host / "bin/busybox").unlink(), "busybox"),
        (lambda host: (host / "bin/busybox").write_bytes(elf(True)), "a static busybox"),
        (lambda host: [one.unlink() for one in host.glob("boot/*")], "the kernel 6.1.0-57-amd64"),
        (lambda host: [one.unlink() for one in host.glob("lib/modules/*/build/*")], "kernel headers"),
    ],
)
def test_what_is_missing_is_named_with_what_to_type(host, spoil, named):
    spoil(host)
    with pytest.raises(packages.MissingPackages) as told:
        find(host)
    assert f"missing: {named}" in str(told.value).splitlines()[0]
    assert "apt-get install" in str(told.value)


def test_an_archive_is_what_the_kernel_unpacks():
    """newc: each head of 110 bytes with its name, and each file, fill up to four bytes."""
    made = image.cpio({"bin": None, "bin/tool": b"12345"})
    names, at = [], 0
    while at < len(made):
        head = made[at : at + 110]
        assert (head[:6], at % 4) == (b"070701", 0)
        mode, size, length = (int(head[6 + 8 * n : 14 + 8 * n], 16) for n in (1, 6, 11))
        names.append((made[at + 110 : at + 109 + length], oct(mode)))
        at += -(-(110 + length) // 4) * 4
        if names[-1][0] == b"bin/tool":
            assert made[at : at + size] == b"12345"
        at += -(-size // 4) * 4
    assert names == [(b"bin", "0o40755"), (b"bin/tool", "0o100755"), (b"TRAILER!!!", "0o100755")]
