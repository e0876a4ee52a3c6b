/* The one call of power meters that Python has no words for. */
#include "energy.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

int cb_perf_open(uint32_t type, uint64_t config, int cpu) {
    struct perf_event_attr attr = {.size = sizeof attr, .type = type, .config = config};
    long fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : (int)fd;
}
