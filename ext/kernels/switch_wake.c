/* From a wake-up to the woken process at work, on a core that has had nothing to do for 1 ms: leaving its idle state is
 * in it, which a ping-pong hides. Both processes sleep between operations, so that nothing keeps the cores awake: the
 * sleeper in FUTEX_WAIT, the waker in nanosleep() on its own core, whose own waking is not stamped. */
#include "../kernel.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct shared {
    _Alignas(CB_LINE) _Atomic uint32_t called;   /* how often, by the copy */
    _Alignas(CB_LINE) _Atomic uint32_t answered; /* by the sleeper */
    uint64_t awake_ns;
};

static int wait_while(_Atomic uint32_t *word, uint32_t value) {
    while (atomic_load(word) == value)
        if (syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0) && errno != EAGAIN && errno != EINTR) return -1;
    return 0;
}

static int set(_Atomic uint32_t *word, uint32_t value) {
    atomic_store(word, value);
    return syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0) < 0 ? -1 : 0;
}

static void sleeper(struct cb_ctx *ctx) {
    struct shared *s = ctx->state;
    for (uint32_t n = 0; wait_while(&s->called, n) == 0 && (s->awake_ns = cb_stamp());)
        if (set(&s->answered, ++n)) return;
}

static int prepare(struct cb_ctx *ctx) {
    ctx->state = cb_arena(ctx, sizeof(struct shared), CB_SHARED);
    return ctx->state ? cb_peer_start(ctx, sleeper) : cb_fail(ctx, ctx->call);
}

static int wake(struct cb_ctx *ctx, uint64_t *sum_ns) {
    struct shared *s = ctx->state;
    uint32_t n = atomic_load(&s->answered);
    if (nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL)) return cb_fail(ctx, "nanosleep");
    uint64_t called_ns = cb_stamp();
    if (set(&s->called, n + 1) || wait_while(&s->answered, n)) return cb_fail(ctx, "futex");
    if (s->awake_ns <= called_ns) return errno = ERANGE, cb_fail(ctx, "clock"); /* the cores' clocks differ */
    *sum_ns += s->awake_ns - called_ns;
    return 0;
}

static int warm(struct cb_ctx *ctx) { /* two, unstamped: the first after the longer rest took 90 us in place of 50 */
    uint64_t unused = 0;
    cb_settle();
    int rc = wake(ctx, &unused);
    return rc ? rc : wake(ctx, &unused);
}

static int run(struct cb_ctx *ctx, uint64_t ops) {
    int rc = 0;
    for (uint64_t i = 0; i < ops && !rc; i++, ctx->counter++) rc = wake(ctx, &ctx->stamped_ns);
    ctx->checksum = ctx->counter;
    return rc;
}

static int release(struct cb_ctx *ctx) {
    int rc = cb_peer_stop(ctx);
    return cb_arena_free(ctx), rc;
}

const struct cb_kernel cb_kernel_switch_wake = {
    .name = "switch_wake", .family = "switch",
    .doc = "From just before FUTEX_WAKE to the woken process at work on another core, which has been idle for 1 ms.",
    .unit = "wake-up",
    .version = 1,
    .flags = CB_BLOCKING | CB_PAIR | CB_LATENCY,
    .params = (const struct cb_param[]){{.label = "", .place = CB_OTHER}, {0}},
    .max_ops = 16, /* 1.1 ms each */
    .prepare = prepare, .warm = warm, .run = run, .release = release,
};
