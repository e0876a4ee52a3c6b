/* Two processes, two pipes, one byte there and one back: how a tool and its harness wait for each other.
 * Where the second process runs is the parameter: unpinned, the same loop takes 8 or 17 us by luck. */
#include "../kernel.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TO_PEER, FROM_PEER, PEER }; /* in ctx->own */

static int get(int fd, unsigned char *byte) { /* 1, 0 at the end, or -1 */
    ssize_t n;
    while ((n = read(fd, byte, 1)) < 0 && errno == EINTR) {}
    return (int)n;
}

static int put(int fd, unsigned char byte) {
    ssize_t n;
    while ((n = write(fd, &byte, 1)) < 0 && errno == EINTR) {}
    return (int)n;
}

_Noreturn static void peer(int in, int out, int cpu) {
    int rc = cb_pin(cpu);
    unsigned char byte = 0;
    if (rc) _exit(-rc);
    while (put(out, ++byte) == 1 && get(in, &byte) == 1) {}
    _exit(0);
}

static int prepare(struct cb_ctx *ctx) {
    int there[2], back[2], status;
    unsigned char hello;
    if (pipe2(there, O_CLOEXEC)) return cb_fail(ctx, "pipe2");
    if (pipe2(back, O_CLOEXEC)) {
        int rc = cb_fail(ctx, "pipe2");
        return close(there[0]), close(there[1]), rc;
    }
    pid_t child = cb_fork(ctx);
    int rc = child < 0 ? cb_fail(ctx, "fork") : 0;
    if (child == 0) peer(there[0], back[1], ctx->cpus[ctx->ncpus - 1]);
    close(there[0]);
    close(back[1]);
    ctx->own[TO_PEER] = there[1];
    ctx->own[FROM_PEER] = back[0];
    ctx->own[PEER] = child;
    if (rc == 0 && get(back[0], &hello) != 1) { /* it could not be placed: its exit status says why */
        rc = cb_reap(ctx, child, &status);
        ctx->own[PEER] = 0;
        if (!rc) errno = WIFEXITED(status) ? WEXITSTATUS(status) : ESRCH, rc = cb_fail(ctx, "sched_setaffinity");
    }
    return rc;
}

static int warm(struct cb_ctx *ctx) {
    if (ctx->ncpus > 1) cb_settle(); /* on one CPU nobody goes idle */
    return 0;
}

static int run(struct cb_ctx *ctx, uint64_t ops) {
    int out = (int)ctx->own[TO_PEER], in = (int)ctx->own[FROM_PEER];
    for (uint64_t i = 0; i < ops; i++) {
        unsigned char sent = (unsigned char)i, got = 0;
        if (put(out, sent) != 1) return cb_fail(ctx, "write");
        int n = get(in, &got);
        if (n < 0) return cb_fail(ctx, "read");
        if (n == 0) return errno = EPIPE, cb_fail(ctx, "read");
        if (got != (unsigned char)(sent + 1)) return errno = EBADE, cb_fail(ctx, "checksum"); /* the peer adds one */
    }
    ctx->counter += ops;
    return 0;
}

/* Children of other variants hold copies of the pipes, so closing would not end the peer. */
static int release(struct cb_ctx *ctx) {
    int status, rc = 0;
    if (ctx->own[TO_PEER] == 0) return 0;
    if (ctx->own[PEER] > 0) {
        kill((pid_t)ctx->own[PEER], SIGKILL);
        rc = cb_reap(ctx, (pid_t)ctx->own[PEER], &status);
    }
    close((int)ctx->own[TO_PEER]);
    close((int)ctx->own[FROM_PEER]);
    ctx->own[TO_PEER] = ctx->own[FROM_PEER] = ctx->own[PEER] = 0;
    ctx->checksum = ctx->counter;
    return rc;
}

#define PLACE(name, where, bits) {.label = "place=" name, .place = where, .flags = bits}
const struct cb_kernel cb_kernel_switch_pipe = {
    .name = "switch_pipe",
    .family = "switch",
    .doc = "One byte through a pipe to another process and one byte back: two writes, two reads, two switches.",
    .unit = "round trip",
    .version = 1,
    .flags = CB_BLOCKING | CB_PAIR,
    .params = (const struct cb_param[]){
        PLACE("same", CB_SAME, CB_SCORED), PLACE("other", CB_OTHER, CB_SCORED), PLACE("sibling", CB_SIBLING, 0), {0}},
    .prepare = prepare,
    .warm = warm,
    .run = run,
    .release = release,
};
