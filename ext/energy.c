/* The two calls of power meters that Python has no words for: energy counters of perf, and messages to AMD's HSMP. */
#include "energy.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <linux/types.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int cb_perf_open(uint32_t type, uint64_t config, int cpu) {
    struct perf_event_attr attr = {.size = sizeof attr, .type = type, .config = config};
    long fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : (int)fd;
}

/* As in asm/amd_hsmp.h, which other CPUs' headers lack and Linux 6.14 moved; 44 bytes. */
struct hsmp_message {
    __u32 msg_id;
    __u16 num_args, response_sz; /* words */
    __u32 args[CB_HSMP_WORDS];
    __u16 sock_ind;
} __attribute__((packed, aligned(4)));
_Static_assert(sizeof(struct hsmp_message) == 44, "the size is part of the ioctl's number");

int cb_hsmp(int fd, uint16_t socket, uint32_t message, uint32_t *words, int nargs, int nanswers) {
    struct hsmp_message m = {.msg_id = message, .num_args = (__u16)nargs, .response_sz = (__u16)nanswers,
                             .sock_ind = socket};
    memcpy(m.args, words, sizeof m.args);
    if (ioctl(fd, _IOWR(0xF8, 0, struct hsmp_message), &m)) return -errno;
    memcpy(words, m.args, sizeof m.args);
    return 0;
}
