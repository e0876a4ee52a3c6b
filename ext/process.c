/* Placing, forking and reaping: what kernels and copies share. */
#include "kernel.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
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

/* On kernels before 6.2 a write to a cpuset takes the pins of all that is in it; some sandboxes only say that they pin. */
int cb_pinned(int cpu) {
    unsigned long mask[128]; /* 8,192 CPUs, the most of any kernel */
    long bytes = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
    int found = 0, bits = 8 * (int)sizeof *mask, words = (int)(bytes / (long)sizeof *mask);
    if (bytes <= 0) return -1;
    for (int i = 0; i < words; i++) found += __builtin_popcountl(mask[i]);
    return found == 1 && cpu / bits < words && mask[cpu / bits] >> cpu % bits & 1;
}

/* Files and mappings are freed by RCU callbacks, and while some are pending the scheduler's tick goes on in idle CPUs:
 * going idle then reprograms no timer, and a wake-up on another core took 34 us instead of 41 for the next 16 ms (a
 * virtual machine, after 20 unlinks). Two grace periods end that; membarrier(2) waits for one. */
void cb_settle(void) {
    for (int i = 0; i < 2; i++)
        if (syscall(SYS_membarrier, 1 /* MEMBARRIER_CMD_GLOBAL */, 0)) usleep(20000); /* refused with nohz_full */
}

/* A kernel that counts its page faults proves by them that each operation was one; a sandbox may tell none. */
uint64_t cb_faults(void) {
    struct rusage used;
    return getrusage(RUSAGE_THREAD, &used) ? 0 : (uint64_t)used.ru_minflt;
}

int cb_reap(struct cb_ctx *ctx, pid_t child, int *status) {
    while (waitpid(child, status, 0) < 0)
        if (errno != EINTR) return cb_fail(ctx, "waitpid");
    return 0;
}

/* The child: dies with its copy, goes to its CPU, says how that went, and works. */
_Noreturn static void be_peer(struct cb_ctx *ctx, pid_t copy, int told, void (*body)(struct cb_ctx *)) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != copy) _exit(0); /* it died before the line above */
    int rc = cb_pin(ctx->cpus[ctx->ncpus - 1]);
    if (write(told, &rc, sizeof rc) == sizeof rc && rc == 0) body(ctx);
    _exit(0);
}

int cb_peer_start(struct cb_ctx *ctx, void (*body)(struct cb_ctx *)) {
    int told[2], rc = -ESRCH; /* it died without a word */
    pid_t self = getpid();
    if (pipe2(told, O_CLOEXEC)) return cb_fail(ctx, "pipe2");
    ctx->peer = fork();
    if (ctx->peer == 0) be_peer(ctx, self, told[1], body);
    int saved = errno;
    close(told[1]);
    if (ctx->peer > 0 && read(told[0], &rc, sizeof rc) < 0) rc = -errno;
    close(told[0]);
    if (ctx->peer < 0) return ctx->peer = 0, errno = saved, cb_fail(ctx, "fork");
    return rc ? errno = -rc, cb_fail(ctx, "sched_setaffinity") : 0;
}

/* By a signal: children of other variants hold copies of every descriptor, so that no end of file would reach it. */
int cb_peer_stop(struct cb_ctx *ctx) {
    int status;
    pid_t peer = ctx->peer;
    ctx->peer = 0;
    if (peer <= 0) return 0;
    kill(peer, SIGKILL);
    return cb_reap(ctx, peer, &status);
}
