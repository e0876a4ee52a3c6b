/* OPERATIONS CPU[,CPU..] NS: a thread per CPU; all want one default mutex until OPERATIONS critical sections are done.
 * A section of NS nanoseconds is 3/4 NS steps of multiply and add, which is that long at 4 cycles a step and 3 GHz.
 * The mutex and what it protects lie in one cache line. */
#include "peer.h"

#include <errno.h>
#include <pthread.h>

static void must(int error, const char *what) {
    if ((errno = error)) die(what);
}

enum { MOST = 512 };
static _Alignas(64) struct {
    pthread_mutex_t mutex;
    uint64_t done, value; /* both under it */
} shared = {.mutex = PTHREAD_MUTEX_INITIALIZER};
static _Alignas(64) struct { uint64_t ops, steps; const char *cpus; } job;
static pthread_barrier_t start;

struct span { int which; double began, ended; };

static void *body(void *arg) {
    struct span *span = arg;
    pin(job.cpus, span->which);
    uint64_t ops = job.ops, steps = job.steps;
    int last = pthread_barrier_wait(&start);
    must(last == PTHREAD_BARRIER_SERIAL_THREAD ? 0 : last, "pthread_barrier_wait");
    span->began = now_ns();
    for (int more = 1; more;) {
        must(pthread_mutex_lock(&shared.mutex), "pthread_mutex_lock");
        if ((more = shared.done < ops)) {
            uint64_t x = shared.value;
            for (uint64_t i = 0; i < steps; i++) x = step(x);
            shared.value = x;
            shared.done++;
        }
        must(pthread_mutex_unlock(&shared.mutex), "pthread_mutex_unlock");
    }
    span->ended = now_ns();
    return NULL;
}

int main(int argc, char **argv) {
    job.ops = number(argc, argv, 1);
    job.steps = number(argc, argv, 3) * 3 / 4;
    job.cpus = argv[2];
    pthread_t threads[MOST];
    struct span spans[MOST];
    int n = 1;
    for (const char *at = job.cpus; (at = strchr(at, ',')) && n < MOST; at++) n++;
    must(pthread_barrier_init(&start, NULL, (unsigned)n), "pthread_barrier_init");
    for (int i = 0; i < n; i++) {
        spans[i].which = i;
        must(pthread_create(&threads[i], NULL, body, &spans[i]), "pthread_create");
    }
    double began = 1e300, ended = 0;
    for (int i = 0; i < n; i++) {
        must(pthread_join(threads[i], NULL), "pthread_join");
        if (spans[i].began < began) began = spans[i].began;
        if (spans[i].ended > ended) ended = spans[i].ended;
    }
    fprintf(stderr, "value %llu\n", (unsigned long long)shared.value);
    printf("%.4f\n", (ended - began) / (double)job.ops);
    return 0;
}
