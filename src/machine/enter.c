/* machine/enter.c: see enter.h
 *
 * The tree was built outside, with everything that is closed or read-only in it, and that holds whatever is done here:
 * the host's kernel and virtiofsd keep it. What is made here is what the machine's own kernel shows of itself, in the
 * same shape as the other engines have it.
 */
#include "machine/enter.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "machine/docker.h"
#include "wall/caps.h"
#include "wall/ns.h"
#include "wall/rlimit.h"
#include "wall/root.h"
#include "wall/root_dev.h"

#define QUIET   (MS_NOSUID | MS_NODEV | MS_NOEXEC)

static int
fail(struct err *err, const char *what)
{
    return err_sys(err, errno, "machine.root", "%s", what);
}

/* @path of the new root shows @source, read-only. Not all kernels have everything there. */
static int
cover(const char *source, const char *path, struct err *err)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return 0;
    if (source == NULL)
        source = S_ISDIR(st.st_mode) ? MACHINE_EMPTY_D : MACHINE_EMPTY;
    if (mount(source, path, NULL, MS_BIND, NULL) < 0 ||
        mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | QUIET, NULL) < 0)
        return fail(err, path);
    return 0;
}

static int
proc(bool whole, struct err *err)
{
    const char *name;
    char path[128];
    bool masked;

    if (mount("proc", MACHINE_ROOT "/proc", "proc", QUIET, whole ? NULL : "hidepid=invisible") < 0)
        return fail(err, "/proc");
    for (size_t i = 0; !whole && (name = root_proc_name(i, &masked)) != NULL; i++) {
        snprintf(path, sizeof(path), MACHINE_ROOT "/proc/%s", name);
        if (cover(masked ? NULL : path, path, err) < 0)
            return -1;
    }
    return 0;
}

static int
dev(struct err *err)
{
    cleanup_close int fd = -1;

    if (mount("tmpfs", MACHINE_ROOT "/dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755,size=64k") < 0)
        return fail(err, "/dev");
    fd = open(MACHINE_ROOT "/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || root_dev_fill(fd, false, err) < 0)
        return fd < 0 ? fail(err, "/dev") : -1;
    if (mount("shm", MACHINE_ROOT "/dev/shm", "tmpfs", QUIET, "mode=1777,size=64m") < 0)
        return fail(err, "/dev/shm");
    return mount(NULL, MACHINE_ROOT "/dev", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NOEXEC, NULL) < 0
               ? fail(err, "/dev") : 0;
}

/* What lies below is the initramfs, where no path leads; pivot_root(2) is not for it. */
static int
move(struct err *err)
{
    return chdir(MACHINE_ROOT) < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 || chdir("/") < 0
               ? fail(err, "enter the tree") : 0;
}

static struct ns_ids
ids_of(const struct machine_config *c)
{
    return (struct ns_ids){ c->uid, c->gid, c->uid, c->gid, false };
}

int
machine_map(const struct machine_config *c, pid_t pid, int child, struct err *err)
{
    const struct ns_ids ids = ids_of(c);
    char byte;

    if (io_read_full(child, &byte, 1) < 0)
        return fail(err, "the guest's process");
    if (c->filter[0] == '\0')
        return io_write_full(child, "m", 1) < 0 ? fail(err, "tell it") : 0;
    return ns_write_maps(pid, &ids, err) < 0 ? -1 : io_write_full(child, "m", 1) < 0 ? fail(err, "tell it") : 0;
}

/* In a user namespace of its own, in which one user exists, as elsewhere. */
static int
become(const struct machine_config *c, int maker, struct err *err)
{
    const struct ns_ids ids = ids_of(c);
    const struct rlimit_plan limits = { .nofile = c->nofile, .nproc = c->nproc };
    char byte;

    if (sethostname(c->hostname, strlen(c->hostname)) < 0)
        return fail(err, "host name");
    if (setsid() < 0 || rlimit_apply(&limits, err) < 0)
        return fail(err, "session");
    if (c->filter[0] == '\0')
        return io_write_full(maker, "r", 1) < 0 || io_read_full(maker, &byte, 1) < 0 ? fail(err, "user") : 0;
    if (unshare(CLONE_NEWUSER) < 0 || io_write_full(maker, "u", 1) < 0 || io_read_full(maker, &byte, 1) < 0)
        return fail(err, "user namespace");
    if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
        return fail(err, "user");
    return ns_become(&ids, err) < 0 || caps_raise(err) < 0 ? -1 : caps_drop_all(err);
}

/* 0 to 2 lead nowhere, 3 is the transport; all others close with the program. */
static int
descriptors(int port, struct err *err)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), high = fcntl(port, F_DUPFD_CLOEXEC, MACHINE_FD_HIGH);

    if (null < 0 || high < 0 || dup2(high, 3) < 0)
        return fail(err, "descriptors");
    for (int fd = 0; fd < 3; fd++)
        if (null != fd && dup2(null, fd) < 0)
            return fail(err, "descriptors");
    return 0;
}

void
machine_enter(const struct machine_config *c, int port, int maker, struct err *err)
{
    char name[] = "cloche-guest", filter[sizeof(c->filter)], workdir[sizeof(c->workdir)];
    char *const argv[] = { name, filter, workdir, NULL }, *const env[] = { NULL };
    sigset_t none;

    snprintf(filter, sizeof(filter), "%s", c->filter);
    snprintf(workdir, sizeof(workdir), "%s", c->workdir);
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
        fail(err, "keep mounts to itself");
        return;
    }
    if (proc(c->docker, err) < 0 || dev(err) < 0 || (c->docker && machine_docker_mounts(err) < 0) || move(err) < 0 ||
        (c->docker && machine_docker_start(err) < 0) || descriptors(port, err) < 0 || become(c, maker, err) < 0)
        return;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(c->guest, argv, env);
    fail(err, c->guest);
}
