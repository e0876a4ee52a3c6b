/* A tmpfs of the block's own: nothing of it can outlive the block, and no other process can fill it. */
#include "board.h"

#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>

int cb_private_tmpfs(const char *path, uint64_t bytes) {
    char options[64];
    snprintf(options, sizeof options, "mode=0700,size=%llu", (unsigned long long)bytes);
    if (unshare(CLONE_NEWNS)) return -errno;
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL)) return -errno; /* or it would show outside */
    return mount("cpubench", path, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOATIME, options) ? -errno : 0;
}
