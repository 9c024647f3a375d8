/* engine/native/probe_mounts.c: trying namespaces and mounts (see probe.h)
 *
 * Everything here runs in a child that has put itself into new namespaces, so whatever is mounted ends with it.
 * The calls are made raw: the point is to learn what the kernel says, not what the C library emulates.
 */
#include "engine/native/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/kernel.h"
#include "wall/caps.h"
#include "wall/ns.h"
#include "wall/own_id.h"
#include "wall/pivot.h"
#include "wall/proc_outer.h"

#ifndef CLONE_NEWCGROUP
#define CLONE_NEWCGROUP 0x02000000
#endif

/* From linux/mount.h, which may be older than the kernel (and clashes with sys/mount.h in some releases). */
enum {
    K_FSOPEN_CLOEXEC = 0x1,
    K_FSMOUNT_CLOEXEC = 0x1,
    K_FSCONFIG_SET_STRING = 1,
    K_FSCONFIG_CMD_CREATE = 6,
    K_OPEN_TREE_CLONE = 1,
    K_MOVE_MOUNT_F_EMPTY_PATH = 0x4,
    K_ATTR_RDONLY = 0x1,
    K_ATTR_IDMAP = 0x00100000,
};

#define OTHER_UID 0x70000000u   /* what a caller that can give no uid is refused with */

struct k_mount_attr {
    uint64_t attr_set, attr_clr, propagation, userns_fd;
};

static int
sys_fsopen(const char *type)
{
    return (int)syscall(SYS_fsopen, type, K_FSOPEN_CLOEXEC);
}

static int
sys_fsconfig(int fs, unsigned cmd, const char *key, const char *value)
{
    return (int)syscall(SYS_fsconfig, fs, cmd, key, value, 0);
}

static int
sys_fsmount(int fs)
{
    return (int)syscall(SYS_fsmount, fs, K_FSMOUNT_CLOEXEC, 0);
}

/* A detached file system; -1 with errno. @key may be NULL. */
static int
mount_detached(const char *type, const char *key, const char *value)
{
    cleanup_close int fs = sys_fsopen(type);

    if (fs < 0)
        return -1;
    if (key != NULL && sys_fsconfig(fs, K_FSCONFIG_SET_STRING, key, value) < 0)
        return -1;
    if (sys_fsconfig(fs, K_FSCONFIG_CMD_CREATE, NULL, NULL) < 0)
        return -1;
    return sys_fsmount(fs);
}

static int
write_map(pid_t pid, const char *which, const char *map)
{
    char path[64];

    if (pid == 0)
        snprintf(path, sizeof(path), "/proc/self/%s", which);
    else
        snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, which);
    return io_write_file(AT_FDCWD, path, map);
}

/* Map our own uid and gid to themselves: all that an ordinary user may do. */
static int
map_self(uid_t uid, gid_t gid)
{
    char map[64];

    if (write_map(0, "setgroups", "deny") < 0)
        return -1;
    snprintf(map, sizeof(map), "%u %u 1", (unsigned)uid, (unsigned)uid);
    if (write_map(0, "uid_map", map) < 0)
        return -1;
    snprintf(map, sizeof(map), "%u %u 1", (unsigned)gid, (unsigned)gid);
    return write_map(0, "gid_map", map);
}

/* The host uid that a sandbox of this caller's would have, if one can be given; 0: it would be the caller itself. */
static uint32_t
given_uid(void)
{
    uint32_t id = 0;

    return caps_give_identity() && own_id(OWN_OF_SANDBOX, 0, &id, NULL) == 0 ? id : 0;
}

/* Map 0 to @uid, as the engine does it: from outside, by a process that stayed there. Whoever maps its own uid 0 needs
 * CAP_SETFCAP, which no sandbox does. */
static int
unshare_mapped(struct feature_state *f, uint32_t uid)
{
    int gate[2], status;
    pid_t pid, us = getpid();
    char map[64], byte = 0;
    bool made;

    if (pipe2(gate, O_CLOEXEC) < 0)
        return -1;
    snprintf(map, sizeof(map), "0 %u 1", (unsigned)uid);
    pid = fork();
    if (pid == 0) {
        close(gate[1]);
        _exit(read(gate[0], &byte, 1) == 1 && (write_map(us, "gid_map", map) < 0 || write_map(us, "uid_map", map) < 0)
              ? errno & 0xff : 0);
    }
    close(gate[0]);
    made = pid > 0 && probe_note(&f[FEATURE_USERNS], "unshare(CLONE_NEWUSER)", unshare(CLONE_NEWUSER));
    if (made)
        (void)!write(gate[1], &byte, 1);
    close(gate[1]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (!made)
        return -1;
    errno = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
    if (!probe_note(&f[FEATURE_USERNS_MAP], "write(/proc/PID/uid_map)", errno == 0 ? 0 : -1))
        return -1;
    return probe_note(&f[FEATURE_USERNS_MAP], "setresuid", setresgid(0, 0, 0) < 0 ? -1 : setresuid(0, 0, 0)) ? 0 : -1;
}

static int
unshare_user(struct feature_state *f)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();
    uint32_t own = given_uid();

    if (own != 0)
        return unshare_mapped(f, own);
    return probe_note(&f[FEATURE_USERNS], "unshare(CLONE_NEWUSER)", unshare(CLONE_NEWUSER)) &&
           probe_note(&f[FEATURE_USERNS_MAP], "write(/proc/self/uid_map)", map_self(uid, gid)) ? 0 : -1;
}

static void
try_overlay(struct feature_state *f, int tmpfs)
{
    if (fchdir(tmpfs) < 0 || mkdir("l", 0700) < 0 || mkdir("u", 0700) < 0 || mkdir("w", 0700) < 0 ||
        mkdir("m", 0700) < 0) {
        probe_note(&f[FEATURE_OVERLAY], "mkdir on tmpfs", -1);
        return;
    }
    probe_note(&f[FEATURE_OVERLAY], "mount(overlay)",
               mount("overlay", "m", "overlay", MS_NOSUID | MS_NODEV, "lowerdir=l,upperdir=u,workdir=w,userxattr"));
}

static void
try_devpts(struct feature_state *f)
{
    cleanup_close int pts = -1;
    cleanup_close int ptmx = -1;
    unsigned number = 0;

    if (!probe_note(&f[FEATURE_DEVPTS], "fsmount(devpts)", pts = mount_detached("devpts", "ptmxmode", "0666")))
        return;
    ptmx = openat(pts, "ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (!probe_note(&f[FEATURE_DEVPTS], "open(ptmx)", ptmx))
        return;
    probe_note(&f[FEATURE_DEVPTS], "ioctl(TIOCGPTN)", kernel_ioctl(ptmx, TIOCGPTN, &number));
}

/* The new mount API, in our own mount namespace. */
static void
try_mount_api(struct feature_state *f)
{
    struct k_mount_attr attr = { .attr_set = K_ATTR_RDONLY };
    cleanup_close int tmpfs = mount_detached("tmpfs", "size", "65536");
    cleanup_close int tree = -1;

    probe_note(&f[FEATURE_FSOPEN], "fsopen(tmpfs)", tmpfs);
    tree = (int)syscall(SYS_open_tree, AT_FDCWD, "/", K_OPEN_TREE_CLONE | O_CLOEXEC | AT_RECURSIVE);
    if (probe_note(&f[FEATURE_OPEN_TREE], "open_tree(OPEN_TREE_CLONE)", tree))
        probe_note(&f[FEATURE_MOUNT_SETATTR], "mount_setattr(MOUNT_ATTR_RDONLY)",
                   syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)));
    /* one who may is told EFAULT */
    errno = 0;
    probe_note(&f[FEATURE_PIVOT_ROOT], "pivot_root", pivot_is_filtered() ? -1 : 0);
    if (tmpfs < 0)
        return;
    if (probe_note(&f[FEATURE_MOVE_MOUNT], "move_mount",
                   syscall(SYS_move_mount, tmpfs, "", AT_FDCWD, "/", K_MOVE_MOUNT_F_EMPTY_PATH)))
        try_overlay(f, tmpfs);
    try_devpts(f);
}

/* In the new pid namespace, as its PID 1: only there may its own procfs be mounted. */
static void
try_proc(struct feature_state *f)
{
    cleanup_close int plain = mount_detached("proc", "hidepid", "invisible");
    cleanup_close int subset = -1;
    struct stat st;

    if (!probe_note(&f[FEATURE_PROC_MOUNT], "fsmount(proc, hidepid)", plain))
        return;
    if (fstatat(plain, "1/status", &st, 0) < 0) {    /* a procfs of another pid namespace would not show us as 1 */
        probe_note(&f[FEATURE_PROC_MOUNT], "stat(proc/1)", -1);
        return;
    }
    subset = mount_detached("proc", "subset", "pid");
    probe_note(&f[FEATURE_PROC_SUBSET], "fsconfig(subset=pid)", subset);
}

static void
in_child(void (*fn)(struct feature_state *), struct feature_state *f)
{
    pid_t pid = fork();

    if (pid < 0)
        return;
    if (pid == 0) {
        fn(f);
        _exit(0);
    }
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

void
probe_try_namespaces(struct feature_state *f)
{
    static const struct { enum feature which; int flag; const char *call; } spaces[] = {
        { FEATURE_NETNS, CLONE_NEWNET, "unshare(CLONE_NEWNET)" },
        { FEATURE_IPCNS, CLONE_NEWIPC, "unshare(CLONE_NEWIPC)" },
        { FEATURE_UTSNS, CLONE_NEWUTS, "unshare(CLONE_NEWUTS)" },
        { FEATURE_CGROUPNS, CLONE_NEWCGROUP, "unshare(CLONE_NEWCGROUP)" },
        { FEATURE_MOUNTNS, CLONE_NEWNS, "unshare(CLONE_NEWNS)" },
        { FEATURE_PIDNS, CLONE_NEWPID, "unshare(CLONE_NEWPID)" },
    };

    if (unshare_user(f) < 0)
        return;
    for (size_t i = 0; i < ARRAY_LEN(spaces); i++)
        probe_note(&f[spaces[i].which], spaces[i].call, unshare(spaces[i].flag));
    /* Podman's filter lets one be made, and no name be given */
    if (f[FEATURE_UTSNS].status == FEATURE_YES)
        probe_note(&f[FEATURE_UTSNS], "sethostname", sethostname("cloche", sizeof("cloche") - 1));
    if (f[FEATURE_PIDNS].status == FEATURE_YES)
        in_child(try_proc, f);      /* before mounts change: procfs is compared with what is visible now */
    if (f[FEATURE_MOUNTNS].status != FEATURE_YES)
        return;
    if (probe_note(&f[FEATURE_MOUNTNS], "mount(MS_REC | MS_PRIVATE)", mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL)))
        try_mount_api(f);
}

/* A user namespace of a child, mapped by us to @uid; returns an fd of it, the child is reaped. */
static int
mapped_userns(struct feature_state *f, uint32_t uid)
{
    cleanup_close int ns = -1;
    cleanup_close int gate_r = -1;
    cleanup_close int gate_w = -1;
    char path[64], map[64], byte;
    int gate[2];
    pid_t pid;

    if (pipe2(gate, O_CLOEXEC) < 0)
        return -1;
    gate_r = gate[0];
    gate_w = gate[1];
    pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    if (pid < 0)
        return -1;
    if (pid == 0) {
        close(gate_w);
        _exit(read(gate_r, &byte, 1) < 0);     /* until the parent is done with our namespace */
    }
    snprintf(map, sizeof(map), "1000 %u 1", (unsigned)uid);
    if (probe_note(&f[FEATURE_OWN_UID], "write(/proc/PID/uid_map)", write_map(pid, "uid_map", map)))
        probe_note(&f[FEATURE_OWN_UID], "write(/proc/PID/gid_map)", write_map(pid, "gid_map", map));
    snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
    ns = open(path, O_RDONLY | O_CLOEXEC);
    close_fd(&gate_w);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return take_fd(&ns);
}

void
probe_try_root(struct feature_state *f)
{
    struct k_mount_attr attr = { .attr_set = K_ATTR_IDMAP };
    uint32_t own = given_uid();
    cleanup_close int ns = mapped_userns(f, own != 0 ? own : OTHER_UID);
    cleanup_close int tree = -1;

    if (ns < 0)
        return;
    if (!probe_note(&f[FEATURE_IDMAP], "unshare(CLONE_NEWNS)", unshare(CLONE_NEWNS)))
        return;
    /* the caller's directory: idmapping is a property of its file system, and a project is what gets bound */
    tree = (int)syscall(SYS_open_tree, AT_FDCWD, ".", K_OPEN_TREE_CLONE | O_CLOEXEC);
    if (!probe_note(&f[FEATURE_IDMAP], "open_tree(.)", tree))
        return;
    attr.userns_fd = (uint64_t)ns;
    probe_note(&f[FEATURE_IDMAP], "mount_setattr(MOUNT_ATTR_IDMAP)",
               syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)));
}

void
probe_try_proc_outside(struct feature_state *f)
{
    static const enum feature which[] = { FEATURE_PROC_MOUNT, FEATURE_PROC_SUBSET };
    cleanup_close int pidfd = -1;
    pid_t pid = ns_clone(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID, -1, &pidfd, NULL);

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    for (size_t i = 0; pid > 0 && i < ARRAY_LEN(which); i++) {
        cleanup_close int proc = proc_from_outside(pidfd, which[i] == FEATURE_PROC_SUBSET, false, NULL);
        if (proc < 0)
            continue;       /* what refused before is the reason */
        f[which[i]].status = FEATURE_YES;
        f[which[i]].sys_errno = 0;
        snprintf(f[which[i]].detail, sizeof(f[which[i]].detail), "made from outside: the outer one is partly covered");
    }
    if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
}
