/* engine/native/launch.c: see launch.h
 *
 * Theory of operation. The child starts with every capability in its own user namespace and the host's tree in
 * view, and ends as the guest with neither. Each step needs what the next one gives up:
 *
 *   1. die with the parent; join the cgroups (v1)      before anything can be allocated
 *   2. become the sandbox's user                       capabilities stay: they belong to the namespace
 *   3. lo up, host name, root file system, pivot       needs CAP_NET_ADMIN, CAP_SYS_ADMIN
 *   4. descriptors: 0-2 /dev/null, 3 transport         nothing of the host stays open
 *   5. limits, capabilities to zero, no_new_privs      last use of CAP_SETPCAP
 *   6. Landlock, then seccomp                          Landlock opens paths, which the filter could refuse
 *   7. exec the guest
 */
#include "engine/native/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "guest/guest_image.h"
#include "wall/caps.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

#define FD_GUEST  4
#define FD_STATUS 5
#define FD_TEMP   20    /* no descriptor that we keep is parked below */

static _Noreturn void
give_up(int status, const struct err *err)
{
    io_write_full(status, err, sizeof(*err));
    _exit(125);
}

static int
wait_for_go(const struct launch *l, struct err *err)
{
    char byte;

    /* the parent may have died before this took effect: then the pipe is at its end */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return err_sys(err, errno, "wall.pdeathsig", "PR_SET_PDEATHSIG");
    if (io_read_full(l->go, &byte, 1) < 0)
        _exit(125);
    return 0;
}

/* Leave 0-2 on /dev/null, 3 the transport, 4 the guest, 5 the status pipe, and nothing else. */
static int
descriptors(const struct launch *l, int *status, struct err *err)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int high[4] = { -1, -1, -1, -1 };
    const int from[4] = { null, l->transport, l->guest, *status };

    if (null < 0)
        return err_sys(err, errno, "wall.fds", "/dev/null");
    for (size_t i = 0; i < 4; i++) {
        high[i] = fcntl(from[i], F_DUPFD_CLOEXEC, FD_TEMP);
        if (high[i] < 0)
            return err_sys(err, errno, "wall.fds", "duplicate");
    }
    for (int fd = 0; fd < 3; fd++)
        if (dup2(high[0], fd) < 0)
            return err_sys(err, errno, "wall.fds", "standard descriptors");
    if (dup2(high[1], 3) < 0 || dup3(high[2], FD_GUEST, O_CLOEXEC) < 0 || dup3(high[3], FD_STATUS, O_CLOEXEC) < 0)
        return err_sys(err, errno, "wall.fds", "guest's descriptors");
    *status = FD_STATUS;
    if (close_range(FD_STATUS + 1, ~0U, 0) < 0) {
        if (errno != ENOSYS && errno != EPERM)
            return err_sys(err, errno, "wall.fds", "close_range");
        for (int fd = FD_STATUS + 1; fd < 65536; fd++)
            close(fd);
    }
    return 0;
}

static int
landlock(const struct native_plan *plan, struct err *err)
{
    struct landlock_rule rules[PLAN_RULES_MAX];
    struct landlock_plan l = plan->landlock;

    if (plan->landlock_support.abi == 0)
        return 0;       /* plan_make has refused, or decided that the other walls hold */
    for (size_t i = 0; i < plan->n_rules; i++)
        rules[i] = (struct landlock_rule){ .fd = -1, .path = plan->rules[i].path, .access = plan->rules[i].access,
                                           .optional = plan->rules[i].optional };
    l.rules = rules;
    l.n_rules = plan->n_rules;
    return landlock_restrict(&l, &plan->landlock_support, err);
}

static int
namespaces(const struct launch *l, struct err *err)
{
    const struct native_plan *plan = l->plan;

    if (plan->light)
        return 0;
    /* a uid change drops capabilities unless told otherwise */
    prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
    if (ns_become(&plan->ids, err) < 0)
        return -1;
    if (plan->own_net && ns_loopback_up(err) < 0)
        return -1;
    if (sethostname(plan->hostname, strlen(plan->hostname)) < 0)
        return err_sys(err, errno, "wall.uts", "host name");
    return root_enter(&plan->root, err);
}

void
launch_child(const struct launch *l)
{
    char name[] = "cloche-guest";
    char *const argv[] = { name, NULL };
    char *const env[] = { NULL };
    struct err err = ERR_INIT;
    int status = l->status;
    sigset_t none;

    if (wait_for_go(l, &err) < 0 || cgroup_join(l->cgroup, &err) < 0 || namespaces(l, &err) < 0 ||
        descriptors(l, &status, &err) < 0)
        give_up(status, &err);
    if (chdir(l->plan->workdir) < 0) {
        err_sys(&err, errno, "wall.workdir", "working directory %s", l->plan->workdir);
        err_hint(&err, "--workdir must name a folder that exists inside the sandbox");
        give_up(status, &err);
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    if (rlimit_apply(&l->rlimits, &err) < 0 || caps_drop_all(&err) < 0 || landlock(l->plan, &err) < 0 ||
        seccomp_install(&l->plan->seccomp, &err) < 0)
        give_up(status, &err);
    syscall(SYS_execveat, FD_GUEST, "", argv, env, AT_EMPTY_PATH);
    err_sys(&err, errno, "wall.guest", "start the guest");
    give_up(status, &err);
}

int
launch_guest_image(struct err *err)
{
    cleanup_close int fd = memfd_create("cloche-guest", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);

    if (fd < 0 && errno == EINVAL)      /* before Linux 6.3 every memfd is executable */
        fd = memfd_create("cloche-guest", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        int why = errno;
        err_sys(err, why, "wall.guest.memfd", "memfd_create");
        return err_hint(err, why == EACCES ? "vm.memfd_noexec=2 forbids executable memory files; set it to 1 or 0"
                                           : "the guest runs from a sealed memory file, which needs Linux 3.17 and no "
                                             "outer filter that hides memfd_create");
    }
    if (io_write_full(fd, guest_image, guest_image_size) < 0)
        return err_sys(err, errno, "wall.guest.memfd", "write the guest");
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        return err_sys(err, errno, "wall.guest.memfd", "seal the guest");
    return take_fd(&fd);
}
