/* Placing, forking and reaping: what kernels and copies share. */
#include "kernel.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int cb_fail(struct cb_ctx *ctx, const char *call) {
    ctx->call = call;
    return errno ? -errno : -EIO;
}

int cb_pin(int cpu) {
    cpu_set_t *set = CPU_ALLOC(cpu + 1); /* more than the 1,024 CPUs of a fixed cpu_set_t */
    if (!set) return -ENOMEM;
    size_t bytes = CPU_ALLOC_SIZE(cpu + 1);
    CPU_ZERO_S(bytes, set);
    CPU_SET_S(cpu, bytes, set);
    int rc = sched_setaffinity(0, bytes, set) ? -errno : 0;
    CPU_FREE(set);
    if (rc) return rc;
    int now = sched_getcpu();
    return now == cpu ? 0 : now < 0 ? -errno : -EXDEV;
}

pid_t cb_fork(struct cb_ctx *ctx) {
    pid_t self = getpid(), child = fork();
    if (child < 0) ctx->call = "fork";
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != self) _exit(0); /* it died before the line above */
    }
    return child;
}

int cb_reap(struct cb_ctx *ctx, pid_t child, int *status) {
    while (waitpid(child, status, 0) < 0)
        if (errno != EINTR) return cb_fail(ctx, "waitpid");
    return 0;
}
