/* OPERATIONS CPU,CPU [PAGE]: two threads add 1 to one counter by atomic fetch-and-add until it is at OPERATIONS. The counter
 * is a static variable; with a PAGE, alone in a page from mmap(). */
#include "peer.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

static void must(int error, const char *what) {
    if ((errno = error)) die(what);
}

static _Alignas(64) uint64_t variable;
static _Alignas(64) struct { uint64_t ops, *counter; const char *cpus; } job;

/* Both threads spin here until the other has come. */
static _Alignas(64) int here;
static void together(void) {
    __atomic_add_fetch(&here, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&here, __ATOMIC_SEQ_CST) < 2) {}
}

struct span { int which; double began, ended; };

static void *body(void *arg) {
    struct span *span = arg;
    uint64_t *counter = job.counter, last = job.ops - 1, seen;
    pin(job.cpus, span->which);
    together();
    span->began = now_ns();
    do seen = __atomic_fetch_add(counter, 1, __ATOMIC_SEQ_CST);
    while (seen < last);
    span->ended = now_ns();
    return NULL;
}

int main(int argc, char **argv) {
    job.ops = number(argc, argv, 1);
    job.cpus = argv[2];
    job.counter = &variable;
    if (argc > 3) job.counter = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (job.counter == MAP_FAILED) die("mmap");
    *job.counter = 0;
    pthread_t other;
    struct span spans[2] = {{.which = 0}, {.which = 1}};
    must(pthread_create(&other, NULL, body, &spans[1]), "pthread_create");
    body(&spans[0]);
    must(pthread_join(other, NULL), "pthread_join");
    double began = spans[0].began < spans[1].began ? spans[0].began : spans[1].began;
    double ended = spans[0].ended > spans[1].ended ? spans[0].ended : spans[1].ended;
    if (*job.counter < job.ops || *job.counter > job.ops + 1) die("counter");
    printf("%.4f\n", (ended - began) / (double)job.ops);
    return 0;
}
