/* A signal to oneself: sent, its handler entered on the user's stack, and sigreturn(). */
#include "../kernel.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile uint64_t caught;
static struct sigaction was;

static void handler(int number) {
    (void)number;
    caught++;
}

static int prepare(struct cb_ctx *ctx) {
    caught = 0;
    ctx->state = &was;
    if (sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handler}, &was)) return cb_fail(ctx, "sigaction");
    return 0;
}

static int run(struct cb_ctx *ctx, uint64_t ops) {
    pid_t process = getpid(), thread = gettid();
    uint64_t due = caught + ops;
    for (uint64_t i = 0; i < ops; i++)
        if (syscall(SYS_tgkill, process, thread, SIGUSR1)) return cb_fail(ctx, "tgkill");
    ctx->checksum = ctx->counter = caught;
    return caught == due ? 0 : (errno = EBADE, cb_fail(ctx, "checksum"));
}

static int release(struct cb_ctx *ctx) {
    if (ctx->state && sigaction(SIGUSR1, &was, NULL)) return cb_fail(ctx, "sigaction");
    ctx->state = NULL;
    return 0;
}

const struct cb_kernel cb_kernel_switch_signal = {
    .name = "switch_signal",
    .family = "switch",
    .doc = "One SIGUSR1 sent to oneself by tgkill() and caught: the call, a handler that counts it, and sigreturn().",
    .unit = "signal",
    .version = 1,
    .params = (const struct cb_param[]){{.label = ""}, {0}},
    .prepare = prepare,
    .run = run,
    .release = release,
};
