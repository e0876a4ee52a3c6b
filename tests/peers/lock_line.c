/* OPERATIONS CPU,CPU: a number in one cache line; either thread raises it when the other has. OPERATIONS round trips.
 * Between two looks at it a spinning thread pauses, as the processor's manual asks for. */
#include "peer.h"

#include <errno.h>
#include <pthread.h>

static void must(int error, const char *what) {
    if ((errno = error)) die(what);
}

static _Alignas(64) uint64_t number_in_line;
static _Alignas(64) struct { uint64_t ops; const char *cpus; } job;
static _Alignas(64) double spent_ns;

static void relax(void) {
#if defined(__x86_64__)
    __asm__ volatile("pause" ::: "memory");
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

static void wait_for(uint64_t n) {
    while (__atomic_load_n(&number_in_line, __ATOMIC_ACQUIRE) < n) relax();
}

static void *second(void *arg) {
    (void)arg;
    pin(job.cpus, 1);
    __atomic_store_n(&number_in_line, 1, __ATOMIC_RELEASE); /* here */
    for (uint64_t i = 1; i <= job.ops; i++) {
        wait_for(2 * i);
        __atomic_store_n(&number_in_line, 2 * i + 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t other;
    job.ops = number(argc, argv, 1);
    job.cpus = argv[2];
    pin(job.cpus, 0);
    must(pthread_create(&other, NULL, second, NULL), "pthread_create");
    wait_for(1);
    double began = now_ns();
    for (uint64_t i = 1; i <= job.ops; i++) {
        __atomic_store_n(&number_in_line, 2 * i, __ATOMIC_RELEASE);
        wait_for(2 * i + 1);
    }
    spent_ns = now_ns() - began;
    must(pthread_join(other, NULL), "pthread_join");
    printf("%.4f\n", spent_ns / (double)job.ops);
    return 0;
}
