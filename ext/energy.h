/* energy.c: the calls of power meters. */
#ifndef CB_ENERGY_H
#define CB_ENERGY_H

#include <stdint.h>

#define CB_HSMP_WORDS 8

int cb_perf_open(uint32_t type, uint64_t config, int cpu); /* a system-wide counter of that CPU: a descriptor or -errno */
/* Sends the first nargs of 8 words and receives nanswers; 0 or -errno. The device must be open for writing to set. */
int cb_hsmp(int fd, uint16_t socket, uint32_t message, uint32_t *words, int nargs, int nanswers);
#endif
