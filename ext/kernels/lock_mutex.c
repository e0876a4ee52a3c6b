/* A default pthread mutex between the threads of a group, taken again at once, as a shared queue or allocator is.
 * The critical section is fixed work, not fixed time: 200 ns are 150 steps of 4 cycles at 3 GHz, the same on all hosts. */
#include "../kernel.h"

#include <pthread.h>

#define SEED 1
#define CS(name, ns, n, bits) {.label = "cs=" name, .value = ns, .flags = bits, .threads = n}

/* In one line, as a program's own struct is: with the data in a second one an operation took 3 % longer. */
struct lock {
    _Alignas(CB_LINE) pthread_mutex_t mutex;
    uint64_t left, x; /* both under the mutex */
};

static struct cb_group *group_of(struct cb_ctx *ctx) { return ctx->arenas[1].at; }
static uint64_t steps(const struct cb_ctx *ctx) { return ctx->value * 3 / 4; }

static void body(struct cb_ctx *ctx, int thread) {
    struct lock *lock = ctx->state;
    uint64_t mine = 0, n = steps(ctx);
    for (;; mine++) {
        pthread_mutex_lock(&lock->mutex);
        uint64_t left = lock->left;
        if (left) {
            lock->left = left - 1;
            lock->x = cb_work(lock->x, n);
        }
        pthread_mutex_unlock(&lock->mutex);
        if (!left) break;
    }
    ctx->thread_ops[thread] += mine;
}

static int prepare(struct cb_ctx *ctx) {
    struct lock *lock = ctx->state = cb_arena(ctx, sizeof *lock, CB_BASE);
    if (!lock || !cb_arena(ctx, cb_group_bytes(), CB_BASE)) return cb_fail(ctx, ctx->call);
    lock->x = SEED;
    errno = pthread_mutex_init(&lock->mutex, NULL);
    if (errno) return cb_fail(ctx, "pthread_mutex_init");
    return cb_group_start(ctx, group_of(ctx), body);
}

static int run(struct cb_ctx *ctx, uint64_t ops) {
    struct lock *lock = ctx->state;
    pthread_mutex_lock(&lock->mutex);
    lock->left = ops;
    pthread_mutex_unlock(&lock->mutex);
    cb_group_open(group_of(ctx));
    body(ctx, 0); /* who finds nothing left while holding the mutex knows that every operation is finished */
    ctx->counter += ops;
    return 0;
}

/* Each operation moves x on by the same steps whoever does it: x tells whether one was lost or done twice. */
static int release(struct cb_ctx *ctx) {
    struct lock *lock = ctx->state;
    int wrong = 0;
    if (ctx->narenas == 2) {
        cb_group_stop(group_of(ctx));
        pthread_mutex_destroy(&lock->mutex);
        ctx->checksum = lock->x;
        wrong = lock->x != cb_work_result(SEED, ctx->counter * steps(ctx));
    }
    cb_arena_free(ctx);
    return wrong ? errno = EBADE, cb_fail(ctx, "checksum") : 0;
}

#define MUTEX \
    .family = "lock", .unit = "critical section", .version = 2, .flags = CB_BLOCKING | CB_GROUP, \
    .prepare = prepare, .run = run, .release = release

const struct cb_kernel cb_kernel_lock_mutex = {MUTEX, .name = "lock_mutex",
    .doc = "One lock, critical section and unlock of a default pthread mutex that all threads of the group want at once.",
    .params = (const struct cb_param[]){
        CS("50ns", 50, 2, 0), CS("200ns", 200, 2, CB_SCORED), CS("2us", 2000, 2, 0), CS("200ns,threads=4", 200, 4, 0), {0}}};

const struct cb_kernel cb_kernel_lock_all = {MUTEX, .name = "lock_all",
    .doc = "One lock, critical section of 200 ns and unlock of one default pthread mutex that N threads want at once.",
    .params = (const struct cb_param[]){{.label = "threads=N", .value = 200, .threads = 2, .each = CB_EACH_COUNT}, {0}}};
