/* OPERATIONS CPU: create a thread on the same CPU that returns at once, and join it. */
#include "peer.h"

#include <errno.h>
#include <pthread.h>

static void *nothing(void *told) { return told; }

int main(int argc, char **argv) {
    uint64_t ops = number(argc, argv, 1), warm = 20;
    pin(argv[2], 0);
    double began = 0;
    for (uint64_t i = 0; i < warm + ops; i++) {
        if (i == warm) began = now_ns();
        pthread_t thread;
        void *back;
        if ((errno = pthread_create(&thread, NULL, nothing, &i))) die("pthread_create");
        if ((errno = pthread_join(thread, &back))) die("pthread_join");
        if (back != &i) return fputs("it did not run\n", stderr), 1;
    }
    printf("%.4f\n", (now_ns() - began) / (double)ops);
    return 0;
}
