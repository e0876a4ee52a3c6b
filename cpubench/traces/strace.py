"""The summary of ``strace -c``: system calls, how often and how long. It tells how the kernel's part splits."""

from __future__ import annotations

import re
from pathlib import Path

from cpubench.errors import UsageError
from cpubench.traces.lines import opened

HEADER = re.compile(rb"^\s*% time\s+seconds\s+usecs/call\s+calls", re.MULTILINE)
ROW = re.compile(r"^\s*\d+[.,]\d+\s+(\d+[.,]\d+)\s+\d+\s+(\d+)\s+(?:\d+\s+)?([a-z_0-9]+)\s*$")
MOST = 1 << 20  # bytes: there are some 400 system calls
PATHS = {
    "M1": "clone clone3 fork vfork execve execveat exit_group setpgid setsid",
    "M3": "stat fstat lstat newfstatat statx access faccessat faccessat2 readlink readlinkat getdents getdents64 open "
          "openat openat2 close lseek statfs fstatfs chdir fchdir getcwd",
    "M4": "read write pread64 pwrite64 readv writev ftruncate truncate rename renameat renameat2 unlink unlinkat mkdir "
          "mkdirat rmdir creat fsync fdatasync chmod fchmod fchmodat utimensat link linkat symlink symlinkat fallocate",
    "M5": "copy_file_range sendfile sendfile64",
    "M6": "pipe pipe2 socketpair dup dup2 dup3 eventfd2 splice tee",
    "M7": "futex set_robust_list get_robust_list membarrier",
    "M8": "sched_yield sched_setaffinity sched_getaffinity setpriority rt_sigaction rt_sigprocmask rt_sigreturn "
          "kill tgkill",
    "M9": "mmap mmap2 munmap mremap brk mprotect madvise mlock msync",
    "M12": "socket connect accept accept4 bind listen sendto recvfrom sendmsg recvmsg shutdown setsockopt getsockopt "
           "getsockname getpeername",
    "M14": "unshare setns mount umount2 pivot_root chroot seccomp prctl capset",
}  # fmt: skip
WAITS = (
    "wait4 waitid poll ppoll select pselect6 _newselect epoll_wait epoll_pwait epoll_pwait2 nanosleep clock_nanosleep "
    "pause rt_sigsuspend rt_sigtimedwait restart_syscall"
)
PATH = {name: path for path, names in {**PATHS, "wait": WAITS}.items() for name in names.split()}


def is_summary(raw: bytes) -> bool:
    """Whether the bytes hold the head of a summary."""
    return HEADER.search(raw) is not None


def read(path: Path) -> dict[str, tuple[int, float]]:
    """Calls and seconds by path, by "wait" for those that wait, and by "other"; several summaries are added up."""
    with opened(path) as file:
        raw = file.read(MOST + 1)
    if len(raw) > MOST:
        raise UsageError("too_large", f"more than {MOST >> 20} MiB are no summary of strace -c")
    made: dict[str, tuple[int, float]] = {}
    ended = True  # the summary that was read last has its line of totals
    for text in raw.decode(errors="replace").splitlines():
        if HEADER.match(text.encode()):
            ended = False
        row = ROW.match(text)
        if row is None or ended:
            continue
        if row[3] == "total":
            ended = True
            continue
        key = PATH.get(row[3], "other")
        calls, seconds = made.get(key, (0, 0.0))
        made[key] = calls + int(row[2]), seconds + float(row[1].replace(",", "."))
    if not made or not ended:
        raise UsageError("cut", "the summary of strace -c was cut: it has no line of totals")
    return made
