/* OPERATIONS CPU STEPS [START]: calls of STEPS dependent multiply-and-adds, from CLOCK_MONOTONIC = START ns on. */
#include "peer.h"

int main(int argc, char **argv) {
    uint64_t ops = number(argc, argv, 1), steps = number(argc, argv, 3), x = 1;
    double start = argc > 4 ? atof(argv[4]) : 0;
    pin(argv[2], 0);
    while (now_ns() < start) {}
    double began = now_ns();
    for (uint64_t i = 0; i < ops * steps; i++) x = step(x);
    double took = now_ns() - began;
    fprintf(stderr, "result %llu\n", (unsigned long long)x);
    printf("%.4f\n", took / (double)ops);
    return 0;
}
