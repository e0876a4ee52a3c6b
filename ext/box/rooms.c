/* Namespaces, mounts and the control group of a sandbox: user_namespaces(7), pivot_root(2), cgroups(7). */
#include "box.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STEP(name, call)        \
    do {                        \
        *what = (name);         \
        if ((call) < 0)         \
            return -errno;      \
    } while (0)

static int put(int folder, const char *path, const char *text) {
    int file = openat(folder, path, O_WRONLY | O_CLOEXEC);
    if (file < 0)
        return -1;
    long done = write(file, text, strlen(text));
    int error = errno;
    close(file);
    errno = error;
    return done < 0 ? -1 : 0;
}

/* A plain user has a user namespace too, in which it is root. */
int box_unshare(const struct box *box, const char **what) {
    int flags = box->spaces ? CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS : 0;
    flags |= box->overlay ? CLONE_NEWNS : 0;
    unsigned user = geteuid(), group = getegid();
    if (!flags)
        return 0;
    if (user)
        flags |= CLONE_NEWUSER;
    STEP("namespaces", unshare(flags));
    if (user) {
        char map[64];
        STEP("setgroups", put(AT_FDCWD, "/proc/self/setgroups", "deny"));
        snprintf(map, sizeof map, "0 %u 1\n", user);
        STEP("uid_map", put(AT_FDCWD, "/proc/self/uid_map", map));
        snprintf(map, sizeof map, "0 %u 1\n", group);
        STEP("gid_map", put(AT_FDCWD, "/proc/self/gid_map", map));
    }
    return 0;
}

static int loopback(void) {
    struct ifreq link = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    int number = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int done = number < 0 ? -1 : ioctl(number, SIOCSIFFLAGS, &link);
    if (number >= 0)
        close(number);
    return done;
}

/* The host's root below a layer in memory: what is written is gone with it. Mounts below the root are not in it. */
static int root_of_its_own(const struct box *box, const char **what) {
    STEP("overlay folder", chdir(box->overlay));
    STEP("tmpfs", mount("tmpfs", ".", "tmpfs", MS_NOSUID | MS_NODEV, "size=64m,mode=755"));
    STEP("overlay folder", chdir(box->overlay));
    STEP("upper", mkdir("upper", 0755));
    STEP("work", mkdir("work", 0755));
    STEP("root", mkdir("root", 0755));
    int error = mount("overlay", "root", "overlay", 0, "lowerdir=/,upperdir=upper,workdir=work,userxattr");
    if (error && errno == EINVAL) /* before Linux 5.11 */
        error = mount("overlay", "root", "overlay", 0, "lowerdir=/,upperdir=upper,workdir=work");
    STEP("overlay over / (of mounts below it a plain user has no copy)", error);
    STEP("/dev", mount("/dev", "root/dev", NULL, MS_BIND | MS_REC, NULL));
    if (!box->spaces)
        STEP("/proc", mount("/proc", "root/proc", NULL, MS_BIND | MS_REC, NULL));
    else
        STEP("proc", mount("proc", "root/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL));
    STEP("root", chdir("root"));
    STEP("pivot_root", syscall(SYS_pivot_root, ".", "."));
    STEP("old root", umount2(".", MNT_DETACH));
    STEP("/", chdir("/"));
    return 0;
}

int box_rooms(const struct box *box, const char **what) {
    if (box->spaces || box->overlay)
        STEP("private mounts", mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
    if (box->spaces) {
        if (!box->overlay)
            STEP("proc", mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL));
        STEP("cgroup namespace", unshare(CLONE_NEWCGROUP));
        STEP("host name", sethostname("cpubench-box", 12));
        STEP("loopback", loopback());
    }
    return box->overlay ? root_of_its_own(box, what) : 0;
}

/* Limits are set where the parent has handed their controllers down; without, the group only counts. */
int box_join(struct box *box, const char **what) {
    char file[64];
    STEP(box->group, box->groups = open(box->group, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    snprintf(box->name, sizeof box->name, "cpubench-box-%d", (int)getpid());
    if (mkdirat(box->groups, box->name, 0755)) {
        int error = errno;
        box->name[0] = 0;
        *what = box->group;
        return -error;
    }
    snprintf(file, sizeof file, "%s/pids.max", box->name);
    STEP("pids.max", put(box->groups, file, "256") && errno != ENOENT ? -1 : 0);
    snprintf(file, sizeof file, "%s/memory.max", box->name);
    STEP("memory.max", put(box->groups, file, "2147483648") && errno != ENOENT ? -1 : 0);
    snprintf(file, sizeof file, "%s/cgroup.procs", box->name);
    STEP("cgroup.procs", box->procs = openat(box->groups, file, O_WRONLY | O_CLOEXEC));
    return 0;
}

/* The group is empty once its processes were waited for, but the kernel may let go of the last one a moment later. */
int box_leave(struct box *box, const char **what) {
    *what = box->name;
    for (int tries = 0; box->name[0] && unlinkat(box->groups, box->name, AT_REMOVEDIR); tries++) {
        if (errno != EBUSY || tries == 1000)
            return -errno;
        usleep(1000);
    }
    return 0;
}
