/* wall/janitor.c: see janitor.h */
#include "wall/janitor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

#define ATTEMPTS 5000           /* of 2 ms: ten seconds */

/* Until the maker's end, however it comes. What it sends is kept open; left in the socket, it would count against what
 * its user may send. */
static void
wait_for_end(int socket_fd)
{
    union { char bytes[CMSG_SPACE(JANITOR_HELD_MAX * sizeof(int))]; struct cmsghdr align; } control;
    struct msghdr m;
    struct iovec iov;
    char byte;

    do {
        iov = (struct iovec){ &byte, 1 };
        m = (struct msghdr){ .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes) };
    } while (io_recvmsg(socket_fd, &m, MSG_CMSG_CLOEXEC) > 0);
}

static _Noreturn void
janitor_main(janitor_job *job, void *ctx, int socket_fd)
{
    const struct timespec pause_time = { 0, 2 * 1000 * 1000 };

    setsid();
    prctl(PR_SET_NAME, "cloche-janitor");
    prctl(PR_SET_PDEATHSIG, SIGCONT);       /* stopped, it would not see that its time has come */
    wait_for_end(socket_fd);
    for (int i = 0; i < ATTEMPTS && !job(ctx); i++)
        nanosleep(&pause_time, NULL);
    _exit(0);
}

/* An inherited descriptor would keep the maker's files and pipes open. */
static void
keep_only(int *socket_fd)
{
    int high = fcntl(*socket_fd, F_DUPFD_CLOEXEC, 3);

    if (high < 0 || dup2(high, 3) < 0)
        _exit(1);
    (void)io_close_from(4);
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    *socket_fd = 3;
}

int
janitor_start(struct janitor *j, janitor_job *job, void *ctx, struct err *err)
{
    int ends[2];
    sigset_t all, old;
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_sys(err, errno, "wall.janitor", "socketpair");
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &old);
    pid = fork();
    if (pid == 0) {
        keep_only(&ends[0]);
        janitor_main(job, ctx, ends[0]);
    }
    sigprocmask(SIG_SETMASK, &old, NULL);
    close(ends[0]);
    if (pid < 0) {
        close(ends[1]);
        return err_sys(err, errno, "wall.janitor", "fork");
    }
    j->pid = pid;
    j->end = ends[1];
    return 0;
}

bool
janitor_renew(struct janitor *j, janitor_job *job, void *ctx)
{
    if (j->pid > 0 && waitpid(j->pid, NULL, WNOHANG) == 0)
        return true;
    close_fd(&j->end);
    j->pid = -1;
    return janitor_start(j, job, ctx, NULL) == 0;
}

/* Dismissed and not yet reaped: it is waited for with the next one, or by whoever inherits it. */
static pid_t unreaped = -1;

void
janitor_dismiss(struct janitor *j, bool done)
{
    if (j->pid <= 0)
        return;
    if (unreaped > 0)
        while (waitpid(unreaped, NULL, 0) < 0 && errno == EINTR)
            ;
    unreaped = -1;
    if (done) {
        kill(j->pid, SIGKILL);
        unreaped = j->pid;
    }
    close_fd(&j->end);
    j->pid = -1;
}
