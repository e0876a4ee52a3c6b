/* 512 bytes to another process and 512 back through one AF_UNIX stream socket: what local tool servers speak over.
 * Beside a pipe it pays for socket buffers that are allocated and freed with each message. */
#include "../kernel.h"

#include <sys/socket.h>
#include <unistd.h>

#define MESSAGE 512

static int get(int fd, unsigned char *message) { /* a stream may bring it in pieces */
    for (size_t got = 0; got < MESSAGE;) {
        ssize_t n = recv(fd, message + got, MESSAGE - got, 0);
        if (n == 0) return errno = EPIPE, -1;
        if (n < 0 && errno != EINTR) return -1;
        if (n > 0) got += (size_t)n;
    }
    return 0;
}

static int put(int fd, const unsigned char *message) {
    for (size_t gone = 0; gone < MESSAGE;) {
        ssize_t n = send(fd, message + gone, MESSAGE - gone, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR) return -1;
        if (n > 0) gone += (size_t)n;
    }
    return 0;
}

static void answer(struct cb_ctx *ctx) { /* with one more than was sent, in the first byte and the last */
    unsigned char message[MESSAGE];
    while (get(ctx->fds[1], message) == 0) {
        message[0]++, message[MESSAGE - 1]++;
        if (put(ctx->fds[1], message)) break;
    }
}

static int prepare(struct cb_ctx *ctx) {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ctx->fds)) return cb_fail(ctx, "socketpair");
    int rc = cb_peer_start(ctx, answer);
    close(ctx->fds[1]); /* so that the end of the peer is an end of file here */
    return rc;
}

static int warm(struct cb_ctx *ctx) { /* on one CPU nobody goes idle */
    return ctx->ncpus > 1 ? cb_settle(), 0 : 0;
}

static int run(struct cb_ctx *ctx, uint64_t ops) {
    unsigned char message[MESSAGE] = {0};
    for (uint64_t i = 0; i < ops; i++) {
        unsigned char due = (unsigned char)(i + 1);
        message[0] = message[MESSAGE - 1] = (unsigned char)i;
        if (put(ctx->fds[0], message)) return cb_fail(ctx, "send");
        if (get(ctx->fds[0], message)) return cb_fail(ctx, "recv");
        if (message[0] != due || message[MESSAGE - 1] != due) return errno = EBADE, cb_fail(ctx, "checksum");
    }
    ctx->checksum = ctx->counter += ops;
    return 0;
}

static int release(struct cb_ctx *ctx) {
    if (ctx->fds[0] > 0) close(ctx->fds[0]);
    ctx->fds[0] = 0;
    return cb_peer_stop(ctx);
}

#define PLACE(name, where, bits) {.label = "place=" name, .place = where, .flags = bits}
const struct cb_kernel cb_kernel_switch_unix = {
    .name = "switch_unix",
    .family = "switch",
    .doc = "512 bytes through a Unix stream socket to another process and 512 back: two switches.",
    .unit = "round trip",
    .version = 1,
    .flags = CB_BLOCKING | CB_PAIR,
    .params = (const struct cb_param[]){PLACE("same", CB_SAME, 0), PLACE("other", CB_OTHER, CB_SCORED), {0}},
    .prepare = prepare,
    .warm = warm,
    .run = run,
    .release = release,
};
