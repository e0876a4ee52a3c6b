/* deny ERRNO CALL[,CALL..] COMMAND [ARGUMENT..]: a command in which these system calls fail with that number, as under
 * the filter of a container (seccomp(2)). Calls that this architecture does not have are left out. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALL(name) {#name, SYS_##name}
static const struct { const char *name; unsigned number; } calls[] = {
    CALL(perf_event_open), CALL(io_uring_setup), CALL(mbind), CALL(set_mempolicy), CALL(get_mempolicy),
    CALL(sched_setscheduler), CALL(sched_setaffinity), CALL(sched_getaffinity), CALL(unshare), CALL(mount), CALL(clone3),
    CALL(memfd_create), CALL(pidfd_open), CALL(membarrier), CALL(madvise), CALL(prctl), CALL(statx), CALL(socket),
    CALL(fsync), CALL(getrusage), CALL(ptrace),
#ifdef SYS_vfork
    CALL(vfork),
#endif
};
#define MOST (sizeof calls / sizeof *calls)

int main(int argc, char **argv) {
    if (argc < 4) return fprintf(stderr, "usage: %s ERRNO CALL[,CALL..] COMMAND [ARGUMENT..]\n", argv[0]), 2;
    struct sock_filter rules[2 * MOST + 2];
    unsigned short n = 0;
    unsigned answer = SECCOMP_RET_ERRNO | (unsigned)atoi(argv[1]);
    rules[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (char *name = strtok(argv[2], ","); name; name = strtok(NULL, ",")) {
        size_t at = 0;
        while (at < MOST && strcmp(calls[at].name, name)) at++;
        if (at == MOST || n > 2 * MOST) return fprintf(stderr, "%s: unknown call %s\n", argv[0], name), 2;
        rules[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[at].number, 0, 1);
        rules[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer);
    }
    rules[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog filter = {n, rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
        return perror("seccomp"), 3;
    execvp(argv[3], argv + 3);
    return perror(argv[3]), 127;
}
