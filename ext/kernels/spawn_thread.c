/* pthread_create() of a thread that returns at once, and pthread_join(). It inherits the copy's affinity: it runs on the
 * same CPU, which it gets when the copy waits for it. glibc keeps the stack of an ended thread for the next one.
 * A process that ever had a thread has slower forks for ever (85 us in place of 71: glibc's locks then count), so this one
 * has no other kernel. */
#include "../kernel.h"

#include <pthread.h>

/* Of glibc's default, RLIMIT_STACK: kept the same on all hosts, since glibc keeps 40 MiB of stacks and unmaps what is more. */
#define STACK_BYTES ((size_t)8 << 20)

static int prepare(struct cb_ctx *ctx) {
    pthread_attr_t usual;
    errno = pthread_attr_init(&usual);
    if (!errno) errno = pthread_attr_setstacksize(&usual, STACK_BYTES);
    if (!errno) errno = pthread_setattr_default_np(&usual);
    if (errno) return cb_fail(ctx, "pthread_setattr_default_np");
    pthread_attr_destroy(&usual);
    return 0;
}

static void *body(void *counter) {
    ++*(uint64_t *)counter;
    return counter;
}

static int run(struct cb_ctx *ctx, uint64_t ops) {
    uint64_t due = ctx->counter + ops;
    for (uint64_t i = 0; i < ops; i++) {
        pthread_t thread;
        void *told;
        errno = pthread_create(&thread, NULL, body, &ctx->counter);
        if (errno) return cb_fail(ctx, "pthread_create");
        errno = pthread_join(thread, &told);
        if (errno) return cb_fail(ctx, "pthread_join");
        if (told != &ctx->counter) return errno = EBADE, cb_fail(ctx, "thread");
    }
    ctx->checksum = ctx->counter; /* counted by the threads */
    return ctx->counter == due ? 0 : (errno = EBADE, cb_fail(ctx, "counter"));
}

static int release(struct cb_ctx *ctx) {
    (void)ctx;
    return 0;
}

const struct cb_kernel cb_kernel_spawn_thread = {
    .name = "spawn_thread",
    .family = "spawn",
    .doc = "pthread_create() of a default thread (8 MiB of stack) that returns at once, on the same CPU, and pthread_join().",
    .unit = "thread",
    .version = 1,
    .flags = CB_BLOCKING | CB_OWN,
    .params = (const struct cb_param[]){{.label = "", .flags = CB_SCORED}, {0}},
    .prepare = prepare,
    .run = run,
    .release = release,
};
