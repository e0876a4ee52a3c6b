/* energy.c: the call of power meters. */
#ifndef CB_ENERGY_H
#define CB_ENERGY_H

#include <stdint.h>

int cb_perf_open(uint32_t type, uint64_t config, int cpu); /* a system-wide counter of that CPU: a descriptor or -errno */
#endif
