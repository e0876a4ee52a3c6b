/* Two processes, two pipes, one byte there and one back: how a tool and its harness wait for each other.
 * Where the second process runs is the parameter: unpinned, the same loop takes 8 or 17 us by luck. */
#include "../kernel.h"

#include <fcntl.h>
#include <unistd.h>

enum { IN, TO_PEER, BACK, FROM_PEER }; /* in ctx->fds, the ends of two pipes; 0: closed */

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

static void answer(struct cb_ctx *ctx) { /* with one more than was sent */
    unsigned char byte;
    while (get(ctx->fds[IN], &byte) == 1 && put(ctx->fds[FROM_PEER], ++byte) == 1) {}
}

static void close_end(struct cb_ctx *ctx, int end) {
    if (ctx->fds[end] > 0) close(ctx->fds[end]);
    ctx->fds[end] = 0;
}

static int prepare(struct cb_ctx *ctx) {
    if (pipe2(&ctx->fds[IN], O_CLOEXEC) || pipe2(&ctx->fds[BACK], O_CLOEXEC)) return cb_fail(ctx, "pipe2");
    int rc = cb_peer_start(ctx, answer);
    close_end(ctx, IN); /* so that the end of the peer is an end of file here */
    close_end(ctx, FROM_PEER);
    return rc;
}

static int warm(struct cb_ctx *ctx) {
    if (ctx->ncpus > 1) cb_settle(); /* on one CPU nobody goes idle */
    return 0;
}

static int run(struct cb_ctx *ctx, uint64_t ops) {
    for (uint64_t i = 0; i < ops; i++) {
        unsigned char sent = (unsigned char)i, got = 0;
        if (put(ctx->fds[TO_PEER], sent) != 1) return cb_fail(ctx, "write");
        int n = get(ctx->fds[BACK], &got);
        if (n != 1) return errno = n ? errno : EPIPE, cb_fail(ctx, "read");
        if (got != (unsigned char)(sent + 1)) return errno = EBADE, cb_fail(ctx, "checksum");
    }
    ctx->checksum = ctx->counter += ops;
    return 0;
}

static int release(struct cb_ctx *ctx) {
    for (int end = IN; end <= FROM_PEER; end++) close_end(ctx, end);
    return cb_peer_stop(ctx);
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
