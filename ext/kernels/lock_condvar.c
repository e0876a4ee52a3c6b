/* A queue with room for one item: a mutex and two condition variables, signalled under the mutex, as in the queues of
 * language runtimes. Each thread waits for the other every time; larger queues fill in bursts of the scheduler's choice.
 * The producer never leaves: it sleeps at the full queue between batches, so that a batch begins as each of its items
 * does. While it waited awake at the gate, batches of 3 items took 7 us an item, and one of 160 took 50. */
#include "../kernel.h"

#include <pthread.h>

struct queue {
    _Alignas(CB_LINE) pthread_mutex_t mutex;
    pthread_cond_t not_empty, not_full;
    uint64_t item; /* 0: empty */
    int quit;
};

static struct cb_group *group_of(struct cb_ctx *ctx) { return ctx->arenas[1].at; }

static int put(struct queue *q, uint64_t item) { /* 0: nobody wants it any more */
    pthread_mutex_lock(&q->mutex);
    while (q->item && !q->quit) pthread_cond_wait(&q->not_full, &q->mutex);
    int wanted = !q->quit;
    q->item = item;
    pthread_cond_signal(&q->not_empty);
    pthread_mutex_unlock(&q->mutex);
    return wanted;
}

static uint64_t get(struct queue *q) {
    pthread_mutex_lock(&q->mutex);
    while (!q->item) pthread_cond_wait(&q->not_empty, &q->mutex);
    uint64_t item = q->item;
    q->item = 0;
    pthread_cond_signal(&q->not_full);
    pthread_mutex_unlock(&q->mutex);
    return item;
}

static void produce(struct cb_ctx *ctx, int thread) {
    for (uint64_t item = (uint64_t)thread; put(ctx->state, item); item++) {} /* from 1 on */
}

static int prepare(struct cb_ctx *ctx) {
    struct queue *q = ctx->state = cb_arena(ctx, sizeof *q, CB_BASE);
    if (!q || !cb_arena(ctx, cb_group_bytes(), CB_BASE)) return cb_fail(ctx, ctx->call);
    if (ctx->ncpus != 2) return errno = EINVAL, cb_fail(ctx, "two CPUs");
    if ((errno = pthread_mutex_init(&q->mutex, NULL))) return cb_fail(ctx, "pthread_mutex_init");
    if ((errno = pthread_cond_init(&q->not_empty, NULL))) return cb_fail(ctx, "pthread_cond_init");
    if ((errno = pthread_cond_init(&q->not_full, NULL))) return cb_fail(ctx, "pthread_cond_init");
    int rc = cb_group_start(ctx, group_of(ctx), produce);
    return rc ? rc : (cb_group_open(group_of(ctx)), 0);
}

static int warm(struct cb_ctx *ctx) { return (void)ctx, cb_settle(), 0; }

static int run(struct cb_ctx *ctx, uint64_t ops) {
    int wrong = 0;
    for (uint64_t i = 0; i < ops; i++) wrong |= get(ctx->state) != ++ctx->counter;
    ctx->checksum = ctx->counter;
    return wrong ? errno = EBADE, cb_fail(ctx, "sequence") : 0;
}

static int release(struct cb_ctx *ctx) {
    struct queue *q = ctx->state;
    if (ctx->narenas == 2) {
        pthread_mutex_lock(&q->mutex);
        q->quit = 1;
        pthread_cond_signal(&q->not_full);
        pthread_mutex_unlock(&q->mutex);
        cb_group_stop(group_of(ctx));
    }
    cb_arena_free(ctx);
    return 0;
}

const struct cb_kernel cb_kernel_lock_condvar = {
    .name = "lock_condvar", .family = "lock", .unit = "item", .version = 1, .flags = CB_BLOCKING | CB_GROUP,
    .doc = "One item through a queue with room for one (mutex and two condition variables) from one thread to another.",
    .params = (const struct cb_param[]){{.label = "", .flags = CB_SCORED, .threads = 2}, {0}},
    .prepare = prepare, .warm = warm, .run = run, .release = release,
};
