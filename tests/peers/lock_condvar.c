/* OPERATIONS CPU,CPU: numbers from one thread to another through a queue that holds one: a mutex, a condition variable
 * for "no longer empty" and one for "no longer full". */
#include "peer.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

static void must(int error, const char *what) {
    if ((errno = error)) die(what);
}

static _Alignas(64) struct {
    pthread_mutex_t mutex;
    pthread_cond_t filled, emptied;
    int count;
    uint64_t slot;
} queue = {.mutex = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER, .emptied = PTHREAD_COND_INITIALIZER};
static struct { uint64_t ops; const char *cpus; } job;

static void *producer(void *arg) {
    (void)arg;
    pin(job.cpus, 1);
    for (uint64_t i = 0; i < job.ops; i++) {
        must(pthread_mutex_lock(&queue.mutex), "pthread_mutex_lock");
        while (queue.count == 1) must(pthread_cond_wait(&queue.emptied, &queue.mutex), "pthread_cond_wait");
        queue.slot = i;
        queue.count = 1;
        must(pthread_cond_signal(&queue.filled), "pthread_cond_signal");
        must(pthread_mutex_unlock(&queue.mutex), "pthread_mutex_unlock");
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t other;
    job.ops = number(argc, argv, 1);
    job.cpus = argv[2];
    pin(job.cpus, 0);
    must(pthread_create(&other, NULL, producer, NULL), "pthread_create");
    usleep(200000); /* what began this process keeps idle CPUs from sleeping for some 50 ms, as in switch_pipe.c */
    double began = now_ns();
    for (uint64_t i = 0; i < job.ops; i++) {
        must(pthread_mutex_lock(&queue.mutex), "pthread_mutex_lock");
        while (queue.count == 0) must(pthread_cond_wait(&queue.filled, &queue.mutex), "pthread_cond_wait");
        if (queue.slot != i) die("order");
        queue.count = 0;
        must(pthread_cond_signal(&queue.emptied), "pthread_cond_signal");
        must(pthread_mutex_unlock(&queue.mutex), "pthread_mutex_unlock");
    }
    double ended = now_ns();
    must(pthread_join(other, NULL), "pthread_join");
    printf("%.4f\n", (ended - began) / (double)job.ops);
    return 0;
}
