/* OPERATIONS CPU: SIGUSR1 to oneself, caught by a handler. */
#include "peer.h"

#include <signal.h>
#include <unistd.h>

static volatile sig_atomic_t seen;

static void count(int number) {
    (void)number;
    seen = seen + 1;
}

int main(int argc, char **argv) {
    uint64_t ops = number(argc, argv, 1), warm = ops / 10 + 1;
    pin(argv[2], 0);
    struct sigaction how = {0};
    how.sa_handler = count;
    if (sigaction(SIGUSR1, &how, NULL)) die("sigaction");
    pid_t self = getpid();
    double began = 0;
    for (uint64_t i = 0; i < warm + ops; i++) {
        if (i == warm) began = now_ns();
        if (tgkill(self, self, SIGUSR1)) die("tgkill");
    }
    double took = now_ns() - began;
    if ((uint64_t)seen != warm + ops) die("signals were lost");
    printf("%.4f\n", took / (double)ops);
    return 0;
}
