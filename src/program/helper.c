/* program/helper.c: cloche's other programs */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "program/helper.h"
#include "wall/cgroup.h"
#include "wall/ns.h"

#define FD_FIRST 3
#define FD_HIGH  (FD_FIRST + 1 + HELPER_FDS_MAX)    /* above everything that gets a fixed number in the child */

int
helper_find(const char *folder, const char *name, char out[PATH_MAX], struct err *err)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (n <= 0)
        return err_sys(err, errno, "cli.program", "/proc/self/exe");
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    if ((snprintf(out, PATH_MAX, "%s/../%s/%s", self, folder, name) < PATH_MAX && access(out, X_OK) == 0) ||
        (snprintf(out, PATH_MAX, "%s/../libexec/cloche/%s", self, name) < PATH_MAX && access(out, X_OK) == 0))
        return 0;
    err_set(err, ERR_UNSUPPORTED, "cli.program", "%s is not beside %s, nor in ../libexec/cloche", name, self);
    return err_hint(err, "install cloche whole");
}

static _Noreturn void
child(const struct helper *h, const char *program, int control)
{
    int fds[1 + HELPER_FDS_MAX], null = open("/dev/null", O_RDWR | O_CLOEXEC), n = 1 + (int)h->n_fds;
    char name[64];
    char *const argv[] = { name, NULL };
    sigset_t none;

    prctl(PR_SET_PDEATHSIG, SIGKILL);       /* until it knows better (wall/service.h) */
    snprintf(name, sizeof(name), "%s", h->name);
    for (size_t i = 0; h->cgroup != NULL && i < CGROUP_HIERARCHIES; i++)
        if (h->cgroup->tasks[i] >= 0 && cgroup_join(&h->cgroup->tasks[i], 1, NULL) < 0)
            _exit(1);
    /* the user's own streams are not its business; stderr may be, until it has started */
    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || (h->mute && dup2(null, 2) < 0))
        _exit(1);
    fds[0] = control;
    for (int i = 1; i < n; i++)
        fds[i] = h->fds[i - 1];
    for (int i = 0; i < n; i++)
        fds[i] = fcntl(fds[i] >= 0 ? fds[i] : null, F_DUPFD_CLOEXEC, FD_HIGH);
    for (int i = 0; i < n; i++)
        if (fds[i] < 0 || dup2(fds[i], FD_FIRST + i) < 0)
            _exit(1);
    (void)io_close_from(FD_FIRST + n);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    execve(program, argv, h->env);
    _exit(1);
}

pid_t
helper_spawn(const struct helper *h, const char *program, int control, bool sibling, struct err *err)
{
    int in = h->cgroup != NULL && h->cgroup->kind == CGROUP_V2 ? h->cgroup->dirs[0] : -1;
    cleanup_close int pidfd = -1;
    pid_t pid = ns_clone(sibling ? CLONE_PARENT : 0, in, &pidfd, err);

    if (pid == 0)
        child(h, program, control);
    return pid < 0 ? err_wrap(err, "start %s", h->name) : pid;
}

pid_t
helper_start(const struct helper *h, int *control, struct err *err)
{
    cleanup_close int ours = -1, theirs = -1;
    char program[PATH_MAX];
    int pair[2];
    pid_t pid;

    if (h->n_fds > HELPER_FDS_MAX)
        return err_set(err, ERR_LIMIT, "cli.program", "too many descriptors for %s", h->name);
    if (helper_find(h->folder, h->name, program, err) < 0)
        return -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, errno, "cli.program", "socketpair");
    ours = pair[0];
    theirs = pair[1];
    pid = helper_spawn(h, program, theirs, false, err);
    if (pid < 0)
        return -1;
    *control = take_fd(&ours);
    return pid;
}
