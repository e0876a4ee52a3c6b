/* The fixed work that critical sections and control kernels do, and its result by another road. */
#include "kernel.h"

/* The map x -> a x + c composed `steps` times, by squaring: an independent proof that every step was taken. */
uint64_t cb_work_result(uint64_t x, uint64_t steps) {
    uint64_t a = 6364136223846793005u, c = 1442695040888963407u, all_a = 1, all_c = 0;
    for (; steps; steps >>= 1) {
        if (steps & 1) {
            all_a *= a;
            all_c = all_c * a + c;
        }
        c *= a + 1;
        a *= a;
    }
    return x * all_a + all_c;
}
