/* OPERATIONS CPU,CPU: two threads take one default pthread_rwlock_t for reading, load what it protects, and unlock it,
 * until OPERATIONS of that are done together. */
#include "peer.h"

#include <errno.h>
#include <pthread.h>

static void must(int error, const char *what) {
    if ((errno = error)) die(what);
}

static _Alignas(64) pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static _Alignas(64) struct { uint64_t value; } data = {3};
static _Alignas(64) struct { uint64_t ops; const char *cpus; } job;
static _Alignas(64) uint64_t left; /* in hundreds: both threads work to the end, whoever is faster */

/* Both threads spin here until the other has come. */
static _Alignas(64) int here;
static void together(void) {
    __atomic_add_fetch(&here, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&here, __ATOMIC_SEQ_CST) < 2) {}
}

struct span { int which; double began, ended; };

static void *body(void *arg) {
    struct span *span = arg;
    uint64_t sum = 0;
    pin(job.cpus, span->which);
    together();
    span->began = now_ns();
    while ((int64_t)__atomic_fetch_sub(&left, 1, __ATOMIC_RELAXED) > 0)
        for (int section = 0; section < 100; section++) {
            must(pthread_rwlock_rdlock(&rwlock), "pthread_rwlock_rdlock");
            sum += data.value;
            must(pthread_rwlock_unlock(&rwlock), "pthread_rwlock_unlock");
        }
    span->ended = now_ns();
    fprintf(stderr, "sum %llu\n", (unsigned long long)sum);
    return NULL;
}

int main(int argc, char **argv) {
    left = (number(argc, argv, 1) + 99) / 100;
    job.ops = 100 * left;
    job.cpus = argv[2];
    pthread_t other;
    struct span spans[2] = {{.which = 0}, {.which = 1}};
    must(pthread_create(&other, NULL, body, &spans[1]), "pthread_create");
    body(&spans[0]);
    must(pthread_join(other, NULL), "pthread_join");
    double began = spans[0].began < spans[1].began ? spans[0].began : spans[1].began;
    double ended = spans[0].ended > spans[1].ended ? spans[0].ended : spans[1].ended;
    printf("%.4f\n", (ended - began) / (double)job.ops);
    return 0;
}
