/* Placing, forking and reaping: what kernels and copies share. */
#include "kernel.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
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

/* Files and mappings are freed by RCU callbacks, and while some are pending the scheduler's tick goes on in idle CPUs:
 * going idle then reprograms no timer, and a wake-up on another core took 34 us instead of 41 for the next 16 ms (a
 * virtual machine, after 20 unlinks). Two grace periods end that; membarrier(2) waits for one. */
void cb_settle(void) {
    for (int i = 0; i < 2; i++)
        if (syscall(SYS_membarrier, 1 /* MEMBARRIER_CMD_GLOBAL */, 0)) usleep(20000); /* refused with nohz_full */
}

int cb_reap(struct cb_ctx *ctx, pid_t child, int *status) {
    while (waitpid(child, status, 0) < 0)
        if (errno != EINTR) return cb_fail(ctx, "waitpid");
    return 0;
}
