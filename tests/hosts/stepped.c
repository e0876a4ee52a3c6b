/* Preloaded, each process has another wall clock, and each second look at it is an hour back: nothing may depend on it. */
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    static atomic_uint looks;
    int rc = (int)syscall(SYS_clock_gettime, clock, now);
    if (rc == 0 && clock == CLOCK_REALTIME) now->tv_sec -= 3600 * (getpid() % 9973 + (time_t)(atomic_fetch_add(&looks, 1) % 2));
    return rc;
}
