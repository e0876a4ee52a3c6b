/* Every kernel of the suite, from kernels.def. */
#include "kernel.h"

#include <string.h>

#define KERNEL(name) extern const struct cb_kernel cb_kernel_##name;
#include "kernels.def"
#undef KERNEL

#define KERNEL(name) &cb_kernel_##name,
const struct cb_kernel *const cb_kernels[] = {
#include "kernels.def"
};
#undef KERNEL

const int cb_kernel_count = sizeof cb_kernels / sizeof *cb_kernels;

const struct cb_kernel *cb_find(const char *name) {
    for (int i = 0; i < cb_kernel_count; i++)
        if (strcmp(cb_kernels[i]->name, name) == 0) return cb_kernels[i];
    return NULL;
}
