/* OPERATIONS CPU,CPU: each of two threads adds 1 to a counter of its own, OPERATIONS / 2 times, by a load and a store that
 * are sequentially consistent; the two counters are neighbours in one cache line. A thread that is ready goes on until the
 * other is ready too, so that nobody is ever alone with the line; all increments until then count. */
#include "peer.h"

#include <errno.h>
#include <pthread.h>

static void must(int error, const char *what) {
    if ((errno = error)) die(what);
}

static _Alignas(64) struct { uint64_t own[2]; } line;
static _Alignas(64) struct { uint64_t ops; const char *cpus; } job;
static _Alignas(64) int ready;

/* Both threads spin here until the other has come. */
static _Alignas(64) int here;
static void together(void) {
    __atomic_add_fetch(&here, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&here, __ATOMIC_SEQ_CST) < 2) {}
}

struct span { int which; double began, ended; };

static void *body(void *arg) {
    struct span *span = arg;
    uint64_t *own = &line.own[span->which];
    uint64_t some = job.ops / 2 / 100 + 1;
    pin(job.cpus, span->which);
    together();
    span->began = now_ns();
    for (int part = 1; part <= 100 || __atomic_load_n(&ready, __ATOMIC_RELAXED) < 2; part++) {
        for (uint64_t i = 0; i < some; i++)
            __atomic_store_n(own, __atomic_load_n(own, __ATOMIC_SEQ_CST) + 1, __ATOMIC_SEQ_CST);
        if (part == 100) __atomic_add_fetch(&ready, 1, __ATOMIC_RELAXED);
    }
    span->ended = now_ns();
    return NULL;
}

int main(int argc, char **argv) {
    job.ops = number(argc, argv, 1);
    job.cpus = argv[2];
    pthread_t other;
    struct span spans[2] = {{.which = 0}, {.which = 1}};
    must(pthread_create(&other, NULL, body, &spans[1]), "pthread_create");
    body(&spans[0]);
    must(pthread_join(other, NULL), "pthread_join");
    double began = spans[0].began < spans[1].began ? spans[0].began : spans[1].began;
    double ended = spans[0].ended > spans[1].ended ? spans[0].ended : spans[1].ended;
    job.ops = line.own[0] + line.own[1];
    printf("%.4f\n", (ended - began) / (double)job.ops);
    return 0;
}
